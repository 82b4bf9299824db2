//! The search for the knee: the highest arrival rate at which an objective holds. Pure.
//!
//! [`model`] is the search in a plan, [`objective`] is what must hold, [`search`] decides which rate to measure next,
//! and [`history`] describes what was measured so far.

pub mod history;
pub mod model;
pub mod objective;
pub mod search;
