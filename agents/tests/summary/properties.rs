//! For any input: no panic, no implausible values, and the shapes agree with each other.

use brewbench_wire::reports::read::parse;
use brewbench_wire::reports::summary::{Figures, Latency};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{FIXTURES, fixture};

/// Numbers that are invalid in many places.
const NUMBERS: [f64; 10] = [-1.0, -0.0, 0.0, 0.5, 1.5, 3.0, 51_230.0, 9.1e15, 1e300, 5e-324];

/// Keys with a meaning in some place, and invalid ones.
const KEYS: [&str; 12] =
    ["count", "rate", "value", "values", "p(90)", "thresholds", "metrics", "results", "type", "", "\u{7}", "<b>"];

fn fixtures() -> impl Strategy<Value = String> {
    proptest::sample::select(FIXTURES.to_vec()).prop_map(fixture)
}

/// Calls `visit` on every value of a document, depth first.
fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    visit(value);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| walk(value, visit)),
        Value::Object(map) => map.values_mut().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

/// Changes one of the values selected by `is`.
fn change_one(text: &str, which: prop::sample::Index, is: fn(&Value) -> bool, change: impl Fn(&mut Value)) -> String {
    let mut document: Value = serde_json::from_str(text).expect("fixtures are JSON");
    let mut count = 0;
    walk(&mut document, &mut |value| count += usize::from(is(value)));
    let (chosen, mut at) = (which.index(count), 0);
    walk(&mut document, &mut |value| {
        if is(value) {
            if at == chosen {
                change(value);
            }
            at += 1;
        }
    });
    document.to_string()
}

/// Asserts invariants of all accepted summaries.
fn assert_plausible(figures: &Figures) {
    let Figures { requests, failed, rps, measured_ms, latency, ok_latency, .. } = figures;
    assert!(measured_ms.is_finite() && *measured_ms > 0.0, "{measured_ms}");
    assert!(rps.is_finite() && (rps * measured_ms / 1000.0 - *requests as f64).abs() <= *requests as f64 * 1e-9);
    assert!(failed.is_none_or(|failed| failed <= *requests));
    for Latency { avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms } in [latency, ok_latency] {
        let rising: Vec<f64> =
            [min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms].into_iter().flatten().copied().collect();
        assert!(rising.iter().chain(avg_ms).all(|ms| ms.is_finite() && *ms >= 0.0));
        assert!(rising.is_sorted_by(|low, high| low - high <= high.max(*low) * 1e-5), "{rising:?}");
    }
}

/// A run to be written in any shape.
#[derive(Clone, Debug)]
struct Run {
    requests: u32,
    failed: u32,
    duration_ms: u32,
    /// avg, min, med, p(90), p(95), max.
    latency: [f64; 6],
    vus: u16,
    checks: (u32, u32),
}

fn runs() -> impl Strategy<Value = Run> {
    let latency = prop::array::uniform5(0.0..1000.0_f64).prop_map(|mut parts| {
        parts.sort_by(f64::total_cmp);
        let [min, med, p90, p95, max] = parts;
        [f64::midpoint(min, max), min, med, p90, p95, max]
    });
    let rest = (1..600_000_u32, latency, any::<u16>(), (any::<u32>(), any::<u32>()));
    (1..u32::MAX, 0.0..=1.0_f64, rest).prop_map(|(requests, share, (duration_ms, latency, vus, checks))| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32")]
        let failed = (f64::from(requests) * share) as u32;
        Run { requests, failed, duration_ms, latency, vus, checks }
    })
}

fn trend(run: &Run, names: [&str; 6]) -> Value {
    names.iter().zip(run.latency).map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<Map<_, _>>().into()
}

const TREND: [&str; 6] = ["avg", "min", "med", "p(90)", "p(95)", "max"];
const OK: &str = "http_req_duration{expected_response:true}";

/// Returns the share of `passes`.
fn share(passes: u32, fails: u32) -> f64 {
    f64::from(passes) / (f64::from(passes) + f64::from(fails)).max(1.0)
}

impl Run {
    fn per_second(&self) -> f64 {
        f64::from(self.requests) / f64::from(self.duration_ms) * 1000.0
    }

    fn handle_summary(&self) -> Value {
        let metric = |kind, contains, values| json!({"type": kind, "contains": contains, "values": values});
        let rate = |passes, fails| json!({"rate": share(passes, fails), "passes": passes, "fails": fails});
        json!({
            "state": {"testRunDurationMs": self.duration_ms},
            "root_group": {"name": "", "path": "", "groups": [], "checks": []},
            "metrics": {
                "http_reqs": metric("counter", "default", json!({"count": self.requests, "rate": self.per_second()})),
                "http_req_failed": metric("rate", "default", rate(self.failed, self.requests - self.failed)),
                "checks": metric("rate", "default", rate(self.checks.0, self.checks.1)),
                "http_req_duration": metric("trend", "time", trend(self, TREND)),
                OK: metric("trend", "time", trend(self, TREND)),
                "vus_max": metric("gauge", "default", json!({"value": self.vus, "min": self.vus, "max": self.vus})),
            }
        })
    }

    fn summary_export(&self) -> Value {
        let rate = |passes, fails| json!({"value": share(passes, fails), "passes": passes, "fails": fails});
        json!({
            "root_group": {"name": "", "path": "", "groups": {}, "checks": {}},
            "metrics": {
                "http_reqs": {"count": self.requests, "rate": self.per_second()},
                "http_req_failed": rate(self.failed, self.requests - self.failed),
                "checks": rate(self.checks.0, self.checks.1),
                "http_req_duration": trend(self, TREND),
                OK: trend(self, TREND),
                "vus_max": {"value": self.vus, "min": self.vus, "max": self.vus},
            }
        })
    }

    fn machine_readable(&self) -> Value {
        let metric =
            |name, kind, contains, values| json!({"name": name, "type": kind, "contains": contains, "values": values});
        let rate = |passes: u32, fails: u32| json!({"rate": share(passes, fails), "matches": passes, "total": u64::from(passes) + u64::from(fails)});
        let names = ["avg", "min", "med", "p90", "p95", "max"];
        json!({
            "config": {"duration": f64::from(self.duration_ms) / 1000.0},
            "metadata": {"k6_version": "1.8.1"},
            "results": {
                "checks": {
                    "metrics": [
                        metric("checks_failed", "rate", "default", rate(self.checks.1, self.checks.0)),
                        metric("checks_succeeded", "rate", "default", rate(self.checks.0, self.checks.1)),
                    ],
                    "results": [],
                },
                "metrics": [
                    metric("http_reqs", "counter", "default", json!({"count": self.requests})),
                    metric("http_req_failed", "rate", "default", rate(self.failed, self.requests - self.failed)),
                    metric("http_req_duration", "trend", "time", trend(self, names)),
                    metric(OK, "trend", "time", trend(self, names)),
                    metric("vus_max", "gauge", "default",
                        json!({"value": self.vus, "min": self.vus, "max": self.vus})),
                ],
            }
        })
    }
}

fn figures(document: &Value) -> Figures {
    parse(document.to_string().as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {document}")).figures()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_truncated_summary_is_rejected(text in fixtures(), at in any::<prop::sample::Index>()) {
        let bytes = text.trim_end().as_bytes();
        let cut = parse(&bytes[..at.index(bytes.len())]);
        prop_assert!(cut.is_err());
    }

    #[test]
    fn arbitrary_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let fault = parse(&bytes).expect_err("rejected").to_string();
        prop_assert!(!fault.chars().any(char::is_control), "{fault:?}");
    }

    #[test]
    fn a_modified_byte_is_rejected_or_plausible(
        text in fixtures(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        match parse(&bytes) {
            Ok(summary) => assert_plausible(&summary.figures()),
            Err(fault) => prop_assert!(!fault.to_string().chars().any(char::is_control), "{fault:?}"),
        }
    }

    #[test]
    fn a_modified_number_is_rejected_or_plausible(
        text in fixtures(),
        which in any::<prop::sample::Index>(),
        number in prop_oneof![prop::sample::select(NUMBERS.to_vec()), any::<f64>()],
    ) {
        let text = change_one(&text, which, Value::is_number, |value| *value = json!(number));
        if let Ok(summary) = parse(text.as_bytes()) {
            assert_plausible(&summary.figures());
        }
    }

    #[test]
    fn a_modified_key_is_rejected_or_plausible(
        text in fixtures(),
        which in any::<prop::sample::Index>(),
        entry in any::<prop::sample::Index>(),
        key in prop_oneof![prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned), any::<String>()],
    ) {
        let filled = |value: &Value| value.as_object().is_some_and(|map| !map.is_empty());
        let text = change_one(&text, which, filled, |value| {
            let map = value.as_object_mut().expect("an object was chosen");
            let old = map.keys().nth(entry.index(map.len())).expect("it has entries").clone();
            let value = map.remove(&old).expect("the key was found in it");
            map.insert(key.clone(), value);
        });
        match parse(text.as_bytes()) {
            Ok(summary) => assert_plausible(&summary.figures()),
            Err(fault) => prop_assert!(!fault.to_string().chars().any(char::is_control), "{fault:?}"),
        }
    }

    #[test]
    fn the_three_shapes_agree(run in runs()) {
        let handle = figures(&run.handle_summary());
        assert_plausible(&handle);
        for mut other in [figures(&run.summary_export()), figures(&run.machine_readable())] {
            prop_assert!((other.measured_ms / handle.measured_ms - 1.0).abs() < 1e-12);
            prop_assert!((other.rps / handle.rps - 1.0).abs() < 1e-12);
            (other.measured_ms, other.rps) = (handle.measured_ms, handle.rps);
            prop_assert_eq!(&other, &handle);
        }
        let stored = serde_json::to_string(&handle).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Figures>(&stored).expect("plain data"), handle);
    }
}
