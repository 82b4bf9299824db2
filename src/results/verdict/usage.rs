//! CPU time of the measurement, summed over usable samples.

use brewbench_wire::series::{Series, Usage, Window};

/// CPU time used in a span between samples, microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    elapsed: f64,
    target: f64,
    target_throttled: f64,
    generator: f64,
    generator_throttled: f64,
    busy: f64,
    steal: f64,
}

/// Whose CPU time a sample must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageScope {
    /// Target and k6, which share a machine.
    Both,
    /// The target only; k6 runs elsewhere.
    Target,
    /// k6 only; the target runs elsewhere.
    Generator,
}

impl Span {
    fn between(before: &Usage, sample: &Usage, side: UsageScope) -> Option<Self> {
        let elapsed = (f64::from(sample.at_ms) - f64::from(before.at_ms)) * 1_000.0;
        let float = |us: Option<u64>| us.map(|us| us as f64);
        (elapsed > 0.0).then_some(())?;
        Some(Self {
            elapsed,
            target: if side == UsageScope::Generator { 0.0 } else { float(sample.target.cpu_us)? },
            target_throttled: float(sample.target.throttled_us).unwrap_or(0.0),
            generator: if side == UsageScope::Target { 0.0 } else { float(sample.generator.cpu_us)? },
            generator_throttled: float(sample.generator.throttled_us).unwrap_or(0.0),
            busy: sample.host.user_us as f64 + sample.host.system_us as f64,
            steal: sample.host.steal_us as f64,
        })
    }

    /// Sums spans; None without any.
    pub fn sum(spans: &[Self]) -> Option<Self> {
        let add = |a: Self, b: &Self| Self {
            elapsed: a.elapsed + b.elapsed,
            target: a.target + b.target,
            target_throttled: a.target_throttled + b.target_throttled,
            generator: a.generator + b.generator,
            generator_throttled: a.generator_throttled + b.generator_throttled,
            busy: a.busy + b.busy,
            steal: a.steal + b.steal,
        };
        (!spans.is_empty()).then(|| spans.iter().fold(Self::default(), add))
    }

    /// Returns the cores that the target used.
    pub fn target(&self) -> f64 {
        self.target / self.elapsed
    }

    /// Returns the share of the time for which a quota throttled the target, on this many cores.
    pub fn target_throttled(&self, cores: f64) -> f64 {
        throttled_share(self.target_throttled, self.elapsed, cores)
    }

    /// Returns the cores that k6 used.
    pub fn generator(&self) -> f64 {
        self.generator / self.elapsed
    }

    /// Returns the share of the time for which a quota throttled the load generator, on this many cores.
    pub fn generator_throttled(&self, cores: f64) -> f64 {
        throttled_share(self.generator_throttled, self.elapsed, cores)
    }

    /// Returns the share of the time for which a quota throttled the load generator, summed over its cores.
    pub fn generator_throttled_sum(&self) -> f64 {
        self.generator_throttled / self.elapsed
    }

    /// Returns the cores that other programs used.
    pub fn others(&self) -> f64 {
        ((self.busy - self.target - self.generator) / self.elapsed).max(0.0)
    }

    /// Returns the cores that the hypervisor gave to other virtual machines.
    pub fn steal(&self) -> f64 {
        self.steal / self.elapsed
    }

    /// Returns the share of the requested CPU time that the hypervisor gave to others.
    pub fn stolen(&self) -> f64 {
        let wanted = self.busy + self.steal;
        if wanted > 0.0 { self.steal / wanted } else { 0.0 }
    }
}

/// Returns the share of the time for which a quota throttled a group of processes.
///
/// The kernel sums throttled time over all cores that the group may use: up to 4 s per second on four cores.
pub fn throttled_share(throttled: f64, elapsed: f64, cores: f64) -> f64 {
    (throttled / elapsed / cores.max(1.0)).min(1.0)
}

/// Returns the spans between the samples of the measured phase, except those without a sample of a requested side.
///
/// The last is left out if there are others: its sample was taken after k6 had exited, so it is partly idle. Only a
/// share of the time may be that of the run, as in a duet.
pub fn spans(series: &Series, side: UsageScope, own_share: f64) -> Vec<Span> {
    let usage = series.measured.as_ref().map_or(&[][..], |window: &Window| &window.usage);
    let mut spans: Vec<Span> = usage.windows(2).filter_map(|pair| Span::between(&pair[0], &pair[1], side)).collect();
    for span in &mut spans {
        span.elapsed *= own_share;
    }
    if spans.len() > 1 {
        spans.pop();
    }
    spans
}

/// Splits a slice into three parts of nearly equal length, or one part if there are fewer than three elements.
pub fn thirds<T>(all: &[T]) -> Vec<&[T]> {
    let count = all.len();
    match count {
        0 => Vec::new(),
        1 | 2 => vec![all],
        _ => (0..3).map(|third| &all[third * count / 3..(third + 1) * count / 3]).collect(),
    }
}
