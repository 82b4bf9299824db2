//! `--summary-export`: metrics contain their values directly and no kind; a rate is called `value`; a threshold that is
//! `true` was crossed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::json::Node;
use super::{builtin, groups, names, values};
use crate::reports::metrics::read_metrics;
use crate::reports::summary::{Contains, Kind, Metric, Resolution, Shape, Summary, Threshold};
use crate::reports::validate::{Fault, Place};

pub(super) fn read<'de>(document: &Node<'de>, metrics: &[(Cow<'de, str>, Node<'de>)]) -> Result<Summary, Fault> {
    Ok(Summary {
        shape: Shape::SummaryExport,
        k6_version: None,
        duration_ms: None,
        metrics: read_metrics(metrics, metric)?,
        root: groups::root(document)?,
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        stated: None,
        warnings: Vec::new(),
    })
}

fn metric(name: &str, node: &Node<'_>, place: &Place<'_>) -> Result<Metric, Fault> {
    let entries = node.entries(place)?;
    let (kind, contains) = builtin::lookup(name).unwrap_or_else(|| (inferred(node), Contains::Unknown));
    let (mut values, mut thresholds) = (BTreeMap::new(), Vec::new());
    for (key, node) in entries {
        match (kind, key.as_ref()) {
            (_, "thresholds") => thresholds = crossed(node, &place.key(key))?,
            (Kind::Rate, "value") => values::insert(&mut values, kind, "rate", node, place)?,
            _ => values::insert(&mut values, kind, key, node, place)?,
        }
    }
    Ok(Metric { kind, contains, values, thresholds })
}

/// Infers the kind of a custom metric from the names of its values. A trend has the configured statistics, which may
/// include `count`, but never `rate`.
fn inferred(node: &Node<'_>) -> Kind {
    let has = |key| node.get(key).is_some();
    if has("passes") || has("fails") {
        Kind::Rate
    } else if has("count") && has("rate") && !has("min") {
        Kind::Counter
    } else if has("value") {
        Kind::Gauge
    } else {
        Kind::Trend
    }
}

fn crossed(node: &Node<'_>, place: &Place<'_>) -> Result<Vec<Threshold>, Fault> {
    let one = |(expression, failed): &(Cow<'_, str>, Node<'_>)| {
        let place = place.key(expression);
        names::text(expression, &place)?;
        Ok(Threshold { expression: expression.to_string(), passed: Some(!failed.bool(&place)?) })
    };
    node.entries(place)?.iter().map(one).collect()
}
