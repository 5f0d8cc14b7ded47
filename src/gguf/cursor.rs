//! A place in the bytes of a header that have arrived so far.

use crate::Error;

/// Why parsing stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file goes on, but the bytes have not arrived yet.
    Short,
    /// The file is damaged: where, and what is wrong.
    Bad { offset: u64, message: String },
    /// Any other error, already complete.
    Failed(Error),
}

pub(super) type Parse<T> = Result<T, Stop>;

/// Reads little-endian values. Never reads past what has arrived, and tells "not yet" from "not in this file".
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset in the file of `bytes[0]`.
    base: u64,
    file_size: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, base: u64, file_size: u64) -> Self {
        Self { bytes, at, base, file_size }
    }

    /// Index of the next byte in what has arrived.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Offset of the next byte in the file.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    fn left_in_file(&self) -> u64 {
        self.file_size.saturating_sub(self.offset())
    }

    pub(super) fn bad<T>(&self, message: String) -> Parse<T> {
        Err(Stop::Bad { offset: self.offset(), message })
    }

    pub(super) fn take(&mut self, len: usize) -> Parse<&'a [u8]> {
        if len as u64 > self.left_in_file() {
            return self.bad(format!("{len} bytes wanted, the file has {} left", self.left_in_file()));
        }
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or(Stop::Short)?;
        self.at += len;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Parse<[u8; N]> {
        let bytes = self.take(N)?;
        Ok(std::array::from_fn(|index| bytes[index]))
    }

    pub(super) fn u32(&mut self) -> Parse<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Parse<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a number of things, refusing more than allowed and more than fit in the rest of the file at `unit_bytes` each.
    pub(super) fn count(&mut self, what: &str, allowed: u64, unit_bytes: u64) -> Parse<usize> {
        let asked = self.clone().u64()?;
        if asked > allowed {
            return self.bad(format!("{asked} {what}, at most {allowed} allowed"));
        }
        let left = self.left_in_file().saturating_sub(8);
        if asked * unit_bytes > left {
            return self.bad(format!("{asked} {what} need {} bytes, the file has {left} left", asked * unit_bytes));
        }
        self.u64()?;
        usize::try_from(asked).or_else(|_| self.bad(format!("{asked} {what} do not fit in memory")))
    }

    /// Reads a string of at most `allowed` bytes.
    pub(super) fn string(&mut self, what: &str, allowed: u64) -> Parse<&'a str> {
        let len = self.count(what, allowed, 1)?;
        let start = self.clone();
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).or_else(|error| start.bad(format!("{what} are not UTF-8: {error}")))
    }
}
