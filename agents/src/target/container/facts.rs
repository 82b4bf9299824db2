//! What an engine adds between a server and the machine, as far as it may change a result.

use std::fs;
use std::time::Duration;

use bollard::models::SystemInfo;
use brewbench_wire::manifest::Container;
use tokio::process::Command;
use tokio::time::timeout;

use super::engine::Engine;
use super::image::Image;
use crate::host::environment::Facts;
use crate::sandbox::process::find_program;

/// Maximum time to count rules.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the facts about a container that runs with this first process.
pub async fn facts(engine: &Engine, container: &Container, image: &Image, pid: i32) -> Facts {
    let info = engine.docker.info().await.unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let SystemInfo { driver, cgroup_driver, .. } = &info;
    let known = [
        ("target.image_id", Some(image.id.clone())),
        ("target.image_digests", Some(image.digests.join(" ")).filter(|digests| !digests.is_empty())),
        ("container.engine", Some(name_of(engine))),
        ("container.runtime", runtime(engine, &info)),
        ("container.storage_driver", driver.clone()),
        ("container.cgroup_driver", cgroup_driver.as_ref().map(ToString::to_string)),
        ("container.network", Some(container.network.to_string())),
        ("container.seccomp", Some(seccomp(container, &status))),
        ("container.cpus", field(&status, "Cpus_allowed_list").map(str::to_owned)),
        ("container.user", field(&status, "Uid").and_then(|ids| Some(ids.split_whitespace().next()?.to_owned()))),
        ("container.user_namespace", user_namespace(pid)),
        ("container.netfilter_rules", netfilter_rules().await.map(|count| count.to_string())),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the engine's name and version.
pub fn name_of(engine: &Engine) -> String {
    let name = if engine.is_podman() { "Podman" } else { "Docker" };
    format!("{name} {}", engine.version.version.as_deref().unwrap_or("of unknown version"))
}

/// Podman names a component "OCI Runtime (runc)", Docker one "runc".
fn runtime(engine: &Engine, info: &SystemInfo) -> Option<String> {
    let name = info.default_runtime.as_deref().filter(|name| !name.is_empty())?;
    let mut components = engine.version.components.iter().flatten();
    let version = components.find(|component| component.name.contains(name)).map(|component| &component.version);
    let version = version.and_then(|version| version.lines().next()).map(|line| line.trim_start_matches(name).trim());
    Some(
        version.map_or_else(|| name.to_owned(), |version| format!("{name} {}", version.trim_start_matches("version "))),
    )
}

fn seccomp(container: &Container, status: &str) -> String {
    let asked = container.seccomp.as_deref().unwrap_or("default");
    match field(status, "Seccomp") {
        Some("0") => format!("{asked} (off)"),
        Some(_) => format!("{asked} (on)"),
        None => asked.to_owned(),
    }
}

fn user_namespace(pid: i32) -> Option<String> {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/user")).ok();
    Some(if of(&pid.to_string())? == of("self")? { "host" } else { "own" }.to_owned())
}

/// Returns the number of netfilter rules on this machine: each packet behind a bridge passes them. `None` if no tool
/// can list them.
async fn netfilter_rules() -> Option<usize> {
    if let Some(text) = output("nft", &["-j", "list", "ruleset"]).await
        && let Ok(ruleset) = serde_json::from_str::<serde_json::Value>(&text)
    {
        let objects = ruleset.get("nftables")?.as_array()?;
        return Some(objects.iter().filter(|object| object.get("rule").is_some()).count());
    }
    let text = output("iptables-save", &[]).await?;
    Some(text.lines().filter(|line| line.starts_with("-A")).count())
}

async fn output(name: &str, arguments: &[&str]) -> Option<String> {
    let program = find_program(name.as_ref()).or_else(|| find_program(format!("/usr/sbin/{name}").as_ref()))?;
    let output = Command::new(program).args(arguments).kill_on_drop(true).output();
    let output = timeout(PATIENCE, output).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
