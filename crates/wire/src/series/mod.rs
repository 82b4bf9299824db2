//! Per-second data of a run, as sent and stored.
//!
//! Warm-up and measurement are two separate [`Window`]s. Both contain load metrics from k6 and usage from the kernel,
//! on the same clock. All values are integer counts: rates and shares are derived from counts and the time between two
//! points, so points can be added up and nothing is ever averaged.

mod columns;
mod delta;
pub mod merge;
mod pack;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

pub use delta::{Delta, WindowKind};
pub use pack::{DecodeError, Packed};

/// The series of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The warm-up, if there was one.
    pub warm_up: Option<Window>,
    /// The measured phase.
    pub measured: Option<Window>,
}

/// The series of one phase in which k6 ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start of the first second, on the agent's clock; unix milliseconds.
    pub start_ms: i64,
    /// Load metrics from k6, ascending.
    pub seconds: Vec<Second>,
    /// Usage from the kernel, ascending.
    pub usage: Vec<Usage>,
    /// Known gaps.
    pub gaps: Gaps,
}

/// The load between the previous second (or the start) and `until_ms`: about a second, but more after downsampling and
/// after gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Its end, milliseconds since the start.
    pub until_ms: u32,
    /// Virtual users at its end; `None` if k6 did not report them, as in the first second.
    pub vus: Option<u64>,
    /// Iterations of the script that ended.
    pub iterations: u64,
    /// Iterations dropped because no virtual user was free.
    pub dropped_iterations: u64,
    /// Bytes received by k6.
    pub received_bytes: u64,
    /// Bytes sent by k6.
    pub sent_bytes: u64,
    /// Latencies of successful requests.
    pub succeeded: Histogram,
    /// Latencies of failed requests.
    pub failed: Histogram,
}

impl Second {
    /// Returns the number of requests that ended.
    pub fn requests(&self) -> u64 {
        self.succeeded.total().saturating_add(self.failed.total())
    }

    /// Whether the load did nothing.
    pub fn is_idle(&self) -> bool {
        self.requests() == 0 && self.iterations == 0 && self.dropped_iterations == 0
    }

    /// Adds the following second.
    pub fn add(&mut self, next: Self) {
        let Self { until_ms, vus, iterations, dropped_iterations, received_bytes, sent_bytes, succeeded, failed } =
            next;
        self.until_ms = self.until_ms.max(until_ms);
        self.vus = vus.or(self.vus);
        self.iterations = self.iterations.saturating_add(iterations);
        self.dropped_iterations = self.dropped_iterations.saturating_add(dropped_iterations);
        self.received_bytes = self.received_bytes.saturating_add(received_bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(sent_bytes);
        self.succeeded.add(&succeeded);
        self.failed.add(&failed);
    }
}

/// Usage between the previous sample and `at_ms`. The first sample has no predecessor: its gauges are valid, and its
/// counters are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time of the sample, milliseconds since the start; negative before it.
    pub at_ms: i32,
    /// Used by the target's processes.
    pub target: Consumption,
    /// Used by k6.
    pub generator: Consumption,
    /// Used by everything on the machine.
    pub host: Host,
}

impl Usage {
    /// Returns the sample as the first one of a series.
    #[must_use]
    pub fn without_counts(self) -> Self {
        let side = |side: Consumption| Consumption {
            cpu_us: side.cpu_us.map(|_| 0),
            throttled_us: side.throttled_us.map(|_| 0),
            ..side
        };
        let host = Host { load_milli: self.host.load_milli, ..Host::default() };
        Self { target: side(self.target), generator: side(self.generator), host, ..self }
    }

    /// Adds the following sample.
    pub fn add(&mut self, next: Self) {
        let Self { at_ms, target, generator, host } = next;
        let Host { user_us, system_us, steal_us, iowait_us, load_milli, received_bytes, sent_bytes } = host;
        self.at_ms = at_ms;
        self.target.add(target);
        self.generator.add(generator);
        self.host = Host {
            user_us: self.host.user_us.saturating_add(user_us),
            system_us: self.host.system_us.saturating_add(system_us),
            steal_us: self.host.steal_us.saturating_add(steal_us),
            iowait_us: self.host.iowait_us.saturating_add(iowait_us),
            load_milli,
            received_bytes: self.host.received_bytes.saturating_add(received_bytes),
            sent_bytes: self.host.sent_bytes.saturating_add(sent_bytes),
        };
    }
}

/// Usage of one side of a run; `None` if the machine does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumption {
    /// CPU time since the previous sample, microseconds.
    pub cpu_us: Option<u64>,
    /// Time throttled by the CPU quota since the previous sample, microseconds.
    pub throttled_us: Option<u64>,
    /// Working set: memory in use without the file cache that was not used recently.
    pub memory_bytes: Option<u64>,
    /// Memory held: anonymous, shared and kernel memory, without file cache; `None` before protocol 26.
    pub held_memory_bytes: Option<u64>,
    /// File cache; `None` before protocol 26.
    pub file_cache_bytes: Option<u64>,
    /// Highest memory use so far, file cache included.
    pub peak_memory_bytes: Option<u64>,
    /// Number of threads.
    pub threads: Option<u64>,
    /// Number of open files, including sockets.
    pub open_files: Option<u64>,
}

impl Consumption {
    fn add(&mut self, next: Self) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        *self = Self {
            cpu_us: sum(self.cpu_us, next.cpu_us),
            throttled_us: sum(self.throttled_us, next.throttled_us),
            ..next
        };
    }
}

/// Usage of the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// CPU time of programs since the previous sample, sum over all cores, microseconds.
    pub user_us: u64,
    /// CPU time of the kernel, including interrupts.
    pub system_us: u64,
    /// Time stolen by the hypervisor.
    pub steal_us: u64,
    /// Idle time while waiting for a disk.
    pub iowait_us: u64,
    /// One-minute load average, in thousandths.
    pub load_milli: u64,
    /// Bytes received since the previous sample on all network interfaces except loopback.
    pub received_bytes: u64,
    /// Bytes sent since the previous sample.
    pub sent_bytes: u64,
}

/// Known gaps and irregularities of a series. All are 0 in a normal run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// Seconds without a push; their values are in the following second.
    pub missing_seconds: u64,
    /// Pushes that came too early; their values are in the previous second.
    pub doubled_seconds: u64,
    /// Restarts of k6, detected by counters that went backwards.
    pub restarts: u64,
    /// Unreadable pushes or series.
    pub damaged: u64,
    /// Values dropped because the script has too many sets of tags.
    pub dropped_values: u64,
    /// 1 if k6 did not send its final push, which it does when it exits normally.
    pub unfinished: u64,
}
