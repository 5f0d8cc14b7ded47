//! How many steps are kept in flight: enough that the device finds the next one when it has done one, and no more, because
//! what was submitted behind an answer's last step was computed for nothing.

/// What a measured wait weighs against all before it.
const WAIT_WEIGHT: f64 = 0.3;
/// The same of a step's time, which changes more: prompts and answers alternate.
const STEP_WEIGHT: f64 = 0.5;
/// What a result takes on its way back, where the device cannot tell what it needed itself.
const RETURN_MS: f64 = 0.3;
/// Where a step takes so many times what the device waits for the next, waiting is cheaper than overshooting.
const MAX_RATIO: f64 = 100.0;
/// Steps in flight, at most, where there are several.
const MAX_STEPS: f64 = 4.0;

/// A step that was collected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collected {
    /// From when the device could have begun with it until it was collected.
    pub(super) wall_ms: f64,
    /// The device's part of that, where it can tell.
    pub(super) gpu_ms: Option<f64>,
    /// What it took to hand it to the device, where that is somebody else.
    pub(super) encode_ms: Option<f64>,
    /// Whether the device had nothing else to do all that time.
    pub(super) was_alone: bool,
}

/// Learns from steps what to keep in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ahead {
    /// Milliseconds that the device waits for the CPU between two steps, if nothing is submitted ahead.
    waits_ms: Option<f64>,
    /// Milliseconds from one step to the next.
    step_ms: f64,
}

impl Ahead {
    /// Takes note of a step.
    pub(super) fn note(&mut self, step: Collected) {
        // Where the CPU computes, nobody waits.
        let Some(encode_ms) = step.encode_ms else { return };
        let mean = |before: f64, value: f64, weight: f64| before + weight * (value - before);
        let is_first = self.waits_ms.is_none();
        // While steps are in flight nobody waits, which does not say that nobody would.
        if step.was_alone {
            let waits_ms = step.gpu_ms.map_or(encode_ms + RETURN_MS, |gpu_ms| (step.wall_ms - gpu_ms).max(0.0));
            self.waits_ms = Some(mean(self.waits_ms.unwrap_or(waits_ms), waits_ms, WAIT_WEIGHT));
        }
        self.step_ms = if is_first { step.wall_ms } else { mean(self.step_ms, step.wall_ms, STEP_WEIGHT) };
    }

    /// Steps to keep in flight.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    pub(super) fn num_steps(&self) -> usize {
        let waits_ms = self.waits_ms.unwrap_or(0.0);
        if self.step_ms >= MAX_RATIO * waits_ms {
            return 1;
        }
        (1.0 + (waits_ms / self.step_ms).ceil()).clamp(2.0, MAX_STEPS) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: impl IntoIterator<Item = Collected>) -> usize {
        let mut ahead = Ahead::default();
        steps.into_iter().for_each(|step| ahead.note(step));
        ahead.num_steps()
    }

    fn alone(wall_ms: f64, gpu_ms: Option<f64>) -> Collected {
        Collected { wall_ms, gpu_ms, encode_ms: Some(0.5), was_alone: true }
    }

    #[test]
    fn as_many_as_hide_the_wait() {
        assert_eq!(after([]), 1, "nothing is known");
        for (wall_ms, gpu_ms, expected) in
            [(300.0, 299.0, 1), (50.0, 49.0, 2), (4.0, 3.0, 2), (4.0, 0.1, 2), (0.0, 0.0, 1), (5.0, 6.0, 1)]
        {
            assert_eq!(after([alone(wall_ms, Some(gpu_ms))]), expected, "{gpu_ms} of {wall_ms} ms");
        }
        // The device cannot tell: 0.8 ms are handing over and coming back.
        assert_eq!([100.0, 10.0].map(|wall_ms| after([alone(wall_ms, None)])), [1, 2]);
    }

    #[test]
    fn what_is_learnt_alone_is_kept_while_steps_are_in_flight() {
        let ahead = |wall_ms| Collected { was_alone: false, ..alone(wall_ms, Some(wall_ms)) };
        // 4 ms alone, of which the device computes 1; then 1 ms a step.
        let first = alone(4.0, Some(1.0));
        assert_eq!(after([first]), 2);
        assert_eq!(after(std::iter::once(first).chain([ahead(1.0); 30])), 4);
        // Steps become long.
        assert_eq!(after(std::iter::once(first).chain([ahead(900.0); 30])), 1);
    }

    #[test]
    fn where_the_cpu_computes_one_is_enough() {
        assert_eq!(after([Collected { encode_ms: None, ..alone(4.0, None) }; 3]), 1);
    }
}
