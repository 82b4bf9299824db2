//! Reasons from what the load generator reported about its load besides its metrics.

use brewbench_wire::{
    load_record::{LoadRecord, Message, Messages},
    reports::summary::FailedCheck,
};

use super::*;
use crate::results::verdict::judge::would_repeat;

fn recorded(change: impl FnOnce(&mut Case, &mut LoadRecord)) -> Case {
    let mut record = LoadRecord {
        load_ms: Some(10_000),
        interrupted_iterations: Some(0),
        exceptions: Some(Messages::default()),
        errors: Some(Messages::default()),
        ..LoadRecord::default()
    };
    let mut case = ordinary();
    change(&mut case, &mut record);
    case.conditions.load_record = Some(record);
    case
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
fn messages(text: &str, count: u64) -> Option<Messages> {
    Some(Messages { count, commonest: vec![Message { text: text.to_owned(), count }] })
}

#[test]
fn a_load_without_events_is_valid() {
    fine(&recorded(|_, _| {}));
}

#[test]
fn exceptions_are_judged_with_the_commonest_message() {
    let thrown = |count| recorded(|_, record| record.exceptions = messages("TypeError: x (script.js:3:1)", count));
    assert!(only(&thrown(1), "iterations_failed", Verdict::Valid).is_note());
    suspect(&thrown(2), "iterations_failed");
    suspect(&thrown(100), "iterations_failed");
    let all = only(&thrown(10_000), "iterations_failed", Verdict::Invalid);
    assert_eq!(
        all.text,
        "10,000 of 10,000 iterations ended with an exception: TypeError: x (script.js:3:1) (10,000 times)"
    );
    assert!(would_repeat(&thrown(10_000).judge()) && !would_repeat(&thrown(100).judge()));
    let mut lenient = thrown(101);
    lenient.limits.set(Limit::IterationsFailedInvalid, 0.02);
    suspect(&lenient, "iterations_failed");
}

#[test]
fn a_load_cut_short_is_invalid_and_its_rate_is_not_judged() {
    let case = recorded(|case, record| {
        case.load = rate();
        case.figures.iterations = Some(4_000);
        record.load_ms = Some(4_030);
        record.cut_short = Some("its threshold http_req_duration p(95)<0.01 was crossed".to_owned());
    });
    let reason = only(&case, "cut_short", Verdict::Invalid);
    let expected = "the load ended after 4.0 of 10.0 s: its threshold http_req_duration p(95)<0.01 was crossed";
    assert_eq!((reason.text.as_str(), reason.observed, reason.limit), (expected, Some(4.03), Some(10.0)));
    assert!(would_repeat(&case.judge()) && !would_repeat(&ordinary().judge()));
    let own = recorded(|case, record| {
        case.load = Load::Script;
        record.cut_short = Some("the script aborted it".to_owned());
    });
    let text = only(&own, "cut_short", Verdict::Invalid).text;
    assert_eq!(text, "the load ended after 10.0 s, before its time: the script aborted it");
    let in_setup = recorded(|_, record| {
        (record.load_ms, record.cut_short) = (None, Some("the script aborted it: no seed".to_owned()));
    });
    let text = only(&in_setup, "cut_short", Verdict::Invalid).text;
    assert_eq!(text, "the load ended before its start: the script aborted it: no seed");
}

#[test]
fn interrupted_iterations_are_noted_or_suspect() {
    let interrupted = |count| recorded(|_, record| record.interrupted_iterations = Some(count));
    assert!(only(&interrupted(4), "iterations_interrupted", Verdict::Valid).is_note());
    let many = suspect(&interrupted(200), "iterations_interrupted");
    assert!(many.text.starts_with("200 of 10,200 iterations (1.96 %) were still in progress"), "{}", many.text);
}

#[test]
fn a_run_without_a_request_says_why() {
    let idle = |change: fn(&mut LoadRecord)| {
        let case = recorded(|case, record| {
            (case.figures.requests, case.figures.checks_passed) = (0, None);
            change(record);
        });
        let reasons = case.judge().reasons;
        reasons.iter().find(|reason| reason.code == "no_requests").expect("a reason").text.clone()
    };
    let refused = "no request was made: dial tcp: lookup nohost: no such host (120 times)";
    assert_eq!(idle(|record| record.errors = messages("dial tcp: lookup nohost: no such host", 120)), refused);
    let thrown = "no request was made: TypeError: x (once)";
    assert_eq!(idle(|record| record.exceptions = messages("TypeError: x", 1)), thrown);
    let stuck = "no request finished: 4 iterations were still in progress at the end of the load";
    assert_eq!(idle(|record| record.interrupted_iterations = Some(4)), stuck);
    assert_eq!(idle(|_| {}), "the load generator made no HTTP request: requests of other protocols are not measured");
}

#[test]
fn a_run_whose_requests_all_failed_says_why() {
    let failed = |change: fn(&mut LoadRecord)| {
        let case = recorded(|case, record| {
            case.figures.failed = Some(10_000);
            change(record);
        });
        only(&case, "no_success", Verdict::Invalid).text
    };
    let refused = "all 10,000 requests failed: dial tcp: connection refused (10,000 times)";
    assert_eq!(failed(|record| record.errors = messages("dial tcp: connection refused", 10_000)), refused);
    assert_eq!(failed(|_| {}), "all 10,000 requests failed: the target returned only errors");
    let unknown = "all 10,000 requests failed: the target was down or returned only errors";
    assert_eq!(failed(|record| record.errors = None), unknown);
}

#[test]
fn failed_requests_and_checks_are_named() {
    let failed = |failed, failures: &[(&str, u64)]| {
        let mut case = recorded(|case, _| case.figures.failed = Some(failed));
        let counts = failures.iter().map(|(text, count)| ((*text).to_owned(), *count));
        case.failures = Some(Messages::from_counts(counts));
        let reasons = case.judge().reasons;
        reasons.first().expect("a reason").text.clone()
    };
    let missing = "every response was 404 (GET /hash): all 10,000 requests failed";
    assert_eq!(failed(10_000, &[("404 (GET /hash)", 10_000)]), missing);
    let mixed = "all 10,000 requests failed: 404 (GET /hash) (9,999 times)";
    assert_eq!(failed(10_000, &[("404 (GET /hash)", 9_999), ("500 (GET /hash)", 1)]), mixed);
    let some = "1,234 of 10,000 requests failed: 12.34 %, the limit is 1 %; most often 404 (GET /hash)";
    assert_eq!(failed(1_234, &[("404 (GET /hash)", 1_200), ("no response", 34)]), some);

    let mut case = ordinary();
    (case.figures.checks_passed, case.figures.checks_failed) = (Some(5_000), Some(5_000));
    case.figures.worst_check = Some(FailedCheck { name: "answer has\na hash".to_owned(), passes: 0, fails: 5_000 });
    let expected =
        "5,000 of 10,000 checks failed: 50 %, the limit is 1 %; “answer has a hash” failed 5,000 of 5,000 times";
    assert_eq!(only(&case, "checks_failed", Verdict::Invalid).text, expected);
}

#[test]
fn interrupted_iterations_have_started() {
    let case = |iterations, interrupted, dropped| {
        recorded(|case, record| {
            case.load = rate();
            (case.figures.iterations, case.figures.dropped_iterations) = (Some(iterations), dropped);
            record.interrupted_iterations = Some(interrupted);
        })
    };
    let reasons = case(0, 3, Some(13)).judge().reasons;
    let dropped = reasons.iter().find(|reason| reason.code == "iterations_dropped").expect("a reason");
    let expected = "the load generator could not start 13 of 16 iterations in time (81.25 %), because all its virtual \
        users were busy, 3 of them in iterations that did not end: the load was lower than requested";
    assert_eq!(dropped.text, expected);
    assert!(only(&case(9_990, 10, None), "iterations_interrupted", Verdict::Valid).is_note(), "the rate was kept");
}

#[test]
fn virtual_users_in_iterations_that_never_end_are_not_held_back() {
    let stuck = |interrupted| {
        recorded(|case, record| {
            (case.conditions.script_may_wait, case.figures.latency.avg_ms) = (Some(false), Some(2.0));
            record.interrupted_iterations = Some(interrupted);
        })
    };
    let codes = |case: Case| case.judge().reasons.into_iter().map(|reason| reason.code).collect::<Vec<_>>();
    assert_eq!(codes(stuck(10)), ["iterations_interrupted"]);
    assert_eq!(codes(stuck(1)), ["iterations_interrupted", "generator_held_back"]);
}

#[test]
fn the_scripts_own_limit_is_named_instead_of_virtual_users() {
    let limited = |limit| {
        recorded(|case, record| {
            case.load = rate();
            (case.figures.iterations, case.figures.dropped_iterations) = (Some(500), Some(1_500));
            (case.figures.rps, record.rps_limit) = (50.0, Some(limit));
        })
    };
    let text = |limit| {
        let reasons = limited(limit).judge().reasons;
        reasons.iter().find(|reason| reason.code == "iterations_dropped").expect("a reason").text.clone()
    };
    let expected = "the load generator could not start 1,500 of 2,000 iterations in time (75 %), because the script's \
        option rps allows 50 requests per second: the load was lower than requested";
    assert_eq!(text(50.0), expected);
    assert!(text(5_000.0).contains("because all its virtual users were busy"), "it did not matter");
    let held = recorded(|case, record| {
        (case.conditions.script_may_wait, case.figures.rps) = (Some(false), 50.0);
        record.rps_limit = Some(50.0);
    });
    let reasons = held.judge().reasons;
    let held = reasons.iter().find(|reason| reason.code == "generator_held_back").expect("a reason");
    assert!(held.text.contains("because the script's option rps allows 50 requests per second"), "{}", held.text);
}

#[test]
fn a_negative_minimum_is_a_note() {
    let case = with(|case| case.figures.negative_minima = vec!["http_req_sending".to_owned()]);
    let note = only(&case, "negative_minimum", Verdict::Valid);
    assert!(note.is_note() && note.text.contains("a negative minimum of http_req_sending"), "{note:?}");
}
