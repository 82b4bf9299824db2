//! `perf record` on the processes of a target: any native program, also in a container, and the monitor of a virtual
//! machine.
//!
//! perf itself runs beside the target, see [`ProfilerGroup`]. Its result is read by `perf script` while the target
//! still lives: a container's files are seen through its processes only.

mod find;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

pub use find::{Access, access, find};
use nix::sys::signal::Signal;
use script::FIELDS;
pub use script::{Reader, Script};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep, timeout};

use brewbench_wire::manifest::CallGraph;
use brewbench_wire::now_ms;
use brewbench_wire::profile::pprof::Facts;
use brewbench_wire::profile::{ProfileKind, ProfileSource};

use super::place::ProfilerGroup;
use super::quality::RawProfile;
use crate::sandbox::process::{Process, describe, last_lines};

/// How often perf is started again because a process has ended since it was listed.
const ATTEMPTS: usize = 3;

/// How long perf may take to attach before the load begins regardless.
const ATTACH: Duration = Duration::from_secs(2);

/// How long it may take to write the rest.
const WRITE: Duration = Duration::from_secs(30);

/// How long reading the result may take: unwinding by DWARF is slow.
const READ: Duration = Duration::from_mins(2);

/// How long small questions may take.
const ASK: Duration = Duration::from_secs(20);

/// How many frames the kernel follows by frame pointers, unless `kernel.perf_event_max_stack` is larger.
const KERNEL_DEPTH: usize = 127;

/// Bytes of the stack that are copied with each sample for DWARF.
const STACK_BYTES: u32 = 16_384;

/// perf, attached to a target.
#[derive(Debug)]
pub struct Recorder {
    perf: PathBuf,
    process: Process,
    call_graph: CallGraph,
    rate_hz: u32,
    has_kernel: bool,
    began_ms: i64,
    began: Instant,
    /// Once the measurement is over.
    lasted: Option<Duration>,
}

impl Recorder {
    /// Attaches perf to processes; they are listed again if one ends before perf is attached. Fails with a sentence.
    pub async fn attach(
        place: &ProfilerGroup,
        processes: impl Fn() -> BTreeSet<i32>,
        call_graph: CallGraph,
        rate_hz: u32,
    ) -> Result<Self, String> {
        let perf = find()?;
        let access = access()?;
        let mut fault = String::new();
        for _ in 0..ATTEMPTS {
            let pids: Vec<String> = processes().iter().map(ToString::to_string).collect();
            if pids.is_empty() {
                return Err("perf can't attach: the target has no processes".to_owned());
            }
            let arguments = record(place, &pids.join(","), call_graph, rate_hz, access);
            let process = place.start(&perf, &arguments)?;
            let (began_ms, began) = (now_ms(), Instant::now());
            let perf = perf.clone();
            let has_kernel = access.kernel;
            let mut recorder = Self { perf, process, call_graph, rate_hz, has_kernel, began_ms, began, lasted: None };
            match recorder.attached(place).await {
                Ok(()) => return Ok(recorder),
                Err(reason) => fault = reason,
            }
        }
        Err(fault)
    }

    /// Waits until perf has attached: then it writes to its file.
    async fn attached(&mut self, place: &ProfilerGroup) -> Result<(), String> {
        let file = data(place);
        while self.began.elapsed() < ATTACH {
            if let Some(status) = self.process.ended() {
                let lines = last_lines(&self.process.log().await);
                return Err(format!("perf can't attach to the target: {}: {lines}", describe(status)));
            }
            if std::fs::metadata(&file).is_ok_and(|file| file.len() > 0) {
                return Ok(());
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Ends the observation.
    pub fn end(&mut self) {
        if self.lasted.is_none() {
            self.lasted = Some(self.began.elapsed());
            self.process.signal(Signal::SIGINT);
        }
    }

    /// Returns what was observed. Fails with a sentence.
    pub async fn finish(mut self, place: &ProfilerGroup) -> Result<RawProfile, String> {
        let ended_early = self.process.ended();
        self.end();
        if timeout(WRITE, self.process.wait()).await.is_err() {
            return Err(format!("perf did not end within {} s", WRITE.as_secs()));
        }
        if !std::fs::metadata(data(place)).is_ok_and(|file| file.len() > 0) {
            return Err(format!("perf wrote nothing: {}", last_lines(&self.process.log().await)));
        }
        let script = self.script(place).await?;
        let version = place.output(&self.perf, &["--version"], ASK).await.unwrap_or_default();
        let version = version.trim().strip_prefix("perf version ").unwrap_or("?").to_owned();
        let file = data(place).to_string_lossy().into_owned();
        let ids = place.output(&self.perf, &["buildid-list", "-i", &file], ASK).await.unwrap_or_default();
        let stats = place.output(&self.perf, &["report", "--stats", "-i", &file], ASK).await.unwrap_or_default();
        let lasted = self.lasted.unwrap_or_default();
        let Self { call_graph, rate_hz, began_ms, .. } = self;
        let mut notes = self.notes(&script);
        if ended_early.is_some() {
            notes.push("perf ended before the load: the target's processes ended, or its file was full".to_owned());
        }
        let Script { stacks, samples, lost, .. } = script.in_nanoseconds(f64::from(rate_hz));
        let facts = Facts {
            began_ms: Some(began_ms),
            duration_ms: u64::try_from(lasted.as_millis()).ok(),
            rate_hz: Some(f64::from(rate_hz)),
            samples: Some(samples),
            build_ids: build_ids(&ids, &stacks.frames.iter().map(|frame| frame.module.as_str()).collect()),
            comments: Vec::new(),
        };
        Ok(RawProfile {
            kind: ProfileKind::Cpu,
            source: ProfileSource::Perf,
            profiler: format!("perf {version}"),
            stacks,
            facts,
            lost: Some(lost.max(lost_samples(&stats))),
            call_graph: Some(call_graph),
            notes,
        })
    }

    async fn script(&self, place: &ProfilerGroup) -> Result<Script, String> {
        let file = data(place).to_string_lossy().into_owned();
        // Without inlined functions: finding them takes perf minutes.
        let arguments =
            ["script", "-i", &file, "-F", FIELDS, "--show-lost-events", "--no-inline", "--max-stack", "1024"];
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let (mut process, output) = place.start_piped(&self.perf, &arguments, &place.folder)?;
        let read = timeout(READ, read(output)).await;
        let script = read.map_err(|_| format!("perf script did not end within {} s", READ.as_secs()))??;
        let status = timeout(ASK, process.wait()).await;
        match status {
            Ok(Ok(status)) if !status.success() && script.samples == 0 => {
                Err(format!("perf script: {}: {}", describe(status), last_lines(&process.log().await)))
            }
            _ => Ok(script),
        }
    }

    fn notes(&self, script: &Script) -> Vec<String> {
        let kernel = (!self.has_kernel).then(|| {
            "without functions of the kernel: kernel.perf_event_paranoid allows them up to 1, or the agent runs as root"
                .to_owned()
        });
        let cut = (self.call_graph == CallGraph::Fp && script.deepest >= KERNEL_DEPTH).then(|| {
            format!(
                "the kernel cuts stacks at {KERNEL_DEPTH} frames, without their root: see kernel.perf_event_max_stack"
            )
        });
        let unit = (!script.is_time).then(|| "counted in CPU cycles, and scaled to time".to_owned());
        [kernel, cut, unit].into_iter().flatten().collect()
    }
}

/// Returns the file of the recording.
fn data(place: &ProfilerGroup) -> PathBuf {
    place.folder.join("perf.data")
}

/// Returns the arguments of `perf record`. Without `-e` it counts cycles, or time where there are no such counters.
fn record(place: &ProfilerGroup, pids: &str, call_graph: CallGraph, rate_hz: u32, access: find::Access) -> Vec<String> {
    let (unwinding, most) = match call_graph {
        CallGraph::Fp => ("fp".to_owned(), "256M"),
        CallGraph::Dwarf => (format!("dwarf,{STACK_BYTES}"), "1G"),
    };
    // Pages of each CPU. A user may lock 516 KiB for each.
    let pages = match (access.privileged, call_graph) {
        (false, _) => "128",
        (true, CallGraph::Fp) => "256",
        (true, CallGraph::Dwarf) => "1024",
    };
    let file = data(place).to_string_lossy().into_owned();
    let rate = rate_hz.to_string();
    let mut arguments = vec!["record", "-o", &file, "-F", &rate, "--call-graph", &unwinding];
    arguments.extend(["-m", pages, "--max-size", most]);
    // Nothing is copied to the cache of the agent's user.
    arguments.push("--no-buildid-cache");
    if !access.kernel {
        arguments.push("--all-user");
    }
    arguments.extend(["-p", pids]);
    arguments.into_iter().map(str::to_owned).collect()
}

/// Reads the output of `perf script` to its end.
async fn read(mut output: Receiver) -> Result<Script, String> {
    let fault = |error: brewbench_wire::profile::stacks::TooLarge| format!("the profile is too large: {error}");
    let mut reader = Reader::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match output.read(&mut buffer).await {
            Ok(0) => return reader.finish().map_err(fault),
            Ok(length) => reader.feed(&buffer[..length]).map_err(fault)?,
            Err(error) => return Err(format!("failed to read from perf: {error}")),
        }
    }
}

/// Parses statistics: returns the lost samples of all events. Older versions of perf report them in its script only.
fn lost_samples(text: &str) -> u64 {
    // The first part counts records, each of which stands for many samples.
    let of_events = text.lines().skip_while(|line| !line.starts_with("Aggregated")).skip(1);
    let of_events = of_events.skip_while(|line| !line.trim_end().ends_with(" stats:"));
    let lost =
        of_events.filter_map(|line| line.trim().strip_prefix("LOST_SAMPLES events:")?.trim().parse::<u64>().ok());
    lost.fold(0, u64::saturating_add)
}

/// Parses lines of build id and module; keeps those of the modules of the profile.
fn build_ids(text: &str, modules: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
    let known =
        pairs.filter(|(id, module)| id.bytes().all(|byte| byte.is_ascii_hexdigit()) && modules.contains(module));
    known.map(|(id, module)| (module.to_owned(), id.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_samples_are_those_of_the_events() {
        let text = "\nAggregated stats:\n  SAMPLE events:  320  (45.7%)\n  LOST_SAMPLES events:  4  ( 0.6%)\n\
                    cpu-clock:ppp stats:\n  SAMPLE events:  320\n  LOST_SAMPLES events:  76\n\
                    cycles stats:\n  LOST_SAMPLES events:  1\n";
        assert_eq!(lost_samples(text), 77);
        assert_eq!((lost_samples(""), lost_samples("LOST_SAMPLES events: 4")), (0, 0));
    }

    #[test]
    fn build_ids_are_those_of_the_modules() {
        let text = "e4f18d9d [kernel.kallsyms]\n49daf84e /usr/lib/a b.so\nnoise here\nffff /other\n";
        let ids = build_ids(text, &BTreeSet::from(["/usr/lib/a b.so", "here"]));
        assert_eq!(ids, BTreeMap::from([("/usr/lib/a b.so".to_owned(), "49daf84e".to_owned())]));
    }
}
