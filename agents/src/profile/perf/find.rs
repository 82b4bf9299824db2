//! Finds perf, and what this agent may do with it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where Ubuntu has the perf of each kernel: `/usr/lib/linux-tools/VERSION/perf`.
const OF_KERNELS: [&str; 2] = ["/usr/lib/linux-tools", "/usr/lib"];

/// The kernel's limit for processes without privileges.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// Capabilities that lift the limit: `CAP_SYS_ADMIN` and `CAP_PERFMON`.
const PRIVILEGES: u64 = 1 << 21 | 1 << 38;

/// What this agent may observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether also in the kernel.
    pub kernel: bool,
    /// Whether limits for users do not apply.
    pub privileged: bool,
}

/// Finds perf. The error is a sentence with a remedy.
pub fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(&path, &OF_KERNELS.map(Path::new))
        .ok_or_else(|| "perf is not installed: apt-get install linux-perf".to_owned())
}

/// `perf` may be a script that looks for the program of the running kernel and refuses all others, although any perf
/// works with any kernel. Then that of the newest kernel is used.
fn find_in(path: &OsStr, of_kernels: &[&Path]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    let given = folders.iter().map(|folder| folder.join("perf")).find(|file| file.is_file());
    if let Some(given) = given.as_ref().filter(|file| is_program(file)) {
        return Some(given.clone());
    }
    let versions = folders.iter().flat_map(|folder| entries(folder, "perf_"));
    let tools = of_kernels.iter().flat_map(|folder| {
        let nested = entries(folder, "linux-tools-").into_iter().chain(entries(folder, ""));
        nested.map(|folder| folder.join("perf")).collect::<Vec<_>>()
    });
    let found = versions.chain(tools).filter(|file| is_program(file));
    found.max_by_key(|file| version(file)).or(given)
}

fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| entry.path()).collect()
}

/// Whether a file is a program and not a script.
fn is_program(file: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// Returns the numbers in a path, to compare versions.
fn version(file: &Path) -> Vec<u64> {
    let text = file.to_string_lossy();
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Determines what this agent may observe. The error is a sentence with a remedy.
pub fn access() -> Result<Access, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let paranoid = fs::read_to_string(PARANOID).unwrap_or_default();
    access_of(&status, &paranoid)
}

fn access_of(status: &str, paranoid: &str) -> Result<Access, String> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or_default();
    if effective & PRIVILEGES != 0 {
        return Ok(Access { kernel: true, privileged: true });
    }
    match paranoid.trim().parse::<i64>() {
        Err(_) => Err("the kernel has no perf events, or does not say who may use them".to_owned()),
        Ok(level @ 3..) => Err(format!(
            "kernel.perf_event_paranoid is {level}, so only root may use perf: run sysctl kernel.perf_event_paranoid=2, \
             or 1 to see kernel functions, too"
        )),
        Ok(level) => Ok(Access { kernel: level <= 1, privileged: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Path, text: &[u8]) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    #[test]
    fn a_script_in_the_place_of_perf_is_avoided() {
        let folder = tempfile::tempdir().expect("a folder");
        let (bin, tools) = (folder.path().join("bin"), folder.path().join("linux-tools"));
        let find = || find_in(bin.as_os_str(), &[&tools]);
        assert_eq!(find(), None);
        write(&bin.join("perf"), b"#!/bin/sh\n");
        assert_eq!(find(), Some(bin.join("perf")), "better than nothing");
        write(&tools.join("6.8.0-31-generic/perf"), b"\x7fELF");
        write(&tools.join("6.11.0-1-generic/perf"), b"\x7fELF");
        assert_eq!(find(), Some(tools.join("6.11.0-1-generic/perf")));
        fs::remove_dir_all(&tools).expect("removed");
        write(&bin.join("perf_6.1"), b"\x7fELF");
        write(&bin.join("perf_5.10"), b"\x7fELF");
        assert_eq!(find(), Some(bin.join("perf_6.1")));
        write(&bin.join("perf"), b"\x7fELF");
        assert_eq!(find(), Some(bin.join("perf")));
    }

    #[test]
    fn what_may_be_observed_depends_on_privileges_and_the_kernel() {
        let root = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        let user = "Name:\tx\nCapEff:\t0000000000000000\n";
        assert_eq!(access_of(root, "4"), Ok(Access { kernel: true, privileged: true }));
        assert_eq!(access_of(user, "2\n"), Ok(Access { kernel: false, privileged: false }));
        assert_eq!(access_of(user, "-1\n"), Ok(Access { kernel: true, privileged: false }));
        let fault = access_of(user, "3\n").expect_err("too strict");
        assert!(fault.contains("kernel.perf_event_paranoid is 3") && fault.contains("sysctl"), "{fault}");
        assert!(access_of("", "").is_err());
    }
}
