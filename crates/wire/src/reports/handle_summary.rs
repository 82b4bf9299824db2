//! The data of `handleSummary`: `metrics.X.{type,contains,values,thresholds}`, `root_group`, `state`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::json::{Node, required};
use super::{groups, names, values};
use crate::reports::metrics::read_metrics;
use crate::reports::summary::{Contains, Kind, Metric, Resolution, Shape, Summary, Threshold};
use crate::reports::validate::{Fault, Place, shown};

/// Whether metrics have this shape, judged by one of them.
pub(super) fn recognises(metrics: &[(Cow<'_, str>, Node<'_>)]) -> bool {
    let sample = metrics.iter().find(|(name, _)| name == "http_reqs").or(metrics.first());
    sample.is_some_and(|(_, metric)| metric.get("type").is_some() || metric.get("values").is_some())
}

pub(super) fn read<'de>(document: &Node<'de>, metrics: &[(Cow<'de, str>, Node<'de>)]) -> Result<Summary, Fault> {
    let duration_ms = match document.get("state").and_then(|state| state.get("testRunDurationMs")) {
        Some(duration) => Some(duration.number(&Place::root("state").key("testRunDurationMs"))?),
        None => None,
    };
    Ok(Summary {
        shape: Shape::HandleSummary,
        k6_version: None,
        duration_ms,
        metrics: read_metrics(metrics, |_, node, place| metric(node, place))?,
        root: groups::root(document)?,
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        stated: None,
        warnings: Vec::new(),
    })
}

fn metric(node: &Node<'_>, place: &Place<'_>) -> Result<Metric, Fault> {
    let (kind, contains) = kind_and_contains(node, place)?;
    let mut values = BTreeMap::new();
    for (name, number) in required(node, "values", place)?.entries(&place.key("values"))? {
        values::insert(&mut values, kind, name, number, place)?;
    }
    let mut thresholds = Vec::new();
    if let Some(found) = node.get("thresholds") {
        let place = place.key("thresholds");
        for (expression, verdict) in found.entries(&place)? {
            let place = place.key(expression);
            names::text(expression, &place)?;
            let passed = required(verdict, "ok", &place)?.bool(&place.key("ok"))?;
            thresholds.push(Threshold { expression: expression.to_string(), passed: Some(passed) });
        }
    }
    Ok(Metric { kind, contains, values, thresholds })
}

/// Reads `type` and `contains`, as in this shape and the machine-readable one.
pub(super) fn kind_and_contains(node: &Node<'_>, place: &Place<'_>) -> Result<(Kind, Contains), Fault> {
    let kind = match required(node, "type", place)?.text(&place.key("type"))? {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "rate" => Kind::Rate,
        "trend" => Kind::Trend,
        other => {
            let what = format!("\"{}\" is not one of counter, gauge, rate, trend", shown(other));
            return Err(place.key("type").fault(what));
        }
    };
    let contains = match required(node, "contains", place)?.text(&place.key("contains"))? {
        "default" => Contains::Default,
        "time" => Contains::Time,
        "data" => Contains::Data,
        other => {
            let what = format!("\"{}\" is not one of default, time, data", shown(other));
            return Err(place.key("contains").fault(what));
        }
    };
    Ok((kind, contains))
}
