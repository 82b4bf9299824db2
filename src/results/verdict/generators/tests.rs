//! Each reason of generators on other machines, at and beyond its limit.

use brewbench_wire::{
    engine::EngineKind,
    load::Load,
    outcome::{Enforced, Mechanism},
    reports::summary::{Figures, Latency},
    series::{Consumption, Gaps, Host, Series, Usage, Window},
};

use brewbench_wire::{
    outcome::{Conditions, CoreUse, Cores, IdleWaitResult},
    traffic::{Peer, Segments, Traffic},
};

use super::*;
use crate::results::{
    clock::Clock,
    generator_record::{CpuUse, SeriesContent, compare_starts},
    verdict::{judge::judge, model::Judgement},
};

fn record(agent: &str) -> GeneratorRecord {
    GeneratorRecord {
        agent: agent.to_owned(),
        figures: Some(Share {
            requests: 5_000,
            failed: Some(0),
            rps: 500.0,
            measured_ms: 10_000.0,
            ..Share::default()
        }),
        cores: vec![0, 1],
        environment: [("cpu.usable".to_owned(), "2".to_owned())].into(),
        clock: Some(Clock { offset_ms: -40_000.0, error_ms: 2.0 }),
        start_ms: Some(1_000),
        series: Some(SeriesContent { requests: 5_000, seconds: 10, samples: 11, ..SeriesContent::default() }),
        used: Some(CpuUse { thirds: vec![0.5, 0.6, 0.5], mean: 0.5, others: 0.02, ..CpuUse::default() }),
        ..GeneratorRecord::default()
    }
}

/// Returns the series of a host whose target uses `cpu_us` per second on an otherwise idle machine.
fn of_host(cpu_us: u64) -> Series {
    let usage = |number: i32| Usage {
        at_ms: number * 1_000,
        target: Consumption { cpu_us: Some(if number == 0 { 0 } else { cpu_us }), ..Consumption::default() },
        host: Host { user_us: if number == 0 { 0 } else { cpu_us + 20_000 }, ..Host::default() },
        ..Usage::default()
    };
    let usage = (0..=11).map(usage).collect();
    Series { warm_up: None, measured: Some(Window { usage, ..Window::default() }) }
}

fn judged_with(series: &Series, change: impl FnOnce(&mut [GeneratorRecord])) -> Judgement {
    let mut generators = vec![record("bench-02"), record("bench-03")];
    change(&mut generators);
    compare_starts(&mut generators);
    let latency = Latency { avg_ms: Some(1.0), ..Latency::default() };
    let figures = Figures {
        requests: 10_000,
        failed: Some(0),
        rps: 1_000.0,
        measured_ms: 10_000.0,
        latency,
        ok_latency: latency,
        iterations: Some(10_000),
        ..Figures::default()
    };
    let context = Context {
        engine: EngineKind::K6,
        kind: None,
        failures: None,
        generator_log: "",
        profile_faults: &[],
        code_unknown: None,
        enforced: Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 },
        cores: &Cores { target: vec![0], generator: Vec::new() },
        machine_cores: Some(2.0),
        vcpus: Some(1.0),
        load: Some(&Load::Script),
        oom_kills: 0,
        conditions: &Conditions::default(),
        generators: &generators,
        series: SeriesState::Series(series),
    };
    judge(&figures, Some(&context), &Limits::default())
}

fn judged(change: impl FnOnce(&mut [GeneratorRecord])) -> Judgement {
    judged_with(&of_host(500_000), change)
}

#[track_caller]
fn suspect(code: &str, change: impl FnOnce(&mut [GeneratorRecord])) -> Reason {
    let Judgement { verdict, reasons } = judged(change);
    assert_eq!((verdict, reasons.len()), (Verdict::Suspect, 1), "{code}: {reasons:?}");
    assert_eq!(reasons[0].code, code, "{reasons:?}");
    reasons[0].clone()
}

#[track_caller]
fn fine(change: impl FnOnce(&mut [GeneratorRecord])) {
    assert_eq!(judged(change).reasons, []);
}

#[test]
fn an_ordinary_distributed_run_is_valid() {
    fine(|_| ());
}

#[test]
fn an_idle_or_early_generator_is_suspect() {
    let idle = suspect("generator_idle", |all| {
        all[1].figures = Some(Share { measured_ms: 10_000.0, ..Share::default() });
        all[1].series = Some(SeriesContent { requests: 0, seconds: 10, samples: 11, ..SeriesContent::default() });
    });
    assert!(idle.text.starts_with("on bench-03: "), "{idle:?}");
    let early = |ms: f64| {
        move |all: &mut [GeneratorRecord]| all[0].figures = all[0].figures.map(|own| Share { measured_ms: ms, ..own })
    };
    fine(early(9_000.0));
    let reason = suspect("ended_early", early(8_990.0));
    assert_eq!((reason.observed, reason.limit, reason.unit), (Some(0.899), Some(0.9), Some(Unit::Share)));
    assert_eq!(
        reason.text,
        "on bench-02: the load generator measured for 8.99 s, another generator for 10 s: the load was lower than \
         requested"
    );
}

#[test]
fn generators_that_started_apart_are_suspect() {
    let late = |ms: i64, error_ms: f64| {
        move |all: &mut [GeneratorRecord]| {
            all[1].start_ms = Some(1_000 + ms);
            all[1].clock = Some(Clock { offset_ms: 0.0, error_ms });
        }
    };
    fine(late(247, 1.0));
    let reason = suspect("started_apart", late(247, 1.5));
    assert_eq!((reason.observed, reason.limit, reason.unit), (Some(250.5), Some(250.0), Some(Unit::Milliseconds)));
    assert!(reason.text.starts_with("bench-02 and bench-03 started 247 ms apart"), "{reason:?}");
    suspect("started_apart", late(-300, 0.0));
    suspect("started_apart", late(0, 400.0));
    let unknown = suspect("started_apart", |all| (all[0].clock, all[0].start_ms) = (None, None));
    assert!(unknown.text.contains("the clock of bench-02 was not compared"), "{unknown:?}");
}

#[test]
fn a_busy_generator_is_suspect_unless_the_target_is_saturated() {
    let busy = |all: &mut [GeneratorRecord]| all[1].used.as_mut().expect("known").thirds[1] = 1.9;
    let reason = suspect("generator_busy", busy);
    assert_eq!((reason.observed, reason.limit), (Some(0.95), Some(0.8)));
    assert!(reason.text.starts_with("on bench-03: the load generator was the bottleneck"), "{reason:?}");
    assert_eq!(judged_with(&of_host(990_000), busy).reasons, []);
}

#[test]
fn the_machine_of_a_generator_is_judged() {
    let used =
        |change: fn(&mut CpuUse)| move |all: &mut [GeneratorRecord]| change(all[0].used.as_mut().expect("known"));
    // Summed over two cores.
    assert!(judged(used(|used| used.throttled = 0.02)).reasons.is_empty());
    suspect("generator_throttled", used(|used| used.throttled = 0.021));
    suspect("host_steal", used(|used| (used.steal, used.stolen) = (0.2, 0.1)));
    suspect("host_disturbed", used(|used| used.others = 0.3));
    let watched = CoreUse {
        cores: 2,
        elapsed_us: 1_000_000,
        busy_us: 1_000_000,
        target_us: 0,
        generator_us: 980_000,
        target_waited_us: None,
        generator_waited_us: None,
    };
    fine(|all| {
        all[0].used.as_mut().expect("known").others = 0.3;
        all[0].conditions.core_use = Some(watched);
    });
    suspect("host_disturbed", |all| all[0].conditions.core_use = Some(CoreUse { generator_us: 700_000, ..watched }));
    let segments = Segments { sent: 1_000, retransmitted: 25, spurious: 5 };
    let elsewhere = Peer {
        address: "192.0.2.9:80".parse().expect("an address"),
        is_target: false,
        bytes: 1,
        connections: 1,
        reconnects: 0,
    };
    let lossy = Traffic { segments, ..Traffic::default() };
    let reason = suspect("retransmits", |all| all[0].conditions.traffic = Some(lossy));
    assert!(reason.text.starts_with("on bench-02: 20 of 1,000 TCP segments"), "{reason:?}");
    let stray = Traffic { peers: Some(vec![elsewhere]), ..Traffic::default() };
    let Judgement { verdict, reasons } = judged(|all| all[1].conditions.traffic = Some(stray));
    assert_eq!((verdict, reasons[0].code.as_str()), (Verdict::Invalid, "other_origin"));
    assert!(reasons[0].text.starts_with("on bench-03: 100 % of the bytes went to 192.0.2.9:80"), "{reasons:?}");
    let idle_wait = IdleWaitResult { waited_ms: 1, busy_cores: 1.0, limit_cores: 0.1, idle: false };
    suspect("not_quiet_before", |all| all[1].conditions.idle_wait = Some(idle_wait));
    let clock = suspect("clock_jumped", |all| all[1].conditions.clock_jump_ms = Some(-500));
    assert_eq!(clock.text, "on bench-03: the machine's clock was set back by 500 ms during the run");
}

#[test]
fn a_missing_or_incomplete_series_is_suspect() {
    let missing = suspect("series_incomplete", |all| (all[0].series, all[0].used) = (None, None));
    assert!(missing.text.starts_with("on bench-02: "), "{missing:?}");
    let series = |change: fn(&mut SeriesContent)| {
        move |all: &mut [GeneratorRecord]| change(all[1].series.as_mut().expect("exists"))
    };
    suspect("series_incomplete", series(|series| series.requests = 4_900));
    suspect("series_incomplete", series(|series| series.samples = 1));
    suspect("series_incomplete", series(|series| series.gaps = Gaps { unfinished: 1, ..Gaps::default() }));
    let of_target = judged_with(&Series { measured: Some(Window::default()), warm_up: None }, |_| ());
    assert_eq!(of_target.reasons.len(), 1, "{of_target:?}");
    assert!(of_target.reasons[0].text.contains("of the target's machine were not sampled"), "{of_target:?}");
}

#[test]
fn a_failed_or_lost_generator_makes_a_run_invalid() {
    assert_eq!((failed("why").verdict, failed("why").reasons[0].code.as_str()), (Verdict::Invalid, "generator_failed"));
    assert_eq!((lost("why").verdict, lost("why").reasons[0].code.as_str()), (Verdict::Invalid, "generator_lost"));
}

#[test]
fn a_reason_of_many_generators_is_given_once() {
    let judged = |count: usize| {
        let idle =
            |number: usize| (format!("Pod {number}"), share(Share::default(), 1.0, &Limits::default()).expect("idle"));
        let all: Vec<(String, Reason)> = (1..=count).map(idle).collect();
        by_code(all.iter().map(|(agent, reason)| (agent.as_str(), reason.clone())).collect())
    };
    assert_eq!(judged(4).len(), 4);
    let [reason] = judged(100).try_into().expect("one reason");
    assert_eq!(reason.text, "on Pod 1 and 99 others: the load generator made no request of its part of the load");
}
