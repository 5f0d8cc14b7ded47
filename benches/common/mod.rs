//! What several benchmarks share: clocks that other work on the machine disturbs less.
#![allow(dead_code, reason = "each benchmark uses a part")]

use std::time::Instant;

/// Tells the time that this thread had of a processor, so that other work on the machine counts less. Where the system
/// does not tell, any time counts.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since some moment.
    pub(crate) fn ns(&self) -> f64 {
        // Linux brings the count up to date when the thread may be switched.
        std::thread::yield_now();
        on_cpu_ns("/proc/thread-self".as_ref()).unwrap_or_else(|| self.0.elapsed().as_nanos() as f64)
    }
}

/// Milliseconds that all threads of this process had of processors so far, if the system tells.
pub(crate) fn process_ms() -> Option<f64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    Some(tasks.filter_map(|task| on_cpu_ns(&task.ok()?.path())).sum::<f64>() / 1e6)
}

fn on_cpu_ns(task: &std::path::Path) -> Option<f64> {
    std::fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
}
