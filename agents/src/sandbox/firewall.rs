//! Which addresses a load generator may reach, enforced by the kernel for everything that its user runs.
//!
//! k6 checks addresses itself where it dials for a script, but not where it loads modules or resolves names, nor in a
//! browser that a script starts. Only the packets that open a connection are checked, so the load is not slowed down.
//!
//! All agents of a machine share the user, so each process of k6 has a table of its own: its first chain marks what it
//! allows, its second refuses what no table has marked, and its third removes the mark. Tables don't depend on each
//! other, and one that a killed agent left denies nothing to others.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::ProgramRole;
use super::cage::user::User;
use super::process::find_program;

/// The bit of a packet's mark that says that a table allows it. It is removed before any other chain sees the packet.
const MARK: u32 = 0x0800_0000;

/// Before the chains of all others, of which those for NAT would change the address.
const PRIORITY: i32 = -310;

/// What a load generator may reach; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachable {
    /// Addresses, each with its port or with all of them.
    pub addresses: Vec<(IpAddr, Option<u16>)>,
    /// Port that it may reach at all addresses except these, if there is one.
    pub anywhere: Option<(u16, Vec<ipnet::IpNet>)>,
    /// Name servers.
    pub resolvers: Vec<IpAddr>,
}

/// Rules in the kernel; removed when dropped.
#[derive(Debug)]
pub struct Firewall {
    table: String,
}

impl Firewall {
    /// Confines a user's programs to addresses. `agent` is the agent's name, for [`sweep`]. Takes milliseconds; not
    /// async, so that it can't be cancelled between the rules and their removal. The error is a sentence.
    pub fn raise(agent: &str, user: u32, reachable: &Reachable) -> Result<Self, String> {
        let table = format!("{}{}", prefix(agent), Uuid::new_v4().simple());
        nft(&rules(&table, user, reachable)).map_err(|fault| format!("can't confine k6's connections: {fault}"))?;
        Ok(Self { table })
    }
}

impl Drop for Firewall {
    fn drop(&mut self) {
        if let Err(fault) = nft(&format!("delete table inet {}\n", self.table)) {
            tracing::error!(table = self.table, %fault, "failed to remove the rules for k6's connections");
        }
    }
}

/// Returns the user of load generators, if this machine can confine its connections.
pub fn user() -> Option<u32> {
    let user = User::for_role(ProgramRole::Generator)?;
    check().is_ok().then(|| user.uid().as_raw())
}

/// Whether this machine can confine a user's connections. The error is the reason, a sentence.
pub fn check() -> Result<(), &'static str> {
    static CHECKED: LazyLock<Result<(), String>> = LazyLock::new(|| {
        let table = format!("brewbench-check-{}", Uuid::new_v4().simple());
        // As the last user, whom nothing runs as.
        let rules = rules(&table, u32::MAX - 1, &Reachable::default());
        nft(&format!("{rules}delete table inet {table}\n")).map(|_| ())
    });
    CHECKED.as_ref().copied().map_err(String::as_str)
}

/// Removes the rules that a killed process of this agent has left; returns the names of their tables.
pub fn sweep(agent: &str) -> Vec<String> {
    if check().is_err() {
        return Vec::new();
    }
    let (prefix, listed) = (prefix(agent), nft("list tables inet\n").unwrap_or_default());
    let names = listed.lines().filter_map(|line| line.strip_prefix("table inet "));
    let ours = names.filter(|name| name.starts_with(&prefix)).map(str::to_owned);
    ours.filter(|table| nft(&format!("delete table inet {table}\n")).is_ok()).collect()
}

/// Returns the name servers of this machine, from the text of `/etc/resolv.conf`.
pub fn resolvers(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| line.strip_prefix("nameserver")?.trim().split('%').next()?.parse().ok();
    text.lines().filter_map(address).collect()
}

/// Begins the name of all tables of an agent, whose own may be of any characters.
fn prefix(agent: &str) -> String {
    let digest = Sha256::digest(agent.as_bytes());
    let digest = digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    format!("brewbench-{digest}-")
}

/// Returns the commands for `nft`.
fn rules(table: &str, user: u32, reachable: &Reachable) -> String {
    let mut allowed = String::new();
    let mut allow = |what: &str| {
        let _ = writeln!(allowed, "{what} meta mark set meta mark or {MARK:#010x}");
    };
    for (address, port) in &reachable.addresses {
        match port {
            Some(port) => allow(&format!("{} tcp dport {port}", to(*address))),
            None => allow(&format!("{} meta l4proto tcp", to(*address))),
        }
    }
    for address in &reachable.resolvers {
        allow(&format!("{} meta l4proto {{ tcp, udp }} th dport 53", to(*address)));
    }
    if let Some((port, except)) = &reachable.anywhere {
        let (four, six): (Vec<_>, Vec<_>) = except.iter().partition(|net| net.addr().is_ipv4());
        let others = |nets: Vec<&ipnet::IpNet>| nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        allow(&format!("ip daddr != {{ {} }} tcp dport {port}", others(four)));
        allow(&format!("ip6 daddr != {{ {} }} tcp dport {port}", others(six)));
    }
    // Packets of established connections leave each chain at once, and those of other users do, too.
    let chain = |name: &str, after: i32, rules: &str| {
        format!(
            "add chain inet {table} {name} {{ type filter hook output priority {}; policy accept; }}\n\
             add rule inet {table} {name} tcp flags & (syn | ack) != syn accept\n\
             add rule inet {table} {name} meta skuid != {user} accept\n{}",
            PRIORITY + after,
            rules.lines().fold(String::new(), |text, rule| format!("{text}add rule inet {table} {name} {rule}\n"))
        )
    };
    let deny = format!("meta mark and {MARK:#010x} != 0 accept\nmeta l4proto tcp reject with tcp reset\nreject");
    let restore = format!("meta mark set meta mark and {:#010x}", !MARK);
    let chains = [("allow", allowed.as_str()), ("deny", &deny), ("restore", &restore)];
    let chains = chains.into_iter().zip(0..).map(|((name, rules), after)| chain(name, after, rules));
    format!("create table inet {table}\n{}", chains.collect::<String>())
}

/// Returns the match for an address.
fn to(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("ip daddr {address}"),
        IpAddr::V6(address) => format!("ip6 daddr {address}"),
    }
}

/// Has `nft` carry out commands, all or none of them; returns what it prints. The error is a sentence.
fn nft(commands: &str) -> Result<String, String> {
    static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| find_program(Path::new("nft")));
    let program = PROGRAM.as_ref().ok_or("there is no nft in PATH: install nftables")?;
    let run = || {
        let mut command = Command::new(program);
        command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        child.stdin.take().map_or(Ok(()), |mut input| input.write_all(commands.as_bytes()))?;
        child.wait_with_output()
    };
    let output = run().map_err(|error| format!("can't run {}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("nft: {}", errors.lines().next().unwrap_or_default().trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_those_of_the_resolver() {
        let text = "# nameserver 192.0.2.1\nsearch x\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\noptions edns0\n";
        assert_eq!(resolvers(text), ["127.0.0.53".parse::<IpAddr>(), "fe80::1".parse()].map(|ip| ip.expect("one")));
    }

    #[test]
    fn agents_know_their_tables_whatever_their_names_are() {
        assert!(prefix("a b; flush ruleset") != prefix("a") && prefix("é").is_ascii());
        assert_eq!(prefix("x").len(), "brewbench-".len() + 17);
    }
}
