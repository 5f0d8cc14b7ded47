//! A model that remembers which token was written to which slot, and reads it back through the block tables.
//!
//! The next token is a hash of what it reads, so a wrong table, slot, position or window changes the answer, and
//! what can be told at once (a slot that holds another position or another sequence's token) panics.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use pagewise::engine::{
    CacheReport, Engine, EngineOptions, Event, FinishReason, Progress, Request, RequestId, SamplingParams, Timings,
    Usage,
};
use pagewise::gguf::{Array, Metadata, Value};
use pagewise::kv::{BLOCK_SIZE, GroupConfig};
use pagewise::model::{Batch, BatchLimits, Forward, KvBlocks, KvIdentity, LogitEdit, RowSampling, Token};
use pagewise::text::Tokenizer;
use pagewise::{Error, Result};

/// Ids 0 to 255 are bytes, 256 ends generation, 257 to 259 are " one", " two" and " three".
pub const VOCAB_SIZE: usize = 260;
pub const END: u32 = 256;

/// What a sampled row knows: the sequence's tokens as read from the slots, and how to draw the next.
pub struct Row<'a> {
    pub tokens: &'a [u32],
    pub sampling: RowSampling,
    pub edits: &'a [LogitEdit],
    /// The tokens that may be drawn.
    pub mask: Option<&'a [u32]>,
}

/// Draws the next token from a hash of all it may depend on; a byte, never the end.
pub fn hash(row: &Row) -> u32 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |value: u64| state = (state ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    row.tokens.iter().for_each(|&token| mix(u64::from(token)));
    if row.sampling.temperature > 0.0 {
        mix(row.sampling.seed);
        mix(u64::from(row.sampling.counter));
    }
    for edit in row.edits {
        for value in [edit.token, edit.seen, edit.count, edit.bias.to_bits()] {
            mix(u64::from(value));
        }
    }
    let choose = |num: usize| usize::try_from((state >> 32) % num as u64).unwrap();
    let Some(mask) = row.mask else {
        // A small alphabet, so that tokens repeat.
        return 97 + u32::try_from(choose(20)).unwrap();
    };
    let is_allowed = |&token: &u32| mask[token as usize / 32] >> (token % 32) & 1 != 0;
    let allowed: Vec<u32> = (0..u32::try_from(VOCAB_SIZE).unwrap()).filter(is_allowed).collect();
    allowed[choose(allowed.len())]
}

type Draw = Box<dyn Fn(&Row) -> u32>;

pub struct Fake {
    limits: BatchLimits,
    groups: Vec<GroupConfig>,
    /// Per group and slot: the token and position written last.
    slots: Vec<Vec<Option<(u32, u32)>>>,
    pub identity: KvIdentity,
    draw: Draw,
    times: Option<(f64, f64)>,
    /// What the last step drew, as it would be on the device, and the steps in flight.
    ids: Vec<u32>,
    in_flight: VecDeque<Vec<u32>>,
    /// Results of coming steps, in the order in which they are collected; when empty, steps succeed.
    pub outcomes: Rc<RefCell<VecDeque<Result<()>>>>,
    /// Every batch that was computed.
    pub batches: Rc<RefCell<Vec<Batch>>>,
}

impl Fake {
    /// Copies rows of the cache, before anything is written.
    fn copy(&mut self, batch: &Batch) {
        let is_read = |group, slot| batch.copies.iter().any(|copy| (copy.group, copy.from) == (group, slot));
        for copy in &batch.copies {
            assert!(!is_read(copy.group, copy.to), "slot {} is copied from and to", copy.to);
            let slots = &mut self.slots[copy.group as usize];
            assert!(slots[copy.from as usize].is_some(), "slot {} is copied and was never written", copy.from);
            slots[copy.to as usize] = slots[copy.from as usize];
        }
    }

    fn write(&mut self, batch: &Batch) {
        let mut written = std::collections::BTreeSet::new();
        for (index, token) in batch.tokens.iter().enumerate() {
            let id = match token.token {
                Token::Id(id) => id,
                Token::Drawn(row) => self.ids[row as usize],
            };
            assert!((id as usize) < VOCAB_SIZE || matches!(token.token, Token::Drawn(_)));
            for (group, slots) in self.slots.iter_mut().enumerate() {
                let slot = token.slots[group] as usize;
                assert!(written.insert((group, slot)), "slot {slot} is written twice in a step");
                let table = &batch.tables[group][token.sequence as usize];
                let (block, offset) = (token.position as usize / BLOCK_SIZE, token.position as usize % BLOCK_SIZE);
                assert_eq!(slot, table[block] as usize * BLOCK_SIZE + offset, "the table leads to the slot");
                slots[slot] = Some((id, token.position));
            }
            let continues = index.checked_sub(1).map(|before| batch.tokens[before]).is_none_or(|before| {
                let next = (before.sequence, before.position + 1);
                next == (token.sequence, token.position) || before.sequence + 1 == token.sequence
            });
            assert!(continues, "tokens are grouped by sequence, positions ascending");
        }
    }

    /// The tokens that a query sees, read through the block table.
    fn read(&self, batch: &Batch, group: usize, sequence: usize, position: usize) -> Vec<u32> {
        let window = self.groups[group].window.unwrap_or(usize::MAX);
        let table = &batch.tables[group][sequence];
        let read = |at: usize| {
            let slot = table[at / BLOCK_SIZE] as usize * BLOCK_SIZE + at % BLOCK_SIZE;
            let (token, written_for) = self.slots[group][slot].expect("the slot was written");
            assert_eq!(written_for as usize, at, "the slot holds another position");
            token
        };
        ((position + 1).saturating_sub(window)..=position).map(read).collect()
    }

    fn check_limits(&self, batch: &Batch) {
        let BatchLimits { max_tokens, max_sequences, max_rows, max_edits, max_copies, context_length, max_blocks } =
            self.limits;
        assert!((1..=max_tokens).contains(&batch.tokens.len()));
        assert!(batch.tokens.iter().all(|token| (token.position as usize) < context_length));
        assert!(batch.rows.len() <= max_rows && batch.edits.len() <= max_edits && batch.copies.len() <= max_copies);
        assert_eq!(batch.rows.len(), batch.sampling.len());
        assert!(batch.rows.is_sorted());
        assert!(batch.masks.is_sorted_by(|a, b| a.row < b.row), "one mask a row");
        assert_eq!(batch.tables.len(), self.groups.len());
        let mut keys: Vec<_> = batch.edits.iter().map(|edit| (edit.row, edit.token)).collect();
        keys.dedup();
        assert_eq!(keys.len(), batch.edits.len(), "one edit per row and token");
        for (tables, group) in batch.tables.iter().zip(&self.groups) {
            assert!(tables.len() <= max_sequences);
            assert!(tables.iter().all(|table| table.len() <= max_blocks));
            assert!(tables.iter().flatten().all(|&block| (block as usize) < group.num_blocks));
        }
    }
}

impl Forward for Fake {
    fn limits(&self) -> BatchLimits {
        self.limits
    }

    fn max_ahead(&self) -> usize {
        4
    }

    fn submit(&mut self, batch: &Batch) -> Result<()> {
        self.check_limits(batch);
        assert!(self.in_flight.len() < self.max_ahead());
        self.copy(batch);
        self.write(batch);
        let mut ids = Vec::new();
        for (index, token) in batch.tokens.iter().enumerate() {
            let (sequence, position) = (token.sequence as usize, token.position as usize);
            let tokens = self.read(batch, 0, sequence, position);
            if self.groups.len() > 1 {
                let seen = self.read(batch, 1, sequence, position);
                assert!(tokens.ends_with(&seen), "the groups hold different tokens");
            }
            for row in (0..batch.rows.len()).filter(|&row| batch.rows[row] as usize == index) {
                let edits: Vec<_> = batch.edits.iter().filter(|edit| edit.row as usize == row).copied().collect();
                let mask = batch.masks.iter().find(|mask| mask.row as usize == row).map(|mask| &*mask.allowed);
                ids.push((self.draw)(&Row { tokens: &tokens, sampling: batch.sampling[row], edits: &edits, mask }));
            }
        }
        self.batches.borrow_mut().push(batch.clone());
        self.ids.clone_from(&ids);
        self.in_flight.push_back(ids);
        Ok(())
    }

    fn gpu_ms(&self) -> Option<f64> {
        self.times.map(|(gpu_ms, _)| gpu_ms)
    }

    fn encode_ms(&self) -> Option<f64> {
        self.times.map(|(_, encode_ms)| encode_ms)
    }

    async fn collect(&mut self) -> Result<Vec<u32>> {
        assert!(!self.in_flight.is_empty());
        // Whoever drops a step does it here.
        YieldOnce::default().await;
        let ids = self.in_flight.pop_front().unwrap();
        self.outcomes.borrow_mut().pop_front().unwrap_or(Ok(())).map(|()| ids)
    }
}

/// Keys and values of the fake: two words a slot, its token plus one and its position.
const SLOT_WORDS: usize = 2;

impl KvBlocks for Fake {
    fn kv_identity(&self) -> KvIdentity {
        self.identity.clone()
    }

    async fn read_blocks(&mut self, blocks: &[(usize, u32)]) -> Result<Vec<u32>> {
        let slots = |&(group, block): &(usize, u32)| &self.slots[group][block as usize * BLOCK_SIZE..][..BLOCK_SIZE];
        let words = |slot: &Option<(u32, u32)>| slot.map(|(token, position)| [token + 1, position]).expect("written");
        YieldOnce::default().await;
        Ok(blocks.iter().flat_map(slots).flat_map(words).collect())
    }

    fn write_block(&mut self, group: usize, block: u32, words: &[u32]) {
        assert_eq!(words.len(), BLOCK_SIZE * SLOT_WORDS);
        let slots = self.slots[group][block as usize * BLOCK_SIZE..].iter_mut();
        slots.zip(words.chunks(SLOT_WORDS)).for_each(|(slot, words)| *slot = Some((words[0] - 1, words[1])));
    }

    async fn flush(&mut self) -> Result<()> {
        YieldOnce::default().await;
        self.outcomes.borrow_mut().pop_front().unwrap_or(Ok(()))
    }
}

/// A future that is pending once.
#[derive(Default)]
struct YieldOnce(bool);

impl Future for YieldOnce {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut self.0, true) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }
}

/// An engine over the fake, with handles into it.
pub struct Setup {
    pub limits: BatchLimits,
    pub groups: Vec<GroupConfig>,
    pub options: EngineOptions,
    pub draw: Draw,
    /// What a step is said to take the device, and what to hand it over.
    pub times: Option<(f64, f64)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: BatchLimits {
                max_tokens: 64,
                max_sequences: 8,
                max_rows: 8,
                max_edits: 1000,
                max_copies: 64,
                context_length: 256,
                max_blocks: 16,
            },
            groups: vec![GroupConfig { num_blocks: 64, window: None }],
            options: EngineOptions::default(),
            draw: Box::new(hash),
            times: None,
        }
    }
}

impl Setup {
    /// A model that answers `answer` and then the end, whatever the prompt of `num_prompt` tokens.
    pub fn script(num_prompt: usize, answer: Vec<u32>) -> Self {
        let draw = move |row: &Row| answer.get(row.tokens.len() - num_prompt).copied().unwrap_or(END);
        Self { draw: Box::new(draw), ..Self::default() }
    }

    pub fn build(self) -> Runner {
        let (outcomes, batches) = (Rc::default(), Rc::default());
        let slots = self.groups.iter().map(|group| vec![None; group.num_blocks * BLOCK_SIZE]).collect();
        let fake = Fake {
            limits: self.limits,
            groups: self.groups.clone(),
            slots,
            identity: KvIdentity {
                name: "fake".to_owned(),
                model: 1,
                kv: "f32",
                block_words: vec![BLOCK_SIZE * SLOT_WORDS; self.groups.len()],
            },
            draw: self.draw,
            times: self.times,
            ids: Vec::new(),
            in_flight: VecDeque::new(),
            outcomes: Rc::clone(&outcomes),
            batches: Rc::clone(&batches),
        };
        let engine = Engine::new(fake, tokenizer(), self.groups, self.options);
        Runner { engine, outcomes, batches, clock_ms: Cell::new(0.0), answers: BTreeMap::new() }
    }
}

/// A vocabulary of the 256 bytes, the end and a few words.
pub fn tokenizer() -> Rc<Tokenizer> {
    let words = [("</s>", 3), ("▁one", 1), ("▁two", 1), ("▁three", 1)];
    let bytes = (0..256).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let (tokens, types): (Vec<_>, Vec<_>) = bytes.chain(words.map(|(text, kind)| (text.to_owned(), kind))).unzip();
    let metadata = Metadata::new([
        ("tokenizer.ggml.model".to_owned(), Value::String("llama".to_owned())),
        ("tokenizer.ggml.scores".to_owned(), Value::Array(Array::F32(vec![0.0; tokens.len()]))),
        ("tokenizer.ggml.tokens".to_owned(), Value::Array(Array::Strings(tokens.into_iter().collect()))),
        ("tokenizer.ggml.token_type".to_owned(), Value::Array(Array::I32(types))),
        ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(END)),
        ("tokenizer.ggml.add_bos_token".to_owned(), Value::Bool(false)),
    ]);
    Rc::new(Tokenizer::from_metadata(&metadata.unwrap()).unwrap())
}

/// All that came back for a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub ids: Vec<u32>,
    pub text: String,
    pub end: Option<(FinishReason, Usage, Timings)>,
    pub cache: CacheReport,
    pub error: Option<Error>,
    pub progress: Vec<Progress>,
}

impl Answer {
    pub fn reason(&self) -> Option<FinishReason> {
        self.end.map(|(reason, ..)| reason)
    }
}

pub struct Runner {
    pub engine: Engine<Fake>,
    pub outcomes: Rc<RefCell<VecDeque<Result<()>>>>,
    pub batches: Rc<RefCell<Vec<Batch>>>,
    /// Advances by 10 ms each time the engine asks.
    pub clock_ms: Cell<f64>,
    pub answers: BTreeMap<RequestId, Answer>,
}

impl Runner {
    pub fn submit(&mut self, request: &Request) -> RequestId {
        self.submit_choices(request, 1)[0]
    }

    pub fn submit_choices(&mut self, request: &Request, num_choices: usize) -> Vec<RequestId> {
        let ids = self.engine.submit_choices(request.clone(), num_choices, self.clock_ms.get()).unwrap();
        self.answers.extend(ids.iter().map(|&id| (id, Answer::default())));
        ids
    }

    pub fn step(&mut self) -> Vec<Event> {
        let now = || {
            self.clock_ms.set(self.clock_ms.get() + 10.0);
            self.clock_ms.get()
        };
        let events = pollster::block_on(self.engine.step(now));
        self.engine.kv().check().unwrap();
        for event in &events {
            self.collect(event);
        }
        events
    }

    /// Has a step begin and drops it where it waits; false if it has nothing to wait for.
    pub fn drop_step(&mut self) -> bool {
        let polled = {
            let step = std::pin::pin!(self.engine.step(|| self.clock_ms.get()));
            step.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
        };
        self.engine.kv().check().unwrap();
        let std::task::Poll::Ready(events) = polled else { return true };
        events.iter().for_each(|event| self.collect(event));
        false
    }

    fn collect(&mut self, event: &Event) {
        let answer = self.answers.get_mut(&event.request()).unwrap();
        assert!(answer.end.is_none() && answer.error.is_none(), "nothing follows the end");
        match event.clone() {
            Event::Progress { progress, .. } => answer.progress.push(progress),
            Event::Text { text, ids, .. } => {
                answer.text.push_str(&text);
                answer.ids.extend(ids);
            }
            Event::Finished { reason, usage, timings, cache, .. } => {
                answer.end = Some((reason, usage, timings));
                answer.cache = cache;
            }
            Event::Failed { error, .. } => answer.error = Some(error),
        }
    }

    /// Steps until there is nothing to do; then nothing may be held.
    pub fn finish(&mut self) {
        for _ in 0..10_000 {
            if !self.engine.has_work() {
                assert!(self.engine.kv().stats().iter().all(|stats| stats.used == 0), "blocks leak");
                return;
            }
            self.step();
        }
        panic!("no end after 10,000 steps: {:?}", self.engine.metrics());
    }

    pub fn answer(&mut self, request: &Request) -> Answer {
        let id = self.submit(request);
        self.finish();
        self.answers[&id].clone()
    }
}

/// A request with a prompt that differs by `salt`.
pub fn request(num_prompt: usize, max_tokens: usize, salt: u32) -> Request {
    let prompt = (0..).map(|index: u32| 97 + (index * 7 + salt * 31) % 26).take(num_prompt).collect();
    let sampling = SamplingParams { seed: Some(u64::from(salt)), ..SamplingParams::default() };
    Request { prompt, max_tokens: Some(max_tokens), sampling, ..Request::default() }
}

pub fn bytes(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}
