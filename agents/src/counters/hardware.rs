//! Counters of the processor for the threads of a target, and for those that they start: `perf_event_open`.

use std::io::{self, ErrorKind};

use perf_event::events::{self, Event};
use perf_event::{Builder, Counter, ReadFormat};

use brewbench_wire::counters::Counters;

/// Maximum number of threads: each takes one file per counter.
const MAX_THREADS: usize = 500;

const EVENTS: [events::Hardware; 4] = [
    events::Hardware::INSTRUCTIONS,
    events::Hardware::CPU_CYCLES,
    events::Hardware::CACHE_MISSES,
    events::Hardware::BRANCH_MISSES,
];
const NAMES: [&str; 4] = ["instructions", "cycles", "cache misses", "branch misses"];

/// Counters that run.
#[derive(Debug)]
pub struct Hardware([Result<Vec<Counter>, String>; 4]);

impl Hardware {
    /// Attaches to threads.
    pub fn attach(threads: &[i32]) -> Result<Self, String> {
        // A machine without counters refuses the first one; opening the others would only cost time.
        open(EVENTS[0], 0).map_err(|error| refused(&error))?;
        if threads.len() > MAX_THREADS {
            return Err(format!("hardware counters: the target has more than {MAX_THREADS} threads"));
        }
        Ok(Self(EVENTS.map(|event| attach(event, threads))))
    }

    /// Adds the counts.
    pub fn read(self, into: &mut Counters) {
        let fields = [&mut into.instructions, &mut into.cycles, &mut into.cache_misses, &mut into.branch_misses];
        for ((counters, field), name) in self.0.into_iter().zip(fields).zip(NAMES) {
            match counters.and_then(sum) {
                Ok(count) => *field = Some(count),
                Err(reason) => into.missing.push(format!("{name}: {reason}")),
            }
        }
    }
}

/// Opens a counter for each thread. Threads that they start later inherit it.
fn attach(event: impl Event + Copy, threads: &[i32]) -> Result<Vec<Counter>, String> {
    let opened = threads.iter().map(|tid| open(event, *tid));
    let running =
        opened.filter(|opened| opened.as_ref().err().and_then(io::Error::raw_os_error) != Some(nix::libc::ESRCH));
    running.collect::<io::Result<Vec<_>>>().map_err(|error| refused(&error))
}

/// Opens a counter of a thread, and of all that it starts.
fn open(event: impl Event, tid: i32) -> io::Result<Counter> {
    Builder::new(event)
        .observe_pid(tid)
        .any_cpu()
        .inherit(true)
        .include_kernel()
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
        .enabled(true)
        .build()
}

/// Adds up, each scaled by the time for which the processor had room for the counter.
fn sum(counters: Vec<Counter>) -> Result<u64, String> {
    let mut total = 0.0;
    for mut counter in counters {
        let data = counter.read_full().map_err(|error| error.to_string())?;
        let [enabled, running] = [data.time_enabled(), data.time_running()].map(Option::unwrap_or_default);
        if running.is_zero() && !enabled.is_zero() {
            return Err("another program uses the counter".to_owned());
        }
        // A thread that did not run has counted nothing.
        if !running.is_zero() {
            total += data.count() as f64 * enabled.as_secs_f64() / running.as_secs_f64();
        }
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a positive count")]
    Ok(total as u64)
}

fn refused(error: &io::Error) -> String {
    let unsupported = [nix::libc::ENOENT, nix::libc::EOPNOTSUPP, nix::libc::ENODEV, nix::libc::ENOSYS];
    match error.raw_os_error() {
        Some(code) if unsupported.contains(&code) => "hardware counters: this machine has none".to_owned(),
        _ if error.kind() == ErrorKind::PermissionDenied => {
            "hardware counters: not permitted; they need kernel.perf_event_paranoid of at most 1, or CAP_PERFMON"
                .to_owned()
        }
        _ => format!("hardware counters: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Software events work on every machine; the rest is the same as for counters of the processor.
    #[test]
    fn counters_include_threads_that_start_later() {
        let (begin, waiting) = mpsc::channel::<()>();
        let (ready, tid) = mpsc::channel();
        let starter = std::thread::spawn(move || {
            ready.send(nix::unistd::gettid().as_raw()).expect("a listener");
            waiting.recv().expect("a word");
            let late = std::thread::spawn(|| {
                for _ in 0..300 {
                    std::thread::sleep(std::time::Duration::from_micros(1));
                }
            });
            late.join().expect("an end");
        });
        let tid = tid.recv().expect("a thread");
        let counters = match attach(events::Software::CONTEXT_SWITCHES, &[tid, i32::MAX]) {
            Ok(counters) => counters,
            Err(reason) => return brewbench_testing::skip(&reason),
        };
        assert_eq!(counters.len(), 1, "a thread that is gone is no fault");
        begin.send(()).expect("a listener");
        starter.join().expect("an end");
        let switches = sum(counters).expect("a count");
        assert!(switches >= 300, "{switches}");
    }

    #[test]
    fn a_refusal_says_what_helps() {
        let text = |code| refused(&io::Error::from_raw_os_error(code));
        assert_eq!(text(nix::libc::ENOENT), "hardware counters: this machine has none");
        assert!(text(nix::libc::EACCES).contains("kernel.perf_event_paranoid"));
        assert!(text(nix::libc::EMFILE).contains("Too many open files"));
    }
}
