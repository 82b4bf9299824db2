//! Which files a sandboxed program may access: Landlock rules.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
    path_beneath_rules,
};
use nix::libc;

use super::{Cage, Kind};

/// The Landlock version of these rules; an older kernel enforces the part it supports.
const WRITTEN_FOR: ABI = ABI::V6;

/// Programs, libraries, and files for names, services, time zones and CA certificates.
const EVERY_PROGRAM: &[&str] = &[
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/sbin",
    "/usr",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/run/systemd/resolve",
];

/// Additional files read by servers, some to detect the size of the machine.
const TARGETS: &[&str] = &[
    "/proc",
    "/sys",
    "/etc/group",
    "/etc/passwd",
    "/etc/java-11-openjdk",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/java-25-openjdk",
];

const DEVICES: &[&str] = &["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Variables with other locations of CA certificates, for OpenSSL and Go.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Builds the rules of a cage; `None` if the kernel has no Landlock. Missing files need no rule.
pub(super) fn ruleset(cage: &Cage) -> io::Result<Option<OwnedFd>> {
    let build = || {
        let reading = AccessFs::from_read(WRITTEN_FOR);
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(WRITTEN_FOR))?
            .scope(Scope::from_all(WRITTEN_FOR))?
            .create()?
            .add_rules(path_beneath_rules(readable(cage), reading))?
            .add_rules(path_beneath_rules(cage.write.iter().chain([&cage.home]), AccessFs::from_all(WRITTEN_FOR)))?
            .add_rules(path_beneath_rules(DEVICES, device_access()))
    };
    build().map(Into::into).map_err(io::Error::other)
}

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev
}

/// Returns the paths that a cage allows to read, whether they exist or not.
pub(super) fn readable(cage: &Cage) -> impl Iterator<Item = PathBuf> {
    let targets = if cage.kind == Kind::Target { TARGETS } else { &[] };
    let named = CERTIFICATES.into_iter().filter_map(std::env::var_os).flat_map(|paths| {
        // `SSL_CERT_DIR` may list several.
        std::env::split_paths(&paths).collect::<Vec<_>>()
    });
    EVERY_PROGRAM.iter().chain(targets).map(PathBuf::from).chain(named).chain(cage.read.iter().cloned())
}

/// Applies rules to the calling thread, permanently. Requires no-new-privs. Makes one system call.
#[expect(unsafe_code, reason = "no library applies a ruleset that was prepared before the fork")]
pub(super) fn enter(ruleset: &OwnedFd) -> io::Result<()> {
    // SAFETY: the kernel checks both arguments, an open descriptor and flags; no memory is passed.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
