//! Drifts of one run, and drifts that repeat in the runs of a cell.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::{
    results::verdict::cell::{CellDrift, are_too_short},
    runs::{
        load::tests::vus as closed,
        model::{Origin, Run},
        testing::finished,
    },
};

/// An ordinary run of this many seconds.
fn long(seconds: u32) -> Case {
    with(|case| {
        let count = i32::try_from(seconds).expect("small");
        case.window().seconds = (1..=seconds).map(second).collect();
        case.window().usage = (0..=count + 1).map(usage).collect();
        case.figures.requests = u64::from(seconds) * 1_000;
        case.figures.measured_ms = f64::from(seconds) * 1_000.0;
    })
}

#[test]
fn a_drifting_rate_is_suspect() {
    let last = |count| {
        let mut case = long(30).each_second(move |number, second| {
            if number >= 20 {
                second.succeeded = latencies(-80, count);
            }
        });
        case.figures.requests = 19_000 + 11 * count;
        case
    };
    // Significant, because nothing else varies, but below the limit.
    fine(&last(995));
    let case = last(740);
    let drift = suspect(&case, "not_steady");
    assert!(drift.observed.is_some_and(|seen| (seen - 0.26).abs() < 1e-9) && drift.limit == Some(0.01), "{drift:?}");
    let expected = "throughput fell by 26 % during the measured phase, from 1,000 requests/s to 740 requests/s";
    assert!(drift.text.ends_with(expected), "{}", drift.text);
    let mut rising = case.clone();
    let stages = vec![Stage { duration_ms: 10_000, target: 10 }];
    rising.load = Load::Closed(Closed::new(Form::Stages(stages)).expect("a load"));
    fine(&rising);
    let mut few = long(30).each_second(|number, second| {
        second.succeeded = latencies(-80, if number < 5 { 30 } else { 3 });
    });
    few.figures.requests = 4 * 30 + 26 * 3;
    fine(&few);
    let mut short = case;
    short.window().seconds.drain(..17);
    short.window().usage.truncate(14);
    short.figures.requests = 2_000 + 11 * 740;
    fine(&short);
}

#[test]
fn a_ramp_is_found_in_one_run_of_15_seconds_and_a_burst_is_none() {
    const JAVA: [[u64; 15]; 2] = [
        [893, 2054, 2968, 2993, 3314, 3724, 3433, 4621, 7373, 13408, 14100, 13900, 14500, 14300, 14737],
        [427, 1112, 1604, 2100, 2500, 3000, 3500, 3800, 4200, 4600, 5255, 5100, 4800, 4300, 4186],
    ];
    let of = |rates: [u64; 15]| {
        let mut case = long(15).each_second(|number, second| {
            second.succeeded = latencies(-80, rates[usize::try_from(number).expect("small") - 1]);
        });
        case.figures.requests = rates.iter().sum();
        case
    };
    for rates in JAVA {
        let reasons = of(rates).judge().reasons;
        assert!(reasons.iter().any(|reason| reason.code == "not_steady"), "{reasons:?}");
    }
    for from in 0..14 {
        let mut burst = [1_000; 15];
        burst[from..from + 2].fill(600);
        let reasons = of(burst).judge().reasons;
        assert!(reasons.iter().all(|reason| reason.code != "not_steady"), "{from}: {reasons:?}");
    }
}

#[test]
fn a_drifting_median_is_suspect_but_not_k6s_first_and_last_second() {
    let open = Form::Constant { level: 1_000, duration_ms: 10_000 };
    let mut constant = long(30);
    constant.load = Load::Open(Open::new(open, None).expect("a load"));
    let slower = |from: u32, bucket| {
        constant.clone().each_second(move |number, second| {
            if number >= from {
                second.succeeded = latencies(bucket, 1_000);
            }
        })
    };
    fine(&constant);
    assert_eq!(suspect(&slower(20, -77), "not_steady_p50").unit, Some(Unit::Share));
    fine(&slower(30, -20));
    let users = long(30).each_second(|number, second| {
        if number >= 20 {
            second.succeeded = latencies(-72, 1_000);
        }
    });
    fine(&users);
    let cold = constant.each_second(|number, second| {
        if number == 1 {
            second.succeeded = latencies(-20, 950);
        }
    });
    fine(&cold);
}

/// Returns a series of six seconds with these rates after a first second, which is not judged.
fn run(rates: &[f64]) -> Series {
    let mut case = long(u32::try_from(rates.len()).expect("small") + 2);
    for (second, rate) in case.window().seconds.iter_mut().skip(1).zip(rates) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands")]
        let requests = *rate as u64;
        second.succeeded = latencies(-80, requests);
    }
    case.series.expect("a series")
}

/// Simulates the runs of a cell: each has a level of its own, and seconds with this noise around a course.
fn cell(random: &mut impl FnMut() -> f64, noise: f64, course: impl Fn(usize) -> f64) -> Vec<Series> {
    let mut normal = || (0..12).map(|_| random()).sum::<f64>() - 6.0;
    let mut one = || {
        let level = 5_000.0 * (1.0 + 0.03 * normal());
        run(&(0..4).map(|at| level * course(at) * (1.0 + noise * normal())).collect::<Vec<f64>>())
    };
    (0..5).map(|_| one()).collect()
}

#[test]
fn a_warm_up_of_six_second_runs_is_found_over_five_repetitions() {
    const CELLS: usize = 200;
    let limits = Limits::default();
    let mut random = StdRng::seed_from_u64(1);
    let mut random = move || random.random::<f64>();
    let mut found = |noise: f64, course: fn(usize) -> f64| {
        let reasons = (0..CELLS).filter_map(|_| CellDrift::find(&vus(), &cell(&mut random, noise, course)));
        reasons.filter_map(|drift| drift.reason(&limits)).filter(|reason| !reason.is_note()).count() as f64
            / CELLS as f64
    };
    let jit = |at: usize| 1.0 - 0.13 * (-(at as f64) / 1.5).exp();
    assert!(found(0.02, jit) >= 0.9 && found(0.03, jit) >= 0.9);
    assert!(found(0.03, |_| 1.0) <= 0.02 && found(0.005, |_| 1.0) <= 0.02);
    assert!(found(0.000_5, |at| 1.0 + 0.002 * at as f64) <= 0.02, "below the limit");
}

#[test]
fn a_cell_whose_seconds_scatter_too_much_has_a_note_and_no_reason() {
    let mut random = StdRng::seed_from_u64(2);
    let runs = cell(&mut move || random.random::<f64>(), 0.25, |_| 1.0);
    let note = CellDrift::find(&vus(), &runs).and_then(|drift| drift.reason(&Limits::default())).expect("a note");
    assert!(note.is_note() && note.code == "steadiness_unknown", "{note:?}");
    let text = "steadiness not judged: throughput scatters so much that a drift of 40 % would have been missed";
    assert_eq!(note.text, text);
}

#[test]
fn short_runs_of_an_agent_are_not_judged_and_others_are() {
    let of = |seconds: f64, repetitions: u32| -> Vec<Run> {
        let one = |repetition| {
            let run = finished("servy", repetition);
            let spec = run.spec.clone().under(closed(10, seconds));
            Run { spec, origin: Origin::Agent, ..run }
        };
        (1..=repetitions).map(one).collect()
    };
    let are_short = |runs: Vec<Run>| are_too_short(&runs.iter().collect::<Vec<_>>());
    for (seconds, repetitions, expected) in [
        (3.0, 5, true),
        (3.0, 20, true),
        (4.0, 5, true),
        (4.0, 6, false),
        (5.0, 4, false),
        (8.0, 1, true),
        (15.0, 1, false),
    ] {
        assert_eq!(are_short(of(seconds, repetitions)), expected, "{repetitions} runs of {seconds} s");
    }
    let import = |run| Run { origin: Origin::Import, ..run };
    assert!(!are_short(of(3.0, 5).into_iter().map(import).collect()), "imports are not judged at all");
    assert!(!are_short(Vec::new()));
}

#[test]
fn the_reason_names_size_runs_and_levels() {
    let runs = [[800.0, 900.0, 950.0, 1_000.0], [810.0, 890.0, 950.0, 1_010.0], [790.0, 900.0, 960.0, 1_000.0]];
    let runs = runs.map(|rates| run(&rates));
    let drift = CellDrift::find(&vus(), &runs).expect("a drift");
    let reason = drift.reason(&Limits::default()).expect("a reason");
    assert_eq!((reason.code.as_str(), reason.verdict, reason.limit), ("cell_not_steady", Verdict::Suspect, Some(0.01)));
    assert!(reason.observed.is_some_and(|seen| (0.2..0.3).contains(&seen)), "{reason:?}");
    assert!(
        reason.text.contains("in 3 of 3 runs of this cell") && reason.text.ends_with("; warm up longer"),
        "{reason:?}"
    );
    let mut lenient = Limits::default();
    lenient.set(Limit::NotSteadyRate, 0.5);
    assert_eq!(drift.reason(&lenient), None);
    assert!(CellDrift::find(&vus(), &runs[..1]).is_none() && CellDrift::find(&vus(), &[]).is_none());
    assert!(CellDrift::find(&Load::Script, &runs).is_none());
    assert!(CellDrift::find(&rate(), &runs).is_none(), "at a constant rate only the latency is judged");
}
