//! The engine on a machine that does not exist: the real scheduler, block manager and prefix cache over a forward pass
//! that computes nothing and only moves a virtual clock, by what a cost model says a step takes.
//!
//! The same loop ([`run`]) also drives the engine over a real model and a real clock, so what is simulated and what is
//! measured differ in nothing but the forward pass. Everything is a function of its input: a seed gives the same
//! workload, schedule and times on every machine. Absent: threads, real time, networks of machines.

mod cost;
mod drawing;
mod forward;
mod random;
mod report;
mod run;
mod setup;
mod workload;

pub use cost::CostModel;
pub use drawing::draw;
pub use forward::{SimForward, VirtualClock, tokenizer};
pub use report::{Percentiles, Report};
pub use run::{Clock, Outcome, RequestOutcome, run};
pub use setup::{Simulation, simulate};
pub use workload::{Arrival, Arrivals, Class, Lengths, MAX_REQUESTS, Workload};
