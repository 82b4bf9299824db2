//! Quantities as manifests write them: `500m`, `1.5`, `64Mi`. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity};

use crate::cgroup::Limits;

const SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];

/// Returns the limits of a container.
pub fn limits(resources: Option<&ResourceRequirements>) -> Limits {
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    Limits {
        cpu_millis: limits.and_then(|limits| parse(limits, "cpu", 1000.0)),
        memory_bytes: limits.and_then(|limits| parse(limits, "memory", 1.0)),
    }
}

/// Returns a resource in units of `1 / scale`, rounded up as Kubernetes does.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "resources are positive and below 2^53")]
fn parse(quantities: &BTreeMap<String, Quantity>, name: &str, scale: f64) -> Option<u64> {
    let text = &quantities.get(name)?.0;
    let (number, factor) =
        SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?.parse::<f64>().ok()?, factor)))?;
    Some((number * factor * scale).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits_of(cpu: &str, memory: &str) -> (Option<u64>, Option<u64>) {
        let quantity = |text: &str| Quantity(text.to_owned());
        let limits = BTreeMap::from([("cpu".to_owned(), quantity(cpu)), ("memory".to_owned(), quantity(memory))]);
        let resources = ResourceRequirements { limits: Some(limits), ..ResourceRequirements::default() };
        let Limits { cpu_millis, memory_bytes } = super::limits(Some(&resources));
        (cpu_millis, memory_bytes)
    }

    #[test]
    fn quantities_have_suffixes() {
        assert_eq!(limits_of("500m", "64Mi"), (Some(500), Some(64 << 20)));
        assert_eq!(limits_of("1.5", "1G"), (Some(1500), Some(1_000_000_000)));
        assert_eq!(limits_of("2", "1048576"), (Some(2000), Some(1 << 20)));
    }

    #[test]
    fn what_is_not_a_quantity_is_no_limit() {
        assert_eq!(limits_of("two", ""), (None, None));
    }
}
