//! The registry agrees with itself.

use std::collections::BTreeSet;

use super::*;

#[test]
fn each_metric_has_its_place_and_names_of_its_own() {
    for (place, def) in METRICS.iter().enumerate() {
        assert_eq!(def.metric as usize, place, "{}", def.key);
        assert_eq!(serde_json::to_value(def.metric).expect("a word"), def.key);
    }
    let keys: BTreeSet<_> = METRICS.iter().map(|def| def.key).collect();
    let list_keys: BTreeSet<_> = METRICS.iter().filter_map(|def| def.list_key).collect();
    assert_eq!((keys.len(), list_keys.len()), (METRICS.len(), METRICS.len()));
}

#[test]
fn what_is_compared_comes_first() {
    let compared = compared().count();
    assert!(METRICS[..compared].iter().all(|def| def.role >= Role::Compared));
    assert_eq!(judged().next(), Some(Metric::Rps), "what is primary");
}
