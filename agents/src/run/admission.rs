//! Whether this machine can do a job: it has the size and the target. Whatever can't be done is a sentence.

use crate::host::machine;
use crate::run::execute::Workbench;
use crate::sandbox::cores;
use crate::target::{self, Manifest};
use crate::wire::engine::EngineOffer;
use crate::wire::job::Job;

/// Whether the machine has what the job's size asks for.
pub fn check_size(job: &Job) -> Result<(), String> {
    let size = &job.size;
    let (cores, memory) = (cores::allowed().len(), machine::memory_bytes());
    if !(size.vcpus > 0.0 && size.vcpus <= cores as f64) {
        return Err(format!("this machine can't give {} vCPUs for the size {}: it has {cores}", size.vcpus, size.name));
    }
    if size.memory_bytes == 0 || size.memory_bytes > memory {
        let (wanted, has) = (size.memory_bytes >> 20, memory >> 20);
        return Err(format!(
            "this machine can't give {wanted} MiB of memory for the size {}: it has {has} MiB",
            size.name
        ));
    }
    Ok(())
}

/// Whether a load generator can do what the job needs.
pub fn check_engine(job: &Job, engine: &EngineOffer) -> Result<(), String> {
    match engine.lacks(&job.needs()) {
        None => Ok(()),
        Some(capability) => Err(format!("{} can't {capability}, which this run needs", engine.version())),
    }
}

/// The manifest of the job's target, as it is now.
pub fn find_target(name: &str, bench: &Workbench) -> Result<Manifest, String> {
    let (manifests, errors) = target::manifest::load(&bench.targets);
    manifests.into_iter().find(|manifest| manifest.name == name).ok_or_else(|| {
        let broken: Vec<String> = errors.iter().map(|error| format!("; {error}")).collect();
        format!("this agent has no target {name:?} in {}{}", bench.targets.display(), broken.concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::engine::Capability;
    use crate::wire::job::tests::a_job;
    use crate::wire::job::{Role, Segment};
    use crate::wire::load::{Closed, Form, Load};

    #[test]
    fn a_load_generator_that_can_not_do_a_job_is_refused_with_what_is_missing() {
        let form = Form::Constant { level: 1, duration_ms: 1_000 };
        let plain = Job { load: Load::Closed(Closed::new(form).expect("a load")), ..a_job() };
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
                Job { load: Load::Script, ..plain.clone() },
                "vegeta 12.8 can't run a script's own load, which this run needs",
            ),
            (Job { role, ..plain.clone() }, "vegeta 12.8 can't generate a segment of a load, which this run needs"),
            (
                Job { warm_up_max_ms: Some(1), ..plain.clone() },
                "vegeta 12.8 can't report figures every second, which this run needs",
            ),
        ];
        for (job, sentence) in cases {
            assert_eq!(check_engine(&job, &engine(&[])), Err(sentence.to_owned()));
            assert_eq!(check_engine(&job, &engine(&job.needs())), Ok(()));
        }
        assert_eq!(check_engine(&Job { role: Role::Host, load: Load::Script, ..plain }, &engine(&[])), Ok(()));
    }
}
