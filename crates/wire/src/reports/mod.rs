//! Reads the reports of load generators (k6 as JSON and text, wrk) into one [`summary::Summary`]. Pure.

pub mod builtin;
pub mod encoding;
pub mod export;
pub mod figures;
pub mod groups;
pub mod handle_summary;
pub mod json;
pub mod load;
pub mod machine_readable;
mod metrics;
pub mod missing;
pub mod names;
pub mod protocol;
pub mod read;
pub mod summary;
pub mod text;
pub mod validate;
pub mod values;
