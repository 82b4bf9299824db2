//! JSON of results: imports, limits, judging again, logs, time series.

pub mod import;
pub mod limits;
pub mod logs;
pub mod rejudge;
pub mod series;
