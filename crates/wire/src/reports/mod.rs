//! Reads the results of load generators: [`read::read`] returns a [`report::Report`] for each in a file. Pure.
//!
//! [`formats::FORMATS`] lists what can be read. A format is added as one file in `formats/`, one line of that table and
//! one fixture.

pub mod archive;
pub mod builtin;
mod check;
pub mod encoding;
mod entry;
pub mod export;
pub mod figures;
pub mod formats;
pub mod groups;
pub mod handle_summary;
pub mod hints;
mod input;
pub mod json;
pub mod load;
pub mod machine_readable;
mod metrics;
pub mod missing;
pub mod names;
mod neutral;
pub mod parts;
pub mod preview;
pub mod protocol;
pub mod read;
pub mod report;
pub mod samples;
pub mod seconds;
pub mod summary;
pub mod tables;
mod texts;
pub mod time;
pub mod validate;
pub mod values;
pub mod warning;
