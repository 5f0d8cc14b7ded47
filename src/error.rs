//! The one error type. Codes are stable: JavaScript sees them as `PagewiseError.code`.

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong and is not a bug. Messages carry what was asked and what is allowed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The request is malformed or asks for something that is not supported.
    #[error("{0}")]
    BadRequest(String),
    /// The file is a valid model that this engine cannot run.
    #[error("{0}")]
    UnsupportedModel(String),
    /// The file is damaged or hostile.
    #[error("{0}")]
    CorruptModel(String),
    /// The prompt and the answer do not fit in the context.
    #[error("context too long: {asked} tokens asked, {allowed} allowed")]
    ContextTooLong {
        /// Tokens that the request needs.
        asked: usize,
        /// Tokens that a sequence may have.
        allowed: usize,
    },
    /// A plan or an allocation does not fit.
    #[error("out of memory: {what} needs {asked} bytes, {allowed} bytes allowed")]
    OutOfMemory {
        /// What was being allocated.
        what: String,
        /// Bytes asked for.
        asked: u64,
        /// Bytes that are allowed or left.
        allowed: u64,
    },
    /// There is no WebGPU (or native) adapter that can be used.
    #[error("{0}")]
    NoWebgpu(String),
    /// The GPU device is gone.
    #[error("{0}")]
    DeviceLost(String),
    /// The device computed something that cannot be right (NaN logits, a failed probe); nothing is streamed from it.
    #[error("{0}")]
    WrongResult(String),
    /// The waiting queue is full.
    #[error("queue full: {asked} requests, {allowed} allowed{}", again(.retry_after_ms))]
    QueueFull {
        /// Requests that would wait.
        asked: usize,
        /// Requests that may wait.
        allowed: usize,
        /// When there may be room again, where that can be told.
        retry_after_ms: Option<u64>,
    },
    /// A time limit of the request has passed.
    #[error("deadline exceeded: {what} of {limit_ms} ms has passed")]
    DeadlineExceeded {
        /// Which limit.
        what: &'static str,
        /// The limit, from the request's arrival on.
        limit_ms: f64,
    },
    /// The request was cancelled by its owner.
    #[error("cancelled")]
    Cancelled,
    /// Reading the model's bytes failed.
    #[error("{0}")]
    Network(String),
}

impl Error {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::BadRequest(_) => "bad_request",
            Error::UnsupportedModel(_) => "unsupported_model",
            Error::CorruptModel(_) => "corrupt_model",
            Error::ContextTooLong { .. } => "context_too_long",
            Error::OutOfMemory { .. } => "out_of_memory",
            Error::NoWebgpu(_) => "no_webgpu",
            Error::DeviceLost(_) => "device_lost",
            Error::WrongResult(_) => "wrong_result",
            Error::QueueFull { .. } => "queue_full",
            Error::DeadlineExceeded { .. } => "deadline_exceeded",
            Error::Cancelled => "cancelled",
            Error::Network(_) => "network",
        }
    }
}

fn again(retry_after_ms: &Option<u64>) -> String {
    retry_after_ms.map_or_else(String::new, |ms| format!("; try again in {ms} ms"))
}
