//! A line between agent and server that can be cut and slowed: two hosts as network namespaces, a bridge between them.
//!
//! This program enters a namespace of its own first, and the agent's hangs on a process that ends with it; so nothing of
//! it is seen on the machine, and nothing stays.

use std::{
    net::Ipv4Addr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use tokio::process::{Child, Command};

use crate::apart::What;

/// Where the server listens.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// Where a target listens for load over a line of its own.
pub const TARGET: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

/// Names the network namespace of a process.
const OWN: &str = "/proc/self/ns/net";

const BRIDGE: &str = "line";
const OUR_END: &str = "line-s";
const THEIR_END: &str = "line-a";
const OUR_LOAD_END: &str = "load-s";
const THEIR_LOAD_END: &str = "load-a";

/// The line, and what holds the agent's namespace.
#[derive(Debug)]
pub struct Wire {
    holder: Child,
}

impl Wire {
    /// Lays it. This process must be in another network namespace than who started it, which has told its own.
    pub async fn lay(machines: &str) -> anyhow::Result<Self> {
        let own = std::fs::read_link(OWN)?;
        ensure!(own != Path::new(machines), "this would be the machine's own network");
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "infinity"]).stdin(Stdio::null()).kill_on_drop(true);
        let wire = Self { holder: command.spawn().context("unshare, of util-linux")? };
        let holder = wire.holder()?;
        let begun = Instant::now();
        while std::fs::read_link(format!("/proc/{holder}/ns/net"))? == own {
            ensure!(begun.elapsed() < Duration::from_secs(10), "there is no second namespace");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        ip(&format!("link add {BRIDGE} type bridge")).await?;
        ip(&format!("address add {SERVER}/24 dev {BRIDGE}")).await?;
        ip(&format!("link add {OUR_END} type veth peer name {THEIR_END} netns {holder}")).await?;
        for device in ["lo", BRIDGE, OUR_END] {
            ip(&format!("link set {device} up")).await?;
        }
        wire.there(&format!("ip address add 10.77.0.2/24 dev {THEIR_END}")).await?;
        for device in ["lo", THEIR_END] {
            wire.there(&format!("ip link set {device} up")).await?;
        }
        wire.join().await?;
        Ok(wire)
    }

    /// The process whose namespace is the agent's.
    pub fn holder(&self) -> anyhow::Result<u32> {
        self.holder.id().context("it runs")
    }

    /// Cuts it: nothing arrives any more, and nobody is told.
    pub async fn cut(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_END} down")).await
    }

    /// Cuts one direction of it: the server hears the agent, which does not hear that it does.
    pub async fn cut_one_way(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_END} nomaster")).await
    }

    /// Joins it again.
    pub async fn join(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_END} master {BRIDGE}")).await?;
        ip(&format!("link set {OUR_END} up")).await
    }

    /// Lays another line between the two, for load only.
    pub async fn lay_second(&self) -> anyhow::Result<()> {
        let holder = self.holder()?;
        ip(&format!("link add {OUR_LOAD_END} type veth peer name {THEIR_LOAD_END} netns {holder}")).await?;
        ip(&format!("address add {TARGET}/24 dev {OUR_LOAD_END}")).await?;
        self.there(&format!("ip address add 10.78.0.2/24 dev {THEIR_LOAD_END}")).await?;
        self.there(&format!("ip link set {THEIR_LOAD_END} up")).await?;
        self.join_second().await
    }

    /// Cuts that one: the server still hears both sides.
    pub async fn cut_second(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_LOAD_END} down")).await
    }

    /// Joins it again.
    pub async fn join_second(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_LOAD_END} up")).await
    }

    /// Lets so many bits through in a second and drops what can't wait that long.
    pub async fn slow_down(&self, bits_per_s: u32) -> anyhow::Result<()> {
        let rule = format!("root tbf rate {bits_per_s}bit burst 3000 latency 300ms");
        run("tc", &format!("qdisc add dev {OUR_END} {rule}")).await?;
        self.there(&format!("tc qdisc add dev {THEIR_END} {rule}")).await
    }

    /// Lets everything through again.
    pub async fn speed_up(&self) -> anyhow::Result<()> {
        run("tc", &format!("qdisc del dev {OUR_END} root")).await?;
        self.there(&format!("tc qdisc del dev {THEIR_END} root")).await
    }

    /// Drops so many packets of a hundred by chance, on either way.
    pub async fn lose(&self, percent: u32) -> anyhow::Result<()> {
        for rule in dropping(BRIDGE, percent) {
            run("nft", &rule).await?;
        }
        for rule in dropping(THEIR_END, percent) {
            self.there(&format!("nft {rule}")).await?;
        }
        Ok(())
    }

    async fn there(&self, command: &str) -> anyhow::Result<()> {
        run("nsenter", &format!("--net=/proc/{}/ns/net -- {command}", self.holder()?)).await
    }
}

/// Starts this program in a network namespace of its own with the manifests, a seed and the namespace of the machine;
/// returns whether it succeeded.
pub async fn in_a_namespace(manifests: &Path, seed: u64) -> anyhow::Result<bool> {
    let mut command = Command::new("unshare");
    command.arg("--net").arg(std::env::current_exe()?).args(What::Cuts.words()).arg(manifests).arg(seed.to_string());
    command.arg(std::fs::read_link(OWN)?).kill_on_drop(true);
    Ok(command.status().await.context("unshare, of util-linux")?.success())
}

/// Commands for nftables, as every kernel has them: `netem` is often left out.
fn dropping(device: &str, percent: u32) -> [String; 3] {
    [
        "add table inet lossy".to_owned(),
        "add chain inet lossy in { type filter hook input priority 0 ; }".to_owned(),
        format!("add rule inet lossy in iifname {device} numgen random mod 100 < {percent} drop"),
    ]
}

async fn ip(words: &str) -> anyhow::Result<()> {
    run("ip", words).await
}

async fn run(program: &str, words: &str) -> anyhow::Result<()> {
    let output = Command::new(program).args(words.split(' ')).output().await.with_context(|| program.to_owned())?;
    if !output.status.success() {
        bail!("{program} {words}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
