//! Reading GGUF model files.
//!
//! [`open`] reads the headers of a model through a [`ByteSource`], by ranges and never as a whole. [`Parser`] does the work
//! without any input or output of its own: it asks for bytes and is fed them. Files are not trusted: every count and length
//! is held against a limit of [`limits`] and against what is left of the file before anything is allocated for it, and a
//! tensor that a [`Gguf`] lists lies wholly inside its part, apart from all others.
//!
//! Versions 2 and 3, little-endian. Deliberately absent: version 1, big-endian files, arrays of arrays, writing.

mod cursor;
#[cfg(not(target_arch = "wasm32"))]
mod file;
pub mod limits;
mod metadata;
mod model;
mod parser;
mod split;
mod tensor;
mod value;

#[cfg(not(target_arch = "wasm32"))]
pub use file::FileSource;
pub use metadata::Metadata;
pub use model::{ByteSource, Gguf, open};
pub use parser::{Header, Parser, Progress};
pub use split::part_names;
pub use tensor::TensorInfo;
pub use value::{Array, StringArray, Value};
