//! Each reason at, below and above its limit, and properties of all reasons.

mod course;
mod imports;
mod laws;
mod steadiness;
mod surroundings;
mod target;
mod url;

use brewbench_wire::{
    engine::EngineKind,
    histogram::Histogram,
    load::{Closed, Form, Load, Open, Stage},
    load_record::Messages,
    outcome::{Cause, Conditions, Cores, Enforced, Mechanism, NetworkUse, Placement},
    reports::summary::{Figures, Latency},
    series::{Consumption, Gaps, Host, Second, Series, Usage, Window},
    target::TargetKind,
};

use crate::{
    results::verdict::{
        judge::{judge, judge_failure},
        limits::{Limit, Limits},
        model::{Context, Judgement, SeriesState},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// A run of ten seconds and 10,000 requests: half a core for the target, a third of one for k6, nothing else.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) figures: Figures,
    kind: Option<TargetKind>,
    pub(super) enforced: Enforced,
    cores: Cores,
    pub(super) load: Load,
    vcpus: Option<f64>,
    oom_kills: u64,
    pub(super) conditions: Conditions,
    pub(super) failures: Option<Messages>,
    series: Option<Series>,
    pub(super) limits: Limits,
}

pub(super) fn vus() -> Load {
    Load::Closed(Closed::new(Form::Constant { level: 10, duration_ms: 10_000 }).expect("a load"))
}

pub(super) fn rate() -> Load {
    Load::Open(Open::new(Form::Constant { level: 1_000, duration_ms: 10_000 }, None).expect("a load"))
}

fn latencies(bucket: i32, count: u64) -> Histogram {
    Histogram::new(3, 0, count * 1_000_000, [(bucket, count)]).expect("a histogram")
}

fn second(number: u32) -> Second {
    Second { until_ms: number * 1_000, succeeded: latencies(-80, 1_000), ..Second::default() }
}

fn usage(number: i32) -> Usage {
    let spent = |us: u64| if number == 0 { 0 } else { us };
    let side = |us| Consumption { cpu_us: Some(spent(us)), throttled_us: Some(0), ..Consumption::default() };
    let host = Host { user_us: spent(600_000), system_us: spent(240_000), ..Host::default() };
    Usage { at_ms: number * 1_000 - 100, target: side(500_000), generator: side(330_000), host }
}

pub(super) fn ordinary() -> Case {
    let latency = Latency { avg_ms: Some(1.0), ..Latency::default() };
    let window = Window {
        start_ms: 0,
        seconds: (1..=10).map(second).collect(),
        usage: (0..=11).map(usage).collect(),
        gaps: Gaps::default(),
    };
    Case {
        figures: Figures {
            requests: 10_000,
            failed: Some(0),
            rps: 1_000.0,
            measured_ms: 10_000.0,
            latency,
            ok_latency: latency,
            blocked_ms: Some(0.01),
            iterations: Some(10_000),
            iteration_ms: Some(9.9),
            checks_passed: Some(10_000),
            checks_failed: Some(0),
            vus_max: Some(10),
            thresholds_failed: Some(0),
            thresholds: Some(0),
            ..Figures::default()
        },
        kind: Some(TargetKind::Process),
        enforced: Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 },
        cores: Cores { target: vec![0], generator: vec![1] },
        load: vus(),
        vcpus: Some(1.0),
        oom_kills: 0,
        conditions: Conditions::default(),
        failures: None,
        series: Some(Series { warm_up: None, measured: Some(window) }),
        limits: Limits::default(),
    }
}

impl Case {
    pub(super) fn judge(&self) -> Judgement {
        let context = Context {
            engine: EngineKind::K6,
            kind: self.kind,
            generator_log: "",
            generators: &[],
            enforced: self.enforced,
            cores: &self.cores,
            machine_cores: Some(2.0),
            vcpus: self.vcpus,
            load: Some(&self.load),
            oom_kills: self.oom_kills,
            conditions: &self.conditions,
            failures: self.failures.as_ref(),
            series: self.series.as_ref().map_or(SeriesState::Missing, SeriesState::Series),
            profile_faults: &[],
            code_unknown: None,
        };
        judge(&self.figures, Some(&context), &self.limits)
    }

    pub(super) fn window(&mut self) -> &mut Window {
        self.series.as_mut().and_then(|series| series.measured.as_mut()).expect("a window")
    }

    fn each_usage(mut self, change: impl Fn(&mut Usage)) -> Self {
        self.window().usage.iter_mut().skip(1).for_each(change);
        self
    }

    fn each_second(mut self, change: impl Fn(u32, &mut Second)) -> Self {
        (1..).zip(&mut self.window().seconds).for_each(|(number, second)| change(number, second));
        self
    }
}

pub(super) fn with(change: impl FnOnce(&mut Case)) -> Case {
    let mut case = ordinary();
    change(&mut case);
    case
}

/// Returns the only reason, which must have this code and verdict.
#[track_caller]
pub(super) fn only(case: &Case, code: &str, verdict: Verdict) -> Reason {
    let judgement = case.judge();
    assert_eq!(judgement.reasons.len(), 1, "{code}: {judgement:?}");
    let reason = judgement.reasons[0].clone();
    assert_eq!((reason.code.as_str(), reason.verdict, judgement.verdict), (code, verdict, verdict), "{reason:?}");
    assert_eq!(reason.observed.is_some(), reason.unit.is_some(), "{reason:?}");
    reason
}

#[track_caller]
fn suspect(case: &Case, code: &str) -> Reason {
    only(case, code, Verdict::Suspect)
}

#[track_caller]
pub(super) fn fine(case: &Case) {
    assert_eq!(case.judge(), Judgement { verdict: Verdict::Valid, reasons: Vec::new() });
}

#[test]
fn an_ordinary_run_is_valid_under_every_load() {
    fine(&ordinary());
    fine(&with(|case| case.load = rate()));
    fine(&with(|case| case.load = Load::Script));
    let import = judge(&ordinary().figures, None, &Limits::default());
    assert_eq!(import.verdict, Verdict::Valid, "an import has no series: {import:?}");
}

#[test]
fn failed_requests_are_judged() {
    let failed = |failed| with(|case| case.figures.failed = Some(failed));
    assert!(only(&failed(1), "requests_failed", Verdict::Valid).is_note(), "one of 10,000 moves no judged percentile");
    assert_eq!(suspect(&failed(2), "requests_failed").observed, Some(0.0002));
    assert_eq!(suspect(&failed(100), "requests_failed").limit, Some(0.000_1), "1 % is not above 1 %");
    let over = only(&failed(101), "requests_failed", Verdict::Invalid);
    assert_eq!((over.observed, over.limit, over.unit), (Some(0.0101), Some(0.01), Some(Unit::Share)));
    assert_eq!(over.text, "101 of 10,000 requests failed: 1.01 %, the limit is 1 %");
    only(&failed(10_000), "no_success", Verdict::Invalid);
    assert_eq!(suspect(&with(|case| case.figures.failed = None), "failures_unknown").observed, None);
    let mut lenient = failed(5);
    lenient.limits.set(Limit::RequestsFailed, 0.0005);
    only(&lenient, "requests_failed", Verdict::Valid);
}

#[test]
fn a_run_without_requests_is_invalid() {
    let case = with(|case| {
        case.figures.requests = 0;
        case.figures.checks_passed = None;
    });
    only(&case, "no_requests", Verdict::Invalid);
}

#[test]
fn failed_checks_are_judged() {
    let failed = |failed| {
        with(|case| (case.figures.checks_failed, case.figures.checks_passed) = (Some(failed), Some(1_000 - failed)))
    };
    fine(&failed(0));
    let rare = with(|case| (case.figures.checks_failed, case.figures.checks_passed) = (Some(1), Some(999_999)));
    only(&rare, "checks_failed", Verdict::Valid);
    suspect(&failed(10), "checks_failed");
    only(&failed(11), "checks_failed", Verdict::Invalid);
}

#[test]
fn a_missed_rate_is_suspect() {
    let completed = |iterations, dropped| {
        with(|case| {
            case.load = rate();
            (case.figures.iterations, case.figures.dropped_iterations) = (Some(iterations), dropped);
        })
    };
    fine(&completed(9_899, None));
    assert_eq!(suspect(&completed(9_898, None), "rate_not_kept").limit, Some(0.99));
    fine(&completed(9_990, Some(10)));
    assert_eq!(suspect(&completed(9_980, Some(20)), "iterations_dropped").observed, Some(0.002));
    assert_eq!(suspect(&completed(5_000, Some(5_000)), "iterations_dropped").observed, Some(0.5), "reported once");
}

#[test]
fn a_short_measurement_is_suspect() {
    let measured = |ms| with(|case| case.figures.measured_ms = ms);
    fine(&measured(3_000.0));
    fine(&measured(2_990.0));
    let short = suspect(&measured(1_004.0), "too_short");
    assert_eq!((short.observed, short.limit, short.unit), (Some(1.004), Some(3.0), Some(Unit::Seconds)));
    assert_eq!(short.figures().as_deref(), Some("limit 3 s"));
}

fn busy(generator: u64, target: u64) -> Case {
    ordinary().each_usage(|usage| {
        (usage.generator.cpu_us, usage.target.cpu_us) = (Some(generator), Some(target));
        (usage.host.user_us, usage.host.system_us) = (generator + target, 10_000);
    })
}

#[test]
fn a_saturated_generator_is_suspect() {
    fine(&busy(799_000, 500_000));
    let bound = suspect(&busy(800_000, 500_000), "generator_busy");
    assert_eq!((bound.observed, bound.limit), (Some(0.8), Some(0.8)));
    assert!(bound.text.contains("it used 0.80 of its 1 core, the target 0.50 of its 1"), "{}", bound.text);
    suspect(&busy(990_000, 890_000), "generator_busy");
    fine(&busy(990_000, 900_000));
    let mut throttled = busy(990_000, 450_000).each_usage(|usage| usage.target.throttled_us = Some(60_000));
    fine(&throttled);
    throttled.window().usage.iter_mut().for_each(|usage| usage.target.throttled_us = Some(40_000));
    suspect(&throttled, "generator_busy");
    let mut half = busy(990_000, 460_000);
    half.vcpus = Some(0.5);
    fine(&half);
    let mut two = busy(990_000, 300_000);
    two.cores.generator = vec![1, 2];
    fine(&two);
}

#[test]
fn a_generator_busy_in_one_stage_is_suspect() {
    let mut case = ordinary();
    for usage in case.window().usage.iter_mut().skip(7) {
        usage.generator.cpu_us = Some(960_000);
        usage.host.user_us = 1_500_000;
    }
    suspect(&case, "generator_busy");
}

#[test]
fn a_throttled_generator_is_suspect() {
    let held = |us| ordinary().each_usage(move |usage| usage.generator.throttled_us = Some(us));
    fine(&held(10_000));
    assert_eq!(suspect(&held(11_000), "generator_throttled").observed, Some(0.011));
}

#[test]
fn waiting_for_connections_is_suspect() {
    let blocked = |ms| with(|case| case.figures.blocked_ms = Some(ms));
    fine(&blocked(1.0));
    assert_eq!(suspect(&blocked(3.0), "generator_blocked").observed, Some(0.75));
}

#[test]
fn virtual_users_held_back_by_k6_are_suspect() {
    let case = |may_wait, request_ms, iteration_ms| {
        with(|case| {
            case.conditions.script_may_wait = may_wait;
            case.figures.latency.avg_ms = Some(request_ms);
            case.figures.iteration_ms = Some(iteration_ms);
        })
    };
    // 1,000 requests/s of 10 virtual users: each is in a request all the time where that takes 10 ms.
    fine(&case(Some(false), 7.6, 10.0));
    let held = suspect(&case(Some(false), 7.0, 10.0), "generator_held_back");
    assert!(held.observed.is_some_and(|seen| (seen - 0.299).abs() < 1e-9) && held.limit == Some(0.25), "{held:?}");
    assert!(held.text.contains("of 10 virtual users 7.0 were in a request"), "{}", held.text);
    fine(&case(Some(true), 1.0, 10.0));
    let between = suspect(&case(Some(true), 1.0, 5.0), "generator_held_back");
    assert!(between.text.contains("5.0 were in an iteration"), "{}", between.text);
    fine(&case(None, 1.0, 1.0));
    let mut open = case(Some(false), 1.0, 1.0);
    open.load = rate();
    fine(&open);
}

#[test]
fn other_activity_on_the_host_is_suspect() {
    let stolen = |us| ordinary().each_usage(move |usage| usage.host.steal_us = us);
    fine(&stolen(44_000));
    assert!(suspect(&stolen(45_000), "host_steal").observed.is_some_and(|seen| (0.05..0.051).contains(&seen)));
    let others = |us| ordinary().each_usage(move |usage| usage.host.user_us += us);
    // 10 ms are in every case, and 15 ms for the traffic of 1,000 requests are allowed for.
    fine(&others(204_000));
    let disturbed = suspect(&others(215_000), "host_disturbed");
    assert!(disturbed.observed.is_some_and(|seen| (0.1..0.11).contains(&seen)), "{disturbed:?}");
    assert!(disturbed.text.contains("of the machine's 2 cores"), "{}", disturbed.text);
    let fast = with(|case| case.figures.rps = 20_000.0).each_usage(|usage| usage.host.system_us += 400_000);
    fine(&fast);
}

#[test]
fn a_deviating_setup_is_judged() {
    let none = with(|case| case.enforced.memory = Mechanism::None);
    assert!(suspect(&none, "size_not_enforced").text.ends_with("nothing limited memory"));
    let shared = with(|case| case.cores.generator = vec![0, 1]);
    assert_eq!(suspect(&shared, "shared_cores").observed, Some(1.0));
    suspect(&with(|case| case.cores.generator.clear()), "shared_cores");
    let placed = |placement| with(|case| case.conditions.placement = Some(placement));
    fine(&placed(Placement::WholeCores));
    assert!(only(&placed(Placement::SiblingThreads), "sibling_threads", Verdict::Valid).is_note());
    suspect(&placed(Placement::SharedPhysicalCore), "shared_physical_core");
    let jump = |ms| with(|case| case.conditions.clock_jump_ms = Some(ms));
    fine(&jump(-100));
    assert!(suspect(&jump(-101), "clock_jumped").text.contains("set back by 101 ms"));
    suspect(&jump(i64::MIN), "clock_jumped");
}

#[test]
fn an_incomplete_series_is_suspect() {
    let nothing = suspect(&with(|case| case.series = None), "series_incomplete");
    assert_eq!((nothing.observed, nothing.limit), (Some(0.0), Some(0.99)));
    suspect(&with(|case| case.window().seconds.clear()), "series_incomplete");
    suspect(&with(|case| case.series = Some(Series::default())), "series_incomplete");
    fine(&with(|case| case.figures.requests = 10_100));
    assert!(suspect(&with(|case| case.figures.requests = 10_200), "series_incomplete").observed < Some(0.99));
    let lacking = |change: fn(&mut Gaps)| with(|case| change(&mut case.window().gaps));
    fine(&lacking(|gaps| gaps.missing_seconds = 1));
    suspect(&lacking(|gaps| (gaps.missing_seconds, gaps.doubled_seconds) = (1, 1)), "series_incomplete");
    suspect(&lacking(|gaps| gaps.unfinished = 1), "series_incomplete");
    suspect(&lacking(|gaps| gaps.damaged = u64::MAX), "series_incomplete");
    suspect(&lacking(|gaps| gaps.dropped_values = 1), "series_incomplete");
    let restarted = suspect(&lacking(|gaps| gaps.restarts = 2), "series_incomplete");
    assert_eq!((restarted.observed, restarted.unit), (Some(2.0), Some(Unit::Count)));
    suspect(&with(|case| case.window().usage.clear()), "series_incomplete");
}

#[test]
fn a_run_from_before_series_were_recorded_is_valid() {
    let Case { figures, enforced, cores, load, .. } = ordinary();
    let context = Context {
        engine: EngineKind::K6,
        kind: None,
        failures: None,
        generator_log: "",
        generators: &[],
        enforced,
        cores: &cores,
        machine_cores: None,
        vcpus: None,
        load: Some(&load),
        oom_kills: 0,
        conditions: &Conditions::default(),
        series: SeriesState::NotRecorded,
        profile_faults: &[],
        code_unknown: None,
    };
    assert_eq!(judge(&figures, Some(&context), &Limits::default()).verdict, Verdict::Valid);
}

#[test]
fn an_old_reason_without_values_is_read() {
    let old = r#"{"code": "shared_cores", "verdict": "suspect", "text": "why"}"#;
    let reason: Reason = serde_json::from_str(old).expect("a reason");
    assert_eq!((reason.observed, reason.limit, reason.unit, reason.figures()), (None, None, None, None));
}
