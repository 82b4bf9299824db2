//! Checks the machine: k6, targets, control groups, cores, CPU frequency, ports, open files.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use brewbench_wire::engine::EngineOffer;

use super::finding::Finding;
use crate::connection::daemon::Options;
use crate::engine::{K6, NoK6, Wrk, k6};

use brewbench_wire::messages::TargetOffer;
use brewbench_wire::outcome::Mechanism;
use brewbench_wire::profile::ProfileSource;

use crate::host::environment::{Facts, settings};
use crate::host::machine;
use crate::profile::{offer, perf};
use crate::sandbox::cage::access::{self, Access};
use crate::sandbox::cage::support::{self, Landlock};
use crate::sandbox::cage::user::Users;
use crate::sandbox::{OwnQuota, ProgramRole, Sandbox, cores};
use crate::target::container::{self, NoEngine};
use crate::target::manifest::{self, Provided};
use crate::target::{self, Containers, Fingerprints, ManifestError, vm};

/// Each connection of k6 needs a port; a load of short connections uses up fewer than this.
const FEW_PORTS: u32 = 10_000;
/// Targets and k6 need a file for each connection.
const FEW_FILES: u64 = 4_096;

/// Looks for the load generators besides the agent's own.
pub(super) async fn engines(options: &Options) -> Vec<Finding> {
    let wrk = Wrk::find().await.map(|wrk| wrk.offer());
    let wrk = wrk.map(|EngineOffer { version, path, .. }| Finding::good("wrk", format!("version {version} at {path}")));
    [find_k6(options).await].into_iter().chain(wrk).collect()
}

async fn find_k6(options: &Options) -> Finding {
    match K6::find(options.engine.as_deref()).await {
        Ok(k6) => {
            let EngineOffer { version, path, supported, .. } = k6.offer();
            Finding::good("k6", format!("version {version} at {path}, supported is {supported}"))
        }
        Err(NoK6::Missing(_)) if options.engine.is_none() && options.native.is_some() => {
            Finding::doubtful("k6", "not found in PATH: only scenarios with a request list run here", k6::GET_IT)
        }
        Err(fault) => Finding::bad("k6", fault.to_string(), "install a supported version, or name its path with --k6"),
    }
}

fn offers(options: &Options) -> (Vec<TargetOffer>, Vec<ManifestError>) {
    let Options { targets, kubernetes, profilers, .. } = options;
    target::offers(targets, &Fingerprints::default(), &containers(options), *kubernetes, profilers)
}

pub(super) fn targets(options: &Options) -> Finding {
    let (offers, faults) = offers(options);
    let folder = options.targets.display();
    let names: Vec<_> = offers.iter().map(|offer| offer.name.as_str()).collect();
    let errors: Vec<_> = faults.iter().map(ToString::to_string).collect();
    match (names.is_empty(), errors.is_empty()) {
        (false, true) => Finding::good("targets", names.join(", ")),
        (false, false) => {
            let observed = format!("{}; invalid: {}", names.join(", "), errors.join("; "));
            Finding::doubtful("targets", observed, format!("fix the manifests in {folder}"))
        }
        (true, _) => {
            let observed = if errors.is_empty() { "none".to_owned() } else { errors.join("; ") };
            Finding::bad(
                "targets",
                observed,
                format!("put manifests (*.toml) into {folder}, or name another folder with --manifests"),
            )
        }
    }
}

/// Looks for a container engine: only targets with `[container]` need one.
pub(super) async fn container_engine(options: &Options) -> Finding {
    const CHECK: &str = "containers";
    let containers = containers(options);
    if options.container_engine.is_none() && matches!(containers.socket(), Err(NoEngine::None)) {
        return Finding::good(CHECK, "none; targets with [container] need Docker or Podman");
    }
    match containers.connect().await {
        Ok(engine) => Finding::good(CHECK, container::name_of(&engine)),
        Err(fault) => Finding::doubtful(CHECK, fault, "start its service, or name its socket with --container-engine"),
    }
}

/// Looks for KVM: only targets with `[vm]` need it.
pub(super) async fn kvm() -> Finding {
    let observed = match vm::check_kvm().await {
        Ok(()) => "works".to_owned(),
        Err(fault) => format!("{fault}; guests of targets with [vm] are emulated, and their runs suspect"),
    };
    Finding::good("kvm", observed)
}

/// Uses a different name than the agent's, which may be running.
fn containers(options: &Options) -> Containers {
    Containers::find(options.container_engine.as_deref(), &format!("doctor-{}", std::process::id()))
}

/// Runs all checks of the kernel and the hardware.
pub(super) fn machine(options: &Options) -> Vec<Finding> {
    let facts = settings::facts(Path::new("/"));
    let is_tuned = options.cpu_tuning.is_some();
    let mut findings = vec![
        control_groups(options),
        cage(options),
        super::connections::check(),
        enough_cores(cores::allowed().len(), cores::physical().len()),
        frequency(&facts, is_tuned),
        ports(&facts),
        files(&facts),
    ];
    findings.extend(OwnQuota::find().cores().map(cpu_quota));
    findings
}

const PROFILERS: &str = "profilers";

/// Checks each profiler that the agent's owner allows. None is needed for a run, so at most their absence is a problem.
pub(super) fn profilers(options: &Options) -> Vec<Finding> {
    if options.profilers.is_empty() {
        return vec![Finding::good(PROFILERS, "none may attach to targets; --profilers pprof,perf allows it")];
    }
    let finding = |source: &ProfileSource| match source {
        ProfileSource::Pprof => Finding::good(PROFILERS, "pprof: endpoints of targets may be read"),
        ProfileSource::Command => Finding::good(PROFILERS, "command: commands of manifests may attach"),
        ProfileSource::Perf => perf_finding(),
    };
    options.profilers.iter().map(finding).collect()
}

fn perf_finding() -> Finding {
    match offer::usable_perf() {
        Ok(access) => {
            let path = perf::find().unwrap_or_default();
            let kernel = if access.kernel { "with" } else { "without" };
            Finding::good(PROFILERS, format!("perf: {}, {kernel} functions of the kernel", path.display()))
        }
        Err(fault) => match fault.split_once(": ") {
            Some((observed, remedy)) => Finding::doubtful(PROFILERS, format!("perf: {observed}"), remedy),
            None => Finding::doubtful(PROFILERS, format!("perf: {fault}"), "remove perf from --profilers"),
        },
    }
}

/// Checks that targets can listen on the load address, if the agent has one.
pub(super) fn load_address(options: &Options) -> Option<Finding> {
    let address = options.load_address?;
    let remedy = "name an address of this machine with --load-address (`ip address` lists them), or leave it out";
    Some(match TcpListener::bind((address, 0)) {
        Err(fault) => Finding::doubtful("load address", format!("can't listen on {address}: {fault}"), remedy),
        Ok(_) if address.is_loopback() => {
            Finding::doubtful("load address", format!("{address} is reachable from this machine only"), remedy)
        }
        Ok(_) => Finding::good("load address", format!("targets can listen on {address}")),
    })
}

fn control_groups(options: &Options) -> Finding {
    // A different name than the agent's, which may be running.
    let sandbox = Sandbox::detect(&options.cgroups, &format!("doctor-{}", std::process::id()));
    let found = sandbox.mechanisms();
    let observed = format!("CPU by {}, memory by {}", found.cpu.as_str(), found.memory.as_str());
    if found.cpu == Mechanism::None || found.memory == Mechanism::None {
        if !machine::enforces_sizes(options.kubernetes, &offers(options).0) {
            return Finding::good("control groups", format!("{observed}; the cluster enforces the sizes of its Pods"));
        }
        let remedy = "run the agent as root, or in a delegated control group (systemd: Delegate=yes); until then sizes \
                 are not enforced and runs are suspect";
        return Finding::doubtful("control groups", observed, remedy);
    }
    Finding::good("control groups", observed)
}

/// Checks what keeps scripts and targets from the agent's own files.
fn cage(options: &Options) -> Finding {
    let landlock = Landlock::detect();
    let users = support::describe_users();
    if let Some(observed) = support::target_risk(landlock, &options.state, &options.targets) {
        let remedy = match landlock {
            Landlock::Absent => {
                "boot a kernel with Landlock (`lsm=landlock,…`); scripts need --unsafe-scenarios until then"
            }
            _ => "move the state folder (--state) out of the folders that targets may read",
        };
        return Finding::doubtful("sandbox", format!("{users}; {observed}"), remedy);
    }
    if let (Err(_), Some(socket)) = (Users::find(), containers(options).usable_socket()) {
        let observed = format!("{users}, who may use the container engine at {}", socket.display());
        let remedy = "an engine that runs as root makes its users root, and only a seccomp filter keeps targets from it: run the \
                      agent as root or with the capabilities of the systemd unit, so that targets have another user";
        return Finding::doubtful("sandbox", observed, remedy);
    }
    let kernel = match landlock {
        Landlock::Partial(version) => {
            format!("Landlock {version}; Linux 6.12 would also block signals and truncating files")
        }
        Landlock::Absent | Landlock::Complete(_) => {
            "Landlock and seccomp: they can access their own files only".to_owned()
        }
    };
    Finding::good("sandbox", format!("{users}; {kernel}"))
}

/// Checks that the user of targets can start them. Each run of another target fails.
pub(super) fn closed_targets(options: &Options) -> Option<Finding> {
    let (manifests, _) = manifest::load(&options.targets);
    let programs = manifests.iter().filter_map(|manifest| match &manifest.provided {
        Provided::Process(program) => Some((&manifest.name, program)),
        _ => None,
    });
    let closed: Vec<_> = programs
        .filter_map(|(name, program)| {
            let path = program.path().ok()?;
            Some(format!("{name}: {}", access::obstacle(ProgramRole::Target, &path, Access::Start)?))
        })
        .collect();
    let remedy = "as it says, or run the agent as a user without privileges";
    (!closed.is_empty()).then(|| Finding::doubtful("closed targets", closed.join("; "), remedy))
}

fn enough_cores(processors: usize, physical: usize) -> Finding {
    const MORE: &str = "give the agent at least 2 physical cores, better 4: k6 needs its own, or runs are suspect";
    let hyperthreads = if processors > physical { format!(", {processors} hyperthreads") } else { String::new() };
    match (physical, processors) {
        (0 | 1, 0 | 1) => Finding::doubtful("cores", "1: k6 and the target share it", MORE),
        (0 | 1, _) => {
            let observed = format!("1 with {processors} hyperthreads: k6 and the target share it");
            Finding::doubtful("cores", observed, MORE)
        }
        (2 | 3, _) => {
            Finding::good("cores", format!("{physical}{hyperthreads}: at most 1 for the target, the rest for k6"))
        }
        _ => Finding::good("cores", format!("{physical}{hyperthreads}")),
    }
}

/// The agent itself takes part of its quota.
fn cpu_quota(cores: f64) -> Finding {
    let observed = format!("{cores:.2} cores, which the agent and its k6 share");
    if cores < 2.0 {
        return Finding::doubtful("CPU quota", observed, "allow the agent at least 2 cores, or k6 is the bottleneck");
    }
    Finding::good("CPU quota", observed)
}

fn frequency(facts: &Facts, is_tuned: bool) -> Finding {
    let fact = |name: &str| facts.get(name).map(String::as_str);
    let (governor, turbo) = (fact("cpu.governor"), fact("cpu.turbo"));
    let observed: Vec<_> = [governor.map(|it| format!("governor {it}")), turbo.map(|it| format!("turbo {it}"))]
        .into_iter()
        .flatten()
        .collect();
    if observed.is_empty() {
        return Finding::good("frequency", "unknown: firmware or hypervisor decides");
    }
    let observed = observed.join(", ");
    let is_fixed = governor.is_none_or(|governor| governor == "performance") && turbo != Some("on");
    match (is_fixed, is_tuned) {
        (true, _) => Finding::good("frequency", observed),
        (false, true) => Finding::good("frequency", format!("{observed}; --cpu-tuning pins it during runs")),
        (false, false) => Finding::doubtful("frequency", observed, "start the agent with --cpu-tuning to reduce noise"),
    }
}

fn ports(facts: &Facts) -> Finding {
    if let Err(fault) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
        return Finding::bad("ports", format!("none available on loopback: {fault}"), "bring the loopback device up");
    }
    let range = facts.get("net.ipv4.ip_local_port_range").and_then(|range| {
        let (low, high) = range.split_once(' ')?;
        Some((low.parse::<u32>().ok()?, high.parse::<u32>().ok()?))
    });
    let Some((low, high)) = range else { return Finding::good("ports", "available on loopback") };
    let (count, observed) = (high.saturating_sub(low) + 1, format!("{low} to {high}"));
    if count < FEW_PORTS {
        let remedy = "sysctl -w net.ipv4.ip_local_port_range='10240 65535': a load of short connections uses up ports";
        return Finding::doubtful("ports", observed, remedy);
    }
    Finding::good("ports", observed)
}

fn files(facts: &Facts) -> Finding {
    let limit = facts.get("limit.open_files").map_or("", String::as_str);
    // Go programs, including k6, raise their limit to the hard limit themselves.
    let most = limit.rsplit(' ').next().and_then(|most| most.parse::<u64>().ok());
    if most.is_some_and(|most| most < FEW_FILES) {
        let remedy = "raise the limit of open files (ulimit -Hn, systemd: LimitNOFILE=1048576): one per connection";
        return Finding::doubtful("open files", limit, remedy);
    }
    Finding::good("open files", if limit.is_empty() { "limit unknown" } else { limit })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Rank;
    use super::*;

    fn facts(known: &[(&str, &str)]) -> Facts {
        known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_variable_frequency_is_doubtful_unless_the_agent_pins_it() {
        let moving = facts(&[("cpu.governor", "powersave"), ("cpu.turbo", "on")]);
        assert_eq!(frequency(&moving, false).rank, Rank::Doubtful);
        assert_eq!(frequency(&moving, true).rank, Rank::Good);
        assert_eq!(frequency(&facts(&[("cpu.governor", "performance"), ("cpu.turbo", "off")]), false).rank, Rank::Good);
        assert_eq!(frequency(&facts(&[("cpu.turbo", "on")]), false).rank, Rank::Doubtful);
        assert_eq!(frequency(&facts(&[]), false).rank, Rank::Good);
    }

    #[test]
    fn one_core_few_ports_and_few_files_are_doubtful_with_a_remedy() {
        let few = facts(&[("net.ipv4.ip_local_port_range", "60000 60999"), ("limit.open_files", "512, at most 1024")]);
        for finding in [enough_cores(1, 1), enough_cores(2, 1), ports(&few), files(&few), cpu_quota(0.5)] {
            assert_eq!(finding.rank, Rank::Doubtful, "{finding:?}");
            assert!(finding.remedy.is_some(), "{finding:?}");
        }
        let many =
            facts(&[("net.ipv4.ip_local_port_range", "32768 60999"), ("limit.open_files", "1024, at most 524288")]);
        for finding in [
            enough_cores(2, 2),
            enough_cores(8, 4),
            enough_cores(64, 64),
            ports(&many),
            files(&many),
            ports(&facts(&[])),
            cpu_quota(4.0),
        ] {
            assert_eq!((finding.rank, &finding.remedy), (Rank::Good, &None), "{finding:?}");
        }
    }
}
