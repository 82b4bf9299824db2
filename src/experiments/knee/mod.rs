//! The search for the knee: the highest arrival rate at which an objective holds in at least half of the runs. Pure.
//!
//! [`model`] is the search in a plan, [`objective`] is what must hold, [`search`] decides which rate to measure next,
//! [`fit`] finds the knee and its interval in the outcomes, and [`history`] describes what was measured so far.

pub mod fit;
pub mod history;
pub mod model;
pub mod objective;
pub mod search;
