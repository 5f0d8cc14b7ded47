//! Which tokens may come next: JSON Schema, regular expressions and Lark grammars as masks over a vocabulary.
//!
//! A crate of its own, because few requests need it and its code is a quarter of the engine's: a page loads it, as a second
//! WebAssembly module, with the first request that has a [`Constraint`]. Programs link it. The engine knows the two traits
//! below and not who implements them. Grammars themselves are `llguidance`'s; what is ours is what it is asked and what it
//! may cost. The invariant to remember: an answer that ends by itself is whole. A mask that is not empty allows only what can
//! still become one, unless a rule leads to itself for ever: then there is an error at that place.

#[cfg(feature = "compiler")]
mod any_of;
#[cfg(feature = "compiler")]
mod compiler;
mod constraint;
#[cfg(all(feature = "compiler", target_arch = "wasm32"))]
pub mod exports;
#[cfg(feature = "compiler")]
mod limits;
#[cfg(feature = "compiler")]
mod matcher;
mod pointer;
#[cfg(feature = "compiler")]
mod references;
#[cfg(feature = "compiler")]
mod schema;
#[cfg(feature = "compiler")]
mod vocabulary;

#[cfg(feature = "compiler")]
pub use compiler::GrammarCompiler;
pub use constraint::{ANNOTATIONS, Constraint, Schema};
pub use pointer::pointer;
#[cfg(feature = "compiler")]
pub use schema::{FORMATS, KEYWORDS};
#[cfg(feature = "compiler")]
pub use vocabulary::{Encode, Vocabulary};

/// Why a constraint cannot be used, or not any further: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GrammarError(pub String);

/// Results of this crate.
pub type Result<T> = std::result::Result<T, GrammarError>;

/// Makes matchers of constraints, for one vocabulary.
pub trait Compile {
    /// A matcher at the beginning of an answer.
    ///
    /// # Errors
    /// What in the constraint is wrong, not supported or too much.
    fn compile(&self, constraint: &Constraint) -> Result<Box<dyn Match>>;
}

/// An answer as far as it is, and what may follow.
pub trait Match {
    /// The tokens that may come next, a bit each, the lowest bit of the first word first; tokens that end an answer are
    /// among them where it may end. Empty when nothing may come.
    ///
    /// # Errors
    /// When it would take too much to find out.
    fn mask(&mut self) -> Result<Vec<u32>>;

    /// Takes note of the next token; says whether the answer is complete and cannot go on.
    ///
    /// # Errors
    /// For a token that the mask does not allow.
    fn accept(&mut self, token: u32) -> Result<bool>;

    /// The tokens that must come next, one after the other: each is all that the mask would allow.
    fn forced(&mut self) -> Vec<u32>;

    /// Another one, at the same place.
    fn fork(&self) -> Box<dyn Match>;
}
