//! Describes the conditions that an agent observed during a run.

use brewbench_wire::{
    outcome::{Conditions, CoreUse, IdleWaitResult, NetworkUse, Placement},
    traffic::{Segments, Traffic},
};

use crate::{results::environment::facts::Fact, web::format};

/// Describes all conditions of a run.
pub fn all(conditions: &Conditions) -> Vec<Fact> {
    of_machine(conditions).into_iter().chain(of_target(conditions)).collect()
}

/// Describes the conditions on a machine.
pub fn of_machine(conditions: &Conditions) -> Vec<Fact> {
    let network = conditions.network.as_ref();
    [
        fact("idle wait", conditions.idle_wait.as_ref().map(idle_wait)),
        fact("CPU use of the run's cores", conditions.core_use.as_ref().map(core_use)),
        fact(
            "CPU quota of the load generator",
            conditions.generator_quota.map(|cores| format!("{cores:.2} cores, shared with its agent")),
        ),
        fact("network", network.and_then(link)),
        fact("retransmitted TCP segments", network.and_then(retransmitted)),
        fact("traffic of the load", conditions.traffic.as_ref().and_then(traffic)),
        fact("lost TCP segments of the load", conditions.traffic.as_ref().and_then(lost)),
        fact("clock during the run", conditions.clock_jump_ms.map(clock)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn fact(name: &str, value: Option<String>) -> Option<Fact> {
    value.map(|value| Fact { name: name.to_owned(), value })
}

fn idle_wait(idle_wait: &IdleWaitResult) -> String {
    let IdleWaitResult { waited_ms, busy_cores, limit_cores, idle } = *idle_wait;
    let waited = format::duration(Some(waited_ms as f64 / 1e3));
    let (waited, busy) = (waited.text(), format!("{busy_cores:.2} cores"));
    if idle {
        format!("idle after {waited}: {busy} in use")
    } else {
        format!("not idle within {waited}: {busy} in use, limit {limit_cores}")
    }
}

fn core_use(used: &CoreUse) -> String {
    let CoreUse { cores, elapsed_us, busy_us, target_us, generator_us, target_waited_us, generator_waited_us } = *used;
    let in_cores = |us: u64| format!("{:.2}", us as f64 / elapsed_us.max(1) as f64);
    let others_us = busy_us.saturating_sub(target_us.saturating_add(generator_us));
    let (target, load, others) = (in_cores(target_us), in_cores(generator_us), in_cores(others_us));
    let used = format!("target {target}, load generator {load}, others {others} of {cores}");
    match target_waited_us.zip(generator_waited_us) {
        Some((target_us, load_us)) => {
            format!("{used}; waiting: target {}, load generator {}", in_cores(target_us), in_cores(load_us))
        }
        None => used,
    }
}

fn link(network: &NetworkUse) -> Option<String> {
    let mbits = |bits: u64| format!("{:.1} Mbit/s", bits as f64 / 1e6);
    let peak = network.peak_bits.map_or_else(|| "unknown".to_owned(), mbits);
    let speed = network.speed_bits.map_or_else(|| "unknown speed".to_owned(), mbits);
    Some(format!("{}: peak {peak} of {speed}", network.interface.as_deref()?))
}

fn retransmitted(network: &NetworkUse) -> Option<String> {
    let (again, all) = (network.retransmitted?, network.segments?);
    let share = format::percent((all > 0).then(|| again as f64 / all as f64));
    Some(format!("{} of {} ({})", format::count(Some(again)).text(), format::count(Some(all)).text(), share.text()))
}

fn traffic(traffic: &Traffic) -> Option<String> {
    let peers = traffic.peers.as_ref().filter(|_| traffic.looks > 0)?;
    let all = peers.iter().fold(0_u64, |all, peer| all.saturating_add(peer.bytes)).max(1);
    let described = peers.iter().map(|peer| {
        let share = format::percent(Some(peer.bytes as f64 / all as f64));
        let what = if peer.is_target { ", the target" } else { "" };
        format!("{} {}{what}", share.text(), peer.address)
    });
    let described: Vec<String> = described.collect();
    Some(if described.is_empty() { "none seen".to_owned() } else { described.join("; ") })
}

fn lost(traffic: &Traffic) -> Option<String> {
    let Segments { sent, retransmitted, spurious } = traffic.segments;
    let number = |number: u64| format::count(Some(number)).text().to_owned();
    (sent > 0).then(|| {
        let lost = number(traffic.segments.lost());
        format!(
            "{lost} of {}; sent again {}, of them {} needlessly",
            number(sent),
            number(retransmitted),
            number(spurious)
        )
    })
}

fn clock(jump_ms: i64) -> String {
    // Smaller changes are rounding, or NTP slewing the clock.
    const MIN_JUMP_MS: u64 = 20;
    let by = format::duration(Some(jump_ms.unsigned_abs() as f64 / 1e3));
    match jump_ms {
        jump_ms if jump_ms.unsigned_abs() < MIN_JUMP_MS => "not set".to_owned(),
        0.. => format!("set forward by {}", by.text()),
        _ => format!("set back by {}", by.text()),
    }
}

/// Describes the conditions of the target.
pub fn of_target(conditions: &Conditions) -> Vec<Fact> {
    let processes = conditions.processes.map(|processes| match conditions.processes_gone {
        Some(gone @ 1..) => format!("{processes} at the start of the measurement, {gone} of them exited by its end"),
        Some(0) if processes > 1 => format!("{processes} from start to end of the measurement"),
        _ => processes.to_string(),
    });
    let text_change = conditions.response_text_change.as_deref().unwrap_or_default();
    let response = conditions.response_change.as_deref().map(|change| match (change, text_change) {
        ("", "") => "unchanged".to_owned(),
        ("", change) => format!("another text: {change}"),
        (change, _) => change.to_owned(),
    });
    let placement = conditions.placement.map(|placement| on_cores(placement).to_owned());
    let round_trip = conditions.round_trip_ms.map(|ms| format::duration(Some(ms / 1e3)).text().to_owned());
    let head = conditions.response_head_bytes.map(|bytes| format!("{bytes} B"));
    let missing = conditions.counters.as_ref().map(|counters| counters.missing.join("; "));
    let not_counted = missing.filter(|text| !text.is_empty());
    let facts = [
        fact("placement", placement),
        fact("time to open a connection", round_trip),
        fact("target processes", processes),
        fact("response after the load", response),
        fact("headers of a response", head),
        fact("not counted", not_counted),
    ];
    facts.into_iter().flatten().collect()
}

fn on_cores(placement: Placement) -> &'static str {
    match placement {
        Placement::WholeCores => "one physical core per vCPU, none shared with the load generator",
        Placement::SiblingThreads => "hyperthreads of the same physical cores, none shared with the load generator",
        Placement::SharedPhysicalCore => "physical cores shared with the load generator",
        Placement::SharedCores => "processors shared with the load generator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brewbench_wire::traffic::Peer;

    fn texts(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| format!("{}: {}", fact.name, fact.value)).collect()
    }

    #[test]
    fn known_core_and_network_use_is_described() {
        let used = CoreUse {
            cores: 2,
            elapsed_us: 2_000_000,
            busy_us: 3_000_000,
            target_us: 1_000_000,
            generator_us: 1_500_000,
            target_waited_us: Some(20_000),
            generator_waited_us: Some(300_000),
        };
        let network = NetworkUse {
            interface: Some("eth0".to_owned()),
            speed_bits: Some(1_000_000_000),
            peak_bits: Some(12_300_000),
            segments: Some(2_000_000),
            retransmitted: Some(6),
        };
        let described = |network| {
            let conditions = Conditions { core_use: Some(used), network: Some(network), ..Conditions::default() };
            texts(of_machine(&conditions)).into_iter().map(|text| text.replace('\u{a0}', " ")).collect::<Vec<_>>()
        };
        let cores = "CPU use of the run's cores: target 0.50, load generator 0.75, others 0.25 of 2; waiting: target \
            0.01, load generator 0.15";
        let again = "retransmitted TCP segments: 6 of 2,000,000 (0.0003 %)";
        assert_eq!(described(network.clone()), [cores, "network: eth0: peak 12.3 Mbit/s of 1000.0 Mbit/s", again]);
        let unknown = NetworkUse { speed_bits: None, segments: None, ..network };
        assert_eq!(described(unknown), [cores, "network: eth0: peak 12.3 Mbit/s of unknown speed"]);
        assert_eq!(described(NetworkUse::default()), [cores]);
        let limited = Conditions { generator_quota: Some(1.5), ..Conditions::default() };
        assert_eq!(texts(of_machine(&limited)), ["CPU quota of the load generator: 1.50 cores, shared with its agent"]);
    }

    #[test]
    fn traffic_is_described_by_address() {
        let peer = |address: &str, bytes, is_target| Peer {
            address: address.parse().expect("an address"),
            is_target,
            bytes,
            connections: 1,
            reconnects: 0,
        };
        let peers = vec![peer("127.0.0.1:4000", 630, true), peer("[::1]:8081", 370, false)];
        let segments = Segments { sent: 2_000, retransmitted: 12, spurious: 10 };
        let traffic = Traffic { looks: 3, peers: Some(peers), segments, ..Traffic::default() };
        let described = |traffic| {
            let conditions = Conditions { traffic: Some(traffic), ..Conditions::default() };
            texts(of_machine(&conditions)).into_iter().map(|text| text.replace('\u{a0}', " ")).collect::<Vec<_>>()
        };
        let lost = "lost TCP segments of the load: 2 of 2,000; sent again 12, of them 10 needlessly";
        let seen = "traffic of the load: 63 % 127.0.0.1:4000, the target; 37 % [::1]:8081";
        assert_eq!(described(traffic.clone()), [seen, lost]);
        assert_eq!(described(Traffic { peers: None, ..traffic }), [lost]);
        assert_eq!(described(Traffic::default()), Vec::<String>::new());
    }

    #[test]
    fn conditions_are_described_in_words() {
        let result = |waited_ms, busy_cores, idle| IdleWaitResult { waited_ms, busy_cores, limit_cores: 0.25, idle };
        assert_eq!(
            idle_wait(&result(201, 0.031, true)).replace('\u{a0}', " "),
            "idle after 0.201 s: 0.03 cores in use"
        );
        let busy = idle_wait(&result(10_000, 1.5, false)).replace('\u{a0}', " ");
        assert_eq!(busy, "not idle within 10 s: 1.50 cores in use, limit 0.25");
        let clocks = [0, -3, 2_000, -60_000].map(|jump_ms| clock(jump_ms).replace('\u{a0}', " "));
        assert_eq!(clocks, ["not set", "not set", "set forward by 2 s", "set back by 1 min"]);
        let conditions = |processes, gone, change: &str| Conditions {
            processes: Some(processes),
            processes_gone: Some(gone),
            response_change: Some(change.to_owned()),
            ..Conditions::default()
        };
        let described = |conditions| texts(of_target(&conditions));
        assert_eq!(described(conditions(1, 0, "")), ["target processes: 1", "response after the load: unchanged"]);
        let text = Conditions { response_text_change: Some("35 bytes".to_owned()), ..conditions(1, 0, "") };
        assert_eq!(described(text)[1], "response after the load: another text: 35 bytes");
        assert_eq!(
            described(conditions(4, 1, "another status")),
            [
                "target processes: 4 at the start of the measurement, 1 of them exited by its end",
                "response after the load: another status"
            ]
        );
        let placed = Conditions { placement: Some(Placement::SiblingThreads), ..Conditions::default() };
        assert_eq!(
            described(placed),
            ["placement: hyperthreads of the same physical cores, none shared with the load generator"]
        );
        assert_eq!(described(Conditions::default()), Vec::<String>::new());
    }
}
