//! Charts of a run over time: load, latency and resources. Pure.

use serde_json::{Value, json};

use crate::results::pages::run::charts::curves::{self, Curve, From, Head, Points};
use crate::{
    metrics::Metric,
    results::series::model::{SecondBody, SeriesBody},
    runs::model::RunSize,
    web::{
        axis::{Scale, logarithmic},
        chart::{Chart, Key},
        format,
        series_style::Mark,
    },
};

const MIB: f64 = 1_048_576.0;

/// Charts of throughput and latency.
pub fn load(points: &Points, series: &SeriesBody, mark: Mark) -> Vec<Chart> {
    vec![throughput(points, series, mark), latency(points, series, mark)]
}

/// Charts of resource usage; none if nothing was sampled.
pub fn resources(points: &Points, size: Option<&RunSize>, mark: Mark) -> Vec<Chart> {
    if !points.has(From::Usage, "host.load") && !points.has(From::Usage, WORKING_SET) {
        return Vec::new();
    }
    vec![cpu(points, size, mark), memory(points, size, mark), machine(points)]
}

fn throughput(points: &Points, series: &SeriesBody, mark: Mark) -> Chart {
    let failures = points.has(From::Seconds, "failed_rps");
    let curves = [
        Curve::new("all requests", mark.role(), "solid", From::Seconds, "rps"),
        Curve::new("failed", "bad", "dot", From::Seconds, "failed_rps"),
    ];
    let range = range_of(series, |second| second.rps);
    let failed = if failures { "some failed" } else { "none failed" };
    let head = Head {
        id: "run-rate",
        title: "Throughput over time",
        unit: "requests/s".to_owned(),
        label: format!("Requests per second over time: {range}; {failed}"),
    };
    let chart = curves::chart(head, points, &curves, json!({"nticks": 6}));
    Chart { metric: Some(Metric::Rps), ..chart }
}

fn latency(points: &Points, series: &SeriesBody, mark: Mark) -> Chart {
    let curve = |name, dash, figure| Curve::new(name, mark.role(), dash, From::Seconds, figure);
    let mut curves = vec![
        curve("p50", "solid", "succeeded.p50_ms"),
        curve("p90", "dash", "succeeded.p90_ms"),
        curve("p95", "dashdot", "succeeded.p95_ms"),
        curve("p99", "dot", "succeeded.p99_ms"),
        Curve { width: 1.0, ..Curve::new("max", "soft ink", "solid", From::Seconds, "succeeded.max_ms") },
    ];
    if points.has(From::Seconds, "failed.count") {
        curves.push(Curve::new("p50 of failed requests", "bad", "dot", From::Seconds, "failed.p50_ms"));
    }
    let head = Head {
        id: "run-latency-time",
        title: "Latency over time",
        unit: "ms, successful requests · logarithmic axis".to_owned(),
        label: format!(
            "p99 latency of successful requests in milliseconds over time: {}",
            range_of(series, |second| second.succeeded.p99_ms)
        ),
    };
    curves::chart(head, points, &curves, logarithmic())
}

/// Describes the range and median of a value during the measurement.
fn range_of(series: &SeriesBody, figure: fn(&SecondBody) -> Option<f64>) -> String {
    let mut known: Vec<f64> = series.measured.iter().flat_map(|window| &window.seconds).filter_map(figure).collect();
    known.sort_by(f64::total_cmp);
    match known.as_slice() {
        [] => "not known".to_owned(),
        [lowest, .., highest] => {
            let text = |value: f64| format::number(Some(value)).text().to_owned();
            format!("between {} and {}, median {}", text(*lowest), text(*highest), text(known[known.len() / 2]))
        }
        [only] => format::number(Some(*only)).text().to_owned(),
    }
}

/// The share of the time for which the target was throttled.
const THROTTLED: &str = "target.throttled";

const GENERATOR: &str = "load generator";

/// The curve of k6, unless it runs elsewhere: then no point has its figures.
fn k6(points: &Points, figure: &'static str) -> Option<Curve> {
    let mut all = points.figures(From::Usage, figure).peekable();
    let is_here = all.peek().is_none() || all.flatten().next().is_some();
    is_here.then(|| Curve::new(GENERATOR, "soft ink", "dash", From::Usage, figure))
}

/// Returns whose curves these are, for screen readers.
fn describe_owners(curves: &[Curve]) -> &'static str {
    if curves.iter().any(|curve| curve.name == GENERATOR) { "target and load generator" } else { "the target" }
}

fn cpu(points: &Points, size: Option<&RunSize>, mark: Mark) -> Chart {
    let mut curves = vec![Curve::new("target", mark.role(), "solid", From::Usage, "target.cores")];
    curves.extend(k6(points, "generator.cores"));
    if points.figures(From::Usage, THROTTLED).flatten().next().is_some() {
        curves.push(Curve::new("target throttled", "doubtful", "dot", From::Usage, THROTTLED));
    }
    let head = Head {
        id: "run-cpu",
        title: "CPU",
        unit: "cores · throttled: share of the time limited by the CPU quota".to_owned(),
        label: format!(
            "CPU of {} over time in cores: {}",
            describe_owners(&curves),
            maximum(points, "target.cores", 1.0)
        ),
    };
    let mut chart = curves::chart(head, points, &curves, json!({"nticks": 6}));
    // Shaded, to make throttling noticeable.
    if let Some(throttled) = curves.iter().position(|curve| curve.figure == THROTTLED) {
        chart.figure.0["data"][throttled]["fill"] = json!("tozeroy");
        chart.figure.0["data"][throttled]["opacity"] = json!(0.7);
    }
    limit(chart, &curves, points, size.map(RunSize::total_vcpus))
}

const HELD: &str = "target.held_memory_bytes";
const FILE_CACHE: &str = "target.file_cache_bytes";
const WORKING_SET: &str = "target.memory_bytes";

fn memory(points: &Points, size: Option<&RunSize>, mark: Mark) -> Chart {
    let in_mib = |curve: Curve| Curve { unit: MIB, ..curve };
    let curve = |name, dash, figure| Curve::new(name, mark.role(), dash, From::Usage, figure);
    let is_known = |figure| points.figures(From::Usage, figure).flatten().next().is_some();
    // Before protocol 26, and from some sources, only the working set is known.
    let (own, of_generator) = if is_known(HELD) {
        (curve("target", "solid", HELD), "generator.held_memory_bytes")
    } else {
        (curve("working set of the target", "solid", WORKING_SET), "generator.memory_bytes")
    };
    let cache = is_known(FILE_CACHE).then(|| curve("file cache of the target", "dash", FILE_CACHE));
    let peak = curve("target peak, with file cache", "dot", "target.peak_memory_bytes");
    let most = maximum(points, own.figure, MIB);
    let target = [own].into_iter().chain(cache).chain([peak]);
    let curves: Vec<Curve> = target.chain(k6(points, of_generator)).map(in_mib).collect();
    let ceiling = size.map(|size| size.total_memory_bytes() as f64 / MIB);
    let all = curves.iter().flat_map(|curve| points.figures(From::Usage, curve.figure).flatten());
    let all = all.map(|bytes| bytes / MIB).filter(|mib| *mib > 0.0).chain(ceiling);
    let scale = Scale::choose(all.map(|mib| (mib, mib)));
    let y = match scale {
        Scale::Linear => json!({"nticks": 6}),
        Scale::Logarithmic(..) => logarithmic(),
    };
    let head = Head {
        id: "run-memory",
        title: "Memory",
        unit: format!("MiB{}", scale.note()),
        label: format!("Memory of {} over time in MiB: {most}", describe_owners(&curves)),
    };
    limit(curves::chart(head, points, &curves, y), &curves, points, ceiling)
}

/// Chart of the virtual users.
pub fn virtual_users(points: &Points, mark: Mark) -> Chart {
    let mut curves = vec![Curve::new("virtual users", mark.role(), "solid", From::Seconds, "vus")];
    if points.has(From::Seconds, "dropped_iterations") {
        let dropped = Curve::new("dropped iterations", "bad", "dot", From::Seconds, "dropped_iterations");
        curves.push(dropped);
    }
    let most = points.figures(From::Seconds, "vus").flatten().fold(0.0, f64::max);
    let head = Head {
        id: "run-vus",
        title: "Virtual users",
        unit: "at the end of each second".to_owned(),
        label: format!("Virtual users over time: maximum {}", format::number(Some(most)).text()),
    };
    let mut chart = curves::chart(head, points, &curves, json!({"nticks": 6}));
    chart.figure.0["data"][0]["line"]["shape"] = json!("vh");
    chart
}

fn machine(points: &Points) -> Chart {
    let curve = |name, role, dash, figure| Curve::new(name, role, dash, From::Usage, figure);
    let curves = [
        curve("user", "ink", "solid", "host.user_cores"),
        curve("system", "ink", "dash", "host.system_cores"),
        curve("stolen by the hypervisor", "bad", "dot", "host.steal_cores"),
        curve("waiting for disk", "doubtful", "dashdot", "host.iowait_cores"),
    ];
    let head = Head {
        id: "run-machine",
        title: "CPU of the machine",
        unit: "cores".to_owned(),
        label: format!("CPU of the machine over time in cores: {}", maximum(points, "host.user_cores", 1.0)),
    };
    curves::chart(head, points, &curves, json!({"nticks": 6}))
}

fn maximum(points: &Points, figure: &str, unit: f64) -> String {
    let most = points.figures(From::Usage, figure).flatten().reduce(f64::max);
    most.map_or("not known".to_owned(), |most| format!("maximum {}", format::number(Some(most / unit)).text()))
}

/// Adds a line at the limit of the machine size.
fn limit(mut chart: Chart, curves: &[Curve], points: &Points, ceiling: Option<f64>) -> Chart {
    let times = points.times(From::Usage);
    let (Some(ceiling), Some(first), Some(last)) = (ceiling, times.first(), times.last()) else { return chart };
    let trace = json!({
        "type": "scatter", "mode": "lines", "name": "limit", "x": [first, last], "y": [ceiling, ceiling],
        "line": {"color": "ink", "width": 1.5, "dash": "dashdot"}, "hovertemplate": "%{y:,.4~g}",
        "meta": {"from": "usage", "constant": ceiling},
    });
    if let Some(Value::Array(data)) = chart.figure.0.get_mut("data") {
        let key = Key { trace: data.len(), name: "limit".to_owned(), role: "ink".to_owned(), dash: "dashdot" };
        data.push(trace);
        chart.legend = curves.iter().enumerate().map(|(place, curve)| curve.key(place)).chain([key]).collect();
    }
    chart
}
