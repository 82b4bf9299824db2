//! `--new-machine-readable-summary`: lists, percentiles called `p90`, rates as `matches` of `total`, counters without a
//! rate, and `null` for statistics that were not computed. It has no groups and no thresholds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::json::{Node, required};
use super::{groups, names, values};
use crate::reports::handle_summary;
use crate::reports::metrics::not_too_many;
use crate::reports::summary::{Check, Group, Kind, Metric, Resolution, Shape, Summary};
use crate::reports::validate::{Fault, Place, ShortNumber};

/// Corresponds to the rate `checks` of the other shapes.
const CHECKS: &str = "checks_succeeded";

pub(super) fn read(document: &Node<'_>, results: &Node<'_>) -> Result<Summary, Fault> {
    let config = Place::root("config");
    let config_node = document.get("config").ok_or_else(|| config.fault("is missing"))?;
    let seconds = required(config_node, "duration", &config)?.number(&config.key("duration"))?;
    let results_place = Place::root("results");
    let mut metrics = BTreeMap::new();
    let listed = list(results, "metrics", &results_place)?;
    not_too_many(listed.len(), &results_place.key("metrics"))?;
    for (index, node) in listed {
        let (name, metric) = metric(node, seconds, &results_place.key("metrics").index(index))?;
        if metrics.contains_key(name) {
            return Err(Place::root("metrics").key(name).fault("is duplicated"));
        }
        metrics.insert(name.to_owned(), metric);
    }
    let mut root = Group::default();
    if let Some(checks) = results.get("checks") {
        let place = results_place.key("checks");
        for (index, node) in list(checks, "metrics", &place)? {
            let (name, metric) = metric(node, seconds, &place.key("metrics").index(index))?;
            if name == CHECKS {
                metrics.insert("checks".to_owned(), metric);
            }
        }
        root.checks = list(checks, "results", &place)?
            .map(|(index, node)| check(node, &place.key("results").index(index)))
            .collect::<Result<_, _>>()?;
    }
    Ok(Summary {
        shape: Shape::MachineReadable,
        k6_version: version(document)?,
        duration_ms: Some(seconds * 1000.0),
        metrics,
        root,
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        stated: None,
        warnings: Vec::new(),
    })
}

/// Returns the numbered nodes of a list that may be absent or null.
fn list<'n, 'de>(
    node: &'n Node<'de>,
    key: &str,
    place: &Place<'_>,
) -> Result<impl ExactSizeIterator<Item = (usize, &'n Node<'de>)>, Fault> {
    let nodes = match node.get(key) {
        None | Some(Node::Null) => &[],
        Some(found) => found.list(&place.key(key))?,
    };
    Ok(nodes.iter().enumerate())
}

fn version(document: &Node<'_>) -> Result<Option<String>, Fault> {
    let Some(found) = document.get("metadata").and_then(|metadata| metadata.get("k6_version")) else { return Ok(None) };
    let metadata = Place::root("metadata");
    let place = metadata.key("k6_version");
    let version = found.text(&place)?;
    names::text(version, &place)?;
    Ok(Some(version.to_owned()))
}

fn metric<'n>(node: &'n Node<'_>, seconds: f64, place: &Place<'_>) -> Result<(&'n str, Metric), Fault> {
    let name = required(node, "name", place)?.text(&place.key("name"))?;
    let metrics = Place::root("metrics");
    let place = metrics.key(name);
    names::metric(name, &place)?;
    let (kind, contains) = handle_summary::kind_and_contains(node, &place)?;
    let found = required(node, "values", &place)?;
    let mut values = BTreeMap::new();
    for (key, number) in found.entries(&place.key("values"))? {
        if kind != Kind::Rate || !matches!(key.as_ref(), "matches" | "total") {
            values::insert(&mut values, kind, &canonical(kind, key), number, &place)?;
        }
    }
    match kind {
        Kind::Rate => {
            let [matches, total] =
                ["matches", "total"].map(|key| values::count(required(found, key, &place), &place.key(key)));
            let (matches, total) = (matches?, total?);
            if matches > total {
                let what = format!("{} exceeds the total of {}", ShortNumber(matches), ShortNumber(total));
                return Err(place.key("matches").fault(what));
            }
            values.extend([("passes".to_owned(), matches), ("fails".to_owned(), total - matches)]);
        }
        Kind::Counter => {
            if let Some(count) = values.get("count").copied() {
                values.entry("rate".to_owned()).or_insert(count / seconds);
            }
        }
        Kind::Gauge | Kind::Trend => {}
    }
    Ok((name, Metric { kind, contains, values, thresholds: Vec::new() }))
}

/// Converts `p90` to `p(90)`.
fn canonical(kind: Kind, key: &str) -> Cow<'_, str> {
    match key.strip_prefix('p') {
        Some(percent) if kind == Kind::Trend && percent.parse::<f64>().is_ok() => format!("p({percent})").into(),
        _ => key.into(),
    }
}

fn check(node: &Node<'_>, place: &Place<'_>) -> Result<Check, Fault> {
    let name = required(node, "name", place)?.text(&place.key("name"))?;
    groups::check(name, node, place)
}
