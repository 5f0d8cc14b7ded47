//! An engine of a model, asked one greedy question at a time.

use std::rc::Rc;

use pagewise::compute::Executor;
use pagewise::engine::{CacheOptions, Engine, EngineOptions, Event, Request, SamplingParams, Usage};
use pagewise::gguf::{self, FileSource, Gguf};
use pagewise::model::{Logits as _, Model};
use pagewise::text::Tokenizer;
use pollster::block_on;

/// A file with its header.
pub(crate) fn open(path: &str) -> (Gguf, FileSource) {
    let source = FileSource::open(path).unwrap();
    (block_on(gguf::open(&source)).unwrap(), source)
}

/// The engine.
pub(crate) struct Server<E: Executor>(pub(crate) Engine<Model<E>>);

impl<E: Executor> Server<E> {
    pub(crate) fn new(model: Model<E>, gguf: &Gguf) -> Self {
        let tokenizer = Rc::new(Tokenizer::from_metadata(&gguf.metadata).unwrap());
        let groups = model.groups();
        Self(Engine::new(model, tokenizer, groups, EngineOptions::default()))
    }

    /// The greedy continuation of a prompt by `num` tokens.
    pub(crate) fn answer(&mut self, prompt: &[u32], num: usize, enabled: bool) -> (Vec<u32>, Usage) {
        let request = Request {
            prompt: prompt.to_vec(),
            max_tokens: Some(num),
            sampling: SamplingParams::greedy(),
            ignore_end_of_generation: true,
            cache: CacheOptions { enabled, ..CacheOptions::default() },
            ..Request::default()
        };
        self.0.submit(request, 0.0).unwrap();
        let mut answer = Vec::new();
        loop {
            for event in block_on(self.0.step(|| 0.0)) {
                match event {
                    Event::Text { ids, .. } => answer.extend(ids),
                    Event::Finished { usage, .. } => return (answer, usage),
                    Event::Progress { .. } => {}
                    Event::Failed { error, .. } => panic!("{error}"),
                }
            }
        }
    }
}
