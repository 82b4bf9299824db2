//! Reads the metrics of a JSON report. Pure.

use std::collections::BTreeMap;

use crate::reports::json::Node;
use crate::reports::summary::Metric;
use crate::reports::validate::{Fault, Place};

/// Maximum number of metrics, for scripts and pages alike.
pub(crate) const METRICS_MAX: usize = 5_000;

/// Reads the metrics of a shape that stores them in an object.
pub(super) fn read_metrics<'de>(
    entries: &[(std::borrow::Cow<'de, str>, Node<'de>)],
    read: fn(&str, &Node<'de>, &Place<'_>) -> Result<Metric, Fault>,
) -> Result<BTreeMap<String, Metric>, Fault> {
    let metrics = Place::root("metrics");
    not_too_many(entries.len(), &metrics)?;
    let one = |(name, node): &(std::borrow::Cow<'de, str>, Node<'de>)| {
        let place = metrics.key(name);
        crate::reports::names::metric(name, &place)?;
        Ok((name.to_string(), read(name, node, &place)?))
    };
    entries.iter().map(one).collect()
}

pub(super) fn not_too_many(count: usize, place: &Place<'_>) -> Result<(), Fault> {
    if count > METRICS_MAX {
        return Err(place.fault(format_args!("has {count} metrics, more than the maximum of {METRICS_MAX}")));
    }
    Ok(())
}
