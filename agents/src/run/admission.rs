//! Checks whether this machine can execute a job. Errors are sentences.

use brewbench_wire::engine::EngineOffer;
use brewbench_wire::job::{Job, Size};

use crate::host::machine;
use crate::run::context::RunContext;
use crate::sandbox::cores;
use crate::target::{self, Manifest};

/// Checks that the machine has the resources of the job's size, for a number of targets that are loaded in turns.
pub fn check_size(size: &Size, targets: u64) -> Result<(), String> {
    let (cores, memory) = (cores::allowed().len(), machine::memory_bytes());
    if !(size.vcpus > 0.0 && size.vcpus <= cores as f64) {
        return Err(format!("the size {} needs {} vCPUs, but this machine has {cores}", size.name, size.vcpus));
    }
    let wanted = size.memory_bytes.saturating_mul(targets);
    if wanted == 0 || wanted > memory {
        let (what, wanted, has) = (if targets > 1 { "a duet of " } else { "" }, wanted >> 20, memory >> 20);
        return Err(format!(
            "{what}the size {} needs {wanted} MiB of memory, but this machine has {has} MiB",
            size.name
        ));
    }
    Ok(())
}

/// Checks that a load generator has the capabilities the job needs.
pub fn check_engine(job: &Job, engine: &EngineOffer) -> Result<(), String> {
    match engine.first_missing(&job.needs()) {
        None => Ok(()),
        Some(capability) => Err(format!("{} can't {capability}, which this run needs", engine.version())),
    }
}

/// Loads the current manifest of the job's target.
pub fn find_target(name: &str, context: &RunContext) -> Result<Manifest, String> {
    let (manifests, errors) = target::manifest::load(&context.targets);
    manifests.into_iter().find(|manifest| manifest.name == name).ok_or_else(|| {
        let broken: Vec<String> = errors.iter().map(|error| format!("; {error}")).collect();
        format!("this agent has no target {name:?} in {}{}", context.targets.display(), broken.concat())
    })
}

#[cfg(test)]
mod tests {
    use brewbench_wire::engine::Capability;
    use brewbench_wire::job::{Role, Segment};
    use brewbench_wire::load::{Closed, Form, Load};
    use brewbench_wire::run_spec::RunSpec;
    use brewbench_wire::samples::a_job;

    use super::*;

    #[test]
    fn a_load_generator_without_a_needed_capability_is_refused() {
        let form = Form::Constant { level: 1, duration_ms: 1_000 };
        let plain = Job {
            spec: RunSpec { load: Some(Load::Closed(Closed::new(form).expect("a load"))), ..a_job().spec },
            ..a_job()
        };
        let engine = |capabilities: &[Capability]| EngineOffer {
            name: "vegeta".to_owned(),
            version: "12.8".to_owned(),
            path: String::new(),
            supported: String::new(),
            fault: None,
            capabilities: capabilities.to_vec(),
        };
        let role = Role::Generator(Segment { index: 0, of: 2 });
        assert_eq!(check_engine(&plain, &engine(&[])), Ok(()));
        let cases = [
            (
                Job { spec: RunSpec { load: Some(Load::Script), ..plain.spec.clone() }, ..plain.clone() },
                "vegeta 12.8 can't run a script's own load, which this run needs",
            ),
            (Job { role, ..plain.clone() }, "vegeta 12.8 can't generate a segment of a load, which this run needs"),
            (
                Job { spec: RunSpec { warm_up_auto: true, ..plain.spec.clone() }, ..plain.clone() },
                "vegeta 12.8 can't report metrics every second, which this run needs",
            ),
        ];
        for (job, sentence) in cases {
            assert_eq!(check_engine(&job, &engine(&[])), Err(sentence.to_owned()));
            assert_eq!(check_engine(&job, &engine(&job.needs())), Ok(()));
        }
        assert_eq!(
            check_engine(
                &Job { role: Role::Host, spec: RunSpec { load: Some(Load::Script), ..plain.spec.clone() }, ..plain },
                &engine(&[])
            ),
            Ok(())
        );
    }
}
