//! What Hugging Face's chat templates call that `minijinja` does not have, or has differently.

use std::fmt;

use super::template_values;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, State, Value};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// The variable that holds the time of a rendering; not a name that a template could use by accident.
const CLOCK: &str = "__now_unix_s";

/// Spaces that `tojson(indent=...)` may ask for.
const MAX_INDENT: usize = 16;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", tojson);
}

/// The variables that [`strftime_now`] reads.
pub(super) fn clock(now_unix_s: i64) -> Value {
    Value::from_pairs([(CLOCK, Value::from(now_unix_s))])
}

/// The words of a template that refused its input.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: &str) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.to_owned()).with_source(Raised(message.to_owned())))
}

/// The message with which a template refused, if that is what this error is.
pub(super) fn raised(error: &minijinja::Error) -> Option<&str> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(Raised(message)) = error.downcast_ref() {
            return Some(message);
        }
        source = error.source();
    }
    None
}

/// JSON as Python writes it: a space after commas and colons, nothing escaped for HTML.
fn tojson(state: &State, value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let sort_keys: Option<bool> = options.get("sort_keys")?;
    // Only what is the default here anyway: text that is not ASCII stays as it is.
    let _ensure_ascii: Option<bool> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let failed = |error| Error::new(ErrorKind::InvalidOperation, "cannot write this as JSON").with_source(error);
    template_values::check_written(state, value)?;
    let mut json = serde_json::to_value(value).map_err(failed)?;
    if sort_keys == Some(true) {
        json.sort_all_objects();
    }
    let mut bytes = Vec::new();
    let written = match indent {
        None => json.serialize(&mut Serializer::with_formatter(&mut bytes, Spaced)),
        Some(indent) => {
            let spaces = vec![b' '; indent.min(MAX_INDENT)];
            json.serialize(&mut Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(&spaces)))
        }
    };
    written.map_err(failed)?;
    state.consume_fuel(bytes.len() as u64 / 64)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::from(ErrorKind::InvalidOperation))?;
    Ok(Value::from_safe_string(text))
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The time of the rendering, formatted as C's `strftime` does in English. Seconds since 1970 come from the caller.
fn strftime_now(state: &State, format: &str) -> Result<String, Error> {
    let now = state.lookup(CLOCK).and_then(|now| i64::try_from(now).ok()).unwrap_or(0);
    strftime(format, now)
}

/// A moment taken apart.
struct Moment {
    year: i64,
    /// 1 to 12.
    month: i64,
    /// 1 to 31.
    day: i64,
    /// 1 to 366.
    day_of_year: i64,
    /// 0 is Sunday.
    weekday: i64,
    /// 0 to 86,399.
    second_of_day: i64,
}

impl Moment {
    fn new(unix_s: i64) -> Self {
        let days = unix_s.div_euclid(86_400);
        // Never too late a year, whichever side of 1970.
        let mut year = 1970 + days.div_euclid(366).min(days.div_euclid(365));
        while days >= days_before_year(year + 1) {
            year += 1;
        }
        let mut rest = days - days_before_year(year);
        let day_of_year = rest + 1;
        let mut month = 1;
        while rest >= days_in_month(year, month) {
            rest -= days_in_month(year, month);
            month += 1;
        }
        let weekday = (days + 4).rem_euclid(7);
        Self { year, month, day: rest + 1, day_of_year, weekday, second_of_day: unix_s.rem_euclid(86_400) }
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1 January 1970 to 1 January of a year.
fn days_before_year(year: i64) -> i64 {
    let leaps = |year: i64| (year - 1).div_euclid(4) - (year - 1).div_euclid(100) + (year - 1).div_euclid(400);
    365 * (year - 1970) + leaps(year) - leaps(1970)
}

fn name(names: &'static [&'static str], index: i64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
}

fn strftime(format: &str, unix_s: i64) -> Result<String, Error> {
    // Years 0 to 9999: beyond them nothing is a date.
    let moment = Moment::new(unix_s.clamp(-62_167_219_200, 253_402_300_799));
    let mut text = String::new();
    let mut characters = format.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let mut letter = characters.next();
        let padded = letter != Some('-');
        if !padded {
            letter = characters.next();
        }
        text.push_str(&directive(&moment, letter, padded)?);
    }
    Ok(text)
}

/// What a directive such as `%d` stands for; `%-d` is not padded.
fn directive(moment: &Moment, letter: Option<char>, padded: bool) -> Result<String, Error> {
    let (hour, minute, second) =
        (moment.second_of_day / 3600, moment.second_of_day / 60 % 60, moment.second_of_day % 60);
    let (weekday, month) = (name(&DAYS, moment.weekday), name(&MONTHS, moment.month - 1));
    let number = |value: i64, width: usize| if padded { format!("{value:0width$}") } else { value.to_string() };
    Ok(match letter {
        Some('Y') => moment.year.to_string(),
        Some('y') => number(moment.year % 100, 2),
        Some('m') => number(moment.month, 2),
        Some('d') => number(moment.day, 2),
        Some('e') if padded => format!("{:2}", moment.day),
        Some('e') => moment.day.to_string(),
        Some('j') => number(moment.day_of_year, 3),
        Some('H') => number(hour, 2),
        Some('I') => number((hour + 11) % 12 + 1, 2),
        Some('M') => number(minute, 2),
        Some('S') => number(second, 2),
        Some('p') => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
        Some('A') => weekday.to_owned(),
        Some('a') => weekday[..3].to_owned(),
        Some('B') => month.to_owned(),
        Some('b' | 'h') => month[..3].to_owned(),
        Some('w') => moment.weekday.to_string(),
        Some('F') => format!("{}-{:02}-{:02}", moment.year, moment.month, moment.day),
        Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
        Some('%') => "%".to_owned(),
        other => {
            let other = other.map(String::from).unwrap_or_default();
            return Err(Error::new(ErrorKind::InvalidOperation, format!("strftime_now: unknown directive %{other}")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::strftime;

    #[test]
    fn dates_are_what_a_calendar_says() {
        let cases = [
            (0, "%Y-%m-%d %H:%M:%S %A", "1970-01-01 00:00:00 Thursday"),
            (951_782_400, "%d %b %Y, %a %j", "29 Feb 2000, Tue 060"),
            (1_735_689_599, "%B %-d, %Y %I:%M %p %%", "December 31, 2024 11:59 PM %"),
            (-1, "%F %T %y", "1969-12-31 23:59:59 69"),
            (4_107_542_400, "%e %F", " 1 2100-03-01"),
            (i64::MAX, "%Y", "9999"),
            (i64::MIN, "%F", "0-01-01"),
        ];
        for (now, format, text) in cases {
            assert_eq!(strftime(format, now).expect("a known format"), text);
        }
        assert!(strftime("%Q", 0).is_err() && strftime("%", 0).is_err());
    }
}
