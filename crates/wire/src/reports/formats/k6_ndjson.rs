//! k6's `--out json`: one JSON object a line, for each metric and each measurement.

use std::borrow::Cow;
use std::io::Read;

use serde::Deserialize;

use super::fields::instant_ms;
use super::format::{Format, Reader, Recognised};
use super::json_lines::each_line;
use super::k6_points::{Point, Points};
use crate::reports::report::Report;
use crate::reports::summary::{Contains, Kind};
use crate::reports::validate::{Fault, Place};

pub(super) const FORMAT: Format = Format {
    name: "k6-ndjson",
    title: "k6's --out json",
    tool: "k6",
    limits: "It lacks thresholds, setup and teardown count as load, and the duration is that from the first request \
             to the last measurement.",
    is_rounded: false,
    timeout_ms: Some(60_000.0),
    reader: Reader::Records { is, read },
};

fn is(head: &str) -> Recognised {
    let line = head.lines().next().unwrap_or_default();
    let has = |part: &str| line.contains(part);
    let is_line = line.starts_with('{') && has("\"metric\":\"") && has("\"data\":{");
    (is_line && (has("\"type\":\"Metric\"") || has("\"type\":\"Point\""))).into()
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    metric: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(borrow, default)]
    tags: Option<Tags<'a>>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    contains: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Tags<'a> {
    #[serde(borrow, default)]
    expected_response: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    check: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let mut points = Points::default();
    let cut = each_line(source, FORMAT.title, |line| Ok(add(&serde_json::from_slice(line)?, &mut points)?))?;
    let mut report = points.report(0.0)?;
    report.warnings.extend(cut);
    Ok(vec![report])
}

fn add(line: &Line<'_>, points: &mut Points) -> Result<(), Fault> {
    let Line { metric, kind, data } = line;
    if kind == "Metric" {
        let kind = match data.kind.as_deref() {
            Some("counter") => Kind::Counter,
            Some("gauge") => Kind::Gauge,
            Some("rate") => Kind::Rate,
            Some("trend") => Kind::Trend,
            _ => return Ok(()),
        };
        let contains = match data.contains.as_deref() {
            Some("time") => Contains::Time,
            Some("data") => Contains::Data,
            _ => Contains::Default,
        };
        crate::reports::names::metric(metric, &Place::root("metric"))?;
        points.declare(metric, kind, contains);
        return Ok(());
    }
    let unknown = Tags::default();
    let tags = data.tags.as_ref().unwrap_or(&unknown);
    let time = data.time.as_deref().and_then(|text| Some((instant_ms(text)?, text)));
    let ((at_ms, text), value) =
        time.zip(data.value).ok_or_else(|| Place::root("data").fault("has no time or no value"))?;
    points.add(Point {
        metric,
        at_ms: at_ms as f64 + below_ms(text),
        value,
        is_expected: match tags.expected_response.as_ref() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        status: &tags.status,
        check: &tags.check,
        url: &tags.url,
    })
}

/// Returns what a time has beyond whole milliseconds.
fn below_ms(text: &str) -> f64 {
    let digits = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits: String = digits.chars().take_while(char::is_ascii_digit).skip(3).take(6).collect();
    if digits.is_empty() { 0.0 } else { format!("0.{digits}").parse().unwrap_or_default() }
}
