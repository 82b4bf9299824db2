//! Filters and order of a list of runs, for addresses, the API and commands. Pure.

use brewbench_wire::target::TargetKind;
use jiff::{Timestamp, ToSpan, civil, tz::TimeZone};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::IntoParams;

use super::column::Order;
use crate::app::{ids::RunId, search_text::MAX_LETTERS};

/// The query parameters of a list of runs; empty values are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RunQuery {
    /// Only runs with this text, of at most 100 characters, in the name of the target or experiment, or in a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only runs of this target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Only runs of this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Only runs of targets of this kind: `process`, `container`, `vm`, `url` or `kubernetes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only runs with this machine size, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Only runs of this scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Only runs of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only runs with this load generator, e.g. `k6 1.8.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Only runs with this label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only runs submitted by this user or token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Only runs in this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Only runs with this verdict: `valid`, `suspect` or `invalid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Only runs of this experiment, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Only runs submitted since this date (`2026-03-04`) or time (`2026-03-04T12:00:00Z`); UTC unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only runs submitted until this date (inclusive) or time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Sort order, e.g. `p99` for lowest first, `-rps` for highest first; `-submitted` by default.
    /// Runs without the metric come last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// Only runs after this one in the sort order: `next` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A property that a filter compares for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Name of the target.
    Target,
    /// Version of the target.
    Version,
    /// Kind of the target.
    Kind,
    /// Name of the machine size.
    Size,
    /// Name of the scenario.
    Scenario,
    /// Name of the agent.
    Agent,
    /// The load generator.
    Engine,
    /// The user who submitted the run.
    CreatedBy,
    /// Phase.
    Phase,
    /// Verdict.
    Verdict,
    /// Experiment.
    Experiment,
}

impl Field {
    /// The column of the table `run`.
    pub fn column(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Version => "version",
            Self::Kind => "target_kind",
            Self::Size => "size_name",
            Self::Scenario => "scenario",
            Self::Agent => "agent_id",
            Self::Engine => "engine",
            Self::CreatedBy => "created_by",
            Self::Phase => "phase",
            Self::Verdict => "verdict",
            Self::Experiment => "experiment_id",
        }
    }
}

/// Which runs a list includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunScope {
    /// All runs.
    #[default]
    All,
    /// Runs that have ended.
    Ended,
}

/// A validated query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Which runs are included.
    pub scope: RunScope,
    /// Properties and their required values.
    pub equal: Vec<(Field, String)>,
    /// Required label.
    pub label: Option<String>,
    /// Text to find in names and notes.
    pub text: Option<String>,
    /// Submitted at or after, unix ms.
    pub from_ms: Option<i64>,
    /// Submitted at or before, unix ms.
    pub to_ms: Option<i64>,
    /// Order.
    pub order: Order,
    /// Only runs after this one.
    pub after: Option<RunId>,
}

impl RunQuery {
    /// Validates the query; an error names the parameter.
    pub fn filter(&self) -> Result<Filter, String> {
        let Self { q, target, version, size, scenario, agent, engine, label, created_by, phase, verdict, .. } = self;
        let Self { kind, experiment, from, to, sort, after, .. } = self;
        let fields = [
            (Field::Target, target),
            (Field::Version, version),
            (Field::Kind, kind),
            (Field::Size, size),
            (Field::Scenario, scenario),
            (Field::Agent, agent),
            (Field::Engine, engine),
            (Field::CreatedBy, created_by),
            (Field::Phase, phase),
            (Field::Verdict, verdict),
            (Field::Experiment, experiment),
        ];
        let equal =
            fields.into_iter().filter_map(|(field, value)| Some((field, non_empty(value.as_ref())?.to_owned())));
        if non_empty(q.as_ref()).is_some_and(|text| text.chars().count() > MAX_LETTERS) {
            return Err(format!("q: at most {MAX_LETTERS} characters"));
        }
        one_of("phase", non_empty(phase.as_ref()), &PHASES)?;
        one_of("verdict", non_empty(verdict.as_ref()), &VERDICTS)?;
        one_of("kind", non_empty(kind.as_ref()), &TargetKind::ALL.map(TargetKind::as_str))?;
        Ok(Filter {
            scope: RunScope::All,
            equal: equal.collect(),
            label: non_empty(label.as_ref()).map(str::to_owned),
            text: non_empty(q.as_ref()).map(str::to_owned),
            from_ms: non_empty(from.as_ref()).map(|text| time("from", text, Edge::Start)).transpose()?,
            to_ms: non_empty(to.as_ref()).map(|text| time("to", text, Edge::End)).transpose()?,
            order: non_empty(sort.as_ref()).map(Order::parse).transpose()?.unwrap_or_default(),
            after: non_empty(after.as_ref()).map(|id| id.to_owned().into()),
        })
    }

    /// Returns the active filters as names and values of query parameters.
    pub fn filters(&self) -> Vec<(&'static str, &str)> {
        let Self { q, target, version, size, scenario, agent, engine, label, created_by, phase, verdict, .. } = self;
        let Self { kind, experiment, from, to, sort: _, after: _, .. } = self;
        let all = [
            ("q", q),
            ("target", target),
            ("version", version),
            ("kind", kind),
            ("size", size),
            ("scenario", scenario),
            ("agent", agent),
            ("engine", engine),
            ("label", label),
            ("created_by", created_by),
            ("phase", phase),
            ("verdict", verdict),
            ("experiment", experiment),
            ("from", from),
            ("to", to),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, non_empty(value.as_ref())?))).collect()
    }

    /// Returns the query without one filter, from the first page.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut rest = Self { after: None, ..self.clone() };
        let part = match name {
            "q" => &mut rest.q,
            "target" => &mut rest.target,
            "version" => &mut rest.version,
            "kind" => &mut rest.kind,
            "size" => &mut rest.size,
            "scenario" => &mut rest.scenario,
            "agent" => &mut rest.agent,
            "engine" => &mut rest.engine,
            "label" => &mut rest.label,
            "created_by" => &mut rest.created_by,
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

    /// Returns the order, unless it is the default.
    pub fn sorted(&self) -> Option<&str> {
        non_empty(self.sort.as_ref()).filter(|text| *text != Order::default().key())
    }
}

/// Builds an address from a path and query parameters.
pub fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
}

fn one_of(name: &str, word: Option<&str>, known: &[&str]) -> Result<(), String> {
    match word.filter(|word| !known.contains(word)) {
        Some(word) => Err(format!("{name}: unknown value {word:?}; use one of {}", known.join(", "))),
        None => Ok(()),
    }
}

/// Trims a value; none if it is empty, as forms send unused fields.
fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// All phases of a run.
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

/// All verdicts.
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
    at.ok_or_else(|| format!("{name}: invalid time {text:?}; write 2026-03-04 or 2026-03-04T12:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RunQuery {
        let mut query = RunQuery::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let value = Some(value.into_owned());
            match &*name {
                "q" => query.q = value,
                "target" => query.target = value,
                "kind" => query.kind = value,
                "phase" => query.phase = value,
                "verdict" => query.verdict = value,
                "from" => query.from = value,
                "to" => query.to = value,
                "sort" => query.sort = value,
                other => panic!("{other}"),
            }
        }
        query
    }

    #[test]
    fn empty_form_fields_are_ignored() {
        let empty = parsed("q=&target=+&verdict=&from=&sort=");
        assert_eq!(empty.filter(), Ok(Filter::default()));
        assert_eq!(empty.filters(), []);
    }

    #[test]
    fn a_day_counts_from_its_start_to_its_end_and_a_time_is_exact() {
        let filter = parsed("from=2026-03-04&to=2026-03-04").filter().expect("a day");
        assert_eq!((filter.from_ms, filter.to_ms), (Some(1_772_582_400_000), Some(1_772_668_799_999)));
        let filter = parsed("from=2026-03-04T12:13:14Z&to=2026-03-04T12:13").filter().expect("times");
        assert_eq!((filter.from_ms, filter.to_ms), (Some(1_772_626_394_000), Some(1_772_626_380_000)));
    }

    #[test]
    fn an_error_names_the_parameter() {
        for (query, name) in [
            ("from=yesterday", "from: "),
            ("to=2026-13-01", "to: "),
            ("sort=beauty", "sort: "),
            ("phase=new", "phase: "),
            ("kind=pod", "kind: "),
        ] {
            let error = parsed(query).filter().expect_err(query);
            assert!(error.starts_with(name), "{error}");
        }
        assert!(parsed("verdict=great").filter().is_err());
    }

    #[test]
    fn an_address_round_trips_any_value() {
        let hostile = "a&b=c\"<>%/é";
        let address = address("/runs", &[("target", hostile)]);
        let (_, query) = address.split_once('?').expect("a query");
        assert_eq!(parsed(query).target.as_deref(), Some(hostile));
        assert!(!address.contains(['"', '<', '>']), "{address}");
    }
}
