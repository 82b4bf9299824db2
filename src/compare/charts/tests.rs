//! Tests of the charts.

use super::*;
use crate::{
    compare::{
        testing::{faster, judged, repeated, run, sized},
        view::Comparison,
    },
    web::series_style::{Mark, Marks},
};

fn charts_of(runs: Vec<Run>) -> Vec<Chart> {
    Comparison::new(runs, &marks(), None).charts
}

fn marks() -> Marks {
    [("gosherve", 0), ("servy", 1)].map(|(name, slot)| (name.to_owned(), Mark(slot))).into_iter().collect()
}

fn two() -> Vec<Run> {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
    runs
}

#[test]
fn one_setting_has_bars_of_medians_and_points_of_repetitions() {
    let charts = charts_of(two());
    let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(titles, ["Throughput", "Latency"]);
    let data = charts[0].figure.0["data"].as_array().expect("traces");
    assert_eq!(data.len(), 4);
    assert_eq!(data[0]["x"], json!([10_000.0]));
    assert_eq!(data[1]["x"].as_array().map(Vec::len), Some(6));
    assert_eq!(charts[1].figure.0["data"].as_array().map(Vec::len), Some(2 * 2 * 7));
}

#[test]
fn colours_are_roles_and_fixed_by_target() {
    for chart in charts_of(two()) {
        let text = chart.figure.0.to_string();
        assert!(text.contains(r#""color":"target 1""#) && text.contains(r#""color":"target 2""#));
        assert!(!text.contains('#'), "{text}");
    }
}

#[test]
fn versions_of_one_target_have_one_colour_and_differ_in_hatch_and_shape() {
    let mut runs = repeated(|n| run("servy", n));
    runs.extend(repeated(|n| Run {
        version: Some("2.0".to_owned()),
        id: format!("new-{n}").into(),
        ..run("servy", n)
    }));
    let charts = charts_of(runs);
    let data = &charts[0].figure.0["data"];
    let (old, new) = (&data[0]["marker"], &data[2]["marker"]);
    assert_eq!((&old["color"], &new["color"]), (&json!("target 2"), &json!("target 2")));
    assert_ne!(old["pattern"]["shape"], new["pattern"]["shape"]);
    assert_ne!(data[1]["marker"]["symbol"], data[3]["marker"]["symbol"]);
}

#[test]
fn several_sizes_are_groups_of_one_chart() {
    let mut runs = repeated(|n| sized("gosherve", n, 1.0));
    runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
    runs.extend(repeated(|n| sized("servy", n, 4.0)));
    let charts = charts_of(runs);
    assert_eq!(charts[0].title, "Throughput by machine size");
    assert_eq!(charts[0].figure.0["layout"]["xaxis"]["ticktext"], json!(["1 vCPU / 2 GiB", "4 vCPU / 8 GiB"]));
    assert_eq!(charts[0].figure.0["data"].as_array().map(Vec::len), Some(6));
}

#[test]
fn an_axis_is_logarithmic_only_if_needed_and_labelled() {
    let mut runs = two();
    assert!(!charts_of(runs.clone())[1].unit.contains("logarithmic"));
    runs[0].figures.max_ms = Some(900.0);
    let chart = &charts_of(runs)[1];
    assert!(chart.unit.contains("logarithmic"), "{}", chart.unit);
    assert_eq!(chart.figure.0["layout"]["yaxis"]["type"], "log");
}

#[test]
fn suspect_repetitions_are_hollow() {
    let mut runs = two();
    runs[1] = judged(runs[1].clone(), Verdict::Suspect, "shared cores");
    let chart = &charts_of(runs)[0];
    assert_eq!(
        chart.figure.0["data"][1]["marker"]["symbol"],
        json!(["circle", "circle-open", "circle", "circle", "circle", "circle"])
    );
    assert!(chart.unit.contains("hollow"));
}

#[test]
fn runs_that_do_not_count_are_not_drawn() {
    let mut runs = two();
    runs.extend(repeated(|n| judged(run("down", n), Verdict::Invalid, "all failed")));
    let text = charts_of(runs)[0].figure.0.to_string();
    assert!(!text.contains("down"), "{text}");
    assert!(charts_of(vec![judged(run("down", 1), Verdict::Invalid, "all failed")]).is_empty());
}

#[test]
fn a_metric_without_values_has_no_slot_and_no_chart() {
    let without = |mut run: Run| {
        run.figures.p99_ms = None;
        run
    };
    let runs: Vec<Run> = two().into_iter().map(without).collect();
    let names = charts_of(runs)[1].figure.0["layout"]["xaxis"]["ticktext"].clone();
    assert_eq!(names, json!(["avg", "p50", "p90", "p95", "p99.9", "max"]));
    let mut sizes = repeated(|n| without(sized("gosherve", n, 1.0)));
    sizes.extend(repeated(|n| without(sized("gosherve", n, 4.0))));
    let charts = charts_of(sizes);
    assert_eq!(charts.iter().map(|chart| chart.id).collect::<Vec<_>>(), ["throughput"]);
}

#[test]
fn names_are_escaped() {
    let runs = repeated(|n| run("</script><script>alert(1)</script>", n));
    for chart in charts_of(runs) {
        assert!(!chart.figure.to_string().contains('<'));
        assert!(!chart.figure.0.to_string().contains("<script>"));
    }
}
