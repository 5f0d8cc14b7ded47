//! How long steps and answers take, learnt from those that were computed: what a step may hold, how many submissions it is
//! cut into, how long a request will wait.

/// What a step weighs against all that came before it.
const DECAY: f64 = 0.9;
/// Tokens of prompts that a step takes however slow the device is: fewer would waste what a batch saves.
const MIN_PROMPT_TOKENS: usize = 32;
/// Submissions of one step, at most.
const MAX_SUBMITS: usize = 64;
/// What a finished answer weighs against all before it.
const SERVICE_WEIGHT: f64 = 0.2;

/// A line through the steps so far: fixed milliseconds and milliseconds per token, by least squares in which older steps
/// count less. The sums are of weights, tokens, times and their products.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    w: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    /// Tokens of the largest step, fading like the others.
    largest: f64,
    /// Mean time from the first step to the end of an answer.
    service_ms: Option<f64>,
}

impl Pace {
    /// Takes note of a step.
    pub(super) fn note_step(&mut self, num_tokens: usize, step_ms: f64) {
        let (x, y) = (num_tokens as f64, step_ms.max(0.0));
        let add = |sum: f64, value: f64| DECAY * sum + value;
        *self = Self {
            w: add(self.w, 1.0),
            x: add(self.x, x),
            y: add(self.y, y),
            xx: add(self.xx, x * x),
            xy: add(self.xy, x * y),
            largest: x.max(DECAY * self.largest),
            service_ms: self.service_ms,
        };
    }

    /// Takes note of how long an answer took from its first step on.
    pub(super) fn note_answer(&mut self, service_ms: f64) {
        let before = self.service_ms.unwrap_or(service_ms);
        self.service_ms = Some(before + SERVICE_WEIGHT * (service_ms - before));
    }

    /// Fixed milliseconds of a step, and those per token.
    fn line(&self) -> Option<(f64, f64)> {
        if self.w == 0.0 {
            return None;
        }
        let spread = self.w * self.xx - self.x * self.x;
        // Steps of one size say nothing about others: all of their time is taken to be their tokens'.
        if spread < 1e-3 * self.x * self.x {
            return Some((0.0, self.y / self.x));
        }
        let slope = (self.w * self.xy - self.x * self.y) / spread;
        let fixed = (self.y - slope * self.x) / self.w;
        Some(if slope < 0.0 {
            (self.y / self.w, 0.0)
        } else if fixed < 0.0 {
            (0.0, self.xy / self.xx)
        } else {
            (fixed, slope)
        })
    }

    /// Tokens that a step may have to take `target_ms`; `num_running` sequences need one each in any case.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float beyond the range saturates")]
    pub(super) fn budget(&self, target_ms: f64, num_running: usize, max_tokens: usize) -> usize {
        let least = num_running.saturating_add(MIN_PROMPT_TOKENS);
        // Small steps are bound by bandwidth and say little about large ones: twice what is known is as far as they carry.
        let within = |(fixed, slope): (f64, f64)| ((target_ms - fixed) / slope).clamp(0.0, 2.0 * self.largest) as usize;
        // Nothing is known before the first step.
        self.line().map_or(least, within).clamp(least.min(max_tokens), max_tokens)
    }

    /// Submissions that a step is to be cut into, so that each takes `target_ms`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub(super) fn num_submits(&self, target_ms: f64, num_tokens: usize) -> usize {
        let step_ms = self.line().map_or(0.0, |(fixed, slope)| fixed + slope * num_tokens as f64);
        (step_ms / target_ms).ceil().clamp(1.0, MAX_SUBMITS as f64) as usize
    }

    /// How long it takes until `num_ahead` more requests have got a slot, when `num_running` run and none is free: as many
    /// answers must end, and they end in turn.
    pub(super) fn wait_ms(&self, num_ahead: usize, num_running: usize) -> Option<f64> {
        Some(self.service_ms? * num_ahead as f64 / num_running.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(steps: &[(usize, f64)]) -> Pace {
        let mut pace = Pace::default();
        steps.iter().for_each(|&(num_tokens, ms)| pace.note_step(num_tokens, ms));
        pace
    }

    #[test]
    fn the_budget_follows_the_line_through_the_steps() {
        assert_eq!(Pace::default().budget(30.0, 3, 512), 35);
        // 5 ms and 0.125 ms a token: 200 tokens in 30 ms.
        let fast = pace(&[(1, 5.125), (32, 9.0), (136, 22.0)]);
        assert!((199..=200).contains(&fast.budget(30.0, 1, 512)));
        assert_eq!(fast.budget(200.0, 1, 512), 272, "no more than twice the largest step");
        assert_eq!(
            pace(&[(4, 5.0), (8, 5.0), (6, 5.0)]).budget(30.0, 8, 512),
            40,
            "decoding alone says nothing of prompts"
        );
        assert_eq!((fast.num_submits(30.0, 199), fast.num_submits(30.0, 300)), (1, 2));
        // A device on which a token alone takes longer than the target.
        let slow = pace(&[(1, 350.0), (64, 4400.0)]);
        assert_eq!(slow.budget(30.0, 2, 512), 34);
        assert_eq!(slow.num_submits(30.0, 1), 12);
        assert_eq!(slow.num_submits(30.0, 64), MAX_SUBMITS);
    }

    #[test]
    fn odd_measurements_give_a_usable_line() {
        for steps in [&[(1, 0.0)][..], &[(4, 9.0), (4, 11.0)], &[(1, 50.0), (100, 10.0)], &[(10, 1.0), (100, 900.0)]] {
            let budget = pace(steps).budget(30.0, 1, 256);
            assert!((33..=256).contains(&budget), "{steps:?}: {budget}");
        }
        assert_eq!(pace(&[(1, 5.0)]).budget(30.0, 9, 8), 8, "never more than a batch takes");
    }

    #[test]
    fn waiting_is_a_share_of_what_answers_take() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait_ms(3, 2), None);
        pace.note_answer(1000.0);
        assert_eq!(pace.wait_ms(3, 2), Some(1500.0));
        pace.note_answer(2000.0);
        assert_eq!(pace.wait_ms(1, 1), Some(1200.0));
    }
}
