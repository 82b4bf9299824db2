//! What only the agent saw of a run's circumstances, in sentences.

use crate::{
    results::{
        conditions::{Conditions, CoreUse, Ground, NetworkUse, Placement},
        environment::facts::Fact,
    },
    web::format,
};

/// All of it.
pub fn all(conditions: &Conditions) -> Vec<Fact> {
    of_machine(conditions).into_iter().chain(of_target(conditions)).collect()
}

/// What there was to notice of the machine.
pub fn of_machine(conditions: &Conditions) -> Vec<Fact> {
    let network = conditions.network.as_ref();
    [
        told("others before the load", conditions.ground.as_ref().map(quiet)),
        told("CPU of the run's cores", conditions.core_use.as_ref().map(shares)),
        told("network", network.and_then(link)),
        told("TCP segments sent again", network.and_then(retransmitted)),
        told("clock meanwhile", conditions.clock_jump_ms.map(clock)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn told(name: &str, value: Option<String>) -> Option<Fact> {
    value.map(|value| Fact { name: name.to_owned(), value })
}

/// What waiting for a quiet machine came to.
fn quiet(ground: &Ground) -> String {
    let Ground { waited_ms, busy_cores, limit_cores, quiet } = *ground;
    let waited = format::duration(Some(waited_ms as f64 / 1e3));
    let (waited, busy) = (waited.text(), format!("{busy_cores:.2} cores"));
    if quiet {
        format!("quiet after {waited}: {busy} in use")
    } else {
        format!("not quiet within {waited}: {busy} in use, {limit_cores} allowed")
    }
}

/// Who used the processors of the run.
fn shares(used: &CoreUse) -> String {
    let CoreUse { cores, elapsed_us, busy_us, target_us, generator_us } = *used;
    let in_cores = |us: u64| format!("{:.2}", us as f64 / elapsed_us.max(1) as f64);
    let others_us = busy_us.saturating_sub(target_us.saturating_add(generator_us));
    let (target, load, others) = (in_cores(target_us), in_cores(generator_us), in_cores(others_us));
    format!("target {target}, k6 {load}, others {others} of {cores}")
}

fn link(network: &NetworkUse) -> Option<String> {
    let mbits = |bits: u64| format!("{:.1} Mbit/s", bits as f64 / 1e6);
    let peak = network.peak_bits.map_or_else(|| "not known".to_owned(), mbits);
    let speed = network.speed_bits.map_or_else(|| "unknown speed".to_owned(), mbits);
    Some(format!("{}: {peak} at most, of {speed}", network.interface.as_deref()?))
}

fn retransmitted(network: &NetworkUse) -> Option<String> {
    let (again, all) = (network.retransmitted?, network.segments?);
    let share = format::percent((all > 0).then(|| again as f64 / all as f64));
    Some(format!("{} of {} ({})", format::count(Some(again)).text(), format::count(Some(all)).text(), share.text()))
}

fn clock(jump_ms: i64) -> String {
    // Less is rounding, or the clock being kept right little by little.
    const NOTICED_MS: u64 = 20;
    let by = format::duration(Some(jump_ms.unsigned_abs() as f64 / 1e3));
    match jump_ms {
        jump_ms if jump_ms.unsigned_abs() < NOTICED_MS => "was not set".to_owned(),
        0.. => format!("was set forward by {}", by.text()),
        _ => format!("was set back by {}", by.text()),
    }
}

/// What there was to notice of the target.
pub fn of_target(conditions: &Conditions) -> Vec<Fact> {
    let processes = conditions.processes.map(|processes| match conditions.processes_gone {
        Some(gone @ 1..) => format!("{processes} when the measurement began, {gone} of them gone at its end"),
        Some(0) if processes > 1 => format!("{processes}, all there from the beginning to the end"),
        _ => processes.to_string(),
    });
    let answer = conditions.response_change.as_deref().map(|change| match change {
        "" => "the same as before".to_owned(),
        change => change.to_owned(),
    });
    let placement = conditions.placement.map(|placement| on_cores(placement).to_owned());
    [told("placement", placement), told("processes of the target", processes), told("answer after the load", answer)]
        .into_iter()
        .flatten()
        .collect()
}

fn on_cores(placement: Placement) -> &'static str {
    match placement {
        Placement::WholeCores => "a physical core for each vCPU, none shared with k6",
        Placement::SiblingThreads => "hyperthreads of the same physical cores, none shared with k6",
        Placement::SharedPhysicalCore => "physical cores shared with k6",
        Placement::SharedCores => "processors shared with k6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| format!("{}: {}", fact.name, fact.value)).collect()
    }

    #[test]
    fn what_the_run_s_cores_and_the_network_did_is_told_as_far_as_it_is_known() {
        let used = CoreUse {
            cores: 2,
            elapsed_us: 2_000_000,
            busy_us: 3_000_000,
            target_us: 1_000_000,
            generator_us: 1_500_000,
        };
        let network = NetworkUse {
            interface: Some("eth0".to_owned()),
            speed_bits: Some(1_000_000_000),
            peak_bits: Some(12_300_000),
            segments: Some(2_000_000),
            retransmitted: Some(6),
        };
        let told = |network| {
            let conditions = Conditions { core_use: Some(used), network: Some(network), ..Conditions::default() };
            texts(of_machine(&conditions)).into_iter().map(|text| text.replace('\u{a0}', " ")).collect::<Vec<_>>()
        };
        let cores = "CPU of the run's cores: target 0.50, k6 0.75, others 0.25 of 2";
        let again = "TCP segments sent again: 6 of 2,000,000 (0.0003 %)";
        assert_eq!(told(network.clone()), [cores, "network: eth0: 12.3 Mbit/s at most, of 1000.0 Mbit/s", again]);
        let unknown = NetworkUse { speed_bits: None, segments: None, ..network };
        assert_eq!(told(unknown), [cores, "network: eth0: 12.3 Mbit/s at most, of unknown speed"]);
        assert_eq!(told(NetworkUse::default()), [cores]);
    }

    #[test]
    fn what_only_the_agent_saw_is_told_in_sentences() {
        let ground = |waited_ms, busy_cores, quiet| Ground { waited_ms, busy_cores, limit_cores: 0.25, quiet };
        assert_eq!(quiet(&ground(201, 0.031, true)).replace('\u{a0}', " "), "quiet after 0.201 s: 0.03 cores in use");
        let told = quiet(&ground(10_000, 1.5, false)).replace('\u{a0}', " ");
        assert_eq!(told, "not quiet within 10 s: 1.50 cores in use, 0.25 allowed");
        let told = [0, -3, 2_000, -60_000].map(|jump_ms| clock(jump_ms).replace('\u{a0}', " "));
        assert_eq!(told, ["was not set", "was not set", "was set forward by 2 s", "was set back by 1 min"]);
        let conditions = |processes, gone, change: &str| Conditions {
            processes: Some(processes),
            processes_gone: Some(gone),
            response_change: Some(change.to_owned()),
            ..Conditions::default()
        };
        let told = |conditions| texts(of_target(&conditions));
        assert_eq!(
            told(conditions(1, 0, "")),
            ["processes of the target: 1", "answer after the load: the same as before"]
        );
        assert_eq!(
            told(conditions(4, 1, "it was another")),
            [
                "processes of the target: 4 when the measurement began, 1 of them gone at its end",
                "answer after the load: it was another"
            ]
        );
        let placed = Conditions { placement: Some(Placement::SiblingThreads), ..Conditions::default() };
        assert_eq!(told(placed), ["placement: hyperthreads of the same physical cores, none shared with k6"]);
        assert_eq!(told(Conditions::default()), Vec::<String>::new());
    }
}
