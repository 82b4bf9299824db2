//! Prepares the target of a run by its kind, with its control group and its cores.

use std::path::{Path, PathBuf};

use brewbench_wire::job::{Job, MAX_REPLICAS, Role};
use brewbench_wire::outcome::{Cores, Outcome, Placement};

use super::admission::check_size;
use super::context::RunContext;
use crate::build::ResolvedTarget;
use crate::host::{environment, machine};
use crate::sandbox::cage::user;
use crate::sandbox::cores::{self, SharesWith};
use crate::sandbox::{Group, ProgramRole};
use crate::target::container::Prepared;
use crate::target::kubernetes;
use crate::target::vm::VmTarget;
use crate::target::{Provided, Running};

/// Prepares the job's target. A program gets a group with the limits of its size.
pub(super) fn target(
    job: &Job,
    context: &RunContext,
    folder: &Path,
    ResolvedTarget { manifest, facts }: ResolvedTarget,
    outcome: &mut Outcome,
) -> Result<Running, String> {
    outcome.target_version.clone_from(&manifest.version);
    let own = [context.builds.as_path(), &context.work_folder];
    outcome.environment.extend(environment::target::facts(&manifest, &own).into_iter().chain(facts));
    let kind = manifest.provided.kind();
    let size = job.spec.size.clone().ok_or("a run needs a machine size")?;
    let replicas = size.replicas;
    if !(1..=MAX_REPLICAS).contains(&replicas) || replicas > 1 && !kind.may_replicate() {
        return Err(format!("a target of kind {kind} can't have {replicas} replicas"));
    }
    if !kind.is_elsewhere() {
        check_size(&size, if job.spec.duet { 2 } else { 1 })?;
    } else if job.spec.duet {
        return Err(format!("a duet needs targets on the agent's machine, and {} is not", manifest.name));
    }
    let cores = outcome.cores.target.clone();
    match manifest.provided.clone() {
        Provided::Process(program) => {
            let (home, group) = (home(folder)?, open_group(job, context, ProgramRole::Target)?);
            outcome.enforced = group.limit(&size);
            Ok(Running::process(manifest, program, group, cores, home))
        }
        Provided::Vm(machine) => {
            let (home, group) = (home(folder)?, open_group(job, context, ProgramRole::Target)?);
            group.bound(machine::memory_bytes());
            Ok(Running::vm(manifest, VmTarget::new(machine, group, cores, home, size)?))
        }
        Provided::Container(container) => {
            let RunContext { containers, sandbox, .. } = context;
            let (containers, sandbox) = (containers.clone(), sandbox.clone());
            let prepared = Prepared { container, containers, sandbox, size, cores, run: job.run };
            Ok(Running::container(manifest, prepared))
        }
        Provided::Url(_) if job.role == Role::Host => {
            Err(format!("target {} already runs, so only this agent may load it", manifest.name))
        }
        Provided::Kubernetes(_) if job.role == Role::Host => {
            Err(format!("target {} runs in a cluster, so only this agent may load it", manifest.name))
        }
        Provided::Kubernetes(workload) => {
            let cluster = context.cluster.clone().ok_or("the agent uses no cluster: start it with --kubernetes")?;
            outcome.cores = Cores { target: Vec::new(), generator: cores::allowed() };
            outcome.conditions.placement = None;
            let prepared = kubernetes::Prepared { workload, cluster, size, run: job.run };
            Ok(Running::kubernetes(manifest, prepared))
        }
        Provided::Url(remote) => {
            // The target uses none of this machine's CPUs.
            outcome.cores = Cores { target: Vec::new(), generator: cores::allowed() };
            outcome.conditions.placement = None;
            Ok(Running::url(manifest, remote))
        }
    }
}

/// Creates the folder for the temporary files of a target.
fn home(folder: &Path) -> Result<PathBuf, String> {
    let home = folder.join("target");
    let created = std::fs::create_dir(&home).and_then(|()| user::give(&home, ProgramRole::Target));
    created.map_err(|error| format!("can't create {}: {error}", home.display()))?;
    Ok(home)
}

pub(super) fn open_group(job: &Job, context: &RunContext, role: ProgramRole) -> Result<Group, String> {
    let group = context.sandbox.open(job.run, role);
    group.map_err(|error| format!("can't create the control groups of the {}: {error}", role.as_str()))
}

/// Assigns CPUs. A host or a generator has the machine for itself.
pub(super) fn assign_cores(job: &Job) -> (Cores, Option<Placement>) {
    let neighbour = match job.role {
        Role::Alone => SharesWith::Generator,
        Role::Host => SharesWith::None,
        Role::Generator(_) => return (Cores { target: Vec::new(), generator: cores::allowed() }, None),
    };
    let (cores, placement) =
        cores::assign(&cores::physical(), job.spec.size.as_ref().map_or(0.0, |size| size.vcpus), neighbour);
    (cores, Some(placement))
}
