//! Runs a part of the benchmark in a child process, so that its CPU time and memory can be read.

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    path::PathBuf,
    process::Stdio,
};

use anyhow::Context;
use clap::ValueEnum;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// The hidden command that starts a part.
pub const WORD: &str = "apart";

/// The parts that run in a child process.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum What {
    /// A server.
    Site,
    /// An agent.
    Agent,
    /// A server whose instructions are counted.
    Counted,
    /// Network failures, in a network namespace.
    Cuts,
}

impl What {
    /// Returns the arguments that start this part.
    pub fn words(self) -> [OsString; 2] {
        let part = self.to_possible_value().map(|value| value.get_name().to_owned());
        [WORD.into(), part.unwrap_or_default().into()]
    }
}

/// A child process that ends when its standard input does.
pub struct Apart {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Apart {
    /// Starts a part with its arguments.
    pub fn start(what: What, arguments: &[&OsStr]) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(what.words())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lines = BufReader::new(process.stdout.take().context("its output")?).lines();
        Ok(Self { process, lines })
    }

    /// Reads its next line of output.
    pub async fn line(&mut self) -> anyhow::Result<String> {
        self.lines.next_line().await?.context("it printed nothing")
    }

    /// Returns the CPU time that it has used, s.
    pub fn cpu_s(&self) -> anyhow::Result<f64> {
        // Fields 14 and 15 are in ticks of 1/100 s; the program name before them may contain spaces.
        let stat = std::fs::read_to_string(self.proc("stat")?)?;
        let fields = stat.rsplit_once(')').context("a stat line")?.1.split_whitespace().skip(11).take(2);
        Ok(fields.map(|ticks| ticks.parse::<f64>().unwrap_or_default()).sum::<f64>() / 100.0)
    }

    /// Returns its peak memory, MiB.
    pub fn peak_mib(&self) -> anyhow::Result<f64> {
        self.status_mib("VmHWM:")
    }

    /// Returns its anonymous memory, MiB: without file pages, which the system can reclaim.
    pub fn anonymous_mib(&self) -> anyhow::Result<f64> {
        self.status_mib("RssAnon:")
    }

    fn status_mib(&self, what: &str) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(self.proc("status")?)?;
        let line = status.lines().find_map(|line| line.strip_prefix(what)).context("a line about memory")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1_024.0)
    }

    fn proc(&self, file: &str) -> anyhow::Result<PathBuf> {
        Ok(format!("/proc/{}/{file}", self.process.id().context("it has ended")?).into())
    }

    /// Kills it, like a failing machine.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Stops it gracefully.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.process.stdin.take());
        anyhow::ensure!(self.process.wait().await?.success(), "it failed");
        Ok(())
    }
}

/// Calls a function once standard input ends.
pub fn on_stdin_end(act: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        act();
    });
}
