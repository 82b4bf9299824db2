//! From where on a figure speaks against a run, each with its reason. A scenario may have limits of its own. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::verdict::Unit;

/// What can be set, in the order in which people see it; what each is about stands in [`Limit::about`].
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
    /// Share of the asked rate that must be made.
    RateNotKept,
    /// Share of iterations that may be dropped.
    IterationsDropped,
    /// Seconds that must be measured.
    TooShort,
    /// Share of its cores that k6 may use while the target could do more.
    GeneratorBusy,
    /// Share of its size from which on a target can do no more.
    TargetBusy,
    /// Share of the time in which a quota may hold k6 back.
    GeneratorThrottled,
    /// Share of a request's time that may go into waiting for a connection.
    GeneratorBlocked,
    /// Share of the virtual users that k6 may keep from their requests.
    GeneratorHeldBack,
    /// Share of the wanted CPU time that may go to other virtual machines.
    HostSteal,
    /// Share of the machine that others may use.
    HostDisturbed,
    /// By how much the rate may drift.
    NotSteadyRate,
    /// By how much the median latency may drift.
    NotSteadyP50,
    /// By how many milliseconds the clock may be set.
    ClockJumped,
    /// Share of the requests that the series must have.
    SeriesIncomplete,
    /// How many milliseconds apart generators may begin.
    StartedApart,
    /// Share of the longest measured time that each generator must have measured.
    EndedEarly,
    /// Share of a link's speed that may be used.
    NetworkSaturated,
    /// Share of TCP segments that may be sent again.
    Retransmits,
}

/// What a limit is about.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// For commands and JSON; that of the reason's code where there is one limit for it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Why it is what it is unless somebody says otherwise.
    pub why: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it is unless somebody says otherwise.
    pub default: f64,
    /// The most that makes sense; the least is 0.
    pub most: f64,
}

const SHARE: (Unit, f64) = (Unit::Share, 1.0);

/// One in 100,000. The p99.9 has a hundred times as many requests behind it, so failures move it by no more than the
/// hundredth part of these, whether they are the fastest or the slowest. A run of fewer requests than that may have
/// none.
const FEW: f64 = 0.000_01;

const fn about(
    name: &'static str,
    (unit, most): (Unit, f64),
    default: f64,
    what: &'static str,
    why: &'static str,
) -> About {
    About { name, what, why, unit, default, most }
}

impl Limit {
    /// All of them, in order.
    pub const ALL: [Self; 22] = [
        Self::RequestsFailed,
        Self::RequestsFailedInvalid,
        Self::ChecksFailed,
        Self::ChecksFailedInvalid,
        Self::RateNotKept,
        Self::IterationsDropped,
        Self::TooShort,
        Self::GeneratorBusy,
        Self::TargetBusy,
        Self::GeneratorThrottled,
        Self::GeneratorBlocked,
        Self::GeneratorHeldBack,
        Self::HostSteal,
        Self::HostDisturbed,
        Self::NotSteadyRate,
        Self::NotSteadyP50,
        Self::ClockJumped,
        Self::SeriesIncomplete,
        Self::StartedApart,
        Self::EndedEarly,
        Self::NetworkSaturated,
        Self::Retransmits,
    ];

    /// What it is about.
    #[expect(clippy::too_many_lines, reason = "one entry a limit: the list is the point")]
    pub const fn about(self) -> About {
        match self {
            Self::RequestsFailed => about(
                "requests_failed",
                SHARE,
                FEW,
                "most requests that may fail",
                "so few move no percentile up to the p99.9 by more than a hundredth of its tail; above that each is worth a look",
            ),
            Self::RequestsFailedInvalid => about(
                "requests_failed_invalid",
                SHARE,
                0.01,
                "failed requests above which a run is invalid",
                "an error is often answered faster than the real thing; above one in a hundred the p99 is theirs",
            ),
            Self::ChecksFailed => about(
                "checks_failed",
                SHARE,
                FEW,
                "most checks that may fail",
                "a check says what a right answer is: a wrong one is as rare as a request that may fail",
            ),
            Self::ChecksFailedInvalid => about(
                "checks_failed_invalid",
                SHARE,
                0.01,
                "failed checks above which a run is invalid",
                "a target that answers something else does not do the same work",
            ),
            Self::RateNotKept => about(
                "rate_not_kept",
                SHARE,
                0.99,
                "least part of the asked iterations that must be made",
                "under less load than asked for every latency looks better; k6 itself rounds by less than that",
            ),
            Self::IterationsDropped => about(
                "iterations_dropped",
                SHARE,
                0.001,
                "most iterations that may be dropped",
                "those that are dropped would have been the slow ones: above one in a thousand the p99.9 is hidden",
            ),
            Self::TooShort => about(
                "too_short",
                (Unit::Seconds, 86_400.0),
                3.0,
                "least measured time",
                "garbage collections, CPU quotas of 100 ms and stalls of a disk even out over some seconds, not over one",
            ),
            Self::GeneratorBusy => about(
                "generator_busy",
                SHARE,
                0.8,
                "most of its cores that k6 may use while the target could do more",
                "k6 adds its own waiting to latencies long before its last core is full; its documentation says 80 %, too",
            ),
            Self::TargetBusy => about(
                "target_busy",
                SHARE,
                0.9,
                "part of its size from which on a target counts as being at its limit",
                "then the figures are the target's, however busy k6 is: what it could do more is within a tenth",
            ),
            Self::GeneratorThrottled => about(
                "generator_throttled",
                SHARE,
                0.01,
                "most of the time that a CPU quota may hold k6 back",
                "each pause is added to the latencies of all requests under way",
            ),
            Self::GeneratorBlocked => about(
                "generator_blocked",
                SHARE,
                0.5,
                "most of a request's time that may go into waiting for a connection",
                "latencies leave this out: where it is more than half, they tell the lesser part",
            ),
            Self::GeneratorHeldBack => about(
                "generator_held_back",
                SHARE,
                0.25,
                "most of the virtual users that k6 may keep from their requests",
                "a k6 at its limit keeps a tenth of them; where it keeps a quarter, the target had another load than asked for",
            ),
            Self::HostSteal => about(
                "host_steal",
                SHARE,
                0.05,
                "most of the wanted CPU time that the hypervisor may give to others",
                "what is stolen is missing in the throughput one to one; quiet clouds show 0 to 2 %",
            ),
            Self::HostDisturbed => about(
                "host_disturbed",
                SHARE,
                0.1,
                "most of the run's cores that others may use meanwhile",
                "the kernel, the agent and this server need some hundredths; above that somebody else works there",
            ),
            Self::NotSteadyRate => about(
                "not_steady_rate",
                SHARE,
                0.01,
                "most that throughput may rise or fall, beyond its own noise, under virtual users",
                "the minimum effect: a run that drifts by more says one thing at its begin and another at its end",
            ),
            Self::NotSteadyP50 => about(
                "not_steady_p50",
                SHARE,
                0.01,
                "most that the median latency may rise or fall, beyond its own noise, under a rate",
                "the minimum effect, as for throughput",
            ),
            Self::ClockJumped => about(
                "clock_jumped",
                (Unit::Milliseconds, 86_400_000.0),
                100.0,
                "most that the machine's clock may be set meanwhile",
                "keeping time by NTP moves it by far less; more shifts the series against the load",
            ),
            Self::SeriesIncomplete => about(
                "series_incomplete",
                SHARE,
                0.99,
                "least part of the requests that the series must have",
                "what is not in it can't be judged; k6 pushes all of them, its last ones included",
            ),
            Self::StartedApart => about(
                "started_apart",
                (Unit::Milliseconds, 86_400_000.0),
                250.0,
                "most that generators on several machines may begin apart, as far as their clocks can tell",
                "until the last one comes the target has less load than asked for; a quarter second is 2 % of the usual ten",
            ),
            Self::EndedEarly => about(
                "ended_early",
                SHARE,
                0.9,
                "least part of the longest measured time that each generator must have measured",
                "without one of them the target has less load than asked for, and looks better than it is",
            ),
            Self::NetworkSaturated => about(
                "network_saturated",
                SHARE,
                0.9,
                "part of its link's speed from which on a load that crosses the network counts as held back by it",
                "frames, headers and acknowledgements take the rest: there is no more room for a faster target",
            ),
            Self::Retransmits => about(
                "retransmits",
                SHARE,
                0.001,
                "most TCP segments that may be sent again",
                "each delays its request by 200 ms or more: above one in a thousand the p99.9 is the network's",
            ),
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.about().name == name)
    }

    /// Reads what somebody typed: `0.9` or `90 %`, `5` or `5 s`, `100` or `100 ms`. The error is a sentence that
    /// begins with the limit's name.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let About { name, unit, .. } = self.about();
        let text = text.trim();
        let (number, factor) = match unit {
            Unit::Share => text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01)),
            other => (text.strip_suffix(other.sign()).unwrap_or(text), 1.0),
        };
        let number = number.trim().replace(',', ".").parse::<f64>();
        let value = number.map_err(|_| format!("{name}: {text:?} is no {}", self.kind()))?;
        // 90 × 0.01 is not quite 0.9.
        self.checked((value * factor * 1e9).round() / 1e9)
    }

    /// A value that makes sense. The error is a sentence that begins with the limit's name.
    pub fn checked(self, value: f64) -> Result<f64, String> {
        let About { name, most, .. } = self.about();
        if (0.0..=most).contains(&value) { Ok(value) } else { Err(format!("{name}: {value} is no {}", self.kind())) }
    }

    fn kind(self) -> String {
        let About { unit, most, .. } = self.about();
        match unit {
            Unit::Share => format!("share between 0 and {most}, such as 0.25 or 25 %"),
            other => format!("number of {} between 0 and {most}", other.words()),
        }
    }
}

/// A value for every limit. In JSON an object of numbers by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(into = "BTreeMap<String, f64>", from = "BTreeMap<String, f64>")]
#[schema(value_type = BTreeMap<String, f64>)]
pub struct Limits([f64; Limit::ALL.len()]);

impl Default for Limits {
    fn default() -> Self {
        Self(Limit::ALL.map(|limit| limit.about().default))
    }
}

impl Limits {
    /// The defaults but for those that are named. The error is a sentence that names the place.
    pub fn with(set: &BTreeMap<String, f64>) -> Result<Self, String> {
        let mut limits = Self::default();
        for (name, value) in set {
            let limit = Limit::named(name).ok_or_else(|| unknown(name))?;
            limits.set(limit, limit.checked(*value)?);
        }
        Ok(limits)
    }

    /// What one of them is.
    pub fn of(&self, limit: Limit) -> f64 {
        self.0[limit as usize]
    }

    /// Sets one of them to something that makes sense.
    pub fn set(&mut self, limit: Limit, value: f64) {
        self.0[limit as usize] = value;
    }

    /// Those that are not as they usually are, by name.
    pub fn changed(&self) -> BTreeMap<String, f64> {
        let differs = |limit: &Limit| self.of(*limit).total_cmp(&limit.about().default).is_ne();
        Limit::ALL.into_iter().filter(differs).map(|limit| (limit.about().name.to_owned(), self.of(limit))).collect()
    }
}

/// That there is no limit of this name, and which there are.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = Limit::ALL.into_iter().map(|limit| limit.about().name).collect();
    format!("{name:?} is no limit; there are {}", names.join(", "))
}

impl From<Limits> for BTreeMap<String, f64> {
    fn from(limits: Limits) -> Self {
        Limit::ALL.into_iter().map(|limit| (limit.about().name.to_owned(), limits.of(limit))).collect()
    }
}

/// What is stored may be of another version: what it does not have is as usual, and what is no limit any more is left out.
impl From<BTreeMap<String, f64>> for Limits {
    fn from(map: BTreeMap<String, f64>) -> Self {
        let mut limits = Self::default();
        for (name, value) in map {
            if let Some(limit) = Limit::named(&name)
                && let Ok(value) = limit.checked(value)
            {
                limits.set(limit, value);
            }
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_place_a_name_and_a_default_that_makes_sense() {
        for (place, limit) in Limit::ALL.into_iter().enumerate() {
            let About { name, default, .. } = limit.about();
            assert_eq!(limit as usize, place, "{name}");
            assert_eq!(Limit::named(name), Some(limit));
            assert_eq!(limit.checked(default), Ok(default), "{name}");
        }
        assert_eq!(Limit::named("beauty"), None);
    }

    #[test]
    fn what_people_type_is_read() {
        assert_eq!(Limit::GeneratorBusy.parse(" 95 % "), Ok(0.95));
        assert_eq!(Limit::GeneratorBusy.parse("0.95"), Ok(0.95));
        assert_eq!(Limit::GeneratorBusy.parse("0,95"), Ok(0.95));
        assert_eq!(Limit::TooShort.parse("3 s"), Ok(3.0));
        assert_eq!(Limit::ClockJumped.parse("250ms"), Ok(250.0));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in ["", "x", "95", "-0.1", "NaN", "inf", "1e999", "5 s"] {
            let told = Limit::GeneratorBusy.parse(text).expect_err(text);
            assert!(told.starts_with("generator_busy: ") && told.contains("share between 0 and 1"), "{told}");
        }
        let told = Limit::TooShort.parse("soon").expect_err("no number");
        assert_eq!(told, "too_short: \"soon\" is no number of seconds between 0 and 86400");
    }

    #[test]
    fn limits_survive_json_and_what_is_not_known_is_as_usual() {
        let mut limits = Limits::default();
        limits.set(Limit::TooShort, 2.0);
        let text = serde_json::to_string(&limits).expect("written");
        assert_eq!(serde_json::from_str::<Limits>(&text).expect("read"), limits);
        assert_eq!(limits.changed(), BTreeMap::from([("too_short".to_owned(), 2.0)]));
        let odd: Limits = serde_json::from_str("{\"old\": 1, \"too_short\": -3}").expect("read");
        assert_eq!(odd, Limits::default());
        assert!(Limits::with(&BTreeMap::from([("old".to_owned(), 1.0)])).expect_err("unknown").contains("too_short"));
    }
}
