//! Properties of all runs: rules only add reasons, and the verdict is the worst of them.

use proptest::prelude::*;

use brewbench_wire::{
    outcome::IdleWaitResult,
    traffic::{Segments, Traffic},
};

use super::*;

/// Faults that can be added to a run.
const FAULTS: [fn(&mut Case); 16] = [
    |case| case.figures.failed = Some(case.figures.requests / 2 + 1),
    |case| case.figures.failed = Some(case.figures.requests),
    |case| case.figures.checks_failed = Some(1_000),
    |case| case.figures.dropped_iterations = Some(5_000),
    |case| case.figures.measured_ms = 500.0,
    |case| case.figures.blocked_ms = Some(50.0),
    |case| case.enforced.cpu = Mechanism::None,
    |case| case.cores.generator = vec![0],
    |case| case.conditions.placement = Some(Placement::SharedPhysicalCore),
    |case| {
        let segments = Segments { sent: 100, retransmitted: 50, spurious: 0 };
        case.conditions.traffic = Some(Traffic { segments, ..Traffic::default() });
    },
    |case| case.oom_kills = 1,
    |case| case.conditions.clock_jump_ms = Some(-5_000),
    |case| case.conditions.response_change = Some("other".to_owned()),
    |case| (case.conditions.processes, case.conditions.processes_gone) = (Some(2), Some(2)),
    |case| {
        case.conditions.idle_wait =
            Some(IdleWaitResult { waited_ms: 1, busy_cores: 1.0, limit_cores: 0.1, idle: false });
    },
    |case| case.series = None,
];

fn any_usage() -> impl Strategy<Value = Usage> {
    let side = || {
        (any::<Option<u64>>(), any::<Option<u64>>()).prop_map(|(cpu_us, throttled_us)| Consumption {
            cpu_us,
            throttled_us,
            ..Consumption::default()
        })
    };
    (any::<i32>(), side(), side(), any::<[u64; 3]>()).prop_map(|(at_ms, target, generator, [user, system, steal])| {
        let host = Host { user_us: user, system_us: system, steal_us: steal, ..Host::default() };
        Usage { at_ms, target, generator, host }
    })
}

fn any_second() -> impl Strategy<Value = Second> {
    (any::<u32>(), any::<u64>(), -100..100_i32).prop_map(|(until_ms, count, bucket)| Second {
        until_ms,
        succeeded: Histogram::new(3, 0, count, [(bucket, count)]).unwrap_or_default(),
        ..Second::default()
    })
}

proptest! {
    #[test]
    fn any_input_is_judged(
        usage in prop::collection::vec(any_usage(), 0..12),
        seconds in prop::collection::vec(any_second(), 0..12),
        floats in any::<[f64; 4]>(),
        counts in any::<[u64; 5]>(),
        limits in prop::collection::vec(any::<f64>(), Limit::ALL.len()),
    ) {
        let mut case = ordinary();
        (case.window().usage, case.window().seconds) = (usage, seconds);
        let figures = &mut case.figures;
        [figures.rps, figures.measured_ms] = [floats[0], floats[1]];
        (figures.blocked_ms, figures.latency.avg_ms) = (Some(floats[2]), Some(floats[3]));
        figures.requests = counts[0];
        (figures.failed, figures.iterations) = (Some(counts[1]), Some(counts[2]));
        (figures.dropped_iterations, figures.checks_failed) = (Some(counts[3]), Some(counts[4]));
        for (limit, value) in Limit::ALL.into_iter().zip(limits) {
            case.limits.set(limit, value);
        }
        let Judgement { verdict, reasons } = case.judge();
        prop_assert_eq!(reasons.iter().map(|reason| reason.verdict).max().unwrap_or(Verdict::Valid), verdict);
        let text = serde_json::to_string(&reasons).expect("written");
        serde_json::from_str::<Vec<Reason>>(&text).expect("read");
    }

    #[test]
    fn an_additional_fault_never_improves_the_verdict(chosen in any::<u16>(), more in 0..FAULTS.len()) {
        let mut case = ordinary();
        for (number, fault) in FAULTS.iter().enumerate() {
            if chosen & (1 << number) != 0 {
                fault(&mut case);
            }
        }
        let before = case.judge().verdict;
        FAULTS[more](&mut case);
        // The two faults of failed requests overwrite each other; both make the run invalid.
        let after = case.judge().verdict;
        prop_assert!(after >= before, "{before:?} became {after:?}");
        prop_assert!(after != Verdict::Valid);
    }
}
