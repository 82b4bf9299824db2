//! Servers that already run: what no agent can know about them is a note, what it knows about itself is judged.

use super::*;

/// A server behind a URL on another machine: no CPU time, no machine size.
fn url(change: impl FnOnce(&mut Case)) -> Case {
    let case = with(|case| {
        case.kind = Some(TargetKind::Url);
        case.enforced = Enforced::NONE;
        case.cores.target.clear();
        case.conditions.network = Some(NetworkUse { interface: Some("eth0".to_owned()), ..NetworkUse::default() });
        change(case);
    });
    // Nothing ran besides k6: 330 ms a second, and 10 ms of the kernel.
    case.each_usage(|usage| {
        usage.target = Consumption::default();
        usage.host = Host { user_us: usage.generator.cpu_us.unwrap_or(0), system_us: 10_000, ..Host::default() };
    })
}

#[test]
fn a_size_that_nothing_enforces_is_a_note_behind_a_url_and_suspect_elsewhere() {
    assert!(only(&url(|_| {}), "size_not_enforced", Verdict::Valid).is_note());
    let vm = with(|case| {
        case.kind = Some(TargetKind::Vm);
        case.enforced = Enforced::NONE;
    });
    suspect(&vm, "size_not_enforced");
}

#[test]
fn a_busy_generator_and_a_disturbed_host_are_found_behind_a_url() {
    let codes = |case: &Case| {
        let grave = case.judge().reasons.into_iter().filter(|reason| !reason.is_note());
        grave.map(|reason| reason.code).collect::<Vec<_>>()
    };
    let busy = url(|_| {}).each_usage(|usage| {
        usage.generator.cpu_us = usage.generator.cpu_us.map(|us| us * 29 / 10);
        usage.host.user_us = usage.generator.cpu_us.unwrap_or(0);
    });
    assert_eq!(codes(&busy), ["generator_busy"]);
    let disturbed = url(|_| {}).each_usage(|usage| usage.host.user_us += 900_000);
    assert_eq!(codes(&disturbed), ["host_disturbed"]);
    // On one machine the target itself may be what else runs.
    let local = url(|case| case.conditions.network = Some(NetworkUse::default()));
    assert_eq!(codes(&local.each_usage(|usage| usage.host.user_us += 900_000)), Vec::<String>::new());
}
