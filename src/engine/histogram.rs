//! How often which value occurred, in a bounded amount of memory.

use std::sync::LazyLock;

use serde::Serialize;

/// Buckets for each doubling of the value: a quantile is off by less than 19 % of itself.
pub(super) const BUCKETS_PER_OCTAVE: u32 = 4;

/// Upper bounds for times in milliseconds: from 0.05 ms to almost an hour.
static TIMES_MS: LazyLock<Vec<f64>> = LazyLock::new(|| bounds(0.05, 26));

/// Upper bounds for counts: from 1 to 65,536.
static COUNTS: LazyLock<Vec<f64>> = LazyLock::new(|| bounds(1.0, 16));

/// Bounds from `first` on, [`BUCKETS_PER_OCTAVE`] for each of so many doublings.
fn bounds(first: f64, num_octaves: u32) -> Vec<f64> {
    let bound = |index: u32| first * (f64::from(index) / f64::from(BUCKETS_PER_OCTAVE)).exp2();
    (0..=num_octaves * BUCKETS_PER_OCTAVE).map(bound).collect()
}

/// Counts of values in buckets whose bounds grow by the same ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "HistogramSummary")]
pub struct Histogram {
    /// The largest value of each bucket but the last, which has none.
    bounds: &'static [f64],
    /// One more than bounds; empty until the first value.
    counts: Vec<u64>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

/// A histogram in a few numbers; the quantiles and the maximum are `None` without a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct HistogramSummary {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Half of the values are at most this.
    pub p50: Option<f64>,
    /// 90 % of the values are at most this.
    pub p90: Option<f64>,
    /// 95 % of the values are at most this.
    pub p95: Option<f64>,
    /// 99 % of the values are at most this.
    pub p99: Option<f64>,
    /// The largest value.
    pub max: Option<f64>,
}

impl Default for Histogram {
    /// For times.
    fn default() -> Self {
        Self::times()
    }
}

impl Histogram {
    /// An empty histogram of milliseconds.
    pub fn times() -> Self {
        Self::new(&TIMES_MS)
    }

    /// An empty histogram of counts.
    pub fn counts() -> Self {
        Self::new(&COUNTS)
    }

    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: Vec::new(), count: 0, sum: 0.0, min: f64::INFINITY, max: 0.0 }
    }

    /// Adds a value. What is negative counts as 0 (a clock may have been set back); what is no number is left out.
    pub fn record(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        let value = value.max(0.0);
        self.counts.resize(self.bounds.len() + 1, 0);
        self.counts[self.bounds.partition_point(|&bound| bound < value)] += 1;
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The largest value.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// The value that the share `q` (0 to 1) of the values does not exceed, interpolated within its bucket; `None`
    /// without a value.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q.clamp(0.0, 1.0) * self.count as f64;
        let mut below = 0.0;
        for (index, &num) in self.counts.iter().enumerate().filter(|&(_, &num)| num > 0) {
            let num = num as f64;
            if below + num >= rank {
                let start = index.checked_sub(1).map_or(0.0, |before| self.bounds[before]);
                let end = self.bounds.get(index).copied().unwrap_or(self.max);
                let value = start + (end - start) * ((rank - below) / num);
                return Some(value.clamp(self.min, self.max));
            }
            below += num;
        }
        self.max()
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        *self = Self::new(self.bounds);
    }

    /// The figures that matter.
    pub fn summary(&self) -> HistogramSummary {
        HistogramSummary {
            count: self.count,
            sum: self.sum,
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            max: self.max(),
        }
    }

    /// Every `step`-th bound and how many values are at most that, in ascending order.
    pub(super) fn cumulative(&self, step: usize) -> Vec<(f64, u64)> {
        let mut sum = 0;
        let mut counts = self.counts.iter();
        let all = self.bounds.iter().map(|&bound| {
            sum += counts.next().copied().unwrap_or(0);
            (bound, sum)
        });
        all.step_by(step).collect()
    }
}

impl From<Histogram> for HistogramSummary {
    fn from(histogram: Histogram) -> Self {
        histogram.summary()
    }
}
