//! Summaries written by real k6.

#![expect(clippy::float_cmp, reason = "values are read exactly")]

use brewbench_wire::reports::protocol::Protocol;
use brewbench_wire::reports::read::parse;
use brewbench_wire::reports::summary::{
    Check, Contains, Figures, Kind, Latency, Metric, Resolution, Shape, Summary, Threshold,
};

use super::{FIXTURES, fixture};

fn read(name: &str) -> Summary {
    parse(fixture(name).as_bytes()).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

fn crossed(summary: &Summary) -> Vec<(&str, &str)> {
    let failed = |(name, metric)| {
        let metric: &Metric = metric;
        let name: &String = name;
        metric
            .thresholds
            .iter()
            .filter(|threshold| threshold.passed == Some(false))
            .map(move |t| (name.as_str(), t.expression.as_str()))
    };
    summary.metrics.iter().flat_map(failed).collect()
}

#[test]
fn every_fixture_is_read() {
    for name in FIXTURES {
        read(name);
    }
}

#[test]
fn handle_summary_of_k6_1() {
    let summary = read("handle-summary-v1.8.1.json");
    assert_eq!((summary.shape, summary.k6_version.clone()), (Shape::HandleSummary, None));
    assert_eq!(summary.duration_ms, Some(3000.44364));
    let latency = Latency {
        avg_ms: Some(0.540_926_085_477_252_8),
        min_ms: Some(0.028_969),
        p50_ms: Some(0.342_664_500_000_000_04),
        p90_ms: Some(1.139_911_9),
        p95_ms: Some(1.600_388_649_999_998_9),
        p99_ms: None,
        p999_ms: None,
        max_ms: Some(34.898_847),
    };
    let figures = summary.figures();
    assert!((figures.rps - 17_074.141_742_585_773).abs() < 1e-6, "k6's own rate, not {}", figures.rps);
    let expected = Figures {
        protocol: Protocol::Http,
        requests: 51_230,
        failed: Some(0),
        rps: figures.rps,
        ttfb_p95_ms: Some(1.510_375_149_999_997_3),
        measured_ms: 3000.44364,
        latency,
        ok_latency: latency,
        blocked_ms: figures.blocked_ms,
        iterations: Some(51_230),
        iteration_ms: figures.iteration_ms,
        dropped_iterations: None,
        new_connections: figures.new_connections,
        data_received_bytes: Some(9_836_160),
        data_sent_bytes: Some(3_791_020),
        received_per_s: None,
        checks_passed: Some(51_230),
        checks_failed: Some(0),
        worst_check: None,
        vus_max: Some(10),
        connections: None,
        closed_connections: None,
        thresholds_failed: Some(0),
        thresholds: Some(0),
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        warnings: Vec::new(),
    };
    assert_eq!(figures, expected);
}

#[test]
fn new_connections_are_bounded_by_percentiles() {
    let bounds = |name: &str| {
        let bounds = read(name).figures().new_connections.expect("bounds");
        (bounds.least, bounds.most)
    };
    // At most one in twenty of 51,230, one in a hundred of 7,372, and of these more than one in a thousand.
    assert_eq!(bounds("handle-summary-v1.8.1.json"), (1, 2_563));
    assert_eq!(bounds("summary-export-v1.8.1.json"), (6, 75));
}

#[test]
fn handle_summary_of_k6_0_52() {
    let figures = read("handle-summary-v0.52.0.json").figures();
    assert_eq!((figures.requests, figures.failed, figures.measured_ms), (49_791, Some(0), 3000.31103));
    assert_eq!((figures.latency.p95_ms, figures.latency.max_ms), (Some(1.61837), Some(17.406_146)));
    assert!((figures.rps - 16_595.279_456_743_523).abs() < 1e-6);
}

#[test]
fn a_complete_summary_export() {
    let summary = read("summary-export-v1.8.1.json");
    assert_eq!((summary.shape, summary.duration_ms), (Shape::SummaryExport, None));
    let figures = summary.figures();
    assert!((figures.rps - 1_471.080_215_337_56).abs() < 1e-9);
    assert!((figures.measured_ms - 5_011.283_493).abs() < 1e-6);
    let expected = Figures {
        protocol: Protocol::Http,
        requests: 7372,
        failed: Some(3686),
        rps: figures.rps,
        ttfb_p95_ms: Some(0.403_300_45),
        measured_ms: figures.measured_ms,
        latency: Latency {
            avg_ms: Some(0.218_837_963_646_229_18),
            min_ms: Some(0.02352),
            p50_ms: Some(0.171_826_5),
            p90_ms: Some(0.347_106_100_000_000_03),
            p95_ms: Some(0.464_824_599_999_999_9),
            p99_ms: Some(1.288_418_339_999_999_8),
            p999_ms: Some(2.887_399_116_000_172_4),
            max_ms: Some(4.011_477),
        },
        ok_latency: Latency {
            avg_ms: Some(0.252_459_364_622_897_6),
            min_ms: Some(0.035_618),
            p50_ms: Some(0.201_517),
            p90_ms: Some(0.408_462_5),
            p95_ms: Some(0.527_514_250_000_000_1),
            p99_ms: Some(1.444_993_800_000_001_5),
            p999_ms: Some(2.821_674_090_000_109),
            max_ms: Some(3.167_547),
        },
        blocked_ms: figures.blocked_ms,
        iterations: Some(3686),
        iteration_ms: figures.iteration_ms,
        dropped_iterations: Some(1),
        new_connections: figures.new_connections,
        data_received_bytes: Some(1_356_448),
        data_sent_bytes: Some(545_528),
        received_per_s: None,
        checks_passed: Some(7372),
        checks_failed: Some(3686),
        worst_check: figures.worst_check.clone(),
        vus_max: Some(13),
        connections: None,
        closed_connections: None,
        thresholds_failed: Some(3),
        thresholds: Some(6),
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        warnings: Vec::new(),
    };
    assert_eq!(figures, expected);
}

#[test]
fn thresholds_that_are_true_in_an_export_were_crossed() {
    let summary = read("summary-export-v1.8.1.json");
    let expected = [("checks", "rate>0.9"), ("http_req_duration", "p(99.9)<0.001"), ("http_req_failed", "rate<0.5")];
    assert_eq!(crossed(&summary), expected);
    let open = Threshold { expression: "avg<200".to_owned(), passed: Some(true) };
    assert_eq!(summary.metrics["http_req_duration{phase:open}"].thresholds, [open]);
}

#[test]
fn groups_and_checks_keep_order_and_paths() {
    let root = read("summary-export-v1.8.1.json").root;
    let names: Vec<_> = root.groups.iter().map(|group| (group.name.as_str(), group.path.as_str())).collect();
    assert_eq!(names, [("hash", "::hash"), ("missing", "::missing")]);
    let check = |name: &str, path: &str, passes, fails| Check { name: name.into(), path: path.into(), passes, fails };
    let hash = [
        check("status is 200", "::hash::status is 200", 3686, 0),
        check("has \"hash\" / key", "::hash::has \"hash\" / key", 3686, 0),
    ];
    assert_eq!(root.groups[0].checks, hash);
    assert_eq!(root.groups[1].checks, [check("is ok", "::missing::is ok", 0, 3686)]);
}

#[test]
fn custom_metrics_keep_their_kinds() {
    let export = read("summary-export-v1.8.1.json");
    let machine = read("machine-readable-v1.8.1.json");
    for (name, kind, contains) in [
        ("body_size", Kind::Trend, Contains::Default),
        ("ttfb", Kind::Trend, Contains::Time),
        ("hits", Kind::Counter, Contains::Default),
        ("good", Kind::Rate, Contains::Default),
        ("last", Kind::Gauge, Contains::Default),
    ] {
        assert_eq!((export.metrics[name].kind, export.metrics[name].contains), (kind, Contains::Unknown), "{name}");
        assert_eq!((machine.metrics[name].kind, machine.metrics[name].contains), (kind, contains), "{name}");
    }
    assert_eq!(export.metrics["ttfb"].values["p(99.9)"], 2.441_018_265_000_049_6);
    assert_eq!(export.metrics["ttfb"].values["count"], 3686.0);
    assert_eq!(export.metrics["good"].values["rate"], 1.0);
    assert_eq!(export.metrics["data_sent"].contains, Contains::Data);
}

#[test]
fn machine_readable() {
    let summary = read("machine-readable-v1.8.1.json");
    assert_eq!((summary.shape, summary.k6_version.as_deref()), (Shape::MachineReadable, Some("1.8.1")));
    assert!((summary.metrics["http_reqs"].values["rate"] - 7362.0 / 5.012_590_862).abs() < 1e-9);
    assert_eq!(summary.metrics["http_req_duration"].values["p(95)"], 0.565_412_7);
    assert!(!summary.metrics.contains_key("checks_total"));
    let figures = summary.figures();
    let expected = Figures {
        protocol: Protocol::Http,
        requests: 7362,
        failed: Some(3681),
        rps: figures.rps,
        ttfb_p95_ms: None,
        measured_ms: 5.012_590_862 * 1000.0,
        latency: Latency {
            avg_ms: Some(0.234_754_644_933_442_78),
            min_ms: Some(0.02563),
            p50_ms: Some(0.178_256),
            p90_ms: Some(0.410_816_600_000_000_25),
            p95_ms: Some(0.565_412_7),
            p99_ms: None,
            p999_ms: None,
            max_ms: Some(3.69307),
        },
        ok_latency: Latency {
            avg_ms: Some(0.274_377_047_541_428_55),
            min_ms: Some(0.037_235),
            p50_ms: Some(0.213_331),
            p90_ms: Some(0.476_158),
            p95_ms: Some(0.655_457),
            p99_ms: None,
            p999_ms: None,
            max_ms: Some(3.69307),
        },
        blocked_ms: figures.blocked_ms,
        iterations: Some(3681),
        iteration_ms: figures.iteration_ms,
        dropped_iterations: Some(1),
        new_connections: figures.new_connections,
        data_received_bytes: Some(1_354_608),
        data_sent_bytes: Some(544_788),
        received_per_s: None,
        checks_passed: Some(7362),
        checks_failed: Some(3681),
        worst_check: figures.worst_check.clone(),
        vus_max: Some(13),
        connections: None,
        closed_connections: None,
        thresholds_failed: Some(0),
        thresholds: Some(0),
        negative_minima: Vec::new(),
        resolution: Resolution::default(),
        warnings: Vec::new(),
    };
    assert_eq!(figures, expected);
    assert_eq!((figures.iteration_ms, figures.new_connections), (Some(11.050_376_730_236_323), None));
    let names: Vec<_> = summary.root.checks.iter().map(|check| (check.name.as_str(), check.path.as_str())).collect();
    assert_eq!(names[1], ("has \"hash\" / key", "::has \"hash\" / key"));
}

#[test]
fn without_successful_requests_their_latency_is_unknown() {
    let figures = read("summary-export-target-down-v1.8.1.json").figures();
    assert_eq!((figures.requests, figures.failed), (60_684, Some(60_684)));
    assert!((figures.rps - 30_336.291_544_179_407).abs() < 1e-6);
    assert_eq!(figures.latency.avg_ms, Some(0.0));
    assert_eq!(figures.ok_latency, Latency::default());
    assert_eq!((figures.checks_passed, figures.checks_failed), (Some(0), Some(60_684)));
}

#[test]
fn zeros_of_a_threshold_are_not_latencies() {
    for name in ["handle-summary-odd-v1.8.1.json", "summary-export-odd-v1.8.1.json", "machine-readable-odd-v1.8.1.json"]
    {
        let summary = read(name);
        assert_eq!(summary.metrics["http_req_duration{expected_response:true}"].values["avg"], 0.0, "{name}");
        let figures = summary.figures();
        assert_eq!((figures.requests, figures.failed), (3, Some(3)), "{name}");
        assert_eq!(figures.ok_latency, Latency::default(), "{name}");
        assert!(figures.latency.avg_ms.is_some_and(|avg| avg > 1.0), "{name}");
        assert_eq!((figures.latency.min_ms, figures.latency.p95_ms), (None, None), "{name}");
    }
}

#[test]
fn a_run_without_requests_has_no_latency() {
    let figures = read("summary-export-zero-requests-v1.8.1.json").figures();
    assert_eq!((figures.requests, figures.failed, figures.rps), (0, Some(0), 0.0));
    assert_eq!((figures.latency, figures.ok_latency), (Latency::default(), Latency::default()));
    assert!((figures.measured_ms - 1000.0 / 8_675.058_339_767_334).abs() < 1e-9);
}

#[test]
fn html_negative_samples_and_fractions_are_allowed() {
    let handle = read("handle-summary-odd-v1.8.1.json");
    let inner = &handle.root.groups[0].groups[0];
    assert_eq!((handle.root.groups[0].name.as_str(), inner.path.as_str()), ("g <b>&\"", "::g <b>&\"::in"));
    let names: Vec<_> = inner.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["has <title>", ""]);
    assert_eq!(handle.metrics["neg"].values["p(99.9)"], -5.5);
    assert_eq!(handle.metrics["half"].values["count"], 1.5);
    assert!(handle.metrics.contains_key("http_reqs{url:http://x/ y,z:\"q\"}"));
    assert_eq!(handle.figures().latency.p50_ms, Some(handle.metrics["http_req_duration"].values["p(50)"]));
}

#[test]
fn two_shapes_of_one_run_agree() {
    let handle = read("handle-summary-odd-v1.8.1.json");
    let export = read("summary-export-odd-v1.8.1.json");
    assert_eq!(handle.root, export.root);
    let mut figures = export.figures();
    assert!((figures.measured_ms - handle.figures().measured_ms).abs() < 1e-9);
    (figures.measured_ms, figures.rps) = (handle.figures().measured_ms, handle.figures().rps);
    assert_eq!(figures, handle.figures());
}
