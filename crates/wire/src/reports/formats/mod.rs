//! The table of all formats that can be read: one file and one line each.
//!
//! A reader of a text or a document is given one report of its format; [`crate::reports::read`] finds them.

mod ab;
mod artillery;
mod autocannon;
mod bombardier_json;
mod bombardier_text;
mod crank;
mod fields;
pub mod format;
mod fortio;
mod gatling_log;
mod gatling_stats;
mod h2load;
mod hey_csv;
mod hey_text;
mod httparena;
mod hyperfoil;
mod jmeter;
mod jmeter_csv;
mod jmeter_statistics;
mod jmeter_xml;
mod json_lines;
mod k6_csv;
mod k6_dashboard;
mod k6_json;
mod k6_ndjson;
mod k6_points;
mod k6_text;
mod k6_units;
mod locust;
pub mod native;
mod nighthawk;
mod oha_json;
mod rewrk;
mod siege;
mod table;
pub mod table_csv;
mod techempower;
mod vegeta;
mod web_frameworks;
pub mod wide_csv;
mod wrk;

pub use format::{Format, Reader, Recognised};

/// All formats. Of two that recognise the same, the first one reads it.
pub const FORMATS: &[Format] = &[
    k6_json::FORMAT,
    k6_text::FORMAT,
    k6_ndjson::FORMAT,
    k6_csv::FORMAT,
    k6_dashboard::FORMAT,
    native::FORMAT,
    wrk::FORMAT,
    oha_json::FORMAT,
    hey_text::OHA,
    hey_text::HEY,
    hey_csv::FORMAT,
    bombardier_json::FORMAT,
    bombardier_text::FORMAT,
    vegeta::JSON,
    vegeta::TEXT,
    vegeta::HDRPLOT,
    ab::FORMAT,
    h2load::FORMAT,
    autocannon::JSON,
    autocannon::TEXT,
    siege::FORMAT,
    rewrk::TEXT,
    rewrk::JSON,
    fortio::FORMAT,
    nighthawk::FORMAT,
    locust::FORMAT,
    jmeter_csv::FORMAT,
    jmeter_xml::FORMAT,
    jmeter_statistics::FORMAT,
    gatling_log::FORMAT,
    gatling_stats::FORMAT,
    artillery::FORMAT,
    hyperfoil::FORMAT,
    crank::FORMAT,
    techempower::FORMAT,
    httparena::FORMAT,
    web_frameworks::FORMAT,
    wide_csv::FORMAT,
    table_csv::FORMAT,
];

/// Returns a format by its name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
