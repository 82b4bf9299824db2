//! What only the agent saw of a run's circumstances, in sentences.

use brewbench_agent::wire::outcome::{Conditions, Ground};

use super::Fact;
use crate::web::format;

/// All of it.
pub fn all(conditions: &Conditions) -> Vec<Fact> {
    of_machine(conditions).into_iter().chain(of_target(conditions)).collect()
}

/// What there was to notice of the machine.
pub fn of_machine(conditions: &Conditions) -> Vec<Fact> {
    let others = told("others before the load", conditions.ground.as_ref().map(quiet));
    others.into_iter().chain(told("clock meanwhile", conditions.clock_jump_ms.map(clock))).collect()
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
    [told("processes of the target", processes), told("answer after the load", answer)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| format!("{}: {}", fact.name, fact.value)).collect()
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
        assert_eq!(told(Conditions::default()), Vec::<String>::new());
    }
}
