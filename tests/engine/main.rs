//! The engine over a model that is a hash function: everything but the arithmetic.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "tests")]

mod ahead;
mod answers;
mod caching;
mod choices;
mod constraints;
mod failures;
mod fake;
mod limits;
mod load;
#[path = "../common/load.rs"]
mod load_rounds;
mod metrics;
mod order;
mod persist;
mod prefix;
mod sampling;
mod schedules;
mod tool_calls;
