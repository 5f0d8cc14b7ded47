//! The engine over a model that is a hash function: everything but the arithmetic.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "tests")]

mod answers;
mod choices;
mod failures;
mod fake;
mod limits;
mod metrics;
mod order;
mod prefix;
mod sampling;
mod schedules;
