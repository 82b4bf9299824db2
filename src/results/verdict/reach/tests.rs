//! Tests of load on other servers.

use super::*;
use brewbench_wire::outcome::CoreUse;

use crate::{
    results::verdict::tests::{Case, fine, only, with},
    runs::verdict::Reason,
};

const TARGET: &str = "127.0.0.1:40123";

fn peer(address: &str, bytes: u64) -> Peer {
    let address = address.parse().expect("an address");
    Peer { address, is_target: address.to_string() == TARGET, bytes, connections: 20, reconnects: 0 }
}

fn case(peers: Vec<Peer>, change: impl FnOnce(&mut Case)) -> Case {
    with(|case| {
        let traffic = Traffic {
            target: TARGET.to_owned(),
            looks: 5,
            elapsed_ms: 5_000,
            peers: Some(peers),
            ..Traffic::default()
        };
        case.conditions.traffic = Some(traffic);
        change(case);
    })
}

fn invalid(case: &Case, code: &str) -> Reason {
    only(case, code, Verdict::Invalid)
}

#[test]
fn load_on_another_server_is_invalid_and_both_are_named() {
    let both = case(vec![peer(TARGET, 630_000), peer("127.0.0.1:8081", 370_000)], |_| ());
    let reason = invalid(&both, "other_origin");
    let expected = "37 % of the bytes went to 127.0.0.1:8081; the target is at 127.0.0.1:40123; check";
    assert!(reason.text.starts_with(expected), "{}", reason.text);
    assert_eq!((reason.observed, reason.limit), (Some(0.37), Some(0.001)));
    fine(&case(vec![peer(TARGET, 999_000), peer("127.0.0.1:8081", 1_000)], |_| ()));
    fine(&case(vec![peer(TARGET, 1)], |_| ()));
    fine(&case(Vec::new(), |_| ()));
    fine(&with(|case| case.conditions.traffic = Some(Traffic::default())));
    let mut lenient = both;
    lenient.limits.set(Limit::OtherOrigin, 0.4);
    fine(&lenient);
}

#[test]
fn a_target_without_load_is_described() {
    let used = |target_us| CoreUse {
        cores: 2,
        elapsed_us: 10_000_000,
        busy_us: 9_000_000,
        target_us,
        generator_us: 9_000_000,
        target_waited_us: None,
        generator_waited_us: None,
    };
    let busy = |target_us| {
        move |case: &mut Case| {
            case.figures.requests = 100_000;
            case.conditions.core_use = Some(used(target_us));
        }
    };
    let reasons = case(vec![peer("[::1]:8081", 5_000)], busy(20_000)).judge().reasons;
    let reason = reasons.iter().find(|reason| reason.code == "other_origin").expect("a reason");
    let expected = "100 % of the bytes went to [::1]:8081; the target is at 127.0.0.1:40123, had no connection and used \
                    0.20 µs of CPU per request";
    assert!(reason.text.starts_with(expected), "{}", reason.text);
    let codes = |case: Case| case.judge().reasons.into_iter().map(|reason| reason.code).collect::<Vec<_>>();
    let none = |case: &mut Case| case.enforced.cpu = Mechanism::None;
    let is_idle = |case: Case| codes(case).contains(&"target_idle".to_owned());
    // Where k6's sockets are not visible, the CPU time of the target decides.
    assert!(is_idle(with(busy(10_000))));
    assert!(!is_idle(with(busy(500_000))), "5 µs are enough for a fast server");
    assert!(!is_idle(case(vec![peer(TARGET, 5)], busy(10_000))), "it had connections");
    assert!(
        !is_idle(with(|case| {
            busy(0)(case);
            case.figures.requests = 5_000;
            none(case);
        })),
        "a tick of the kernel's clock is more than this"
    );
}

#[test]
fn connections_that_are_closed_at_once_are_compared_by_their_number() {
    // k6 itself counted 100 MB; the kernel showed a few sockets in each look.
    let counted = |case: &mut Case| {
        (case.figures.data_received_bytes, case.figures.data_sent_bytes) = (Some(90_000_000), Some(10_000_000));
    };
    let short = |address, connections| Peer { connections, reconnects: 5, ..peer(address, 400) };
    let mixed = case(vec![short(TARGET, 15), short("127.0.0.1:8081", 5)], counted);
    let reason = invalid(&mixed, "other_origin");
    assert!(reason.text.starts_with("25 % of the connections in use went to 127.0.0.1:8081"), "{}", reason.text);
    fine(&case(vec![short(TARGET, 15)], counted));
    // A kept connection to a helper shows all of its bytes, and most of the target's are missing.
    fine(&case(vec![short(TARGET, 15), peer("127.0.0.1:6379", 20_000)], counted));
    // A login of each user, and no more.
    let login = Peer { reconnects: 1, ..peer("127.0.0.1:8081", 400) };
    fine(&case(vec![short(TARGET, 15), login], counted));
}
