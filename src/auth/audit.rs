//! The audit log: who did what to what, when and from where. An entry is written in the transaction of its deed, and
//! kept for a year.

pub mod deed;

use std::{net::IpAddr, time::Duration};

use brewbench_agent::wire::name::looks;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

pub use crate::auth::store::audit::{commit, note};
use crate::{
    app::error::{Error, Result},
    auth::audit::deed::Deed,
};

/// How long entries are kept.
pub const KEPT: Duration = Duration::from_hours(366 * 24);

impl Deed {
    /// All of them, for lists.
    pub const ALL: [Self; 55] = [
        Self::LoggedIn,
        Self::LoginRefused,
        Self::Confirmed,
        Self::LoggedOut,
        Self::Registered,
        Self::Recovered,
        Self::PasskeyAdded,
        Self::PasskeyRenamed,
        Self::PasskeyRemoved,
        Self::SessionEnded,
        Self::SessionsEnded,
        Self::InvitationMade,
        Self::InvitationWithdrawn,
        Self::RoleChanged,
        Self::PersonRemoved,
        Self::TokenMade,
        Self::TokenRevoked,
        Self::AgentKeyMade,
        Self::AgentKeyRevoked,
        Self::AgentEnrolled,
        Self::AgentKeyChangeAsked,
        Self::AgentKeyChanged,
        Self::AgentDrained,
        Self::AgentDisabled,
        Self::AgentEnabled,
        Self::AgentRenamed,
        Self::AgentForgotten,
        Self::AgentLabelsChanged,
        Self::RunPutFirst,
        Self::RunDeleted,
        Self::RunRestored,
        Self::ViewRemoved,
        Self::SizeAdded,
        Self::SizeRemoved,
        Self::TargetRemoved,
        Self::ScenarioAdded,
        Self::LimitsChanged,
        Self::RunsRejudged,
        Self::BaselineSet,
        Self::BaselineRemoved,
        Self::ShareMade,
        Self::ShareRevoked,
        Self::ExperimentPaused,
        Self::ExperimentResumed,
        Self::ExperimentCancelled,
        Self::RepetitionsAdded,
        Self::BackupMade,
        Self::Restored,
        Self::SeriesRuleSet,
        Self::SeriesReduced,
        Self::AlertRuleSet,
        Self::WebhookAdded,
        Self::WebhookRemoved,
        Self::DifferenceAccepted,
        Self::DifferenceRevoked,
    ];

    /// The words for columns, JSON and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoggedIn => "logged in",
            Self::LoginRefused => "login refused",
            Self::Confirmed => "identity confirmed",
            Self::LoggedOut => "logged out",
            Self::Registered => "registered",
            Self::Recovered => "access recovered",
            Self::PasskeyAdded => "passkey added",
            Self::PasskeyRenamed => "passkey renamed",
            Self::PasskeyRemoved => "passkey removed",
            Self::SessionEnded => "session ended",
            Self::SessionsEnded => "other sessions ended",
            Self::InvitationMade => "invitation made",
            Self::InvitationWithdrawn => "invitation withdrawn",
            Self::RoleChanged => "role changed",
            Self::PersonRemoved => "person removed",
            Self::TokenMade => "token made",
            Self::TokenRevoked => "token revoked",
            Self::AgentKeyMade => "agent key made",
            Self::AgentKeyRevoked => "agent key revoked",
            Self::AgentEnrolled => "agent enrolled",
            Self::AgentKeyChangeAsked => "agent key change asked for",
            Self::AgentKeyChanged => "agent key changed",
            Self::AgentDrained => "agent drained",
            Self::AgentDisabled => "agent disabled",
            Self::AgentEnabled => "agent enabled",
            Self::AgentRenamed => "agent renamed",
            Self::AgentForgotten => "agent forgotten",
            Self::AgentLabelsChanged => "agent labels changed",
            Self::RunPutFirst => "run put first",
            Self::RunDeleted => "run deleted",
            Self::RunRestored => "run restored",
            Self::ViewRemoved => "view removed",
            Self::SizeAdded => "size added",
            Self::SizeRemoved => "size removed",
            Self::TargetRemoved => "target removed",
            Self::ScenarioAdded => "scenario added",
            Self::LimitsChanged => "limits changed",
            Self::RunsRejudged => "runs judged anew",
            Self::BaselineSet => "baseline set",
            Self::BaselineRemoved => "baseline removed",
            Self::ShareMade => "comparison shared",
            Self::ShareRevoked => "share revoked",
            Self::ExperimentPaused => "experiment paused",
            Self::ExperimentResumed => "experiment resumed",
            Self::ExperimentCancelled => "experiment cancelled",
            Self::RepetitionsAdded => "repetitions added",
            Self::BackupMade => "backup made",
            Self::Restored => "database restored",
            Self::SeriesRuleSet => "rule for series set",
            Self::SeriesReduced => "series reduced",
            Self::AlertRuleSet => "rule for alerts set",
            Self::WebhookAdded => "webhook added",
            Self::WebhookRemoved => "webhook removed",
            Self::DifferenceAccepted => "difference accepted",
            Self::DifferenceRevoked => "difference revoked",
        }
    }
}

/// A deed that is about to be done, as the log will have it.
#[derive(Clone, Debug)]
pub struct Act {
    /// The caller's name.
    pub who: String,
    /// Where the caller is; none for commands on the data folder.
    pub address: Option<IpAddr>,
    /// What is done.
    pub what: Deed,
    /// To what: a name or an id.
    pub object: String,
    /// What else is worth knowing; an object.
    pub detail: Value,
}

impl Act {
    /// Somebody does something to something.
    pub fn new(who: &str, address: Option<IpAddr>, what: Deed, object: &str) -> Self {
        Self { who: who.to_owned(), address, what, object: object.to_owned(), detail: json!({}) }
    }

    /// The owner of the data folder does something, by a command on the server's own machine.
    pub fn by_owner(what: Deed, object: &str) -> Self {
        Self::new(OWNER, None, what, object)
    }

    /// With what else is worth knowing.
    #[must_use]
    pub fn with(self, detail: Value) -> Self {
        Self { detail, ..self }
    }
}

/// Who acts on the data folder without logging in.
pub const OWNER: &str = "owner of the data folder";

/// Who did not get as far as having a name.
pub const SOMEBODY: &str = "somebody";

/// Who reduces series: nobody is asked each time.
pub const SERIES_RULE: &str = "rule for series";

/// Whether a person may have this name: none that the log has for somebody else.
pub fn is_name_of_a_person(name: &str) -> bool {
    // Neither may it only look like one.
    let shape = |text: &str| looks(&text.to_lowercase()).to_lowercase();
    let name = shape(name);
    ![OWNER, SOMEBODY, SERIES_RULE].map(shape).contains(&name)
        && !["token ", "agent "].map(shape).iter().any(|prefix| name.starts_with(prefix))
}

/// One entry of the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Counts up; later entries have larger ones.
    pub id: i64,
    /// Unix ms.
    pub at_ms: i64,
    /// The person, `token NAME`, or who acted without either.
    pub who: String,
    /// What was done.
    pub what: String,
    /// To what: a name or an id.
    pub object: String,
    /// What else is worth knowing.
    #[schema(value_type = Object)]
    pub detail: Value,
    /// Where the caller was.
    pub address: Option<String>,
}

impl Entry {
    /// The detail in words: `role: admin, sessions: 3`.
    pub fn told(&self) -> String {
        let Value::Object(fields) = &self.detail else { return String::new() };
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{}: {}", name.replace('_', " "), text(value)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// A page of the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EntryList {
    /// Newest first.
    pub entries: Vec<Entry>,
    /// What `before` must be for the next page; null where there is none.
    pub next: Option<i64>,
}

/// Which entries are wanted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// Exactly this name.
    pub who: Option<String>,
    /// Exactly these words.
    pub what: Option<String>,
    /// From this day on, `2026-03-04` in UTC.
    pub from: Option<String>,
    /// Up to and with this day, `2026-03-04` in UTC.
    pub to: Option<String>,
    /// Only entries before the one with this id.
    pub before: Option<i64>,
    /// At most so many; 100 unless told, 1000 at most.
    pub limit: Option<i64>,
}

/// Which entries are wanted, as the store is asked for them.
#[derive(Clone, Debug)]
pub struct Range {
    /// Exactly this name.
    pub who: Option<String>,
    /// Exactly these words.
    pub what: Option<String>,
    /// From this time on, unix ms.
    pub from_ms: i64,
    /// Before this time, unix ms.
    pub until_ms: i64,
    /// Only entries before the one with this id.
    pub before: i64,
    /// At most so many.
    pub limit: i64,
}

impl Wanted {
    /// Checks it. What a form left empty is not asked for.
    pub fn range(&self) -> Result<Range> {
        let given =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Range {
            who: given(&self.who),
            what: given(&self.what),
            from_ms: given(&self.from).map_or(Ok(i64::MIN), |text| day("from", &text).map(|(start, _)| start))?,
            until_ms: given(&self.to).map_or(Ok(i64::MAX), |text| day("to", &text).map(|(_, end)| end))?,
            before: self.before.unwrap_or(i64::MAX),
            limit: self.limit.unwrap_or(100).clamp(1, 1_000),
        })
    }
}

/// When a day begins and ends, unix ms.
fn day(field: &str, text: &str) -> Result<(i64, i64)> {
    let bad = || Error::Invalid(format!("{field}: {text:?} is no day such as 2026-03-04"));
    let date: Date = text.parse().map_err(|_| bad())?;
    let start =
        |date: Date| date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp().as_millisecond()).map_err(|_| bad());
    Ok((start(date)?, start(date.tomorrow().map_err(|_| bad())?)?))
}

/// The first line of an export for spreadsheets.
pub const CSV_HEAD: &str = "time,who,what,object,detail,address\r\n";

/// One line of an export for spreadsheets.
pub fn csv_line(entry: &Entry) -> String {
    let at = Timestamp::from_millisecond(entry.at_ms).map(|at| at.to_string()).unwrap_or_default();
    let detail = entry.told();
    let cells = [&at, &entry.who, &entry.what, &entry.object, &detail, entry.address.as_deref().unwrap_or_default()];
    let line: Vec<_> = cells.into_iter().map(csv_cell).collect();
    format!("{}\r\n", line.join(","))
}

/// One cell. A spreadsheet takes what begins like a formula for one, so that is marked as text.
fn csv_cell(text: &str) -> String {
    let marked = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if marked.contains([',', '"', '\n', '\r']) { format!("\"{}\"", marked.replace('"', "\"\"")) } else { marked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_text_whatever_it_begins_with() {
        for (text, cell) in [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("=a,b", "\"'=a,b\""),
        ] {
            assert_eq!(csv_cell(text), cell, "{text:?}");
        }
    }

    #[test]
    fn a_day_is_a_whole_one_in_utc() {
        let wanted =
            |from: &str, to: &str| Wanted { from: Some(from.into()), to: Some(to.into()), ..Wanted::default() };
        let range = wanted("2026-03-04", "2026-03-04").range().expect("a day");
        assert_eq!((range.until_ms - range.from_ms, range.from_ms), (86_400_000, 1_772_582_400_000));
        let open = wanted("", " ").range().expect("everything");
        assert_eq!((open.from_ms, open.until_ms), (i64::MIN, i64::MAX));
        for bad in ["yesterday", "2026-13-01", "9999-12-31"] {
            let told = wanted("", bad).range().expect_err(bad).to_string();
            assert!(told.starts_with("to: ") && told.contains(bad), "{told}");
        }
    }

    #[test]
    fn details_are_told_in_words() {
        let act = Act::by_owner(Deed::TokenMade, "ci").with(json!({"scope": "read", "expires_in_days": 7}));
        let entry = Entry {
            id: 1,
            at_ms: 0,
            who: act.who,
            what: act.what.as_str().to_owned(),
            object: act.object,
            detail: act.detail,
            address: None,
        };
        assert_eq!(entry.told(), "expires in days: 7, scope: read");
        assert_eq!(
            csv_line(&entry),
            "1970-01-01T00:00:00Z,owner of the data folder,token made,ci,\"expires in days: 7, scope: read\",\r\n"
        );
    }
}
