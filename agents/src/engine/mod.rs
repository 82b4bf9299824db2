//! Load generators, one folder each.

pub mod k6;
