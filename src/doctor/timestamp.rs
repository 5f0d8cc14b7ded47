//! Dates and times in the notations that prompts carry.

use super::cursor::Cursor;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Seconds since 1970 that are taken for a time: 2001 to 2039.
const UNIX_SECONDS: std::ops::Range<u64> = 1_000_000_000..2_200_000_000;

/// The end of the date, the time of day or both that begin at `start`, and whether it is a whole point in time: such a
/// one is hardly ever written by hand.
pub(super) fn timestamp(text: &[char], start: usize) -> Option<(usize, bool)> {
    if let Some(end) = read(text, start, unix) {
        return Some((end, true));
    }
    let (mut at, mut end) = (start, None);
    let (mut has_date, mut has_time) = (false, false);
    loop {
        let next = if let Some(next) = read(text, at, date) {
            has_date = true;
            let after = read(text, next, joined_time);
            has_time |= after.is_some();
            after.unwrap_or(next)
        } else if let Some(next) = read(text, at, time) {
            has_time = true;
            next
        } else if let Some(next) = read(text, at, weekday) {
            next
        } else {
            break;
        };
        end = Some(next);
        let mut cursor = Cursor::new(text, next);
        cursor.skip(|c| matches!(c, ' ' | ',' | '(' | '['));
        let before_word = cursor.at;
        if !matches!(cursor.word().as_str(), "t" | "at" | "the") {
            cursor.at = before_word;
        }
        cursor.skip(|c| c == ' ');
        at = cursor.at;
    }
    end.map(|end| (end, has_date && has_time))
}

fn read(text: &[char], at: usize, read: impl Fn(&mut Cursor<'_>) -> Option<()>) -> Option<usize> {
    let mut cursor = Cursor::new(text, at);
    read(&mut cursor)?;
    Some(cursor.at)
}

/// Tries one way of reading, and leaves the cursor where it was if that fails.
fn attempt<'a, T>(cursor: &mut Cursor<'a>, read: impl Fn(&mut Cursor<'a>) -> Option<T>) -> Option<T> {
    let mut copy = *cursor;
    let found = read(&mut copy)?;
    *cursor = copy;
    Some(found)
}

/// Seconds or milliseconds since 1970.
fn unix(cursor: &mut Cursor<'_>) -> Option<()> {
    let number = cursor.number(10, 13)?;
    let is_time = UNIX_SECONDS.contains(&number) || UNIX_SECONDS.contains(&(number / 1000)) && number >= 1 << 40;
    attempt(cursor, |cursor| cursor.eat('.').and_then(|()| cursor.number(1, 9)));
    (is_time && cursor.is_boundary()).then_some(())
}

fn date(cursor: &mut Cursor<'_>) -> Option<()> {
    let found = attempt(cursor, year_first)
        .or_else(|| attempt(cursor, year_last))
        .or_else(|| attempt(cursor, compact))
        .or_else(|| attempt(cursor, month_day))
        .or_else(|| attempt(cursor, day_month));
    found?;
    // 2025-01-31T10:00 goes on with a letter.
    (cursor.is_boundary() || matches!(cursor.peek(), Some('T' | 't' | '_'))).then_some(())
}

fn in_range(number: u64, most: u64) -> Option<()> {
    (1..=most).contains(&number).then_some(())
}

/// 2025-01-31, 2025/1/31, 2025.01.31
fn year_first(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.number(4, 4)?;
    let separator = cursor.take(|c| matches!(c, '-' | '/' | '.'))?;
    in_range(cursor.number(1, 2)?, 12)?;
    cursor.eat(separator)?;
    in_range(cursor.number(1, 2)?, 31)
}

/// 31.01.2025, 1/31/2025, 1/31/25
fn year_last(cursor: &mut Cursor<'_>) -> Option<()> {
    in_range(cursor.number(1, 2)?, 31)?;
    let separator = cursor.take(|c| matches!(c, '-' | '/' | '.'))?;
    in_range(cursor.number(1, 2)?, 31)?;
    cursor.eat(separator)?;
    attempt(cursor, |cursor| cursor.number(4, 4))
        .or_else(|| attempt(cursor, |cursor| cursor.number(2, 2)).filter(|_| separator == '/'))
        .map(drop)
}

/// 20250131, also with the time of day: 20250131101500
fn compact(cursor: &mut Cursor<'_>) -> Option<()> {
    let number = attempt(cursor, |cursor| cursor.number(8, 8))
        .or_else(|| attempt(cursor, |cursor| cursor.number(14, 14)).map(|number| number / 1_000_000))?;
    (1900..2200).contains(&(number / 10_000)).then_some(())?;
    in_range(number / 100 % 100, 12)?;
    in_range(number % 100, 31)
}

fn month(cursor: &mut Cursor<'_>) -> Option<()> {
    let is_name = cursor.peek()?.is_uppercase();
    let word = cursor.word();
    // "You may 1 time ..."
    (is_name || word != "may").then_some(())?;
    MONTHS.iter().find(|&&name| name == word || name[..3] == word || word == "sept")?;
    attempt(cursor, |cursor| cursor.eat('.'));
    Some(())
}

/// 1, 1st, 31st
fn day(cursor: &mut Cursor<'_>) -> Option<()> {
    in_range(cursor.number(1, 2)?, 31)?;
    attempt(cursor, |cursor| matches!(cursor.word().as_str(), "st" | "nd" | "rd" | "th" | "").then_some(()))
}

fn year(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.skip(|c| matches!(c, ' ' | ','));
    cursor.number(4, 4).map(drop)
}

/// January 31, January 31st, 2025, January 2025
fn month_day(cursor: &mut Cursor<'_>) -> Option<()> {
    month(cursor)?;
    cursor.eat(' ')?;
    if attempt(cursor, |cursor| cursor.number(4, 4)).is_some() {
        return Some(());
    }
    day(cursor)?;
    attempt(cursor, year);
    Some(())
}

/// 31 January, 31 Jan 2025
fn day_month(cursor: &mut Cursor<'_>) -> Option<()> {
    day(cursor)?;
    attempt(cursor, |cursor| cursor.eat('.'));
    cursor.eat(' ')?;
    month(cursor)?;
    attempt(cursor, year);
    Some(())
}

/// The time of day in names of files, right behind the date: _10-15-30, T101530
fn joined_time(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.take(|c| matches!(c, '_' | 'T'))?;
    let parts = |cursor: &mut Cursor<'_>| {
        for separated in [false, true, true] {
            if separated {
                cursor.eat('-')?;
            }
            cursor.number(2, 2)?;
        }
        Some(())
    };
    attempt(cursor, parts).or_else(|| cursor.number(6, 6).map(drop))?;
    attempt(cursor, |cursor| cursor.eat('Z'));
    cursor.is_boundary().then_some(())
}

/// 10:15, 10:15:30.123Z, 10:15 pm, 10:15+02:00
fn time(cursor: &mut Cursor<'_>) -> Option<()> {
    (cursor.number(1, 2)? < 25).then_some(())?;
    cursor.eat(':')?;
    (cursor.number(2, 2)? < 60).then_some(())?;
    attempt(cursor, |cursor| cursor.eat(':').and_then(|()| cursor.number(2, 2)));
    attempt(cursor, |cursor| cursor.take(|c| matches!(c, '.' | ',')).and_then(|_| cursor.number(1, 9)));
    attempt(cursor, |cursor| {
        cursor.skip(|c| c == ' ');
        matches!(cursor.word().as_str(), "am" | "pm" | "z" | "utc" | "gmt" | "cet" | "est" | "pst").then_some(())
    });
    attempt(cursor, |cursor| {
        cursor.take(|c| matches!(c, '+' | '-'))?;
        cursor.number(2, 4)?;
        attempt(cursor, |cursor| cursor.eat(':').and_then(|()| cursor.number(2, 2)));
        Some(())
    });
    cursor.is_boundary().then_some(())
}

fn weekday(cursor: &mut Cursor<'_>) -> Option<()> {
    let word = cursor.word();
    let is_day = WEEKDAYS.contains(&word.as_str());
    let is_short = matches!(word.as_str(), "mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun");
    ((is_day || is_short && cursor.peek() == Some(',')) && cursor.is_boundary()).then_some(())
}
