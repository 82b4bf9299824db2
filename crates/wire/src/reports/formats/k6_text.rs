//! k6's text report, up to 0.57 and since 1.0, with or without colours.
//!
//! Built-in metrics must be complete; custom ones are omitted if they can't be read, because their units can be
//! anything. Old reports mark thresholds at their metric, new ones list them.

use std::collections::{BTreeMap, BTreeSet};

use super::format::{Format, Reader};
use super::k6_json;
use super::k6_units::{count, k6_bytes, k6_time, number};
use crate::reports::input::{code_page, lines::ReportLine};
use crate::reports::metrics::not_too_many;
use crate::reports::report::{Latencies, Report};
use crate::reports::summary::{Contains, Group, Kind, Metric, Resolution, Shape, Summary, Threshold};
use crate::reports::validate::{Fault, Place, shown};
use crate::reports::{builtin, names};

pub(super) const FORMAT: Format = Format {
    name: "k6-text",
    title: "k6's text report",
    tool: "k6",
    limits: "Times are cut to two decimals of their unit, bytes to two or three digits.",
    is_rounded: true,
    timeout_ms: Some(60_000.0),
    reader: Reader::Text { starts, near: &[], read: report },
};

/// The text of a threshold in an old report, which only marks it.
const UNNAMED: &str = "not spelt out in the report";

/// Tolerance of a percentage, which is truncated to two decimals.
const PERCENT_ROUNDING: f64 = 0.0101;

/// A new report begins with a title; an old one with a metric, and the next one where its first metric comes again.
fn starts(lines: &[ReportLine]) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut first, mut has_total, mut has_thresholds) = (None, false, false);
    for (index, line) in lines.iter().enumerate() {
        let title = line.text.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let is_next = match title {
            "THRESHOLDS" => first.is_some() || has_thresholds,
            "TOTAL RESULTS" => first.is_some() || has_total,
            _ => match entry(&line.text).map(|entry| entry.name).filter(|name| builtin::lookup(name).is_some()) {
                Some(name) if !has_total && first == Some(name) => true,
                Some(name) => {
                    if starts.is_empty() {
                        starts.push(index);
                    }
                    first = first.or(Some(name));
                    continue;
                }
                None => continue,
            },
        };
        if is_next {
            (first, has_total, has_thresholds) = (None, false, false);
        }
        if is_next || starts.is_empty() {
            starts.push(index);
        }
        match title {
            "THRESHOLDS" => has_thresholds = true,
            "TOTAL RESULTS" => has_total = true,
            _ => first = entry(&line.text).map(|entry| entry.name),
        }
    }
    starts
}

fn report(lines: &[ReportLine]) -> Result<Report, Fault> {
    code_page::check(lines)?;
    let report = k6_json::report(read(lines)?)?;
    let Some(error_ms) = fixed_unit_ms(lines).map(|unit| unit * 0.005) else { return Ok(report) };
    let rounded = |latency: Latencies| {
        let mean = latency.mean.map(|mean| mean.at_least(error_ms));
        Latencies { mean, ..latency.at_least(error_ms) }
    };
    Ok(Report { latency: rounded(report.latency), ok_latency: rounded(report.ok_latency), ..report })
}

/// Returns the unit of all times, milliseconds, if one was requested (`--summary-time-unit`): k6 itself prints no time below
/// one of its unit.
fn fixed_unit_ms(lines: &[ReportLine]) -> Option<f64> {
    let entries = lines.iter().filter_map(|line| entry(&line.text));
    let latencies = entries.filter(|entry| entry.name == "http_req_duration");
    let times = latencies.flat_map(|entry| entry.values.split_whitespace()).filter_map(|word| word.split_once('='));
    let small = |(_, time): (&str, &str)| {
        let (value, of_ms) = [("µs", 1e-3), ("us", 1e-3), ("ns", 1e-6), ("ms", 1.0), ("s", 1e3)]
            .into_iter()
            .find_map(|(unit, of_ms)| Some((time.strip_suffix(unit)?, of_ms)))?;
        (value.contains('.') && number(value)? < 1.0).then_some(of_ms)
    };
    times.into_iter().find_map(small)
}

/// A line: `✓ name......: values`.
struct Entry<'a> {
    /// Whether its thresholds passed, if it has any.
    mark: Option<bool>,
    name: &'a str,
    values: &'a str,
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let (mark, line) = marked(line);
    let (head, values) = line.split_once(".: ").or_else(|| line.strip_suffix(".:").map(|head| (head, "")))?;
    let name = head.trim_end_matches('.').trim_end();
    Some(Entry { mark, name, values: values.trim() })
}

fn marked(line: &str) -> (Option<bool>, &str) {
    let with = |sign, passed| Some((Some(passed), line.strip_prefix(sign)?.trim_start()));
    with('✓', true).or_else(|| with('✗', false)).unwrap_or((None, line))
}

/// The section of a new report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Metrics,
    Thresholds,
    /// The same metrics by group or scenario.
    Parts,
}

fn read(lines: &[ReportLine]) -> Result<Summary, Fault> {
    let (mut metrics, mut thresholds) = (BTreeMap::<String, Metric>::new(), Vec::<(String, Threshold)>::new());
    let mut checks = [None; 2];
    let (mut section, mut has_total, mut parent) = (Section::Metrics, false, String::new());
    for line in lines {
        if let Some(title) = line.text.strip_prefix('█') {
            section = match title.trim() {
                "TOTAL RESULTS" => Section::Metrics,
                "THRESHOLDS" => Section::Thresholds,
                _ if has_total => Section::Parts,
                _ => section,
            };
            has_total |= title.trim() == "TOTAL RESULTS";
            continue;
        }
        match section {
            Section::Parts => {}
            Section::Thresholds => threshold(&line.text, &mut parent, &mut thresholds),
            Section::Metrics => {
                let Some(Entry { mark, name, values }) = entry(&line.text) else { continue };
                match name {
                    "checks_total" => continue,
                    "checks_succeeded" | "checks_failed" => {
                        checks[usize::from(name == "checks_failed")] = Some(share(line, name, values)?);
                        continue;
                    }
                    _ => {}
                }
                let Some(full) = full_name(name, &mut parent) else { continue };
                let Some(metric) = read_one(line, &full, values, mark)? else { continue };
                if metrics.insert(full.clone(), metric).is_some() {
                    return Err(line.fault(format_args!("{} is duplicated", shown(&full))));
                }
                not_too_many(metrics.len(), &Place::root("metrics"))?;
            }
        }
    }
    if let [Some([passes, _]), Some([fails, _])] = checks {
        let rate = if passes + fails > 0.0 { passes / (passes + fails) } else { 0.0 };
        let values = [("rate", rate), ("passes", passes), ("fails", fails)];
        metrics.insert("checks".to_owned(), metric(Kind::Rate, Contains::Default, values));
    }
    same_columns(&metrics)?;
    for (name, threshold) in thresholds {
        if let Some(metric) = metrics.get_mut(&name) {
            metric.thresholds.push(threshold);
        }
    }
    Ok(Summary {
        shape: Shape::TextReport,
        k6_version: None,
        duration_ms: None,
        metrics,
        root: Group::default(),
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        stated: None,
        warnings: Vec::new(),
    })
}

fn metric<const N: usize>(kind: Kind, contains: Contains, values: [(&str, f64); N]) -> Metric {
    Metric { kind, contains, values: to_values(values), thresholds: Vec::new() }
}

/// Returns the name of a metric, or of a sub-metric of the one above; `None` if it is not a valid name.
fn full_name(name: &str, parent: &mut String) -> Option<String> {
    let full = match name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(tags) if !parent.is_empty() => format!("{parent}{{{}}}", tags.trim()),
        Some(_) => return None,
        None => {
            name.clone_into(parent);
            name.to_owned()
        }
    };
    names::metric(&full, &Place::root(&full)).is_ok().then_some(full)
}

fn read_one(line: &ReportLine, name: &str, values: &str, mark: Option<bool>) -> Result<Option<Metric>, Fault> {
    let known = builtin::lookup(name);
    let words: Vec<&str> = values.split_whitespace().collect();
    let (kind, contains) = known.unwrap_or_else(|| (inferred(&words), Contains::Unknown));
    let read = match kind {
        Kind::Counter => counter(&words, contains),
        Kind::Gauge => gauge(&words),
        Kind::Rate => share(line, name, values).map(rate).ok(),
        Kind::Trend => trend(&words, contains),
    };
    let Some(values) = read else {
        let fault = || line.fault(format_args!("{} is not in k6's format, or was truncated", shown(name)));
        return if known.is_some() { Err(fault()) } else { Ok(None) };
    };
    let thresholds =
        mark.map(|passed| Threshold { expression: UNNAMED.to_owned(), passed: Some(passed) }).into_iter().collect();
    Ok(Some(Metric { kind, contains, values, thresholds }))
}

fn inferred(words: &[&str]) -> Kind {
    match words {
        [first, ..] if first.contains('=') => Kind::Trend,
        [first, ..] if first.ends_with('%') => Kind::Rate,
        [.., last] if last.ends_with("/s") => Kind::Counter,
        _ => Kind::Gauge,
    }
}

type Values = BTreeMap<String, f64>;

fn to_values<const N: usize>(values: [(&str, f64); N]) -> Values {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn counter(words: &[&str], contains: Contains) -> Option<Values> {
    let (total, rate) = match (words, contains) {
        ([total, unit, rate, per_second], Contains::Data) => {
            (k6_bytes(total, unit)?, k6_bytes(rate, per_second.strip_suffix("/s")?)?)
        }
        ([total, rate], _) => (number(total)?, number(rate.strip_suffix("/s")?)?),
        _ => return None,
    };
    Some(to_values([("count", total), ("rate", rate)]))
}

/// Reads a gauge. Its value is between minimum and maximum, unless one of them was truncated.
fn gauge(words: &[&str]) -> Option<Values> {
    let [value, min, max] = words else { return None };
    let (value, min, max) = (number(value)?, number(min.strip_prefix("min=")?)?, number(max.strip_prefix("max=")?)?);
    (min <= value && value <= max).then(|| to_values([("value", value), ("min", min), ("max", max)]))
}

fn trend(words: &[&str], contains: Contains) -> Option<Values> {
    let one = |word: &&str| {
        let (name, value) = word.split_once('=')?;
        let value = match (name, contains) {
            ("count", _) => count(value)?,
            (_, Contains::Time) => k6_time(value)?,
            _ => number(value).or_else(|| k6_time(value))?,
        };
        Some((name.to_owned(), value))
    };
    let values: Values = words.iter().map(one).collect::<Option<_>>()?;
    (values.len() == words.len() && !values.is_empty()).then_some(values)
}

/// Reads passed and total counts: `50.00% ✓ 5 ✗ 5`, `50.00% 5 out of 10`.
fn share(line: &ReportLine, name: &str, values: &str) -> Result<[f64; 2], Fault> {
    let words: Vec<&str> = values.split_whitespace().collect();
    let read = || {
        let (percent, passes, total) = match words.as_slice() {
            [percent, "✓", passes, "✗", fails] => (percent, count(passes)?, count(passes)? + count(fails)?),
            [percent, passes, "out", "of", total] => (percent, count(passes)?, count(total)?),
            _ => return None,
        };
        let percent = number(percent.strip_suffix('%')?)?;
        let counted = if total > 0.0 { passes / total * 100.0 } else { 0.0 };
        (passes <= total && (percent - counted).abs() <= PERCENT_ROUNDING).then_some([passes, total])
    };
    read().ok_or_else(|| line.fault(format_args!("{} is not in k6's format, or was truncated", shown(name))))
}

fn rate([passes, total]: [f64; 2]) -> Values {
    let share = if total > 0.0 { passes / total } else { 0.0 };
    to_values([("rate", share), ("passes", passes), ("fails", total - passes)])
}

/// Reads a line of a new report's thresholds: a metric's name, or a mark and a quoted expression.
fn threshold(line: &str, parent: &mut String, thresholds: &mut Vec<(String, Threshold)>) {
    let (mark, rest) = marked(line);
    match (mark, rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once('\''))) {
        (Some(passed), Some((expression, _))) => {
            thresholds.push((parent.clone(), Threshold { expression: expression.to_owned(), passed: Some(passed) }));
        }
        (None, None) if line.starts_with('{') => {
            let base = names::base(parent).to_owned();
            *parent = format!("{base}{line}");
        }
        (None, None) => line.clone_into(parent),
        _ => {}
    }
}

/// Checks that all trends have the same statistics: one with fewer was truncated.
fn same_columns(metrics: &BTreeMap<String, Metric>) -> Result<(), Fault> {
    let columns = |metric: &Metric| metric.values.keys().cloned().collect::<BTreeSet<_>>();
    let own = |(name, metric): &(&String, &Metric)| metric.kind == Kind::Trend && builtin::lookup(name).is_some();
    let Some(all) = metrics.iter().filter(own).map(|(_, metric)| columns(metric)).max_by_key(BTreeSet::len) else {
        return Ok(());
    };
    match metrics.iter().filter(own).find(|(_, metric)| columns(metric) != all) {
        Some((name, _)) => {
            Err(Place::root("metrics").key(name).fault("lacks statistics of other trends: the report was truncated"))
        }
        None => Ok(()),
    }
}
