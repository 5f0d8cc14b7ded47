//! Constraints on a model's tokens: the only module that knows `pagewise_grammar`.

use std::rc::Rc;

pub(super) use pagewise_grammar::{ANNOTATIONS, pointer};
pub use pagewise_grammar::{Compile, Constraint, GrammarError, Match, Schema};

use super::Tokenizer;
use crate::{Error, Result};

/// Compiles constraints for a tokenizer. Nothing is made before the first is asked for.
pub struct Grammars {
    tokenizer: Rc<Tokenizer>,
    compiler: Option<Box<dyn Compile>>,
}

impl Grammars {
    /// Grammars over a tokenizer's tokens.
    pub fn new(tokenizer: Rc<Tokenizer>) -> Self {
        Self { tokenizer, compiler: None }
    }

    /// Puts a compiler in its place, where it is not linked but loaded.
    pub fn set_compiler(&mut self, compiler: Box<dyn Compile>) {
        self.compiler = Some(compiler);
    }

    /// A matcher at the beginning of an answer.
    ///
    /// # Errors
    /// `bad_request` that says what in the constraint is wrong, not supported or too much.
    pub fn compile(&mut self, constraint: &Constraint) -> Result<Box<dyn Match>> {
        if self.compiler.is_none() {
            self.compiler = Some(linked(&self.tokenizer)?);
        }
        let compiler = self.compiler.as_deref().ok_or_else(not_there)?;
        Ok(compiler.compile(constraint)?)
    }
}

fn not_there() -> Error {
    Error::BadRequest("there is no compiler for constraints here".into())
}

/// The compiler that a program is linked with.
#[cfg(not(target_arch = "wasm32"))]
fn linked(tokenizer: &Rc<Tokenizer>) -> Result<Box<dyn Compile>> {
    let ids = || (0..).take(tokenizer.vocab_size());
    let vocabulary = pagewise_grammar::Vocabulary {
        words: ids().map(|id| tokenizer.token_bytes(id).unwrap_or_default()).collect(),
        special: ids().filter(|&id| tokenizer.is_special(id)).collect(),
        end_of_generation: tokenizer.end_of_generation().to_vec(),
    };
    let tokenizer = Rc::clone(tokenizer);
    // What cannot be encoded is written with the tokens that there are.
    let encode = Rc::new(move |text: &str| tokenizer.encode_within(text).unwrap_or_default());
    Ok(Box::new(pagewise_grammar::GrammarCompiler::new(vocabulary, encode)?))
}

/// A page loads its compiler.
#[cfg(target_arch = "wasm32")]
fn linked(_: &Rc<Tokenizer>) -> Result<Box<dyn Compile>> {
    Err(not_there())
}

impl From<GrammarError> for Error {
    fn from(error: GrammarError) -> Self {
        Self::BadRequest(error.0)
    }
}
