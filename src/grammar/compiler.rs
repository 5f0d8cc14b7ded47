//! From constraints to matchers. The last few are kept: an application asks for the same again and again.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

use super::any_of::AnyOf;
use super::limits::{MAX_BYTES, MAX_NESTING, parser_limits};
use super::matcher::{Guide, first_line, says_that_nothing_may_come};
use super::schema::{Checked, blame, check, with_style};
use super::vocabulary::{Encode, environment};
use super::{Compile, Constraint, GrammarError, Match, Result, Schema, Vocabulary};

/// How llguidance refuses a `oneOf` of which two parts may allow the same, and what we say of it.
const OVERLAP: &str = "oneOf constraints are not supported";
const OVERLAP_HELP: &str = "oneOf: its schemas have to exclude each other by their type or by a required property of a constant \
    value; anyOf takes any";

/// Constraints that are kept compiled.
const MAX_COMPILED: usize = 8;

/// Compiles constraints for one vocabulary.
pub struct GrammarCompiler {
    factory: ParserFactory,
    /// Tokens that end an answer.
    ends: Rc<[u32]>,
    /// The one that was used last in front.
    compiled: RefCell<VecDeque<(Constraint, Guide)>>,
}

impl GrammarCompiler {
    /// A compiler for a vocabulary. `encode` is how the model's tokenizer writes a text in the middle of another.
    ///
    /// # Errors
    /// For a vocabulary that is too large.
    pub fn new(vocabulary: Vocabulary, encode: Rc<Encode>) -> Result<Self> {
        let ends = vocabulary.end_of_generation.clone().into();
        let environment = environment(vocabulary, encode)?;
        let mut factory = ParserFactory::new_simple(&environment).map_err(|error| GrammarError(error.to_string()))?;
        *factory.limits_mut() = parser_limits();
        factory.quiet();
        Ok(Self { factory, ends, compiled: RefCell::default() })
    }

    fn build(&self, grammars: Vec<GrammarWithLexer>) -> std::result::Result<Matcher, String> {
        let grammar = TopLevelGrammar { grammars, max_tokens: None };
        let mut matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(first_line(&error).to_owned()),
            // Whether anything can be said at all.
            None => match matcher.compute_mask() {
                Ok(_) => Ok(matcher),
                Err(error) if says_that_nothing_may_come(&error) => {
                    Err("it allows no text, not even an empty one".into())
                }
                Err(error) if matcher.is_error() => Err(first_line(&error.to_string()).to_owned()),
                Err(_) => Ok(matcher),
            },
        }
    }

    /// A matcher of one schema alone.
    fn build_schema(&self, schema: &Value) -> std::result::Result<Matcher, String> {
        self.build(vec![GrammarWithLexer::from_json_schema(with_style(schema))])
    }

    fn build_constraint(&self, constraint: &Constraint) -> Result<Matcher> {
        match constraint {
            Constraint::JsonSchema(schema) => {
                let checked = check(schema)?;
                self.build_schema(&checked.value).map_err(|error| self.schema_error(schema, &checked, &error))
            }
            Constraint::Regex { pattern, field } => {
                check_text(pattern, field)?;
                let built = self.build(vec![GrammarWithLexer::from_regex(pattern)]);
                built.map_err(|error| GrammarError(format!("{field}: {}", of_expression(pattern, &error))))
            }
            Constraint::Lark { grammar, schemas, field } => self.build_lark(grammar, schemas, field),
            Constraint::AnyOf { .. } => Err(GrammarError("alternatives are compiled one by one".into())),
        }
    }

    fn build_lark(&self, grammar: &str, schemas: &[Schema], field: &str) -> Result<Matcher> {
        check_text(grammar, field)?;
        let mut grammars = vec![GrammarWithLexer::from_lark(grammar.to_owned())];
        let mut values = Vec::with_capacity(schemas.len());
        for schema in schemas {
            let checked = check(schema)?;
            let part = GrammarWithLexer::from_json_schema(with_style(&checked.value));
            grammars.push(GrammarWithLexer { name: Some(schema.name.clone()), ..part });
            values.push(checked);
        }
        self.build(grammars).map_err(|error| {
            // A schema that does not compile by itself is to blame, else the grammar.
            let broken = schemas.iter().zip(&values).find_map(|(schema, checked)| {
                let error = self.build_schema(&checked.value).err()?;
                Some(self.schema_error(schema, checked, &error))
            });
            broken.unwrap_or_else(|| GrammarError(format!("{field}: {error}")))
        })
    }

    fn schema_error(&self, schema: &Schema, checked: &Checked, error: &str) -> GrammarError {
        let path = checked.path(blame(&checked.value, error, &|part| self.build_schema(part).err()));
        let why = if error.starts_with(OVERLAP) { OVERLAP_HELP } else { error };
        GrammarError(format!("{}{path}: {why}", schema.field))
    }
}

impl Compile for GrammarCompiler {
    fn compile(&self, constraint: &Constraint) -> Result<Box<dyn Match>> {
        if let Constraint::AnyOf { parts } = constraint {
            let matchers = parts.iter().map(|part| self.compile(part)).collect::<Result<_>>()?;
            return Ok(Box::new(AnyOf::new(matchers, Rc::clone(&self.ends))));
        }
        let mut compiled = self.compiled.borrow_mut();
        let known = compiled.iter().position(|(known, _)| known == constraint);
        let entry = match known.and_then(|index| compiled.remove(index)) {
            Some(entry) => entry,
            None => {
                let num_tokens = self.factory.tok_env().tok_trie().vocab_size();
                (constraint.clone(), Guide::new(self.build_constraint(constraint)?, num_tokens))
            }
        };
        let matcher = entry.1.fork();
        compiled.push_front(entry);
        compiled.truncate(MAX_COMPILED);
        Ok(matcher)
    }
}

/// What is wrong with a regular expression, and at which of its characters, without the grammar that llguidance makes of it:
/// `regex-syntax` marks the place in a line below that of the expression. Anything else is left as it is.
fn of_expression(pattern: &str, error: &str) -> String {
    let Some(why) = error.lines().find_map(|line| line.strip_prefix("error: ")) else { return error.to_owned() };
    if pattern.contains('\n') {
        return why.to_owned();
    }
    let marks = error.lines().find(|line| line.contains('^') && line.trim_matches([' ', '^']).is_empty());
    let place = marks.and_then(|line| line.find('^')).and_then(|at| at.checked_sub(MARGIN));
    place.map_or_else(|| why.to_owned(), |at| format!("{why}, at character {}", at + 1))
}

/// Spaces in front of the expression in what `regex-syntax` says.
const MARGIN: usize = 4;

/// Refuses what would take too much of the stack or of time to read.
fn check_text(text: &str, field: &str) -> Result<()> {
    if text.is_empty() {
        return Err(GrammarError(format!("{field}: it is empty")));
    }
    if text.len() > MAX_BYTES {
        return Err(GrammarError(format!("{field}: {} bytes asked, {MAX_BYTES} allowed", text.len())));
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    if deepest > MAX_NESTING {
        let error = format!("{field}: brackets are {deepest} deep within each other, {MAX_NESTING} allowed");
        return Err(GrammarError(error));
    }
    Ok(())
}
