//! Requests that arrive over time, with lengths as people write them: drawn, not recorded.
//!
//! Lengths are log-normal, the shape that published traces of chats have: most are short, a few are many times longer.
//! A class of requests has a mean and a spread (the deviation of the logarithm) for prompts and answers each; the mean
//! stays the same whatever the spread, so that workloads of low and high variance ask for the same work. A mix of
//! classes far apart ("short chat", "long document") is bimodal.

use serde::{Deserialize, Serialize};

use super::random::Random;
use crate::engine::{MAX_PRIORITY, Request, SamplingParams};
use crate::{Error, Result};

/// The most requests of a workload.
pub const MAX_REQUESTS: usize = 10_000;
/// The most tokens of a prompt or an answer.
const MAX_LENGTH: usize = 1 << 20;
/// The largest spread: beyond, the longest of thousands of requests has all the work.
const MAX_SPREAD: f64 = 3.0;

/// When requests arrive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// All at the start: how fast is it when there is always something to do?
    AtOnce,
    /// A Poisson process: independently of each other.
    Poisson {
        /// Mean rate, requests per second.
        per_s: f64,
    },
    /// Bursts of `size` requests at once; the bursts are a Poisson process.
    Bursts {
        /// Mean rate, requests per second.
        per_s: f64,
        /// Requests of a burst.
        size: usize,
    },
}

/// How many tokens: log-normal, rounded, within limits (which cut off some of the mean where the spread is large).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// Mean, in tokens.
    pub mean: f64,
    /// Standard deviation of the logarithm; 0 makes all lengths the mean.
    pub spread: f64,
    /// The fewest tokens, at least 1.
    pub min: usize,
    /// The most tokens.
    pub max: usize,
}

/// One kind of request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// What it is called in reports.
    pub name: String,
    /// Its share of the requests, relative to the other classes' shares.
    pub share: f64,
    /// Tokens of a prompt, without the shared prefix.
    pub prompt: Lengths,
    /// Tokens of an answer.
    pub answer: Lengths,
    /// Of the requests.
    pub priority: i32,
}

/// What is to be generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Equal seeds give equal workloads.
    pub seed: u64,
    /// How many requests.
    pub num_requests: usize,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// What they are; at least one class.
    pub classes: Vec<Class>,
    /// Tokens that all prompts begin with (a system prompt).
    pub shared_prefix_tokens: usize,
}

/// A request that will arrive.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// When, in milliseconds.
    pub at_ms: f64,
    /// Index of its class.
    pub class: usize,
    /// What it asks for: greedy, and an answer of exactly `max_tokens` tokens.
    pub request: Request,
}

impl Default for Workload {
    fn default() -> Self {
        Self::mixed(Arrivals::Poisson { per_s: 4.0 }, 200, 1.0)
    }
}

impl Workload {
    /// Three of four requests are short chat turns, one of eight brings a long document to be summarised, one of eight
    /// asks for a long answer. Mean: 517 prompt tokens, 240 answer tokens. `spread` is that of all answers.
    pub fn mixed(arrivals: Arrivals, num_requests: usize, spread: f64) -> Self {
        let class = |name: &str, share, prompt, answer_mean| Class {
            name: name.to_owned(),
            share,
            prompt,
            answer: Lengths { mean: answer_mean, spread, min: 1, max: 2048 },
            priority: 0,
        };
        let chat = Lengths { mean: 120.0, spread: 1.0, min: 8, max: 1024 };
        let document = Lengths { mean: 3_000.0, spread: 0.5, min: 1024, max: 8192 };
        let classes = vec![
            class("short chat", 0.75, chat, 150.0),
            class("long document", 0.125, document, 220.0),
            class("long answer", 0.125, chat, 800.0),
        ];
        Self { seed: 1, num_requests, arrivals, classes, shared_prefix_tokens: 0 }
    }

    /// Checks every number.
    ///
    /// # Errors
    /// `bad_request` naming the field, what was asked and what is allowed.
    pub fn validate(&self) -> Result<()> {
        in_range("num_requests", self.num_requests as f64, 1.0, MAX_REQUESTS as f64)?;
        in_range("shared_prefix_tokens", self.shared_prefix_tokens as f64, 0.0, MAX_LENGTH as f64)?;
        match self.arrivals {
            Arrivals::AtOnce => {}
            Arrivals::Poisson { per_s } => in_range("per_s", per_s, 1e-3, 1e6)?,
            Arrivals::Bursts { per_s, size } => {
                in_range("per_s", per_s, 1e-3, 1e6)?;
                in_range("size", size as f64, 1.0, MAX_REQUESTS as f64)?;
            }
        }
        in_range("classes", self.classes.len() as f64, 1.0, 64.0)?;
        for Class { share, prompt, answer, priority, .. } in &self.classes {
            in_range("priority", f64::from(*priority), f64::from(-MAX_PRIORITY), f64::from(MAX_PRIORITY))?;
            in_range("share", *share, 1e-6, 1e6)?;
            for (name, lengths) in [("prompt", prompt), ("answer", answer)] {
                in_range(&format!("{name}.min"), lengths.min as f64, 1.0, MAX_LENGTH as f64)?;
                in_range(&format!("{name}.max"), lengths.max as f64, lengths.min as f64, MAX_LENGTH as f64)?;
                in_range(&format!("{name}.mean"), lengths.mean, 1.0, MAX_LENGTH as f64)?;
                in_range(&format!("{name}.spread"), lengths.spread, 0.0, MAX_SPREAD)?;
            }
        }
        Ok(())
    }

    /// Draws the requests, in order of arrival. Prompts are of ids of `ids`, and no two share a block beyond the shared
    /// prefix but by chance.
    ///
    /// # Errors
    /// Those of [`Workload::validate`], and `bad_request` for a range of fewer than two ids.
    pub fn generate(&self, ids: std::ops::Range<u32>) -> Result<Vec<Arrival>> {
        self.validate()?;
        if ids.len() < 2 {
            return Err(Error::BadRequest(format!("{} token ids to draw prompts from, at least 2 needed", ids.len())));
        }
        let draw = |random: &mut Random, num: usize| -> Vec<u32> {
            let id = |_| ids.start + u32::try_from(random.next() % ids.len() as u64).unwrap_or(0);
            (0..num).map(id).collect()
        };
        let prefix = draw(&mut Random::new(self.seed, PREFIX_STREAM), self.shared_prefix_tokens);
        let times_ms = self.times_ms();
        let arrival = |(index, at_ms): (usize, f64)| {
            let mut random = Random::new(self.seed, FIRST_REQUEST_STREAM + index as u64);
            let class = self.class(random.unit());
            let Class { prompt, answer, priority, .. } = &self.classes[class];
            let num_prompt = prompt.draw(random.normal());
            let num_answer = answer.draw(random.normal());
            let prompt = [prefix.as_slice(), &draw(&mut random, num_prompt)].concat();
            let request = Request {
                prompt,
                max_tokens: Some(num_answer),
                sampling: SamplingParams::greedy(),
                ignore_end_of_generation: true,
                priority: *priority,
                ..Request::default()
            };
            Arrival { at_ms, class, request }
        };
        Ok(times_ms.into_iter().enumerate().map(arrival).collect())
    }

    fn times_ms(&self) -> Vec<f64> {
        let mut random = Random::new(self.seed, ARRIVAL_STREAM);
        let (per_s, size) = match self.arrivals {
            Arrivals::AtOnce => return vec![0.0; self.num_requests],
            Arrivals::Poisson { per_s } => (per_s, 1),
            Arrivals::Bursts { per_s, size } => (per_s, size),
        };
        let mut now_ms = 0.0;
        let mut times_ms = Vec::with_capacity(self.num_requests);
        while times_ms.len() < self.num_requests {
            now_ms += random.exponential() * size as f64 * 1000.0 / per_s;
            times_ms.extend((0..size.min(self.num_requests - times_ms.len())).map(|_| now_ms));
        }
        times_ms
    }

    /// The class at a point of 0 to 1, all shares laid end to end.
    fn class(&self, point: f64) -> usize {
        let total: f64 = self.classes.iter().map(|class| class.share).sum();
        let mut end = 0.0;
        let holds = |class: &Class| {
            end += class.share;
            point * total <= end
        };
        self.classes.iter().position(holds).unwrap_or(self.classes.len() - 1)
    }
}

const ARRIVAL_STREAM: u64 = 0;
const PREFIX_STREAM: u64 = 1;
const FIRST_REQUEST_STREAM: u64 = 16;

impl Lengths {
    /// The length at a point of the standard normal distribution.
    fn draw(&self, normal: f64) -> usize {
        let tokens = self.mean * (self.spread * normal - self.spread * self.spread / 2.0).exp();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float beyond the range saturates"
        )]
        let tokens = tokens.round() as usize;
        tokens.clamp(self.min, self.max)
    }
}

/// Refuses a number outside of `min` to `max`, and what is no number.
pub(super) fn in_range(name: &str, asked: f64, min: f64, max: f64) -> Result<()> {
    if (min..=max).contains(&asked) {
        return Ok(());
    }
    Err(Error::BadRequest(format!("{name}: {asked} asked, {min} to {max} allowed")))
}
