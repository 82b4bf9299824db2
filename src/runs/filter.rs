//! What a list of runs is narrowed to and how it is ordered: in an address, in the API, in commands. Pure.

use jiff::{Timestamp, ToSpan, civil, tz::TimeZone};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::IntoParams;

use super::column::Order;
use crate::app::ids::RunId;

/// A list of runs as an address asks for it; what is empty is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// Text in names of targets and experiments, and in notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only of this target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Only of this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Only of this machine size, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Only of this scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Only of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only with this load generator, e.g. `k6 1.8.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Only with this label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only submitted by this person or token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Only in this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Only with this verdict: `valid`, `suspect` or `invalid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Only of this experiment, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Only submitted since: `2026-03-04`, or a time such as `2026-03-04T12:00:00Z`. UTC where it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only submitted until then; a day counts to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// By what it is ordered, e.g. `p99` for the least first, `-rps` for the greatest first; `-submitted` unless said.
    /// Runs without the figure come last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// Only runs that come after this one in that order: the last id of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// A property that must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Name of the target.
    Target,
    /// Its version.
    Version,
    /// Name of the machine size.
    Size,
    /// Name of the scenario.
    Scenario,
    /// Name of the agent.
    Agent,
    /// The load generator.
    Engine,
    /// Who submitted it.
    Person,
    /// Its phase.
    Phase,
    /// Its verdict.
    Verdict,
    /// Its experiment.
    Experiment,
}

impl Field {
    /// The column of the table `run`.
    pub fn stored(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Version => "version",
            Self::Size => "size_name",
            Self::Scenario => "scenario",
            Self::Agent => "agent",
            Self::Engine => "engine",
            Self::Person => "created_by",
            Self::Phase => "phase",
            Self::Verdict => "verdict",
            Self::Experiment => "experiment_id",
        }
    }
}

/// Of which runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Among {
    /// Of all.
    #[default]
    All,
    /// Of those that have ended.
    Ended,
}

/// The same, understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of which runs.
    pub among: Among,
    /// What must be equal to what.
    pub equal: Vec<(Field, String)>,
    /// A label that it must have.
    pub label: Option<String>,
    /// Text to be found in names and notes.
    pub text: Option<String>,
    /// Submitted at or after, unix ms.
    pub from_ms: Option<i64>,
    /// Submitted at or before, unix ms.
    pub to_ms: Option<i64>,
    /// Its order.
    pub order: Order,
    /// Only what comes after this run.
    pub before: Option<RunId>,
}

impl Wanted {
    /// Understands it; fails with a sentence that names the part.
    pub fn filter(&self) -> Result<Filter, String> {
        let Self { q, target, version, size, scenario, agent, engine, label, person, phase, verdict, .. } = self;
        let Self { experiment, from, to, sort, before, .. } = self;
        let fields = [
            (Field::Target, target),
            (Field::Version, version),
            (Field::Size, size),
            (Field::Scenario, scenario),
            (Field::Agent, agent),
            (Field::Engine, engine),
            (Field::Person, person),
            (Field::Phase, phase),
            (Field::Verdict, verdict),
            (Field::Experiment, experiment),
        ];
        let equal = fields.into_iter().filter_map(|(field, value)| Some((field, said(value.as_ref())?.to_owned())));
        one_of("phase", said(phase.as_ref()), &PHASES)?;
        one_of("verdict", said(verdict.as_ref()), &VERDICTS)?;
        Ok(Filter {
            among: Among::All,
            equal: equal.collect(),
            label: said(label.as_ref()).map(str::to_owned),
            text: said(q.as_ref()).map(str::to_owned),
            from_ms: said(from.as_ref()).map(|text| time("from", text, Edge::Start)).transpose()?,
            to_ms: said(to.as_ref()).map(|text| time("to", text, Edge::End)).transpose()?,
            order: said(sort.as_ref()).map(Order::of).transpose()?.unwrap_or_default(),
            before: said(before.as_ref()).map(|id| id.to_owned().into()),
        })
    }

    /// What it narrows to, as the address says it.
    pub fn narrows(&self) -> Vec<(&'static str, &str)> {
        let Self { q, target, version, size, scenario, agent, engine, label, person, phase, verdict, .. } = self;
        let Self { experiment, from, to, sort: _, before: _, .. } = self;
        let all = [
            ("q", q),
            ("target", target),
            ("version", version),
            ("size", size),
            ("scenario", scenario),
            ("agent", agent),
            ("engine", engine),
            ("label", label),
            ("person", person),
            ("phase", phase),
            ("verdict", verdict),
            ("experiment", experiment),
            ("from", from),
            ("to", to),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, said(value.as_ref())?))).collect()
    }

    /// The same without one of what it narrows to, from its first page.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut rest = Self { before: None, ..self.clone() };
        let part = match name {
            "q" => &mut rest.q,
            "target" => &mut rest.target,
            "version" => &mut rest.version,
            "size" => &mut rest.size,
            "scenario" => &mut rest.scenario,
            "agent" => &mut rest.agent,
            "engine" => &mut rest.engine,
            "label" => &mut rest.label,
            "person" => &mut rest.person,
            "phase" => &mut rest.phase,
            "verdict" => &mut rest.verdict,
            "experiment" => &mut rest.experiment,
            "from" => &mut rest.from,
            "to" => &mut rest.to,
            _ => return rest,
        };
        *part = None;
        rest
    }

    /// The order, where it is not the usual one.
    pub fn sorted(&self) -> Option<&str> {
        said(self.sort.as_ref()).filter(|text| *text != Order::default().key())
    }
}

/// A query of an address from names and values.
pub fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
}

fn one_of(name: &str, word: Option<&str>, known: &[&str]) -> Result<(), String> {
    match word.filter(|word| !known.contains(word)) {
        Some(word) => Err(format!("{name}: {word:?} is none; there are {}", known.join(", "))),
        None => Ok(()),
    }
}

/// What forms leave empty was not said.
fn said(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// What a run can be in.
pub const PHASES: [&str; 10] = [
    "queued",
    "leased",
    "preparing",
    "warming_up",
    "measuring",
    "collecting",
    "finished",
    "failed",
    "cancelled",
    "lost",
];

/// What a run's figures can be worth.
pub const VERDICTS: [&str; 3] = ["valid", "suspect", "invalid"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Start,
    End,
}

fn time(name: &str, text: &str, edge: Edge) -> Result<i64, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    let utc = |at: civil::DateTime| at.to_zoned(TimeZone::UTC).map(|at| at.timestamp().as_millisecond()).ok();
    let day = text.parse::<civil::Date>().ok().filter(|_| !text.contains(':'));
    let at = match (day, edge) {
        (Some(day), Edge::Start) => utc(day.at(0, 0, 0, 0)),
        (Some(day), Edge::End) => day.checked_add(1.day()).ok().and_then(|next| Some(utc(next.at(0, 0, 0, 0))? - 1)),
        (None, _) => text.parse::<civil::DateTime>().ok().and_then(utc),
    };
    at.ok_or_else(|| format!("{name}: {text:?} is no time; write 2026-03-04 or 2026-03-04T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(query: &str) -> Wanted {
        let mut wanted = Wanted::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = Some(value.into_owned());
            match &*name {
                "q" => wanted.q = value,
                "target" => wanted.target = value,
                "phase" => wanted.phase = value,
                "verdict" => wanted.verdict = value,
                "from" => wanted.from = value,
                "to" => wanted.to = value,
                "sort" => wanted.sort = value,
                other => panic!("{other}"),
            }
        }
        wanted
    }

    #[test]
    fn what_a_form_left_empty_is_not_asked_for() {
        let empty = wanted("q=&target=+&verdict=&from=&sort=");
        assert_eq!(empty.filter(), Ok(Filter::default()));
        assert_eq!(empty.narrows(), []);
    }

    #[test]
    fn a_day_counts_from_its_start_to_its_end_and_a_time_is_exact() {
        let filter = wanted("from=2026-03-04&to=2026-03-04").filter().expect("a day");
        assert_eq!((filter.from_ms, filter.to_ms), (Some(1_772_582_400_000), Some(1_772_668_799_999)));
        let filter = wanted("from=2026-03-04T12:13:14Z&to=2026-03-04T12:13").filter().expect("times");
        assert_eq!((filter.from_ms, filter.to_ms), (Some(1_772_626_394_000), Some(1_772_626_380_000)));
    }

    #[test]
    fn what_makes_no_sense_is_told_by_name() {
        for (query, name) in [
            ("from=yesterday", "from: "),
            ("to=2026-13-01", "to: "),
            ("sort=beauty", "sort: "),
            ("phase=new", "phase: "),
        ] {
            let told = wanted(query).filter().expect_err(query);
            assert!(told.starts_with(name), "{told}");
        }
        assert!(wanted("verdict=great").filter().is_err());
    }

    #[test]
    fn an_address_keeps_what_it_says_whatever_that_is() {
        let hostile = "a&b=c\"<>%/é";
        let address = address("/runs", &[("target", hostile)]);
        let (_, query) = address.split_once('?').expect("a query");
        assert_eq!(wanted(query).target.as_deref(), Some(hostile));
        assert!(!address.contains(['"', '<', '>']), "{address}");
    }
}
