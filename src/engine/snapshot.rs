//! A saved prefix as bytes. Whatever comes in may be damaged or made up: it is refused, never trusted.
//!
//! ```text
//! header   magic, version, length of the header
//!          the model's fingerprint, its name, the KV format; tokens of a block, layer groups, words of a block in each
//!          full blocks, ids (of the blocks, and of what the prefix has behind them); per block, which groups have it
//!          XXH64 of all that
//! records  for each block and each group that has it: its words, and their XXH64 with a seed that is the header's
//!          checksum plus the number of the record
//! ```
//!
//! Integers are little-endian, texts and lists have their length in front. No salt: who restores it says where it goes.
//! The checksums find accidents, not forgers: keys and values are as much a part of the model's working as its weights
//! are, and are to be taken from nobody from whom one would not take those.

use crate::kv::BLOCK_SIZE;
use crate::model::{KvIdentity, Xxh64};
use crate::{Error, Result};

/// The version that is written, and the only one that is read.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The most tokens of a saved prefix.
pub const MAX_SAVED_TOKENS: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"PWKVSAVE";
/// Magic, version, length.
const PREAMBLE_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 8;
/// Five bytes a token, and texts.
const MAX_HEADER_BYTES: usize = 8 << 20;
const MAX_NAME_BYTES: usize = 256;

/// Where the bytes of a saved prefix are.
pub trait SnapshotSource {
    /// How many there are.
    fn len(&self) -> u64;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Exactly `len` of them, from `offset` on.
    ///
    /// # Errors
    /// `network` if they cannot be read.
    fn read(&self, offset: u64, len: usize) -> impl Future<Output = Result<Vec<u8>>>;
}

impl SnapshotSource for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    async fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)?.get(..len));
        bytes.map(<[u8]>::to_vec).ok_or_else(|| damaged("it is cut short"))
    }
}

/// What is in a saved prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) ids: Vec<u32>,
    /// Per full block, a bit for each layer group that has it: none where all layers have windows that it lies before.
    pub(super) groups: Vec<u8>,
    /// Words of a block of each group.
    block_words: Vec<usize>,
    checksum: u64,
    num_bytes: usize,
}

impl Header {
    /// Of a prefix, and its bytes.
    pub(super) fn write(identity: &KvIdentity, ids: &[u32], groups: Vec<u8>) -> (Self, Vec<u8>) {
        let mut name = identity.name.as_str();
        while name.len() > MAX_NAME_BYTES {
            name = &name[..name.len() - name.chars().next_back().map_or(1, char::len_utf8)];
        }
        let mut bytes = [MAGIC.as_slice(), &SNAPSHOT_VERSION.to_le_bytes(), &[0; 4]].concat();
        bytes.extend(identity.model.to_le_bytes());
        for text in [name, identity.kv] {
            put(&mut bytes, text.len());
            bytes.extend(text.as_bytes());
        }
        put(&mut bytes, BLOCK_SIZE);
        put(&mut bytes, identity.block_words.len());
        identity.block_words.iter().for_each(|&words| put(&mut bytes, words));
        put(&mut bytes, groups.len());
        put(&mut bytes, ids.len());
        ids.iter().for_each(|id| bytes.extend(id.to_le_bytes()));
        bytes.extend(&groups);
        let num_bytes = bytes.len() + CHECKSUM_BYTES;
        bytes[PREAMBLE_BYTES - 4..PREAMBLE_BYTES].copy_from_slice(&narrow(num_bytes).to_le_bytes());
        let checksum = Xxh64::of(0, &bytes);
        bytes.extend(checksum.to_le_bytes());
        (Self { ids: ids.to_vec(), groups, block_words: identity.block_words.clone(), checksum, num_bytes }, bytes)
    }

    /// Reads and checks the header of what was saved from a model like this, with ids below `vocab_size`.
    pub(super) async fn read<S: SnapshotSource + ?Sized>(
        source: &S,
        identity: &KvIdentity,
        vocab_size: usize,
    ) -> Result<Self> {
        let not_ours = || Error::BadRequest("this is no saved prefix of Pagewise's cache".into());
        if source.len() < PREAMBLE_BYTES as u64 {
            return Err(not_ours());
        }
        let preamble = source.read(0, PREAMBLE_BYTES).await?;
        let mut cursor = Cursor(&preamble);
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(not_ours());
        }
        let version = cursor.number()?;
        if version != SNAPSHOT_VERSION {
            let message = format!("a saved prefix of version {version}, version {SNAPSHOT_VERSION} is read here");
            return Err(Error::BadRequest(message));
        }
        let num_bytes = cursor.size()?;
        let is_there = (PREAMBLE_BYTES + CHECKSUM_BYTES..=MAX_HEADER_BYTES).contains(&num_bytes);
        if !is_there || num_bytes as u64 > source.len() {
            return Err(damaged(&format!("a header of {num_bytes} bytes")));
        }
        let bytes = source.read(0, num_bytes).await?;
        let (body, checksum) = bytes.split_at(bytes.len().saturating_sub(CHECKSUM_BYTES));
        let checksum = Cursor(checksum).long()?;
        if Xxh64::of(0, body) != checksum {
            return Err(damaged("the header's checksum is wrong"));
        }
        let body = body.get(PREAMBLE_BYTES..).unwrap_or_default();
        let (ids, groups) = parse(&mut Cursor(body), identity, vocab_size)?;
        let header = Self { ids, groups, block_words: identity.block_words.clone(), checksum, num_bytes };
        let (expected, found) = (header.records().last().map_or(0, |record| record.end()), source.len());
        if expected != found {
            return Err(damaged(&format!("it has {found} bytes, {expected} expected")));
        }
        Ok(header)
    }

    /// The records, in order.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let places = self.groups.iter().enumerate().flat_map(|(index, &groups)| {
            (0..self.block_words.len()).filter(move |group| groups & (1 << group) != 0).map(move |group| (index, group))
        });
        let mut offset = self.num_bytes as u64;
        (0_u64..).zip(places).map(move |(number, (index, group))| {
            let num_words = self.block_words[group];
            let record = Record { index, group, offset, num_words, seed: self.checksum.wrapping_add(number) };
            offset = record.end();
            record
        })
    }
}

/// The words of one block in one layer group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) index: usize,
    pub(super) group: usize,
    offset: u64,
    pub(super) num_words: usize,
    /// Of the checksum: a record that is in the place of another one is wrong.
    seed: u64,
}

impl Record {
    fn end(&self) -> u64 {
        self.offset + 4 * self.num_words as u64 + CHECKSUM_BYTES as u64
    }

    /// Appends it. Words are as the device has them: little-endian, as everything that runs this is.
    pub(super) fn write(&self, words: &[u32], bytes: &mut Vec<u8>) {
        let words = bytemuck::cast_slice(words);
        bytes.extend_from_slice(words);
        bytes.extend(Xxh64::of(self.seed, words).to_le_bytes());
    }

    /// Reads it.
    pub(super) async fn read<S: SnapshotSource + ?Sized>(&self, source: &S) -> Result<Vec<u32>> {
        let bytes = source.read(self.offset, 4 * self.num_words + CHECKSUM_BYTES).await?;
        let (words, checksum) = bytes.split_at(bytes.len().saturating_sub(CHECKSUM_BYTES));
        if words.len() != 4 * self.num_words || Xxh64::of(self.seed, words) != Cursor(checksum).long()? {
            let (from, to) = (self.index * BLOCK_SIZE, (self.index + 1) * BLOCK_SIZE);
            return Err(damaged(&format!("the checksum of tokens {from} to {to} is wrong")));
        }
        Ok(bytemuck::pod_collect_to_vec(words))
    }
}

/// What follows the preamble.
fn parse(cursor: &mut Cursor<'_>, identity: &KvIdentity, vocab_size: usize) -> Result<(Vec<u32>, Vec<u8>)> {
    let refuse = |message: String| Err(Error::BadRequest(message));
    let model = cursor.long()?;
    let (name, kv) = (cursor.text()?, cursor.text()?);
    if model != identity.model {
        let ours = &identity.name;
        let other =
            if name == ours { "other weights, such as another quantisation".into() } else { format!("{name:?}") };
        return refuse(format!("the saved prefix is of another model than {ours:?}: of {other}"));
    }
    if kv != identity.kv {
        let ours = identity.kv;
        return refuse(format!("the saved prefix has keys and values in {kv}, the engine in {ours}"));
    }
    let block_size = cursor.size()?;
    let num_groups = cursor.size()?.min(identity.block_words.len() + 1);
    let block_words = (0..num_groups).map(|_| cursor.size()).collect::<Result<Vec<_>>>()?;
    if block_size != BLOCK_SIZE || block_words != identity.block_words {
        return refuse(format!("the saved prefix has blocks of {block_size} tokens and {block_words:?} words"));
    }
    let (num_blocks, num_ids) = (cursor.size()?, cursor.size()?);
    if num_blocks == 0 || num_ids > MAX_SAVED_TOKENS || num_blocks > num_ids / BLOCK_SIZE {
        return Err(damaged(&format!("{num_blocks} blocks, {num_ids} tokens")));
    }
    let ids: Vec<u32> = bytemuck::pod_collect_to_vec(cursor.take(4 * num_ids)?);
    if let Some(id) = ids.iter().find(|&&id| id as usize >= vocab_size) {
        return Err(damaged(&format!("token id {id}, below {vocab_size} allowed")));
    }
    let groups = cursor.take(num_blocks)?.to_vec();
    if groups.iter().any(|&groups| usize::from(groups) >= 1 << num_groups) || !cursor.0.is_empty() {
        return Err(damaged("its list of blocks is wrong"));
    }
    Ok((ids, groups))
}

pub(super) fn damaged(what: &str) -> Error {
    Error::BadRequest(format!("the saved prefix is damaged: {what}"))
}

/// Everything that is counted here is far below.
fn narrow(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn put(bytes: &mut Vec<u8>, size: usize) {
    bytes.extend(narrow(size).to_le_bytes());
}

/// Bytes that are not read yet.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| damaged("its header is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn size(&mut self) -> Result<usize> {
        Ok(self.number()? as usize)
    }

    fn text(&mut self) -> Result<&'a str> {
        let len = self.size()?;
        std::str::from_utf8(self.take(len)?).map_err(|_| damaged("a name is no text"))
    }
}
