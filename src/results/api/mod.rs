//! JSON of results: imports, limits, re-judging, logs, time series.

pub mod import;
pub mod limits;
pub mod logs;
pub mod rejudge;
pub mod series;
