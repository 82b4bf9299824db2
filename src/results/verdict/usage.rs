//! CPU time of a stretch, as sums over the samples that can be used.

use brewbench_agent::wire::series::{Series, Stretch, Usage};

/// What was used in a part of a stretch, microseconds. Sums and ratios only: a part may be of any length.
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

/// Whose CPU time a sample has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of the target and of k6, which share a machine.
    Both,
    /// That of the target: k6 runs elsewhere.
    Target,
    /// That of k6: the target runs elsewhere.
    Generator,
}

impl Span {
    fn between(before: &Usage, sample: &Usage, side: Side) -> Option<Self> {
        let elapsed = (f64::from(sample.at_ms) - f64::from(before.at_ms)) * 1_000.0;
        let float = |us: Option<u64>| us.map(|us| us as f64);
        (elapsed > 0.0).then_some(())?;
        Some(Self {
            elapsed,
            target: if side == Side::Generator { 0.0 } else { float(sample.target.cpu_us)? },
            target_throttled: float(sample.target.throttled_us).unwrap_or(0.0),
            generator: if side == Side::Target { 0.0 } else { float(sample.generator.cpu_us)? },
            generator_throttled: float(sample.generator.throttled_us).unwrap_or(0.0),
            busy: sample.host.user_us as f64 + sample.host.system_us as f64,
            steal: sample.host.steal_us as f64,
        })
    }

    /// All of them together; none where there is none.
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

    /// Cores that the target used.
    pub fn target(&self) -> f64 {
        self.target / self.elapsed
    }

    /// Share of the time in which its quota held the target back, on this many cores.
    pub fn target_throttled(&self, cores: f64) -> f64 {
        throttled_share(self.target_throttled, self.elapsed, cores)
    }

    /// Cores that k6 used.
    pub fn generator(&self) -> f64 {
        self.generator / self.elapsed
    }

    /// Share of the time in which a quota held k6 back, on this many cores.
    pub fn generator_throttled(&self, cores: f64) -> f64 {
        throttled_share(self.generator_throttled, self.elapsed, cores)
    }

    /// Time in which a quota held k6 back, as a part of all time, added up over its cores.
    pub fn generator_throttled_sum(&self) -> f64 {
        self.generator_throttled / self.elapsed
    }

    /// Cores that neither of them used.
    pub fn others(&self) -> f64 {
        ((self.busy - self.target - self.generator) / self.elapsed).max(0.0)
    }

    /// Cores that the hypervisor gave to somebody else.
    pub fn steal(&self) -> f64 {
        self.steal / self.elapsed
    }

    /// The share of the wanted CPU time that the hypervisor gave to somebody else.
    pub fn stolen(&self) -> f64 {
        let wanted = self.busy + self.steal;
        if wanted > 0.0 { self.steal / wanted } else { 0.0 }
    }
}

/// Share of a time in which a quota held a group of processes back. The kernel adds throttled time up over all cores
/// that the group may run on, so on four cores a second has four seconds of it.
pub fn throttled_share(throttled: f64, elapsed: f64, cores: f64) -> f64 {
    (throttled / elapsed / cores.max(1.0)).min(1.0)
}

/// The spans between the samples of the measured phase. The last is left out where there are others: its sample was
/// taken when k6 had gone, so it is partly idle. So are those in which a side that is asked for could not be sampled.
pub fn spans(series: &Series, side: Side) -> Vec<Span> {
    let usage = series.measured.as_ref().map_or(&[][..], |stretch: &Stretch| &stretch.usage);
    let mut spans: Vec<Span> = usage.windows(2).filter_map(|pair| Span::between(&pair[0], &pair[1], side)).collect();
    if spans.len() > 1 {
        spans.pop();
    }
    spans
}

/// Three parts of as equal length as can be, in order; one part where there are too few for three.
pub fn thirds<T>(all: &[T]) -> Vec<&[T]> {
    let count = all.len();
    match count {
        0 => Vec::new(),
        1 | 2 => vec![all],
        _ => (0..3).map(|third| &all[third * count / 3..(third + 1) * count / 3]).collect(),
    }
}
