//! Every limit with its name, its default and the reason for it.

use crate::runs::verdict::Unit;

/// The limits in display order; [`Limit::definition`] describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Share of failed requests above which a run is suspect.
    RequestsFailed,
    /// Share of failed requests above which a run is invalid.
    RequestsFailedInvalid,
    /// Share of failed checks above which a run is suspect.
    ChecksFailed,
    /// Share of failed checks above which a run is invalid.
    ChecksFailedInvalid,
    /// Share of iterations with an exception above which a run is suspect.
    IterationsFailed,
    /// Share of iterations with an exception above which a run is invalid.
    IterationsFailedInvalid,
    /// Share of iterations that may be interrupted.
    IterationsInterrupted,
    /// Share of the requested rate that must be reached.
    RateNotKept,
    /// Share of iterations that may be dropped.
    IterationsDropped,
    /// Minimum measured seconds.
    TooShort,
    /// Share of its cores that k6 may use while the target is not saturated.
    GeneratorBusy,
    /// Running and waiting threads of k6, as a share of its cores.
    GeneratorDelayed,
    /// Share of its machine size at which a target counts as saturated.
    TargetBusy,
    /// Share of the time for which a quota may throttle k6.
    GeneratorThrottled,
    /// Share of a request's time that it may wait for a connection.
    GeneratorBlocked,
    /// Share of the virtual users that k6 may hold back.
    GeneratorHeldBack,
    /// Share of the requested CPU time that other virtual machines may get.
    HostSteal,
    /// Share of a run's cores that other programs may use.
    HostDisturbed,
    /// Waiting threads of target and k6 while they do, as a share of the cores.
    HostWaited,
    /// How much throughput may drift.
    NotSteadyRate,
    /// How much the median latency may drift.
    NotSteadyP50,
    /// How many milliseconds the clock may be set.
    ClockJumped,
    /// Share of the requests that the series must contain.
    SeriesIncomplete,
    /// How many milliseconds apart generators may start.
    StartedApart,
    /// Share of the longest measured time that each generator must reach.
    EndedEarly,
    /// Share of a link's speed that may be used.
    NetworkSaturated,
    /// Share of TCP segments that may be lost.
    Retransmits,
    /// Share of the load that may go to other addresses than the target's.
    OtherOrigin,
    /// Seconds without a response from which on a run is suspect.
    Stalled,
    /// Share of the load without a response above which a run is invalid.
    StalledInvalid,
}

/// Description of a limit.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name for commands and JSON; the reason's code if the reason has one limit.
    pub name: &'static str,
    /// Short description.
    pub what: &'static str,
    /// Reason for the default.
    pub why: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The default.
    pub default: f64,
    /// Maximum; the minimum is 0.
    pub most: f64,
}

const SHARE: (Unit, f64) = (Unit::Share, 1.0);

/// One in 10,000. The p99 is the furthest percentile that comparisons judge, and the tail behind it has a hundred times
/// as many requests: failures move it by at most a hundredth of the tail, whether they are the fastest or the slowest.
const FEW: f64 = 0.000_1;

const fn define(
    name: &'static str,
    (unit, most): (Unit, f64),
    default: f64,
    what: &'static str,
    why: &'static str,
) -> About {
    About { name, what, why, unit, default, most }
}

impl Limit {
    /// All limits in order.
    pub const ALL: [Self; 30] = [
        Self::RequestsFailed,
        Self::RequestsFailedInvalid,
        Self::ChecksFailed,
        Self::ChecksFailedInvalid,
        Self::IterationsFailed,
        Self::IterationsFailedInvalid,
        Self::IterationsInterrupted,
        Self::RateNotKept,
        Self::IterationsDropped,
        Self::TooShort,
        Self::GeneratorBusy,
        Self::GeneratorDelayed,
        Self::TargetBusy,
        Self::GeneratorThrottled,
        Self::GeneratorBlocked,
        Self::GeneratorHeldBack,
        Self::HostSteal,
        Self::HostDisturbed,
        Self::HostWaited,
        Self::NotSteadyRate,
        Self::NotSteadyP50,
        Self::ClockJumped,
        Self::SeriesIncomplete,
        Self::StartedApart,
        Self::EndedEarly,
        Self::NetworkSaturated,
        Self::Retransmits,
        Self::OtherOrigin,
        Self::Stalled,
        Self::StalledInvalid,
    ];

    /// Describes the limit.
    #[expect(clippy::too_many_lines, reason = "one entry a limit: the list is the point")]
    pub const fn definition(self) -> About {
        match self {
            Self::RequestsFailed => define(
                "requests_failed",
                SHARE,
                FEW,
                "maximum share of failed requests",
                "so few failures move no percentile up to the p99, the furthest one compared, by more than a hundredth of its tail",
            ),
            Self::RequestsFailedInvalid => define(
                "requests_failed_invalid",
                SHARE,
                0.01,
                "share of failed requests above which a run is invalid",
                "errors are often faster than correct responses; above 1 % they determine the p99",
            ),
            Self::ChecksFailed => define(
                "checks_failed",
                SHARE,
                FEW,
                "maximum share of failed checks",
                "a check defines a correct response: incorrect ones must be as rare as failed requests",
            ),
            Self::ChecksFailedInvalid => define(
                "checks_failed_invalid",
                SHARE,
                0.01,
                "share of failed checks above which a run is invalid",
                "a target with other responses does not do the same work",
            ),
            Self::IterationsFailed => define(
                "iterations_failed",
                SHARE,
                FEW,
                "maximum share of iterations that end with an exception",
                "the rest of such an iteration is missing: it must be as rare as failed requests",
            ),
            Self::IterationsFailedInvalid => define(
                "iterations_failed_invalid",
                SHARE,
                0.01,
                "share of iterations with an exception above which a run is invalid",
                "the script did not do its work, so the load was another one",
            ),
            Self::IterationsInterrupted => define(
                "iterations_interrupted",
                SHARE,
                0.01,
                "maximum share of iterations that are interrupted at the end of the load",
                "no metric contains them, and they were the slow ones: above 1 % they hide the p99",
            ),
            Self::RateNotKept => define(
                "rate_not_kept",
                SHARE,
                0.99,
                "minimum share of the requested iterations",
                "under less load than requested every latency looks better; k6's own rounding is smaller",
            ),
            Self::IterationsDropped => define(
                "iterations_dropped",
                SHARE,
                0.001,
                "maximum share of dropped iterations",
                "dropped iterations would have been the slow ones: above 0.1 % they hide the p99.9",
            ),
            Self::TooShort => define(
                "too_short",
                (Unit::Seconds, 86_400.0),
                3.0,
                "minimum measured time",
                "garbage collections, CPU quotas of 100 ms and disk stalls even out over several seconds, not over one",
            ),
            Self::GeneratorBusy => define(
                "generator_busy",
                SHARE,
                0.8,
                "maximum share of its cores that the load generator may use while the target is not saturated",
                "k6 adds its own delays to latencies long before its last core is full; its docs say 80 %, too",
            ),
            Self::GeneratorDelayed => define(
                "generator_delayed",
                (Unit::Share, 100.0),
                0.7,
                "maximum running and waiting threads of the load generator, as a share of its cores, while the target \
                 is not saturated",
                "measured: at 58 % k6 adds a seventh to the p99 of a target that waits 5 ms, at 87 % two fifths, at 108 % three quarters",
            ),
            Self::TargetBusy => define(
                "target_busy",
                SHARE,
                0.9,
                "share of its machine size at which a target counts as saturated",
                "then the results are the target's, however busy k6 is: it has less than a tenth to spare",
            ),
            Self::GeneratorThrottled => define(
                "generator_throttled",
                SHARE,
                0.01,
                "maximum share of the time for which a CPU quota may throttle the load generator",
                "each pause is added to the latencies of all requests in progress",
            ),
            Self::GeneratorBlocked => define(
                "generator_blocked",
                SHARE,
                0.5,
                "maximum share of a request's time spent waiting for a connection",
                "latencies exclude this time: if it is more than half, they show the smaller part",
            ),
            Self::GeneratorHeldBack => define(
                "generator_held_back",
                SHARE,
                0.25,
                "maximum share of the virtual users that the load generator may hold back",
                "a saturated k6 holds back a tenth of them; if it is a quarter, the load was not the requested one",
            ),
            Self::HostSteal => define(
                "host_steal",
                SHARE,
                0.05,
                "maximum share of the requested CPU time that the hypervisor may give to others",
                "stolen time reduces throughput one to one; quiet clouds show 0 to 2 %",
            ),
            Self::HostDisturbed => define(
                "host_disturbed",
                SHARE,
                0.1,
                "maximum share of the run's cores that other programs may use",
                "kernel, agent and this server need a few hundredths; more is caused by other programs",
            ),
            Self::HostWaited => define(
                "host_waited",
                (Unit::Share, 100.0),
                0.2,
                "maximum waiting threads of target and load generator, as a share of the run's cores, while other \
                 programs use them",
                "measured: 11 to 15 % beside programs of low priority, which change throughput by 1 %; 37 % and more beside \
                 competing ones, which halve it",
            ),
            Self::NotSteadyRate => define(
                "not_steady_rate",
                SHARE,
                0.01,
                "maximum drift of throughput beyond its own noise, under virtual users",
                "the minimum effect: a run that drifts more has different results at its start and its end",
            ),
            Self::NotSteadyP50 => define(
                "not_steady_p50",
                SHARE,
                0.01,
                "maximum drift of the median latency beyond its own noise, under a rate",
                "the minimum effect, as for throughput",
            ),
            Self::ClockJumped => define(
                "clock_jumped",
                (Unit::Milliseconds, 86_400_000.0),
                100.0,
                "maximum change of the machine's clock during a run",
                "NTP adjusts it by far less; more shifts the series against the load",
            ),
            Self::SeriesIncomplete => define(
                "series_incomplete",
                SHARE,
                0.99,
                "minimum share of the requests that the time series must contain",
                "missing requests can't be judged; k6 pushes all of them, including the last",
            ),
            Self::StartedApart => define(
                "started_apart",
                (Unit::Milliseconds, 86_400_000.0),
                250.0,
                "maximum time between the starts of generators, including clock error",
                "until the last one starts the load is too low; a quarter second is 2.5 % of the usual ten",
            ),
            Self::EndedEarly => define(
                "ended_early",
                SHARE,
                0.9,
                "minimum measured time of each generator, as a share of the longest",
                "without one of them the load is lower than requested, and the target looks better than it is",
            ),
            Self::NetworkSaturated => define(
                "network_saturated",
                SHARE,
                0.9,
                "share of the link speed at which the network counts as the bottleneck",
                "frames, headers and acknowledgements take the rest: a faster target could not send more",
            ),
            Self::Retransmits => define(
                "retransmits",
                SHARE,
                0.001,
                "maximum share of TCP segments between load generator and target that are lost",
                "each delays its request by a round trip at least: above 0.1 % the p99.9 is the network's",
            ),
            Self::OtherOrigin => define(
                "other_origin",
                SHARE,
                0.001,
                "maximum share of the load that goes to other addresses than the target's",
                "a login takes a few bytes; what another server answers is not the target's",
            ),
            Self::Stalled => define(
                "stalled",
                (Unit::Seconds, 86_400.0),
                1.0,
                "time without any response, out of line with the run, from which on it is suspect",
                "the series has one point a second: shorter pauses are not visible in it",
            ),
            Self::StalledInvalid => define(
                "stalled_invalid",
                SHARE,
                0.2,
                "share of the load without any response above which a run is invalid",
                "throughput is a fifth too low then, more than most differences; below, a pause may be the target's own",
            ),
        }
    }
}
