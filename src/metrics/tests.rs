//! Consistency of the registry.

use std::collections::BTreeSet;

use super::*;

#[test]
fn each_metric_has_its_index_and_unique_names() {
    for (place, def) in METRICS.iter().enumerate() {
        assert_eq!(def.metric as usize, place, "{}", def.key);
        assert_eq!(serde_json::to_value(def.metric).expect("a word"), def.key);
    }
    let keys: BTreeSet<_> = METRICS.iter().map(|def| def.key).collect();
    let list_keys: BTreeSet<_> = METRICS.iter().filter_map(|def| def.list_key).collect();
    assert_eq!((keys.len(), list_keys.len()), (METRICS.len(), METRICS.len()));
}

#[test]
fn compared_metrics_come_first() {
    let compared = compared().count();
    assert!(METRICS[..compared].iter().all(|def| def.role >= Role::Compared));
    assert_eq!(judged().next(), Some(Metric::Rps), "the primary metric");
}
