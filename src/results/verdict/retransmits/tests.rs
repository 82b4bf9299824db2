//! Tests of lost segments.

use brewbench_wire::{
    outcome::NetworkUse,
    traffic::{Segments, Traffic},
};

use super::*;
use crate::results::verdict::tests::{Case, fine, only, with};

fn case(segments: [u64; 3], slowest_ms: f64, interface: Option<&str>) -> Case {
    let [sent, retransmitted, spurious] = segments;
    with(|case| {
        let segments = Segments { sent, retransmitted, spurious };
        case.conditions.traffic = Some(Traffic { segments, ..Traffic::default() });
        let interface = interface.map(str::to_owned);
        case.conditions.network =
            Some(NetworkUse { interface, segments: Some(90_000), retransmitted: Some(9_000), ..NetworkUse::default() });
        case.figures.latency.max_ms = Some(slowest_ms);
    })
}

#[test]
fn segments_sent_again_needlessly_do_not_count() {
    fine(&case([86_039, 1_113, 1_100], 50.2, None));
    fine(&case([1_000_000, 1_000, 0], 900.0, None));
    fine(&case([5_000, 9, 0], 900.0, None));
}

#[test]
fn no_delay_is_claimed_that_the_slowest_request_refutes() {
    let near = only(&case([86_039, 1_113, 0], 50.2, None), "retransmits", Verdict::Valid);
    assert!(near.is_note() && near.text.ends_with("the slowest request took 50.2 ms, so none waited for a timeout"));
    let far = only(&case([86_039, 1_113, 0], 50.2, Some("eth0")), "retransmits", Verdict::Suspect);
    assert!(
        far.text.ends_with("each delays its request by a round trip; the slowest request took 50.2 ms"),
        "{}",
        far.text
    );
    let late = only(&case([86_039, 1_113, 13], 412.0, None), "retransmits", Verdict::Suspect);
    assert!(late.text.starts_with("1,100 of 86,039 TCP segments between load generator and target"), "{}", late.text);
    assert!(
        late.text.ends_with("or by 200 ms or more after a timeout; the slowest request took 412 ms"),
        "{}",
        late.text
    );
    assert_eq!((late.observed, late.limit), (Some(1_100.0 / 86_039.0), Some(0.001)));
}

#[test]
fn counters_of_the_machine_are_a_note() {
    let old = |segments, retransmitted| {
        with(|case| case.conditions.network = Some(NetworkUse { segments, retransmitted, ..NetworkUse::default() }))
    };
    assert!(only(&old(Some(500), Some(10)), "retransmits", Verdict::Valid).is_note());
    for (segments, retransmitted) in
        [(Some(500), Some(9)), (Some(1_000_000), Some(1_000)), (None, Some(10)), (Some(0), Some(10))]
    {
        fine(&old(segments, retransmitted));
    }
}
