//! Where profilers run: outside of any cage, in a control group of their own, on the CPUs of the load generator. So
//! what they use counts neither as the target's nor as k6's, and a later agent finds and ends what this one left.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::RunId;
use brewbench_wire::outcome::Cores;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::host::machine;
use crate::sandbox::cage::Cage;
use crate::sandbox::process::{Plan, Process, describe, last_lines};
use crate::sandbox::{Group, ProgramRole, Sandbox, cores};

/// The group of a run's profiler, and its folder.
#[derive(Debug)]
pub struct ProfilerGroup {
    group: Group,
    /// For the profiler's files; removed with the run's folder.
    pub folder: PathBuf,
    cores: Vec<usize>,
}

impl ProfilerGroup {
    /// Creates group and folder. Fails with a sentence.
    pub fn open(sandbox: &Sandbox, run: RunId, run_folder: &Path, cores: &Cores) -> Result<Self, String> {
        let folder = run_folder.join("profiler");
        let created = std::fs::create_dir_all(&folder).and_then(|()| sandbox.open(run, ProgramRole::Profiler));
        let group = created.map_err(|error| format!("can't prepare the profiler: {error}"))?;
        group.bound(machine::memory_bytes());
        Ok(Self { group, folder, cores: beside(cores, cores::allowed()) })
    }

    /// Starts a program. Its output is its log.
    pub fn start(&self, program: &Path, arguments: &[String]) -> Result<Process, String> {
        let started = Process::start(&self.plan(program, arguments, &self.folder), &self.group);
        started.map_err(|error| format!("can't start {}: {error}", program.display()))
    }

    /// Starts a program in a folder, and returns its standard output.
    pub fn start_piped(
        &self,
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> Result<(Process, Receiver), String> {
        let started = Process::start_piped(&self.plan(program, arguments, folder), &self.group);
        started.map_err(|error| format!("can't start {}: {error}", program.display()))
    }

    fn plan(&self, program: &Path, arguments: &[String], folder: &Path) -> Plan {
        Plan {
            program: program.to_owned(),
            arguments: arguments.to_vec(),
            environment: BTreeMap::new(),
            folder: folder.to_owned(),
            cores: self.cores.clone(),
            cage: Cage::open(&self.folder),
        }
    }

    /// Runs a program to its end, and returns the end of its output. Fails with a sentence.
    pub async fn output(&self, program: &Path, arguments: &[&str], limit: Duration) -> Result<String, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let name = program.file_name().unwrap_or_default().display();
        let mut process = self.start(program, &arguments)?;
        let Ok(ended) = timeout(limit, process.wait()).await else {
            return Err(format!("{name} did not end within {} s", limit.as_secs()));
        };
        let status = ended.map_err(|error| format!("failed to wait for {name}: {error}"))?;
        let log = process.log().await;
        if status.success() { Ok(log) } else { Err(format!("{name}: {}: {}", describe(status), last_lines(&log))) }
    }

    /// Kills what still runs, and removes the group.
    pub async fn close(self) -> io::Result<()> {
        self.group.clear().await
    }
}

/// Returns the CPUs for a profiler: those of the load generator, or else those that the target does not have.
fn beside(Cores { target, generator }: &Cores, mut allowed: Vec<usize>) -> Vec<usize> {
    if !generator.is_empty() {
        return generator.clone();
    }
    let all = allowed.clone();
    allowed.retain(|core| !target.contains(core));
    if allowed.is_empty() { all } else { allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profiler_runs_beside_the_target_if_it_can() {
        let cores = |target: &[usize], generator: &[usize]| {
            let cores = Cores { target: target.to_vec(), generator: generator.to_vec() };
            beside(&cores, vec![0, 1, 2, 3])
        };
        assert_eq!(cores(&[0], &[1, 2]), [1, 2]);
        assert_eq!(cores(&[0, 1], &[]), [2, 3]);
        assert_eq!(cores(&[0, 1, 2, 3], &[]), [0, 1, 2, 3]);
    }
}
