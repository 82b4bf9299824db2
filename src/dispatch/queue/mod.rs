//! What waits, for whom, why, and when it will begin, as far as that can be told.
//!
//! The order is that of submission, but for what somebody has put first. [`mod@why`] says what keeps a run, by the same rule
//! that hands runs out; [`start`] plays the rest of the queue through.

pub mod api;
pub mod list;
pub mod model;
pub mod pages;
