//! One request on its way.

use std::collections::VecDeque;
use std::rc::Rc;

use super::batch::narrow;
use super::caching::CacheReport;
use super::deadline::{Deadline, Deadlines};
use super::events::{Event, Progress, TokenLogprobs};
use super::guide::Guide;
use super::metrics::{Clock, TokenTime, Usage};
use super::output::{FinishReason, Output};
use super::queue::Rank;
use super::sampling::LogitEdits;
use super::{Request, RequestId};
use crate::kv::{Hit, Retention};
use crate::model::{RowSampling, RowScores};
use crate::{Error, Result};

/// A prompt, what was generated after it, and all that is needed to go on. Where its keys and values are is the
/// scheduler's knowledge: a sequence can lose its blocks at any time and be computed again.
pub(super) struct Sequence {
    pub(super) id: RequestId,
    pub(super) rank: Rank,
    /// The prompt and the answer so far.
    tokens: Vec<u32>,
    num_prompt: usize,
    sampling: RowSampling,
    pub(super) edits: LogitEdits,
    output: Output,
    /// What the answer has to be, if not any text.
    guide: Option<Guide>,
    jumps_ahead: bool,
    pub(super) clock: Clock,
    /// Whether the prompt is computed and nothing drawn.
    pub(super) is_prefill_only: bool,
    /// Whether its prompt is embedded.
    pub(super) embeds: bool,
    /// The sum of the hidden states that were computed, if so.
    pooled: Vec<f64>,
    /// The most probable tokens to tell of beside each drawn one; the same for all choices.
    pub(super) logprobs: Option<usize>,
    /// The salt to be cached under and for how long, if at all.
    pub(super) caching: Option<(String, Rc<Retention>)>,
    /// Whether it is a further choice of a request that is counted with its first.
    pub(super) is_further: bool,
    /// The key that it is counted under, until it was.
    pub(super) group: Option<String>,
    /// `None` until it was looked for in the cache.
    report: Option<CacheReport>,
    /// Tokens that it brought into the cache.
    pub(super) written_tokens: usize,
    deadlines: Deadlines,
    /// Other choices for the same prompt: they go on from where it is computed.
    pub(super) choices: Vec<Sequence>,
    reports_progress: bool,
    /// The last progress that was reported.
    progress: Option<Progress>,
}

/// What a row of a step drew.
pub(super) struct DrawnRow {
    pub(super) request: RequestId,
    pub(super) id: u32,
    pub(super) scores: Option<RowScores>,
}

/// What a draw brought a sequence.
pub(super) struct Drawn {
    pub(super) request: RequestId,
    /// The token that was drawn, and those that had to follow it. None if the answer was complete before.
    pub(super) ids: Vec<u32>,
    /// One for each.
    pub(super) times: Vec<TokenTime>,
    /// What may be shown now.
    pub(super) text: String,
    /// How probable it was, if that is wanted.
    pub(super) logprobs: Vec<TokenLogprobs>,
    /// Why the sequence ends with it, if it does.
    pub(super) end: Option<Result<FinishReason>>,
}

impl Sequence {
    /// A sequence whose request is valid and fits.
    pub(super) fn new(
        rank: Rank,
        id: RequestId,
        request: Request,
        seed: u64,
        edits: LogitEdits,
        output: Output,
        now_ms: f64,
    ) -> Self {
        Self {
            id,
            rank,
            deadlines: request.timeouts.deadlines(now_ms),
            choices: Vec::new(),
            reports_progress: request.reports_progress,
            progress: None,
            num_prompt: request.prompt.len(),
            is_prefill_only: request.prefill_only || request.embeds,
            embeds: request.embeds,
            pooled: Vec::new(),
            logprobs: request.logprobs,
            is_further: false,
            group: request.cache.group.clone(),
            caching: (request.cache.enabled && !request.embeds).then(|| {
                let retention = request.cache.retention(request.prompt.len());
                (request.cache.salt, retention)
            }),
            report: None,
            written_tokens: 0,
            sampling: request.sampling.row(seed),
            edits,
            output,
            guide: None,
            jumps_ahead: false,
            tokens: request.prompt,
            clock: Clock::new(now_ms),
        }
    }

    /// The same with what its answer has to be, and whether tokens that must follow are taken without drawing them.
    pub(super) fn guided(self, guide: Option<Guide>, jumps_ahead: bool) -> Self {
        Self { guide, jumps_ahead, ..self }
    }

    /// Whether its answer, and those of its choices, have to be something.
    pub(super) fn is_guided(&self) -> bool {
        self.guide.is_some()
    }

    /// The tokens that may be drawn next for it, by the draw's place among those for its choices; only where a mask is yet to
    /// be made.
    pub(super) fn guide_masks(&mut self) -> impl Iterator<Item = (usize, Rc<[u32]>)> {
        let guides = std::iter::once(&mut self.guide).chain(self.choices.iter_mut().map(|choice| &mut choice.guide));
        guides.enumerate().filter_map(|(place, guide)| Some((place, guide.as_mut()?.mask()?)))
    }

    /// Makes it a further choice of a request, which counts once and waits once.
    pub(super) fn make_further(&mut self) {
        self.is_further = true;
        self.group = None;
        self.deadlines = self.deadlines.without_queue();
    }

    /// The prompt and the answer so far.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(super) fn num_prompt(&self) -> usize {
        self.num_prompt
    }

    /// Its own id and those of the choices that go on from its prompt.
    pub(super) fn ids(&self) -> impl Iterator<Item = RequestId> {
        std::iter::once(self.id).chain(self.choices.iter().map(|choice| choice.id))
    }

    /// Logits that are changed when a token is drawn for it and each of its choices.
    pub(super) fn num_edits(&self) -> usize {
        self.edits.len() + self.choices.iter().map(|choice| choice.edits.len()).sum::<usize>()
    }

    /// When it must be given up.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.deadlines.next(self.clock.has_started())
    }

    /// Takes one of its choices out, itself or another. `None` if that was the last: then nothing is left of it.
    pub(super) fn split_off(&mut self, id: RequestId) -> Option<Self> {
        if self.id != id {
            let index = self.choices.iter().position(|choice| choice.id == id)?;
            return Some(self.choices.remove(index));
        }
        if self.choices.is_empty() {
            return None;
        }
        let mut heir = self.choices.remove(0);
        heir.choices = std::mem::take(&mut self.choices);
        heir.report = self.report;
        heir.group = self.group.take();
        heir.is_further = self.is_further;
        heir.deadlines = self.deadlines;
        heir.clock.follow(&self.clock);
        Some(std::mem::replace(self, heir))
    }

    /// The progress to report, if it is to be and has changed.
    pub(super) fn changed_progress(&mut self, progress: Progress) -> Option<Event> {
        let is_new = self.reports_progress && self.progress.replace(progress) != Some(progress);
        is_new.then_some(Event::Progress { request: self.id, progress })
    }

    /// The same after positions `start..end` were computed.
    pub(super) fn prefill_progress(&mut self, start: usize, end: usize) -> Option<Event> {
        let (total, cached) = (self.num_prompt, self.num_cached());
        let progress = Progress::Prefill { total, cached, computed: end.min(total) };
        (start < total).then(|| self.changed_progress(progress)).flatten()
    }

    /// Tokens of its prompt that the cache had.
    pub(super) fn num_cached(&self) -> usize {
        self.report.map_or(0, |report| report.read_tokens)
    }

    /// How the token behind `num_pending` that are being drawn is drawn. The counter is its position, so an answer does not
    /// depend on what else runs.
    pub(super) fn row(&self, num_pending: usize) -> RowSampling {
        RowSampling { counter: narrow(self.tokens.len() + num_pending), ..self.sampling }
    }

    /// Whether a token can be drawn behind `num_pending` that are being drawn: it may have as many, and how it is drawn does
    /// not depend on what they are.
    pub(super) fn can_run_ahead(&self, num_pending: usize) -> bool {
        let is_known_now = self.choices.is_empty() && !self.edits.counts_answer() && self.guide.is_none();
        is_known_now && self.output.num_left() > num_pending
    }

    /// Hands out tokens that were drawn: each to itself or that of its choices for which it is, if that is still there.
    pub(super) fn draw(&mut self, drawn: Vec<DrawnRow>, now_ms: f64) -> Vec<Drawn> {
        let (report, clock) = (self.report, self.clock);
        let mut all = Vec::with_capacity(drawn.len());
        for row in drawn {
            if row.request == self.id {
                all.push(self.push(row, now_ms));
            } else if let Some(choice) = self.choices.iter_mut().find(|choice| choice.id == row.request) {
                choice.report = report;
                choice.clock.follow(&clock);
                all.push(choice.push(row, now_ms));
            }
        }
        all
    }

    /// Appends a sampled token, and those that must follow it: they are computed like a prompt.
    fn push(&mut self, DrawnRow { id, scores, .. }: DrawnRow, now_ms: f64) -> Drawn {
        let (text, logprobs) = (String::new(), Vec::new());
        let mut drawn = Drawn { request: self.id, ids: Vec::new(), times: Vec::new(), text, logprobs, end: None };
        drawn.end = self.guide.as_ref().and_then(Guide::end).map(|end| end.map(|()| FinishReason::Stop));
        if drawn.end.is_some() {
            drawn.text = self.output.finish();
            return drawn;
        }
        // Where they are wanted nothing is appended that was not drawn.
        drawn.logprobs.extend(scores.map(|scores| self.output.logprobs(id, &scores)));
        let mut queue = VecDeque::from([id]);
        while let Some(id) = queue.pop_front().filter(|_| drawn.end.is_none()) {
            self.append(id, now_ms, &mut drawn);
            if let Some(guide) =
                self.guide.as_mut().filter(|_| queue.is_empty() && drawn.end.is_none() && self.jumps_ahead)
            {
                queue.extend(guide.forced());
            }
        }
        drawn
    }

    /// Appends one token.
    fn append(&mut self, id: u32, now_ms: f64, drawn: &mut Drawn) {
        self.tokens.push(id);
        self.edits.push(id);
        drawn.ids.push(id);
        drawn.times.push(self.clock.token(now_ms));
        let (text, end) = self.output.push(id);
        drawn.text += &text;
        drawn.end = end.map(Ok);
        let Some(guide) = self.guide.as_mut().filter(|_| end != Some(FinishReason::Stop)) else { return };
        guide.accept(id);
        // An answer that is complete with its last token was not cut.
        if let Some(complete) = guide.end().filter(|complete| end.is_none() || complete.is_ok()) {
            drawn.text += &self.output.finish();
            drawn.end = Some(complete.map(|()| FinishReason::Stop));
        }
    }

    /// Adds the hidden states of the positions from `start` on.
    pub(super) fn pool(&mut self, start: usize, sums: &[f32]) {
        // After a preemption it begins anew.
        if start == 0 {
            self.pooled = vec![0.0; sums.len()];
        }
        self.pooled.iter_mut().zip(sums).for_each(|(all, &sum)| *all += f64::from(sum));
    }

    /// Whether what is complete can be used.
    pub(super) fn check_pooled(&self) -> Result<()> {
        let length = self.pooled_length();
        if self.embeds && !(length.is_finite() && length > 0.0) {
            return Err(Error::WrongResult(format!("hidden states whose sum is of length {length}")));
        }
        Ok(())
    }

    fn pooled_length(&self) -> f64 {
        self.pooled.iter().map(|value| value * value).sum::<f64>().sqrt()
    }

    /// What its prompt is embedded as, once all of it is computed.
    pub(super) fn embedding(&self) -> Option<Vec<f32>> {
        // The mean points where the sum does.
        let length = self.pooled_length();
        #[expect(clippy::cast_possible_truncation, reason = "values of at most 1, rounded")]
        let unit = |value: &f64| (value / length) as f32;
        self.embeds.then(|| self.pooled.iter().map(unit).collect())
    }

    /// Takes note of what the cache had when the sequence ran for the first time. After a preemption it finds its own.
    pub(super) fn note_hit(&mut self, hit: Option<&Hit>) {
        self.report.get_or_insert_with(|| CacheReport::of(hit, &self.tokens));
    }

    /// What the cache did for it.
    pub(super) fn report(&self) -> CacheReport {
        CacheReport { written_tokens: self.written_tokens, ..self.report.unwrap_or_default() }
    }

    pub(super) fn usage(&self) -> Usage {
        Usage {
            cached_tokens: self.num_cached(),
            prompt_tokens: self.num_prompt,
            completion_tokens: self.tokens.len() - self.num_prompt,
            total_tokens: self.tokens.len(),
        }
    }
}
