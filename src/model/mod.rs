//! Configuration, weights and the forward pass.

mod batch;

pub use batch::{Batch, BatchLimits, Forward, LogitEdit, MAX_GROUPS, RowSampling, TokenRow};
