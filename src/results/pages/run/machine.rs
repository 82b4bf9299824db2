//! The agent's evidence of a run as named facts: machine, sandbox and enforcement. Pure.

use brewbench_wire::target::TargetKind;

use crate::{
    metrics::counters,
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

/// Returns the essential facts of the machine.
pub fn machine(evidence: &Evidence) -> Vec<Fact> {
    let mut facts = essentials(&crate::results::environment::facts::facts(evidence));
    facts.extend(circumstances::of_machine(&evidence.conditions));
    facts
}

/// Returns what the sandbox enforced and measured.
pub fn sandbox(run: &Run, evidence: &Evidence) -> Vec<Fact> {
    let mut facts = Vec::new();
    let numbers = |cores: &[usize]| cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let place = |cores: &[usize]| if cores.is_empty() { "any".to_owned() } else { numbers(cores) };
    facts.push(fact("cores of the target", place(&evidence.cores.target)));
    if run.spec.generators.is_empty() {
        facts.push(fact("cores of the load generator", place(&evidence.cores.generator)));
    }
    facts.extend(circumstances::of_target(&evidence.conditions));
    facts.extend(counters::describe(&run.figures).map(|text| fact("counters", text)));
    let Some(observed) = evidence.observed else { return facts };
    let seconds = |us: u64| format::duration(Some(us as f64 / 1e6)).text().to_owned();
    if let Some(used) = observed.cpu_us {
        facts.push(fact("CPU time", seconds(used)));
    }
    if let Some(throttled) = observed.throttled_us {
        // The kernel's value is the sum over all cores.
        let cores = evidence.cores.target.len().max(1) as u64;
        let text = match (throttled, cores) {
            (0, _) => "never".to_owned(),
            (throttled, 1) => seconds(throttled),
            (throttled, cores) => format!("{} on each of its {cores} cores", seconds(throttled / cores)),
        };
        facts.push(fact("CPU throttled", text));
    }
    if let Some(peak) = observed.peak_memory_bytes {
        // A virtual machine's is that of its guest, without what it can reclaim.
        let is_guest = run.target_kind == Some(TargetKind::Vm);
        facts.push(fact(if is_guest { "peak memory" } else { "peak memory with file cache" }, memory(peak, run)));
    }
    if let Some(kills) = observed.oom_kills {
        facts.push(fact("OOM kills", kills.to_string()));
    }
    facts
}

fn memory(peak: u64, run: &Run) -> String {
    let text = format::bytes(Some(peak as f64)).text().to_owned();
    match run.spec.size.as_ref().filter(|size| size.memory_bytes > 0) {
        Some(size) => {
            let share = format::percent(Some(peak as f64 / size.total_memory_bytes() as f64));
            format!("{text}, {} of the machine size", share.text())
        }
        None => text,
    }
}

/// How the machine size was enforced, in words.
pub fn enforced(run: &Run) -> String {
    let Some(enforced) = &run.enforced else { return "not known".to_owned() };
    let by = |mechanism: &str| match mechanism {
        "cgroup2" => "cgroup v2".to_owned(),
        "cgroup1" => "cgroup v1".to_owned(),
        "guest" => "the guest’s own size".to_owned(),
        "none" => "not enforced".to_owned(),
        other => other.to_owned(),
    };
    match (by(&enforced.cpu), by(&enforced.memory)) {
        (cpu, memory) if cpu == memory => cpu,
        (cpu, memory) => format!("CPU: {cpu}, memory: {memory}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brewbench_wire::outcome::{Cores, Observed};

    use crate::runs::testing::finished;

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
    fn the_facts_of_the_machine_have_names() {
        let expected = ["CPU: Z80", "memory: 4 GiB", "load average before the run: 0.1 0.2 0.3"];
        assert_eq!(texts(machine(&evidence())), expected);
    }

    #[test]
    fn the_facts_of_the_sandbox_have_names_and_units() {
        assert_eq!(
            texts(sandbox(&finished("servy", 1), &evidence())),
            [
                "cores of the target: 0, 1",
                "cores of the load generator: any",
                "CPU time: 12.50 s",
                "CPU throttled: never",
                "peak memory with file cache: 1 GiB, 25 % of the machine size",
                "OOM kills: 2",
            ]
        );
    }

    #[test]
    fn throttled_time_is_per_core() {
        let throttled = |cores: usize| {
            let observed = Observed { throttled_us: Some(3_000_000), ..Observed::default() };
            let cores = Cores { target: (0..cores).collect(), generator: Vec::new() };
            let evidence = Evidence { observed: Some(observed), cores, ..Evidence::default() };
            texts(sandbox(&finished("servy", 1), &evidence)).pop().expect("a fact")
        };
        assert_eq!(throttled(1), "CPU throttled: 3 s");
        assert_eq!(throttled(2), "CPU throttled: 1.50 s on each of its 2 cores");
    }

    #[test]
    fn the_enforcing_mechanism_is_named() {
        let mut run = finished("servy", 1);
        assert_eq!(enforced(&run), "cgroup v2");
        run.enforced.as_mut().expect("it is known").memory = "none".to_owned();
        assert_eq!(enforced(&run), "CPU: cgroup v2, memory: not enforced");
        run.enforced = None;
        assert_eq!(enforced(&run), "not known");
    }
}
