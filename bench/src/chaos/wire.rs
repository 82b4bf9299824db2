//! A link between agent and server that can be cut and slowed down: two network namespaces with a bridge between them.
//!
//! This program enters its own namespace first, and a child process holds the agent's, so nothing is visible on the
//! machine and nothing stays behind.

use std::{
    net::Ipv4Addr,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use tokio::process::{Child, Command};

use crate::apart::What;

/// Address of the server.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// Address of targets on the second link, which is for load only.
pub const TARGET: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

/// The link that names a process's network namespace.
const OWN: &str = "/proc/self/ns/net";

const BRIDGE: &str = "line";
const OUR_END: &str = "line-s";
const THEIR_END: &str = "line-a";
const OUR_LOAD_END: &str = "load-s";
const THEIR_LOAD_END: &str = "load-a";

/// The link, with the process that holds the agent's namespace.
#[derive(Debug)]
pub struct Wire {
    holder: Child,
}

impl Wire {
    /// Creates the link. This process must be in another network namespace than the machine's, `machines`.
    pub async fn create(machines: &str) -> anyhow::Result<Self> {
        let own = std::fs::read_link(OWN)?;
        ensure!(own != Path::new(machines), "refusing to change the machine's own network");
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "infinity"]).stdin(Stdio::null()).kill_on_drop(true);
        let wire = Self { holder: command.spawn().context("unshare of util-linux")? };
        let holder = wire.holder()?;
        let started = Instant::now();
        while std::fs::read_link(format!("/proc/{holder}/ns/net"))? == own {
            ensure!(started.elapsed() < Duration::from_secs(10), "the second namespace was not created");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        ip(&format!("link add {BRIDGE} type bridge")).await?;
        ip(&format!("address add {SERVER}/24 dev {BRIDGE}")).await?;
        ip(&format!("link add {OUR_END} type veth peer name {THEIR_END} netns {holder}")).await?;
        for device in ["lo", BRIDGE, OUR_END] {
            ip(&format!("link set {device} up")).await?;
        }
        wire.run_in_agent_namespace(&format!("ip address add 10.77.0.2/24 dev {THEIR_END}")).await?;
        for device in ["lo", THEIR_END] {
            wire.run_in_agent_namespace(&format!("ip link set {device} up")).await?;
        }
        wire.join().await?;
        Ok(wire)
    }

    /// Returns the id of the process that holds the agent's namespace.
    pub fn holder(&self) -> anyhow::Result<u32> {
        self.holder.id().context("it has ended")
    }

    /// Cuts the link: packets are lost without an error.
    pub async fn cut(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_END} down")).await
    }

    /// Cuts the direction from server to agent.
    pub async fn cut_one_way(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_END} nomaster")).await
    }

    /// Restores the link.
    pub async fn join(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_END} master {BRIDGE}")).await?;
        ip(&format!("link set {OUR_END} up")).await
    }

    /// Creates a second link, for load only.
    pub async fn create_second(&self) -> anyhow::Result<()> {
        let holder = self.holder()?;
        ip(&format!("link add {OUR_LOAD_END} type veth peer name {THEIR_LOAD_END} netns {holder}")).await?;
        ip(&format!("address add {TARGET}/24 dev {OUR_LOAD_END}")).await?;
        self.run_in_agent_namespace(&format!("ip address add 10.78.0.2/24 dev {THEIR_LOAD_END}")).await?;
        self.run_in_agent_namespace(&format!("ip link set {THEIR_LOAD_END} up")).await?;
        self.join_second().await
    }

    /// Cuts the second link; the server still reaches both agents.
    pub async fn cut_second(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_LOAD_END} down")).await
    }

    /// Restores the second link.
    pub async fn join_second(&self) -> anyhow::Result<()> {
        ip(&format!("link set {OUR_LOAD_END} up")).await
    }

    /// Limits the bandwidth and drops packets that would wait too long.
    pub async fn slow_down(&self, bits_per_s: u32) -> anyhow::Result<()> {
        let rule = format!("root tbf rate {bits_per_s}bit burst 3000 latency 300ms");
        run("tc", &format!("qdisc add dev {OUR_END} {rule}")).await?;
        self.run_in_agent_namespace(&format!("tc qdisc add dev {THEIR_END} {rule}")).await
    }

    /// Removes the bandwidth limit.
    pub async fn speed_up(&self) -> anyhow::Result<()> {
        run("tc", &format!("qdisc del dev {OUR_END} root")).await?;
        self.run_in_agent_namespace(&format!("tc qdisc del dev {THEIR_END} root")).await
    }

    /// Drops a random share of the packets in both directions, percent.
    pub async fn lose(&self, percent: u32) -> anyhow::Result<()> {
        for rule in dropping(BRIDGE, percent) {
            run("nft", &rule).await?;
        }
        for rule in dropping(THEIR_END, percent) {
            self.run_in_agent_namespace(&format!("nft {rule}")).await?;
        }
        Ok(())
    }

    async fn run_in_agent_namespace(&self, command: &str) -> anyhow::Result<()> {
        run("nsenter", &format!("--net=/proc/{}/ns/net -- {command}", self.holder()?)).await
    }
}

/// Runs the network tests of this program in a new network namespace; returns whether they succeeded.
pub async fn run_in_namespace(manifests: &Path, seed: u64) -> anyhow::Result<bool> {
    let mut command = Command::new("unshare");
    command.arg("--net").arg(std::env::current_exe()?).args(What::Cuts.words()).arg(manifests).arg(seed.to_string());
    command.arg(std::fs::read_link(OWN)?).kill_on_drop(true);
    Ok(command.status().await.context("unshare of util-linux")?.success())
}

/// Returns nftables commands that drop packets, because many kernels lack `netem`.
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
