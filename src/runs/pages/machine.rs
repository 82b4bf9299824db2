//! What an agent saw besides the figures, as facts with names. Pure.

use crate::{
    results::{
        environment::{
            circumstances,
            facts::{Fact, essentials},
        },
        evidence::Evidence,
    },
    runs::model::Run,
    web::format,
};

fn fact(name: &str, value: impl Into<String>) -> Fact {
    Fact { name: name.to_owned(), value: value.into() }
}

/// The machine as it was, in short.
pub fn machine(evidence: &Evidence) -> Vec<Fact> {
    let mut facts = essentials(&crate::results::environment::facts::facts(evidence));
    facts.extend(circumstances::of_machine(&evidence.conditions));
    facts
}

/// What the sandbox enforced and counted.
pub fn sandbox(run: &Run, evidence: &Evidence) -> Vec<Fact> {
    let mut facts = Vec::new();
    let numbers = |cores: &[usize]| cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let place = |cores: &[usize]| if cores.is_empty() { "any".to_owned() } else { numbers(cores) };
    facts.push(fact("cores of the target", place(&evidence.cores.target)));
    if run.generators.is_empty() {
        facts.push(fact("cores of k6", place(&evidence.cores.generator)));
    }
    facts.extend(circumstances::of_target(&evidence.conditions));
    let Some(seen) = evidence.observed else { return facts };
    let seconds = |us: u64| format::duration(Some(us as f64 / 1e6)).text().to_owned();
    if let Some(used) = seen.cpu_us {
        facts.push(fact("CPU time", seconds(used)));
    }
    if let Some(throttled) = seen.throttled_us {
        // The kernel adds it up over the cores.
        let cores = evidence.cores.target.len().max(1) as u64;
        let text = match (throttled, cores) {
            (0, _) => "never".to_owned(),
            (throttled, 1) => seconds(throttled),
            (throttled, cores) => format!("{} on each of its {cores} cores", seconds(throttled / cores)),
        };
        facts.push(fact("held back by its CPU quota", text));
    }
    if let Some(peak) = seen.peak_memory_bytes {
        facts.push(fact("memory at most", memory(peak, run)));
    }
    if let Some(kills) = seen.oom_kills {
        let text = if kills == 0 { "none".to_owned() } else { kills.to_string() };
        facts.push(fact("killed for want of memory", text));
    }
    facts
}

fn memory(peak: u64, run: &Run) -> String {
    let text = format::bytes(Some(peak as f64)).text().to_owned();
    match run.size.as_ref().filter(|size| size.memory_bytes > 0) {
        Some(size) => {
            let share = format::percent(Some(peak as f64 / size.memory_bytes as f64));
            format!("{text}, {} of its size", share.text())
        }
        None => text,
    }
}

/// What held the target to its size, in words.
pub fn enforced(run: &Run) -> String {
    let Some(enforced) = &run.enforced else { return "not known".to_owned() };
    let by = |mechanism: &str| match mechanism {
        "cgroup2" => "cgroup v2".to_owned(),
        "cgroup1" => "cgroup v1".to_owned(),
        "none" => "nothing".to_owned(),
        other => other.to_owned(),
    };
    match (by(&enforced.cpu), by(&enforced.memory)) {
        (cpu, memory) if cpu == memory => cpu,
        (cpu, memory) => format!("CPU by {cpu}, memory by {memory}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        results::conditions::{Cores, Observed},
        runs::testing::finished,
    };

    fn evidence() -> Evidence {
        Evidence {
            observed: Some(Observed {
                cpu_us: Some(12_500_000),
                throttled_us: Some(0),
                peak_memory_bytes: Some(1 << 30),
                oom_kills: Some(2),
            }),
            cores: Cores { target: vec![0, 1], generator: Vec::new() },
            environment: [("cpu.model", "Z80"), ("memory_bytes", "4294967296"), ("load_average", "0.1 0.2 0.3")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..Evidence::default()
        }
    }

    fn texts(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|fact| format!("{}: {}", fact.name, fact.value).replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn the_machine_is_told_in_words() {
        let expected = ["CPU: Z80", "memory: 4 GiB", "load average before the start: 0.1 0.2 0.3"];
        assert_eq!(texts(machine(&evidence())), expected);
    }

    #[test]
    fn the_sandbox_says_what_it_saw() {
        assert_eq!(
            texts(sandbox(&finished("servy", 1), &evidence())),
            [
                "cores of the target: 0, 1",
                "cores of k6: any",
                "CPU time: 12.50 s",
                "held back by its CPU quota: never",
                "memory at most: 1 GiB, 25 % of its size",
                "killed for want of memory: 2",
            ]
        );
    }

    #[test]
    fn throttled_time_is_told_for_each_core() {
        let throttled = |cores: usize| {
            let observed = Observed { throttled_us: Some(3_000_000), ..Observed::default() };
            let cores = Cores { target: (0..cores).collect(), generator: Vec::new() };
            let evidence = Evidence { observed: Some(observed), cores, ..Evidence::default() };
            texts(sandbox(&finished("servy", 1), &evidence)).pop().expect("a fact")
        };
        assert_eq!(throttled(1), "held back by its CPU quota: 3 s");
        assert_eq!(throttled(2), "held back by its CPU quota: 1.50 s on each of its 2 cores");
    }

    #[test]
    fn who_enforced_the_size_is_named() {
        let mut run = finished("servy", 1);
        assert_eq!(enforced(&run), "cgroup v2");
        run.enforced.as_mut().expect("it is known").memory = "none".to_owned();
        assert_eq!(enforced(&run), "CPU by cgroup v2, memory by nothing");
        run.enforced = None;
        assert_eq!(enforced(&run), "not known");
    }
}
