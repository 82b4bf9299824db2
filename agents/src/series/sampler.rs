//! Once a second: what the target, the generator and the whole machine have used.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Duration, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::clock::Clock;
use super::collector::MAX_SECONDS;
use super::shared::Shared;
use super::{kernel, network};
use crate::sandbox::Watch;
use crate::wire::outcome::Cores;
use crate::wire::series::{Consumption, Host, Usage};

/// Whom to watch.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The target's processes; none where another agent runs the target.
    pub target: Option<Watch>,
    /// k6.
    pub generator: Watch,
    /// The processors of both.
    pub cores: Cores,
    /// The interface that the load crosses, if it leaves the machine.
    pub interface: Option<String>,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// What it tells of the run and of the machine.
    pub usage: Usage,
    /// What it tells of the run's cores and network.
    pub shared: Shared,
}

/// Samples until it is finished. Dropping it ends it.
#[derive(Debug)]
pub struct Sampler {
    sampling: JoinHandle<()>,
    samples: Samples,
    stop: DropGuard,
}

/// What was sampled so far, in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Samples(Arc<Mutex<Sampled>>);

#[derive(Debug, Default)]
struct Sampled {
    points: Vec<Sample>,
    /// How often the past was told in less detail.
    halvings: u32,
}

impl Samples {
    /// How often the past was told in less detail.
    pub fn halvings(&self) -> u32 {
        self.all().halvings
    }

    /// The first so many of those that were taken later than this, unix milliseconds.
    pub fn after(&self, at_ms: i64, most: usize) -> Vec<Sample> {
        let all = self.all();
        let first = all.points.partition_point(|sample| sample.at_ms <= at_ms);
        all.points[first..].iter().take(most).copied().collect()
    }

    fn add(&self, sample: &Sample) {
        let mut all = self.all();
        if all.points.len() == MAX_SECONDS {
            pair_up(&mut all.points);
            all.halvings += 1;
        }
        all.points.push(*sample);
    }

    fn all(&self) -> MutexGuard<'_, Sampled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampler {
    /// Begins at once, and rings with every sample.
    pub fn start(watched: Watched, clock: Clock, news: watch::Sender<()>) -> Self {
        let (stop, samples) = (CancellationToken::new(), Samples::default());
        let sampling = tokio::spawn(sample(watched, clock, samples.clone(), news, stop.clone()));
        Self { sampling, samples, stop: stop.drop_guard() }
    }

    /// What was sampled so far, for as long as somebody wants to know.
    pub fn samples(&self) -> Samples {
        self.samples.clone()
    }

    /// Takes a last sample and gives all.
    pub async fn finish(self) -> Vec<Sample> {
        drop(self.stop);
        // What it has sampled until then counts, however it ended.
        let _ = self.sampling.await;
        self.samples.all().points.clone()
    }
}

async fn sample(watched: Watched, clock: Clock, samples: Samples, news: watch::Sender<()>, stop: CancellationToken) {
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before: Option<Totals> = None;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            _ = ticks.tick() => {}
        }
        let watched = watched.clone();
        let Ok((at_ms, totals)) = spawn_blocking(move || (clock.now_ms(), Totals::read(&watched))).await else { break };
        let (usage, shared) = totals.since(before.as_ref().unwrap_or(&totals));
        samples.add(&Sample { at_ms, usage, shared });
        news.send_replace(());
        before = Some(totals);
        if stop.is_cancelled() {
            break;
        }
    }
}

/// Half as many samples, each of twice the time.
fn pair_up(samples: &mut Vec<Sample>) {
    let mut all = std::mem::take(samples).into_iter();
    while let Some(mut first) = all.next() {
        if let Some(Sample { at_ms, usage, shared }) = all.next() {
            first.at_ms = at_ms;
            first.usage.add(usage);
            first.shared.add(shared);
        }
        samples.push(first);
    }
}

/// Everything so far: counts since the start of the machine or the group, levels as they are.
#[derive(Clone, Copy, Debug)]
struct Totals {
    target: Consumption,
    generator: Consumption,
    host: Host,
    shared: Shared,
}

impl Totals {
    fn read(watched: &Watched) -> Self {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (stat, net_dev) = (file("/proc/stat"), file("/proc/net/dev"));
        let host = kernel::host(&stat, &file("/proc/loadavg"), &net_dev);
        let own: BTreeSet<usize> = watched.cores.target.iter().chain(&watched.cores.generator).copied().collect();
        let bytes = watched.interface.as_deref().and_then(|interface| network::bytes(&net_dev, interface));
        let segments = network::segments(&file("/proc/net/snmp"));
        let shared = Shared {
            busy_us: kernel::busy_us(&stat, &Vec::from_iter(own)),
            received_bytes: bytes.map(|(received, _)| received),
            sent_bytes: bytes.map(|(_, sent)| sent),
            segments: segments.map(|(all, _)| all),
            retransmitted: segments.map(|(_, again)| again),
        };
        Self {
            target: watched.target.as_ref().map(consumption).unwrap_or_default(),
            generator: consumption(&watched.generator),
            host,
            shared,
        }
    }

    fn since(&self, before: &Self) -> (Usage, Shared) {
        let Self { target, generator, host, shared } = *self;
        let host = Host {
            user_us: host.user_us.saturating_sub(before.host.user_us),
            system_us: host.system_us.saturating_sub(before.host.system_us),
            steal_us: host.steal_us.saturating_sub(before.host.steal_us),
            iowait_us: host.iowait_us.saturating_sub(before.host.iowait_us),
            load_milli: host.load_milli,
            received_bytes: host.received_bytes.saturating_sub(before.host.received_bytes),
            sent_bytes: host.sent_bytes.saturating_sub(before.host.sent_bytes),
        };
        let (target, generator) = (used(target, before.target), used(generator, before.generator));
        (Usage { at_ms: 0, target, generator, host }, shared.since(before.shared))
    }
}

fn used(now: Consumption, before: Consumption) -> Consumption {
    // What was not there yet had used nothing.
    let count = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
    Consumption {
        cpu_us: count(now.cpu_us, before.cpu_us),
        throttled_us: count(now.throttled_us, before.throttled_us),
        ..now
    }
}

/// Memory that a group uses now: by its control groups, or by its processes where there are none.
pub fn memory_bytes(watch: &Watch) -> Option<u64> {
    consumption(watch).memory_bytes
}

/// What a group has used: by its control groups, or by its processes where there are none.
fn consumption(watch: &Watch) -> Consumption {
    let processes = watch.processes();
    let file = |pid: &i32, name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let stats: Vec<_> = processes.iter().filter_map(|pid| kernel::process(&file(pid, "stat")?)).collect();
    let resident = || processes.iter().filter_map(|pid| kernel::resident_bytes(&file(pid, "status")?)).sum();
    let alive = !stats.is_empty();
    let observed = watch.observed().unwrap_or_default();
    Consumption {
        cpu_us: observed.cpu_us.or_else(|| alive.then(|| stats.iter().map(|process| process.cpu_us).sum())),
        throttled_us: observed.throttled_us,
        memory_bytes: watch.memory_bytes().or_else(|| alive.then(resident)),
        peak_memory_bytes: observed.peak_memory_bytes,
        threads: alive.then(|| stats.iter().map(|process| process.threads).sum()),
        open_files: alive.then(|| processes.iter().filter_map(|&pid| open_files(pid)).sum()),
    }
}

/// Newer kernels tell the number as the folder's size; listing a thousand connections every second is not free.
fn open_files(pid: i32) -> Option<u64> {
    let folder = format!("/proc/{pid}/fd");
    match fs::metadata(&folder).ok()?.len() {
        0 => Some(fs::read_dir(&folder).ok()?.count() as u64),
        number => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Sandbox, Side};
    use crate::wire::RunId;

    /// Watches groups in which nothing is.
    fn nobody() -> Watched {
        let sandbox = Sandbox::none("test sampler");
        let watch = |side| sandbox.open(RunId::now(), side).expect("a group").watch();
        let cores = Cores { target: vec![0], generator: Vec::new() };
        Watched { target: Some(watch(Side::Target)), generator: watch(Side::Generator), cores, interface: None }
    }

    #[tokio::test]
    async fn there_is_a_sample_however_short_it_was() {
        let clock = Clock::new();
        let begun = clock.now_ms();
        let samples = Sampler::start(nobody(), clock, watch::Sender::default()).finish().await;
        let (first, last) = (samples.first().expect("a first"), samples.last().expect("a last"));
        assert!(begun <= first.at_ms && first.at_ms <= last.at_ms && last.at_ms <= clock.now_ms());
        assert_eq!(first.usage.target, Consumption::default(), "nobody is there");
        assert_eq!(first.usage.host.user_us, 0, "nothing came since the sample before");
    }

    #[test]
    fn the_past_of_a_long_run_is_told_in_pairs() {
        let sample = |second: i64, memory| {
            let target = Consumption { cpu_us: Some(3), memory_bytes: Some(memory), ..Consumption::default() };
            let host = Host { user_us: 4, load_milli: memory, ..Host::default() };
            let shared = Shared { busy_us: Some(memory), ..Shared::default() };
            Sample { at_ms: second * 1000, usage: Usage { target, host, ..Usage::default() }, shared }
        };
        let mut samples = vec![sample(1, 10), sample(2, 30), sample(3, 20)];
        pair_up(&mut samples);
        assert_eq!(samples.iter().map(|sample| sample.at_ms).collect::<Vec<_>>(), [2000, 3000]);
        assert_eq!(samples[0].shared.busy_us, Some(40));
        let first = samples[0].usage;
        assert_eq!((first.target.cpu_us, first.target.memory_bytes), (Some(6), Some(30)));
        assert_eq!((first.host.user_us, first.host.load_milli), (8, 30));
    }

    #[test]
    fn counts_are_told_as_differences_and_levels_as_they_are() {
        let totals = |cpu, memory| {
            let target = Consumption { cpu_us: cpu, memory_bytes: memory, ..Consumption::default() };
            let host = Host { user_us: cpu.unwrap_or(0), load_milli: 5, ..Host::default() };
            Totals { target, generator: Consumption::default(), host, shared: Shared::default() }
        };
        let usage = totals(Some(70), Some(9)).since(&totals(Some(50), Some(8))).0;
        assert_eq!((usage.target.cpu_us, usage.target.memory_bytes), (Some(20), Some(9)));
        assert_eq!((usage.host.user_us, usage.host.load_milli), (20, 5));
        assert_eq!(totals(Some(70), None).since(&totals(None, None)).0.target.cpu_us, Some(70));
        assert_eq!(totals(None, None).since(&totals(Some(9), None)).0.target.cpu_us, None);
        assert_eq!(totals(Some(1), None).since(&totals(Some(9), None)).0.target.cpu_us, Some(0));
    }
}
