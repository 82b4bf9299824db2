//! Checks one target without a server: reads its manifest, starts it once, sends the requests of the manifest, tries
//! the profiler, stops it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::manifest::{Container, Remote};
use brewbench_wire::target::Code;

use super::finding::Finding;
use super::profiler;
use crate::host::machine;
use crate::sandbox::cage::user;
use crate::sandbox::process::find_program;
use crate::sandbox::{Group, ProgramRole, Sandbox, cores};
use crate::target::container::{self, Prepared};
use crate::target::manifest::{self, Manifest, Provided, Workload};
use crate::target::vm::VmTarget;
use crate::target::{self, Cluster, Containers, Ended, Fingerprints, Running, Serving, kubernetes};

/// Time for the target to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Runs all checks of a manifest; the control groups are mounted at `cgroups`. Containers are started by the engine at
/// this socket, or by the only one on this machine.
pub async fn check_target(file: &Path, cgroups: &Path, container_engine: Option<&Path>) -> Vec<Finding> {
    let manifest = match manifest::read(file) {
        Ok(manifest) => manifest,
        Err(fault) => return vec![Finding::bad("manifest", fault, "correct it and check again")],
    };
    let Manifest { name, version, provided, .. } = &manifest;
    let what = match provided {
        Provided::Process(program) => program.command.join(" "),
        Provided::Vm(machine) => machine.describe(),
        Provided::Container(container) => format!("image {}", container.image),
        Provided::Url(remote) => remote.base.clone(),
        Provided::Kubernetes(workload) => format!("image {}", workload.image),
    };
    let mut findings = vec![Finding::good("manifest", format!("{name} {version}: {what}"))];
    if let Some(built) = &manifest.source_build {
        if find_program(Path::new("git")).is_none() {
            findings.push(Finding::bad("source", "there is no git in PATH", "install Git"));
            return findings;
        }
        let what = format!("{} of {}", built.source.refs.join(", "), built.source.repository);
        findings.push(Finding::good("source", format!("{what}; a run names a revision, which is built then")));
        return findings;
    }
    if let Provided::Container(container) = provided
        && container.has_versions()
    {
        findings.push(Finding::good("version", "a run names the tag of the image"));
        return findings;
    }
    findings.extend(check_code(&manifest));
    match provided.clone() {
        Provided::Process(program) => {
            let remedy = "correct the command, [ready] or [verify]";
            let prepare = |group, home| Ok(Running::process(manifest.clone(), program, group, cores::allowed(), home));
            findings.extend(start_here(&manifest, cgroups, prepare, remedy).await);
        }
        Provided::Vm(machine) => {
            let remedy = "correct [vm], [ready] or [verify]";
            let prepare = |group, home| {
                let guest = VmTarget::new(machine, group, cores::allowed(), home, guest_size())?;
                Ok(Running::vm(manifest.clone(), guest))
            };
            findings.extend(start_here(&manifest, cgroups, prepare, remedy).await);
        }
        Provided::Container(container) => {
            findings.extend(start_container(manifest, container, cgroups, container_engine).await);
        }
        Provided::Url(remote) => findings.extend(reach(manifest, remote, cgroups).await),
        Provided::Kubernetes(workload) => findings.extend(Box::pin(start_pod(manifest, workload, cgroups)).await),
    }
    findings
}

/// Checks whether everything that decides how a target behaves can be read.
fn check_code(manifest: &Manifest) -> Option<Finding> {
    let all = target::neighbours(&manifest.provided);
    // What can't be found at all fails the start.
    let identity = target::identify(manifest, &all, &Fingerprints::default()).ok()?.identity;
    let Code { sha256, unknown } = identity.code()?.clone();
    Some(match unknown {
        None => Finding::good("code", format!("identified: {}", sha256.chars().take(8).collect::<String>())),
        Some(why) => Finding::doubtful(
            "code",
            format!("not identified: {why}"),
            "write `identity` into the manifest, or runs of two experiments are no repetitions of each other",
        ),
    })
}

/// Checks a server that already runs, without load but that of its profile.
async fn reach(manifest: Manifest, remote: Remote, cgroups: &Path) -> Vec<Finding> {
    let requests = describe_requests(&manifest);
    let mut target = Running::url(manifest, remote);
    match target.start(IpAddr::V4(Ipv4Addr::LOCALHOST), |_| {}).await {
        Ok(serving) => {
            let profiled = Box::pin(profiler::check(&target, &serving, cgroups, &name())).await;
            let Serving { round_trip, facts, .. } = serving;
            let round_trip = round_trip.unwrap_or_default().as_secs_f64() * 1e3;
            let addresses = &facts["target.addresses"];
            let connected = Finding::good("connection", format!("{addresses}: connected in {round_trip:.2} ms"));
            let metrics = facts.get("target.metrics").map(|metrics| Finding::good("metrics", metrics.clone()));
            let metrics = metrics.unwrap_or_else(|| {
                let missing = "no [metrics]: CPU and memory of the target will be unknown";
                Finding::doubtful("metrics", missing, "name its Prometheus metrics in [metrics] scrape, if it has some")
            });
            [connected, Finding::good("responses", requests), metrics].into_iter().chain(profiled).collect()
        }
        Err(failure) => {
            vec![Finding::bad("connection", failure.reason, "correct [url], [ready], [verify] or [metrics]")]
        }
    }
}

/// Starts a target in a group of its own.
async fn start_here(
    manifest: &Manifest,
    cgroups: &Path,
    prepare: impl FnOnce(Group, PathBuf) -> Result<Running, String>,
    remedy: &str,
) -> Vec<Finding> {
    let sandbox = Sandbox::detect(cgroups, &name());
    let opened = tempfile::tempdir().and_then(|home| {
        user::give(home.path(), ProgramRole::Target)?;
        Ok((home, sandbox.open(RunId::now(), ProgramRole::Target)?))
    });
    let (home, group) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            return vec![Finding::bad("start", error.to_string(), "run it as a user that may create files and groups")];
        }
    };
    match prepare(group, home.path().to_owned()) {
        Ok(target) => start(target, describe_requests(manifest), cgroups, remedy).await,
        Err(fault) => vec![Finding::bad("start", fault, remedy)],
    }
}

/// A size that every machine has room for.
fn guest_size() -> Size {
    Size { name: "1/512MiB".to_owned(), vcpus: 1.0, memory_bytes: 512 << 20, replicas: 1 }
}

/// Starts a container with the whole machine as its size.
async fn start_container(
    manifest: Manifest,
    container: Container,
    cgroups: &Path,
    container_engine: Option<&Path>,
) -> Vec<Finding> {
    let containers = Containers::find(container_engine, &name());
    let engine = match containers.connect().await {
        Ok(engine) => Finding::good("containers", container::name_of(&engine)),
        Err(fault) => return vec![Finding::bad("containers", fault, "start it, or name its socket")],
    };
    let size = Size {
        name: "machine".to_owned(),
        vcpus: cores::allowed().len() as f64,
        memory_bytes: machine::memory_bytes(),
        replicas: 1,
    };
    let sandbox = Sandbox::detect(cgroups, &name());
    let prepared = Prepared { container, containers, sandbox, size, cores: Vec::new(), run: RunId::now() };
    let requests = describe_requests(&manifest);
    let target = Running::container(manifest, prepared);
    let mut findings = vec![engine];
    findings.extend(start(target, requests, cgroups, "correct [container], [ready] or [verify]").await);
    findings
}

/// Starts a Pod of a small size.
async fn start_pod(manifest: Manifest, workload: Workload, cgroups: &Path) -> Vec<Finding> {
    let cluster = match Cluster::connect(&name(), None).await {
        Ok(cluster) => cluster,
        Err(fault) => return vec![Finding::bad("cluster", fault, "set KUBECONFIG")],
    };
    let connected = Finding::good("cluster", format!("namespace {}", cluster.namespace));
    let prepared = kubernetes::Prepared { workload, cluster, size: guest_size(), run: RunId::now() };
    let requests = describe_requests(&manifest);
    let target = Running::kubernetes(manifest, prepared);
    let findings = start(target, requests, cgroups, "correct [kubernetes], [ready] or [verify]").await;
    std::iter::once(connected).chain(findings).collect()
}

/// Starts a target, sends the requests of its manifest, tries its profiler, and stops it.
async fn start(mut target: Running, requests: String, cgroups: &Path, remedy: &str) -> Vec<Finding> {
    let started = target.start(IpAddr::V4(Ipv4Addr::LOCALHOST), |step| eprintln!("{step}")).await;
    let profiled = match &started {
        Ok(serving) => Box::pin(profiler::check(&target, serving, cgroups, &name())).await,
        Err(_) => Vec::new(),
    };
    let Ended { faults, .. } = target.stop(GRACE).await;
    let mut findings = match started {
        Ok(Serving { base_url, startup, emulated, .. }) => {
            let ready = format!("ready after {} ms at {base_url}", startup.unwrap_or_default().as_millis());
            let emulated = (emulated == Some(true)).then(|| {
                let remedy = "use a machine with /dev/kvm: runs of an emulated CPU are suspect";
                Finding::doubtful("virtual machine", "its CPU is emulated", remedy)
            });
            let good = [Finding::good("start", ready), Finding::good("responses", requests)];
            good.into_iter().chain(emulated).collect()
        }
        Err(failure) => vec![Finding::bad("start", failure.reason, remedy)],
    };
    findings.extend(profiled);
    findings.extend(
        faults.iter().map(|fault| Finding::doubtful("stop", fault.to_string(), "check that it exits on SIGTERM")),
    );
    findings
}

/// A name that differs from those of agents, which may be running.
fn name() -> String {
    format!("check-{}", std::process::id())
}

fn describe_requests(manifest: &Manifest) -> String {
    let Manifest { ready, verify, .. } = manifest;
    let ready = format!("GET {} has status {}", ready.path, ready.status);
    let Some(verify) = verify else { return format!("{ready}; there is no [verify]") };
    let body = verify.contains.as_ref().map_or(String::new(), |text| format!(" and contains {text:?}"));
    format!("{ready}; GET {} has status {}{body}", verify.path, verify.status)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::doctor::{Rank, worst};

    async fn check(manifest: &str) -> Vec<Finding> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("target.toml");
        fs::write(&file, manifest).expect("a manifest");
        check_target(&file, Path::new("/nonexistent"), None).await
    }

    #[tokio::test]
    async fn a_broken_manifest_names_the_field() {
        let findings = check("name = \"x\"\nversion = \"1\"\ncomand = [\"x\"]\n").await;
        assert_eq!(worst(&findings), Rank::Bad);
        assert!(findings[0].observed.contains("comand"), "{findings:?}");
    }

    #[tokio::test]
    async fn a_program_that_exits_is_reported_with_its_output() {
        let command = r#"command = ["/bin/sh", "-c", "echo no configuration for {port} >&2; exit 3"]"#;
        let findings = check(&format!("name = \"x\"\nversion = \"1\"\n{command}\n[ready]\npath = \"/\"\n")).await;
        assert_eq!(
            findings.iter().map(|finding| finding.rank).collect::<Vec<_>>(),
            [Rank::Good, Rank::Good, Rank::Bad]
        );
        assert!(findings[2].observed.contains("no configuration for"), "{findings:?}");
    }
}
