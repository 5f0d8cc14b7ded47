//! Models in files on disk; not there in a web page.

use super::model::ByteSource;
use super::split::part_names;
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A model file, or all parts of a split one.
#[derive(Debug)]
pub struct FileSource {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
    len: u64,
}

impl FileSource {
    /// Opens a model by the path of its file or of its first part; the further parts lie beside it.
    ///
    /// # Errors
    /// `bad_request` when a file cannot be opened, or the path names a part that is not the first.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.file_name().and_then(|name| name.to_str());
        let paths = match name {
            Some(name) => part_names(name)?.into_iter().map(|name| path.with_file_name(name)).collect(),
            // A name that is not UTF-8 is not one of a part.
            None => vec![path.to_owned()],
        };
        let num_parts = paths.len();
        let parts = paths.into_iter().enumerate().map(|(part, path)| {
            Part::open(path).map_err(|message| {
                let which = if num_parts == 1 { String::new() } else { format!("part {} of {num_parts}: ", part + 1) };
                Error::BadRequest(format!("{which}{message}"))
            })
        });
        Ok(Self { parts: parts.collect::<Result<_>>()? })
    }
}

impl Part {
    fn open(path: PathBuf) -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("cannot open `{}`: {error}", path.display());
        let file = File::open(&path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(format!("`{}` is a directory, a GGUF file is wanted", path.display()));
        }
        Ok(Self { len: metadata.len(), file, path })
    }

    fn read(&self, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; len];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl ByteSource for FileSource {
    fn num_parts(&self) -> usize {
        self.parts.len()
    }

    async fn part_len(&self, part: usize) -> Result<u64> {
        Ok(self.parts[part].len)
    }

    async fn read(&self, part: usize, offset: u64, len: usize) -> Result<Vec<u8>> {
        let part = &self.parts[part];
        part.read(offset, len).map_err(|error| {
            Error::Network(format!("{len} bytes at {offset} of `{}` cannot be read: {error}", part.path.display()))
        })
    }
}
