//! Profiles from a command of the manifest, such as py-spy: it attaches by itself, and writes or
//! prints pprof or collapsed stacks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_wire::manifest::{HZ, OUTPUT, PID, PIDS, SECONDS};
use brewbench_wire::now_ms;
use brewbench_wire::profile::pprof::{DecodeError, Facts, decode_with_facts};
use brewbench_wire::profile::{ProfileKind, ProfileSource};
use nix::sys::signal::Signal;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::collapsed;
use super::place::ProfilerGroup;
use super::quality::RawProfile;
use crate::host::procfs;
use crate::sandbox::process::{Process, describe, find_program, last_lines};

/// Maximum bytes of its output.
const MAX_BYTES: usize = 64 << 20;

/// How long it may run after the load.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to print its result after an interrupt.
const GRACE: Duration = Duration::from_secs(5);

/// A command that observes a target.
#[derive(Debug)]
pub struct Observer {
    process: Process,
    name: String,
    output: JoinHandle<Result<Vec<u8>, String>>,
    /// The file that it writes instead, if it asks for one.
    file: Option<PathBuf>,
    rate_hz: u32,
    began_ms: i64,
    began: Instant,
}

/// Returns the command's program: relative to the manifest's folder, or found in `PATH`. The error is a sentence.
pub fn program(command: &[String], folder: &Path) -> Result<PathBuf, String> {
    let name = Path::new(command.first().map_or("", String::as_str));
    let path = if name.components().count() > 1 { folder.join(name) } else { name.to_owned() };
    find_program(&path).ok_or_else(|| format!("profile.command: program {} not found", path.display()))
}

impl Observer {
    /// Starts the command for processes. Fails with a sentence.
    pub fn start(
        place: &ProfilerGroup,
        (command, folder): (&[String], &Path),
        processes: &BTreeSet<i32>,
        seconds: u64,
        rate_hz: u32,
    ) -> Result<Self, String> {
        let program = program(command, folder)?;
        let main = procfs::first_of(processes).ok_or("the target has no processes to profile")?;
        let all: Vec<String> = processes.iter().map(ToString::to_string).collect();
        let written = place.folder.join("profile");
        let has_file = command.iter().any(|word| word.contains(OUTPUT));
        let fill = |word: &String| {
            let word = word.replace(PIDS, &all.join(",")).replace(PID, &main.to_string());
            let word = word.replace(SECONDS, &seconds.to_string()).replace(HZ, &rate_hz.to_string());
            word.replace(OUTPUT, &written.display().to_string())
        };
        let arguments: Vec<String> = command.iter().skip(1).map(fill).collect();
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (process, output) = place.start_piped(&program, &arguments, folder)?;
        let output = tokio::spawn(read(output));
        Ok(Self {
            process,
            name,
            output,
            file: has_file.then_some(written),
            rate_hz,
            began_ms: now_ms(),
            began: Instant::now(),
        })
    }

    /// Waits for the result, which the command prints by itself or after an interrupt. Fails with a sentence.
    pub async fn finish(mut self, kind: ProfileKind) -> Result<RawProfile, String> {
        let Self { name, rate_hz, began_ms, .. } = &self;
        let (name, rate_hz, began_ms) = (name.clone(), *rate_hz, *began_ms);
        if timeout(PATIENCE, self.process.wait()).await.is_err() {
            self.process.signal(Signal::SIGINT);
        }
        let Ok(ended) = timeout(GRACE, self.process.wait()).await else {
            return Err(format!("profile.command: {name} did not end: {}", last_lines(&self.process.log().await)));
        };
        let status = ended.map_err(|error| format!("failed to wait for {name}: {error}"))?;
        let duration_ms = u64::try_from(self.began.elapsed().as_millis()).ok();
        let lines = last_lines(&self.process.log().await);
        // A child may hold the pipe open.
        let printed = timeout(GRACE, &mut self.output).await.map_err(|_| format!("{name} did not close its output"))?;
        let printed = printed.map_err(|error| format!("failed to read from {name}: {error}"))?;
        if !status.success() {
            return Err(format!("profile.command: {name}: {}: {lines}", describe(status)));
        }
        let written = match self.file.take() {
            Some(file) => read_file(&file).await,
            None => printed,
        };
        let printed = written.map_err(|fault| format!("profile.command: {name} {fault}"))?;
        let parsed = tokio::task::spawn_blocking(move || parse(&printed, kind, rate_hz)).await;
        let parsed = parsed.map_err(|error| format!("failed to read the profile: {error}"))?;
        let (stacks, facts) = parsed.map_err(|fault| format!("profile.command: {name} wrote no profile: {fault}"))?;
        let facts = Facts {
            began_ms: facts.began_ms.or(Some(began_ms)),
            duration_ms: facts.duration_ms.or(duration_ms),
            ..facts
        };
        let source = ProfileSource::Command;
        Ok(RawProfile { kind, source, profiler: name, stacks, facts, lost: None, call_graph: None, notes: Vec::new() })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.output.abort();
    }
}

/// Reads pprof or collapsed stacks.
fn parse(
    printed: &[u8],
    kind: ProfileKind,
    rate_hz: u32,
) -> Result<(brewbench_wire::profile::stacks::Stacks, Facts), String> {
    let as_pprof = decode_with_facts(printed, kind);
    let is_text = std::str::from_utf8(printed).is_ok_and(|text| !text.contains('\0'));
    match as_pprof {
        Err(DecodeError::Malformed(_) | DecodeError::WrongType { .. }) if is_text => {
            let is_time = kind == ProfileKind::Cpu;
            let factor = if is_time { 1_000_000_000 / u64::from(rate_hz) } else { 1 };
            let text = String::from_utf8_lossy(printed);
            let (stacks, samples) = collapsed::parse(&text, factor).map_err(|error| error.to_string())?;
            let rate_hz = is_time.then_some(f64::from(rate_hz));
            Ok((stacks, Facts { rate_hz, samples: Some(samples), ..Facts::default() }))
        }
        read => read.map_err(|error| error.to_string()),
    }
}

/// Reads the file that the command wrote; the error is the end of a sentence.
async fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    let opened = tokio::fs::File::open(file).await.map_err(|_| format!("wrote no file {OUTPUT}"))?;
    let mut written = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    opened.take(limit).read_to_end(&mut written).await.map_err(|error| format!("can't be read: {error}"))?;
    if written.len() > MAX_BYTES {
        return Err(format!("wrote more than {} MiB", MAX_BYTES >> 20));
    }
    Ok(written)
}

/// Reads the output; the error is the end of a sentence.
async fn read(mut output: Receiver) -> Result<Vec<u8>, String> {
    let mut printed = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match output.read(&mut buffer).await {
            Ok(0) => return Ok(printed),
            Ok(length) if printed.len() + length <= MAX_BYTES => printed.extend_from_slice(&buffer[..length]),
            Ok(_) => return Err(format!("wrote more than {} MiB", MAX_BYTES >> 20)),
            Err(error) => return Err(format!("can't be read: {error}")),
        }
    }
}
