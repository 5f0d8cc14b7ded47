//! The prefix cache: worked examples, one for each rule, and random operations against a naive model.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "tests")]

mod random;
mod restore;
mod retention;
mod rules;
mod world;
