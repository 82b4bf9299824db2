//! Reasons from few failures, throttled time, the run's cores and the network.

use super::*;
use brewbench_wire::outcome::{CoreUse, IdleWaitResult};

#[test]
fn one_failure_in_ten_thousand_is_a_note_and_no_value_is_rounded_to_its_limit() {
    let failing = |requests: u64, failed| {
        with(|case| {
            // Without a series, because its requests would not match.
            case.series = None;
            (case.figures.requests, case.figures.failed) = (requests, Some(failed));
        })
    };
    let reason = |case: &Case| case.judge().reasons.into_iter().find(|reason| reason.code == "requests_failed");
    let note = reason(&failing(3_000_000, 1)).expect("a note");
    assert!(note.is_note());
    assert_eq!(note.text, "1 of 3,000,000 requests failed: 0.000033 %, the limit is 0.01 %");
    assert!(reason(&failing(10_000, 1)).expect("a note").is_note(), "1 in 10,000");
    assert_eq!(reason(&failing(9_999, 1)).map(|reason| reason.verdict), Some(Verdict::Suspect));
    let close = reason(&failing(9_999, 1)).expect("a reason");
    assert_eq!(close.text, "1 of 9,999 requests failed: 0.010001 %, the limit is 0.01 %");
    let mut strict = failing(3_000_000, 1);
    strict.limits.set(Limit::RequestsFailed, 0.0);
    let strict = reason(&strict).expect("a reason");
    assert!(strict.text.ends_with("failed: 0.000033 %, the limit is 0 %"), "{}", strict.text);
    assert_eq!((strict.verdict, strict.figures()), (Verdict::Suspect, None), "the sentence has both");
}

#[test]
fn a_value_and_its_limit_get_as_many_digits_as_needed() {
    let texts = |unit: Unit, seen, limit| unit.texts(seen, limit);
    let table = [
        (Unit::Share, 0.97, 0.9, ("97 %", "90 %")),
        (Unit::Share, 0.900_04, 0.9, ("90.004 %", "90 %")),
        (Unit::Share, 3e-6, 0.0, ("0.0003 %", "0 %")),
        (Unit::Share, 0.9, 0.9, ("90 %", "90 %")),
        (Unit::Count, 3.0, 0.0, ("3", "0")),
        (Unit::Seconds, 1.004, 3.0, ("1 s", "3 s")),
    ];
    for (unit, seen, limit, (first, second)) in table {
        assert_eq!(texts(unit, seen, limit), (first.to_owned(), second.to_owned()), "{seen}");
    }
}

#[test]
fn throttled_time_is_divided_by_the_number_of_cores() {
    let held = |us, cores| {
        let mut case = ordinary().each_usage(move |usage| usage.generator.throttled_us = Some(us));
        case.cores.generator = (1..=cores).collect();
        case
    };
    fine(&held(40_000, 4));
    let most = suspect(&held(9_000_000, 4), "generator_throttled");
    assert_eq!(most.observed, Some(1.0), "a share is no more than all of it");
    // 4 % of the time on each of four cores is not saturated; 5 % is.
    let target = |us| {
        let mut case = busy(990_000, 300_000).each_usage(move |usage| usage.target.throttled_us = Some(us));
        (case.cores.target, case.vcpus) = (vec![2, 3, 4, 5], Some(4.0));
        case
    };
    suspect(&target(160_000), "generator_busy");
    fine(&target(200_000));
}

#[test]
fn only_activity_on_the_runs_cores_counts() {
    // Other programs on the run's two cores; 15 ms are the traffic's.
    let used = |others_us: u64| CoreUse {
        cores: 2,
        elapsed_us: 10_000_000,
        busy_us: 8_300_000 + others_us,
        target_us: 5_000_000,
        generator_us: 3_300_000,
        target_waited_us: None,
        generator_waited_us: None,
    };
    let watched = |others_us| with(|case| case.conditions.core_use = Some(used(others_us)));
    fine(&watched(2_150_000));
    let disturbed = suspect(&watched(2_200_000), "host_disturbed");
    assert!(disturbed.text.contains("of the run's 2 cores"), "{}", disturbed.text);
    // Activity elsewhere does not count.
    let mut elsewhere = watched(0).each_usage(|usage| usage.host.user_us += 60_000_000);
    fine(&elsewhere);
    // Older agents measured the whole machine.
    elsewhere.conditions.core_use = None;
    assert!(suspect(&elsewhere, "host_disturbed").text.contains("of the machine's 2 cores"));
    let nothing = CoreUse { cores: 0, elapsed_us: 0, busy_us: u64::MAX, target_us: 0, generator_us: 0, ..used(0) };
    fine(&with(|case| case.conditions.core_use = Some(nothing)));
    let more = CoreUse { target_us: u64::MAX, generator_us: u64::MAX, ..used(0) };
    fine(&with(|case| case.conditions.core_use = Some(more)));
}

#[test]
fn what_a_run_lost_to_others_counts_and_not_what_they_used() {
    // Other programs use nine tenths of a core; the traffic's 15 ms are in it.
    let beside = |target_waited_us, generator_waited_us| {
        let used = CoreUse {
            cores: 2,
            elapsed_us: 10_000_000,
            busy_us: 17_450_000,
            target_us: 5_000_000,
            generator_us: 3_300_000,
            target_waited_us,
            generator_waited_us,
        };
        let idle_wait = IdleWaitResult { waited_ms: 200, busy_cores: 0.9, limit_cores: 0.25, idle: false };
        with(|case| (case.conditions.core_use, case.conditions.idle_wait) = (Some(used), Some(idle_wait)))
    };
    let verdicts = |case: &Case| {
        let reasons = case.judge().reasons.into_iter();
        reasons.map(|reason| (reason.code.clone(), reason.verdict)).collect::<Vec<_>>()
    };
    let both =
        |disturbed, before| vec![("host_disturbed".to_owned(), disturbed), ("not_quiet_before".to_owned(), before)];
    assert_eq!(verdicts(&beside(Some(3_500_000), Some(500_000))), both(Verdict::Valid, Verdict::Valid));
    assert_eq!(verdicts(&beside(Some(3_500_000), Some(500_001))), both(Verdict::Suspect, Verdict::Valid));
    assert_eq!(verdicts(&beside(Some(3_500_000), None)), both(Verdict::Suspect, Verdict::Suspect), "unknown waits");
    let reasons = beside(Some(90_000_000), Some(0)).judge().reasons;
    assert_eq!((reasons[0].observed, reasons[0].limit), (Some(4.5), Some(0.2)));
    assert!(
        reasons[0].text.ends_with("9.00 threads of target and load generator waited for a core on average"),
        "{reasons:?}"
    );
    let mut alone = beside(Some(90_000_000), Some(0));
    (alone.conditions.core_use.as_mut().expect("known").busy_us, alone.conditions.idle_wait) = (8_500_000, None);
    fine(&alone);
}

#[test]
fn a_generator_whose_threads_wait_is_suspect() {
    let waited = |generator_waited_us, target_us| {
        let used = CoreUse {
            cores: 2,
            elapsed_us: 10_000_000,
            busy_us: 8_300_000,
            target_us: 5_000_000,
            generator_us: 3_300_000,
            target_waited_us: Some(0),
            generator_waited_us,
        };
        let case = with(|case| case.conditions.core_use = Some(used));
        case.each_usage(move |usage| {
            usage.target.cpu_us = Some(target_us);
            usage.host.user_us = target_us + 330_000;
        })
    };
    fine(&waited(None, 500_000));
    fine(&waited(Some(3_700_000), 500_000));
    let late = suspect(&waited(Some(5_300_000), 500_000), "generator_delayed");
    assert!(late.observed.is_some_and(|seen| (seen - 0.86).abs() < 1e-9) && late.limit == Some(0.7), "{late:?}");
    assert!(
        late.text.contains("on its 1 core its threads ran for 0.33 and waited for 0.53 of the time"),
        "{}",
        late.text
    );
    fine(&waited(Some(5_300_000), 900_000));
    let mut disturbed = waited(Some(5_300_000), 500_000);
    disturbed.conditions.core_use.as_mut().expect("known").busy_us = 12_000_000;
    suspect(&disturbed, "host_disturbed");
}

#[test]
fn a_saturated_network_is_suspect() {
    let network = |change: fn(&mut NetworkUse)| {
        let mut network = NetworkUse {
            interface: Some("eth0".to_owned()),
            speed_bits: Some(1_000_000_000),
            peak_bits: Some(899_000_000),
            ..NetworkUse::default()
        };
        change(&mut network);
        with(|case| case.conditions.network = Some(network))
    };
    fine(&network(|_| ()));
    let full = suspect(&network(|seen| seen.peak_bits = Some(900_000_000)), "network_saturated");
    assert_eq!((full.observed, full.limit, full.unit), (Some(0.9), Some(0.9), Some(Unit::Share)));
    assert!(full.text.starts_with("eth0 was saturated: 900 of its 1000 Mbit/s in one direction"), "{}", full.text);
    fine(&network(|seen| (seen.peak_bits, seen.speed_bits) = (Some(u64::MAX), None)));
    fine(&network(|seen| (seen.peak_bits, seen.speed_bits) = (Some(u64::MAX), Some(0))));
}

#[test]
fn a_machine_that_was_not_idle_is_suspect() {
    let idle_wait = |idle, busy_cores| {
        let idle_wait = IdleWaitResult { waited_ms: 30_000, busy_cores, limit_cores: 0.2, idle };
        with(|case| case.conditions.idle_wait = Some(idle_wait))
    };
    fine(&idle_wait(true, 0.1));
    let loud = suspect(&idle_wait(false, 0.8), "not_quiet_before");
    assert_eq!((loud.observed, loud.limit, loud.unit), (Some(0.8), Some(0.2), Some(Unit::Cores)));
}

#[test]
fn a_generator_is_saturated_by_the_quota_of_its_agent() {
    let mut case = busy(1_650_000, 300_000);
    case.cores.generator = (1..64).collect();
    fine(&case);
    case.conditions.generator_quota = Some(2.0);
    let bound = suspect(&case, "generator_busy");
    assert!(bound.text.contains("it used 1.65 of its 2 cores"), "{}", bound.text);
    case.conditions.generator_quota = Some(100.0);
    fine(&case);
}
