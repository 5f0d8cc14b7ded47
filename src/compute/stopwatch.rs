//! How long the device needs for a step, by its own clock.

/// Two timestamps: before the first dispatch of a step and after its last.
#[derive(Debug)]
pub(super) struct Stopwatch {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    /// Nanoseconds of a tick.
    period: f32,
    /// When the last step ended, in ticks.
    last_end: u64,
    /// Of the last step.
    last_ms: Option<f64>,
}

/// Bytes that the two timestamps take at the front of what is read back.
pub(super) const STOPWATCH_BYTES: u64 = 16;

impl Stopwatch {
    /// `None` where the device has no timestamps.
    pub(super) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Option<Self> {
        if !device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return None;
        }
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("step times"),
            ty: wgpu::QueryType::Timestamp,
            count: 2,
        });
        let resolved = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("step times"),
            size: STOPWATCH_BYTES,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        Some(Self { queries, resolved, period: queue.get_timestamp_period(), last_end: 0, last_ms: None })
    }

    /// What a pass is to write: the first pass of a step starts the watch, the last stops it.
    pub(super) fn writes(&self, is_first: bool, is_last: bool) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        (is_first || is_last).then(|| wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: is_first.then_some(0),
            end_of_pass_write_index: is_last.then_some(1),
        })
    }

    /// Copies the timestamps to the front of `readback`.
    pub(super) fn resolve(&self, encoder: &mut wgpu::CommandEncoder, readback: &wgpu::Buffer) {
        encoder.resolve_query_set(&self.queries, 0..2, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, readback, 0, STOPWATCH_BYTES);
    }

    /// Takes note of the timestamps as they were read back.
    pub(super) fn read(&mut self, words: &[u32]) {
        let tick = |low: usize| u64::from(words[low]) | u64::from(words[low + 1]) << 32;
        // A step that was submitted behind another may be looked at while that one still runs.
        let (start, end) = (tick(0).max(self.last_end), tick(2));
        self.last_end = end;
        // Devices that lie about their clock exist: nothing is better than a wrong number.
        self.last_ms =
            end.checked_sub(start).filter(|&ticks| ticks > 0).map(|ticks| ticks as f64 * f64::from(self.period) / 1e6);
    }

    /// Milliseconds of the step that was read last.
    pub(super) fn last_ms(&self) -> Option<f64> {
        self.last_ms
    }
}
