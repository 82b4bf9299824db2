//! Samples the resource usage of the target, the generator and the machine once a second.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brewbench_wire::outcome::Cores;
use brewbench_wire::series::{Consumption, Host, Usage};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Duration, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::clock::Clock;
use super::collector::MAX_SECONDS;
use super::connections::{Connections, Generator};
use super::consumption::{consumption, in_guest};
use super::run_queue::RunQueue;
use super::shared::Shared;
use super::{kernel, network};
use crate::run::destination::Destination;
use crate::sandbox::{OwnQuota, Watch};
use crate::target::{Monitor, Replicas, Scraper};

/// What to sample.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The target; `None` if another agent runs it, or if nothing shows its usage.
    pub target: Option<Source>,
    /// k6, and the CPU quotas that bound it; `None` if it runs elsewhere.
    pub generator: Option<(Watch, OwnQuota)>,
    /// The CPUs of both.
    pub cores: Cores,
    /// The network interface of the load, if it leaves the machine.
    pub interface: Option<String>,
    /// Where the load shall go; `None` if nothing on this machine shows where it goes.
    pub destination: Option<Destination>,
}

/// What shows the usage of a target.
#[derive(Clone, Debug)]
pub enum Source {
    /// Its processes on this machine.
    Group(Box<Watch>),
    /// The processes of a virtual machine, and what reports the memory of its guest; `None` if nothing does.
    Guest(Box<Watch>, Option<Arc<Monitor>>),
    /// Its metrics.
    Metrics(Arc<Scraper>),
    /// The kubelet of its node.
    Pods(Arc<Replicas>),
}

impl Source {
    /// Returns its processes, if they are on this machine.
    pub fn group(&self) -> Option<&Watch> {
        match self {
            Self::Group(watch) | Self::Guest(watch, _) => Some(watch),
            Self::Metrics(_) | Self::Pods(_) => None,
        }
    }

    /// Returns its usage so far.
    pub async fn consumption(&self) -> Consumption {
        match self {
            Self::Group(watch) => consumption(watch, &watch.processes()),
            Self::Guest(watch, monitor) => in_guest(consumption(watch, &watch.processes()), monitor.as_deref()).await,
            Self::Metrics(scraper) => scraper.read().await,
            Self::Pods(stats) => stats.read().await,
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// Usage of the run and of the machine.
    pub usage: Usage,
    /// Usage of the run's cores and network.
    pub shared: Shared,
}

/// Samples until finished or dropped.
#[derive(Debug)]
pub struct Sampler {
    sampling: JoinHandle<Option<Connections>>,
    samples: Samples,
    edges: Arc<Notify>,
    stop: DropGuard,
    /// What shows the usage of Pods, only after the fact.
    pods: Option<Arc<Replicas>>,
    /// Whether the run's CPUs are all of this machine, so that Pods on it use them, too.
    has_all_cores: bool,
}

/// The samples so far, ascending.
#[derive(Clone, Debug, Default)]
pub struct Samples(Arc<Mutex<Sampled>>);

#[derive(Debug, Default)]
struct Sampled {
    points: Vec<Sample>,
    /// How often the samples were downsampled.
    halvings: u32,
}

impl Samples {
    /// Returns how often the samples were downsampled.
    pub fn halvings(&self) -> u32 {
        self.all().halvings
    }

    /// Returns the first `most` samples after this time, unix milliseconds.
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
    /// Starts sampling, and notifies `news` of every sample. The load generator pushes its series to `receiver`, if it
    /// runs on this machine.
    pub fn start(watched: Watched, receiver: Option<SocketAddr>, clock: Clock, news: watch::Sender<()>) -> Self {
        let (stop, samples, edges) = (CancellationToken::new(), Samples::default(), Arc::<Notify>::default());
        let pods = match &watched.target {
            Some(Source::Pods(stats)) => Some(Arc::clone(stats)),
            _ => None,
        };
        let own: BTreeSet<usize> = watched.cores.all().collect();
        let has_all_cores = kernel::processors(&fs::read_to_string("/proc/stat").unwrap_or_default()) == own.len();
        let connections =
            watched.destination.clone().zip(receiver).map(|(to, receiver)| Connections::new(to, receiver));
        let readers = Readers { connections, ..Readers::default() };
        let until = (stop.clone(), Arc::clone(&edges));
        let sampling = tokio::spawn(sample((watched, readers), clock, samples.clone(), news, until));
        Self { sampling, samples, edges, stop: stop.drop_guard(), pods, has_all_cores }
    }

    /// Returns what takes an additional sample at once, at the edge of a load.
    pub fn edges(&self) -> Arc<Notify> {
        Arc::clone(&self.edges)
    }

    /// Returns a handle to the samples so far.
    pub fn samples(&self) -> Samples {
        self.samples.clone()
    }

    /// Takes a last sample; returns all samples, and the connections of the load.
    pub async fn finish(self) -> (Vec<Sample>, Option<Connections>) {
        drop(self.stop);
        // Samples taken before a panic count, too.
        let connections = self.sampling.await.ok().flatten();
        let mut samples = self.samples.all().points.clone();
        if let Some(pods) = self.pods {
            pods.settle().await;
            spread(&mut samples, &pods, self.has_all_cores);
        }
        (samples, connections)
    }
}

async fn sample(
    (watched, mut readers): (Watched, Readers),
    clock: Clock,
    samples: Samples,
    news: watch::Sender<()>,
    (stop, edges): (CancellationToken, Arc<Notify>),
) -> Option<Connections> {
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before: Option<Totals> = None;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = edges.notified() => {}
            _ = ticks.tick() => {}
        }
        let files = watched.clone();
        let mut used = std::mem::take(&mut readers);
        let reading = spawn_blocking(move || {
            let at_ms = clock.now_ms();
            (at_ms, Totals::read(&files, &mut used, at_ms), used)
        });
        let scraping = async {
            match &watched.target {
                Some(Source::Metrics(scraper)) => Some(scraper.read().await),
                Some(Source::Pods(stats)) => Some(stats.read().await),
                Some(Source::Group(_) | Source::Guest(..)) | None => None,
            }
        };
        let (Ok((at_ms, mut read, used)), scraped) = tokio::join!(reading, scraping) else { break };
        readers = used;
        if let Some(Source::Guest(_, monitor)) = &watched.target {
            read.target = in_guest(read.target, monitor.as_deref()).await;
        }
        let totals = Totals { target: scraped.unwrap_or(read.target), ..read };
        let (usage, shared) = totals.since(before.as_ref().unwrap_or(&totals), scraped.is_none());
        samples.add(&Sample { at_ms, usage, shared });
        news.send_replace(());
        before = Some(totals);
        if stop.is_cancelled() {
            break;
        }
    }
    readers.connections
}

/// Sets the CPU time of Pods, which their nodes have read only now and then.
fn spread(samples: &mut [Sample], pods: &Replicas, has_all_cores: bool) {
    let times: Vec<i64> = samples.iter().map(|sample| sample.at_ms).collect();
    for (sample, cpu_us) in samples.iter_mut().zip(differences(pods.cpu_at(&times))) {
        sample.usage.target.cpu_us = cpu_us;
    }
    if has_all_cores {
        for (sample, cpu_us) in samples.iter_mut().zip(differences(pods.cpu_here_at(&times))) {
            sample.shared.pods_us = cpu_us;
        }
    }
}

/// Returns how much each value is above the one before.
fn differences(values: Vec<Option<u64>>) -> impl Iterator<Item = Option<u64>> {
    let mut before = None;
    values.into_iter().map(move |value| {
        let difference = value.map(|now| now.saturating_sub(before.unwrap_or(now)));
        before = value;
        difference
    })
}

/// Halves the number of samples by adding up pairs.
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

/// What is read again and again: the run-queue waits of target and k6, and the connections of the load.
#[derive(Debug, Default)]
struct Readers {
    target: RunQueue,
    generator: RunQueue,
    connections: Option<Connections>,
}

/// All values so far: counters since the start of the machine or the group, and gauges.
#[derive(Clone, Copy, Debug)]
struct Totals {
    target: Consumption,
    generator: Consumption,
    host: Host,
    shared: Shared,
}

impl Totals {
    fn read(watched: &Watched, readers: &mut Readers, at_ms: i64) -> Self {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (stat, net_dev) = (file("/proc/stat"), file("/proc/net/dev"));
        let host = kernel::host(&stat, &file("/proc/loadavg"), &net_dev);
        let own: BTreeSet<usize> = watched.cores.all().collect();
        let bytes = watched.interface.as_deref().and_then(|interface| network::bytes(&net_dev, interface));
        let segments = network::segments(&file("/proc/net/snmp"));
        let target = watched.target.as_ref().and_then(Source::group).map(|watch| (watch, watch.processes()));
        let generator = watched.generator.as_ref().map(|(watch, quota)| (watch, watch.processes(), quota));
        let shared = Shared {
            busy_us: kernel::busy_us(&stat, &Vec::from_iter(own)),
            pods_us: Some(0),
            target_waited_us: target.as_ref().and_then(|(_, processes)| readers.target.read(processes)),
            generator_waited_us: generator.as_ref().and_then(|(_, processes, _)| readers.generator.read(processes)),
            received_bytes: bytes.map(|(received, _)| received),
            sent_bytes: bytes.map(|(_, sent)| sent),
            segments: segments.map(|(all, _)| all),
            retransmitted: segments.map(|(_, again)| again),
        };
        if let Some(connections) = &mut readers.connections {
            let generator = generator.as_ref();
            let owner = generator.map(|(watch, processes, _)| Generator { processes, group: watch.inode() });
            connections.look(at_ms, owner);
        }
        let generator = generator.map(|(watch, processes, quota)| {
            let used = consumption(watch, &processes);
            // Its own group, if there is one, has no quota.
            Consumption { throttled_us: quota.throttled_us().or(used.throttled_us), ..used }
        });
        Self {
            target: target.map(|(watch, processes)| consumption(watch, &processes)).unwrap_or_default(),
            generator: generator.unwrap_or_default(),
            host,
            shared,
        }
    }

    /// Returns the usage since then. The counters of a target that was running already do not begin at zero.
    fn since(&self, before: &Self, from_zero: bool) -> (Usage, Shared) {
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
        let (target, generator) = (used(target, before.target, from_zero), used(generator, before.generator, true));
        (Usage { at_ms: 0, target, generator, host }, shared.since(before.shared))
    }
}

fn used(now: Consumption, before: Consumption, from_zero: bool) -> Consumption {
    // A group that did not exist before had used nothing.
    let count = |now: Option<u64>, before: Option<u64>| {
        let before = before.or(from_zero.then_some(0))?;
        now.map(|now| now.saturating_sub(before))
    };
    Consumption {
        cpu_us: count(now.cpu_us, before.cpu_us),
        throttled_us: count(now.throttled_us, before.throttled_us),
        ..now
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::RunId;

    use super::*;
    use crate::sandbox::{ProgramRole, Sandbox};

    /// Watches empty groups.
    fn empty_groups() -> Watched {
        let sandbox = Sandbox::none("test sampler");
        let watch = |side| sandbox.open(RunId::now(), side).expect("a group").watch();
        let cores = Cores { target: vec![0], generator: Vec::new() };
        Watched {
            target: Some(Source::Group(Box::new(watch(ProgramRole::Target)))),
            generator: Some((watch(ProgramRole::Generator), OwnQuota::default())),
            cores,
            interface: None,
            destination: None,
        }
    }

    #[tokio::test]
    async fn even_a_short_run_has_a_sample() {
        let clock = Clock::new();
        let begun = clock.now_ms();
        let (samples, _) = Sampler::start(empty_groups(), None, clock, watch::Sender::default()).finish().await;
        let (first, last) = (samples.first().expect("a first"), samples.last().expect("a last"));
        assert!(begun <= first.at_ms && first.at_ms <= last.at_ms && last.at_ms <= clock.now_ms());
        assert_eq!(first.usage.target, Consumption::default(), "the group is empty");
        assert_eq!(first.usage.host.user_us, 0, "the first sample has no predecessor");
    }

    #[test]
    fn samples_of_a_long_run_are_added_up_in_pairs() {
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
    fn counters_become_differences_and_gauges_stay() {
        let totals = |cpu, memory| {
            let target = Consumption { cpu_us: cpu, memory_bytes: memory, ..Consumption::default() };
            let host = Host { user_us: cpu.unwrap_or(0), load_milli: 5, ..Host::default() };
            Totals { target, generator: Consumption::default(), host, shared: Shared::default() }
        };
        let usage = totals(Some(70), Some(9)).since(&totals(Some(50), Some(8)), true).0;
        assert_eq!((usage.target.cpu_us, usage.target.memory_bytes), (Some(20), Some(9)));
        assert_eq!((usage.host.user_us, usage.host.load_milli), (20, 5));
        let cpu = |now, before, from_zero| totals(now, None).since(&totals(before, None), from_zero).0.target.cpu_us;
        assert_eq!((cpu(Some(70), None, true), cpu(Some(70), None, false)), (Some(70), None));
        assert_eq!((cpu(None, Some(9), true), cpu(Some(1), Some(9), true)), (None, Some(0)));
    }
}
