//! What several tests share.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod golden;
pub(crate) mod load;
pub(crate) mod server;
