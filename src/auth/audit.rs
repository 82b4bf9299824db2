//! The audit log: who did what to what, when and from where. An entry is written in the transaction of its action and
//! kept for a year.

pub mod action;

use std::{net::IpAddr, time::Duration};

use brewbench_wire::name::{appearances, lookalike};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

pub use crate::auth::store::audit::{commit, record};
use crate::{
    app::{
        error::{Error, Result},
        paging,
    },
    auth::audit::action::Action,
};

/// Retention of entries.
pub const KEPT: Duration = Duration::from_hours(366 * 24);

impl Action {
    /// All actions, for lists.
    pub const ALL: [Self; 56] = [
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
        Self::PresetChanged,
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

    /// Returns the text stored in the database and shown in JSON and on pages.
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
            Self::InvitationMade => "invitation created",
            Self::InvitationWithdrawn => "invitation withdrawn",
            Self::RoleChanged => "role changed",
            Self::PersonRemoved => "user removed",
            Self::TokenMade => "token created",
            Self::TokenRevoked => "token revoked",
            Self::AgentKeyMade => "agent key created",
            Self::AgentKeyRevoked => "agent key revoked",
            Self::AgentEnrolled => "agent enrolled",
            Self::AgentKeyChangeAsked => "agent key rotation requested",
            Self::AgentKeyChanged => "agent key rotated",
            Self::AgentDrained => "agent drained",
            Self::AgentDisabled => "agent disabled",
            Self::AgentEnabled => "agent enabled",
            Self::AgentRenamed => "agent renamed",
            Self::AgentForgotten => "agent removed",
            Self::AgentLabelsChanged => "agent labels changed",
            Self::RunPutFirst => "run moved to front",
            Self::RunDeleted => "run deleted",
            Self::RunRestored => "run restored",
            Self::ViewRemoved => "view removed",
            Self::PresetChanged => "preset changed",
            Self::SizeAdded => "size added",
            Self::SizeRemoved => "size removed",
            Self::TargetRemoved => "target removed",
            Self::ScenarioAdded => "scenario added",
            Self::LimitsChanged => "limits changed",
            Self::RunsRejudged => "runs rejudged",
            Self::BaselineSet => "baseline set",
            Self::BaselineRemoved => "baseline removed",
            Self::ShareMade => "comparison shared",
            Self::ShareRevoked => "share revoked",
            Self::ExperimentPaused => "experiment paused",
            Self::ExperimentResumed => "experiment resumed",
            Self::ExperimentCancelled => "experiment cancelled",
            Self::RepetitionsAdded => "repetitions added",
            Self::BackupMade => "backup created",
            Self::Restored => "database restored",
            Self::SeriesRuleSet => "retention set",
            Self::SeriesReduced => "series reduced",
            Self::AlertRuleSet => "alert rule set",
            Self::WebhookAdded => "webhook added",
            Self::WebhookRemoved => "webhook removed",
            Self::ChangeAnnotated => "change annotated",
            Self::DifferenceAccepted => "difference accepted",
            Self::DifferenceRevoked => "difference revoked",
        }
    }
}

/// An action to be logged.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    /// The caller's name.
    pub actor: String,
    /// The caller's address; none for commands on the data folder.
    pub address: Option<IpAddr>,
    /// The action.
    pub action: Action,
    /// The object of the action: a name or an id.
    pub object: String,
    /// Further details, as a JSON object.
    pub detail: Value,
}

impl AuditEvent {
    /// Creates an entry without details.
    pub fn new(actor: &str, address: Option<IpAddr>, action: Action, object: &str) -> Self {
        Self { actor: actor.to_owned(), address, action, object: object.to_owned(), detail: json!({}) }
    }

    /// Creates an entry for a command on the data folder, run on the server's machine.
    pub fn by_owner(action: Action, object: &str) -> Self {
        Self::new(OWNER, None, action, object)
    }

    /// Adds details.
    #[must_use]
    pub fn with(self, detail: Value) -> Self {
        Self { detail, ..self }
    }
}

/// The name in the log for commands on the data folder, which need no login.
pub const OWNER: &str = "owner of the data folder";

/// The name in the log for callers without authentication.
pub const ANONYMOUS: &str = "anonymous";

/// The name in the log for automatic retention of series.
pub const SERIES_RULE: &str = "rule for series";

/// Returns whether a user may have this name: it must not look like one that the log reserves.
pub fn is_valid_user_name(name: &str) -> bool {
    let starts_like = |prefix: &str| {
        let shapes = appearances(prefix);
        appearances(name).iter().zip(&shapes).any(|(shape, prefix)| shape.starts_with(prefix))
    };
    let reserved = [OWNER, ANONYMOUS, SERIES_RULE];
    !reserved.contains(&name)
        && lookalike(name, reserved).is_none()
        && !["token ", "agent "].into_iter().any(starts_like)
}

/// One entry of the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Increases with each entry.
    pub id: i64,
    /// Unix ms.
    pub at_ms: i64,
    /// The user, `token NAME`, or a reserved name for actions without a login.
    pub actor: String,
    /// The action.
    pub action: String,
    /// The object of the action: a name or an id.
    pub object: String,
    /// Further details.
    #[schema(value_type = Object)]
    pub detail: Value,
    /// The caller's address.
    pub address: Option<String>,
}

impl Entry {
    /// Formats the details as text: `role: admin, sessions: 3`.
    pub fn describe(&self) -> String {
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
    /// Value of `after` for the next page; null on the last page.
    pub next: Option<i64>,
}

/// Filters of the audit log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditFilter {
    /// Exact name.
    pub actor: Option<String>,
    /// Exact action.
    pub action: Option<String>,
    /// First day, `2026-03-04` in UTC.
    pub from: Option<String>,
    /// Last day (inclusive), `2026-03-04` in UTC.
    pub to: Option<String>,
    /// Only entries after this one in the list: `next` of the previous page.
    pub after: Option<i64>,
    /// Maximum number of entries: 100 by default, at most 1000.
    pub limit: Option<u32>,
}

/// Checked filters, as the store takes them.
#[derive(Clone, Debug)]
pub struct Range {
    /// Exact name.
    pub actor: Option<String>,
    /// Exact action.
    pub action: Option<String>,
    /// Start, inclusive, unix ms.
    pub from_ms: i64,
    /// End, exclusive, unix ms.
    pub until_ms: i64,
    /// Only entries after this one, which are older.
    pub after: i64,
    /// Maximum number of entries.
    pub limit: u32,
}

impl AuditFilter {
    /// Checks the filters. Empty form fields do not filter.
    pub fn range(&self) -> Result<Range> {
        let given =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        Ok(Range {
            actor: given(&self.actor),
            action: given(&self.action),
            from_ms: given(&self.from).map_or(Ok(i64::MIN), |text| day("from", &text).map(|(start, _)| start))?,
            until_ms: given(&self.to).map_or(Ok(i64::MAX), |text| day("to", &text).map(|(_, end)| end))?,
            after: self.after.unwrap_or(i64::MAX),
            limit: paging::limit(self.limit, 100, 1_000)?,
        })
    }
}

/// Returns the start and the end of a day, unix ms.
fn day(field: &str, text: &str) -> Result<(i64, i64)> {
    let bad = || Error::Invalid(format!("{field}: {text:?} is not a date, write it as 2026-03-04"));
    let date: Date = text.parse().map_err(|_| bad())?;
    let start =
        |date: Date| date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp().as_millisecond()).map_err(|_| bad());
    Ok((start(date)?, start(date.tomorrow().map_err(|_| bad())?)?))
}

/// Header line of a CSV export.
pub const CSV_HEAD: &str = "time,actor,action,object,detail,address\r\n";

/// Formats an entry as a line of a CSV export.
pub fn csv_line(entry: &Entry) -> String {
    let at = Timestamp::from_millisecond(entry.at_ms).map(|at| at.to_string()).unwrap_or_default();
    let detail = entry.describe();
    let cells =
        [&at, &entry.actor, &entry.action, &entry.object, &detail, entry.address.as_deref().unwrap_or_default()];
    let line: Vec<_> = cells.into_iter().map(csv_cell).collect();
    format!("{}\r\n", line.join(","))
}

/// Formats a CSV cell. A leading apostrophe keeps spreadsheets from evaluating text as a formula.
fn csv_cell(text: &str) -> String {
    let marked = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if marked.contains([',', '"', '\n', '\r']) { format!("\"{}\"", marked.replace('"', "\"\"")) } else { marked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_in_cells_are_escaped() {
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
    fn days_are_complete_days_in_utc() {
        let wanted = |from: &str, to: &str| AuditFilter {
            from: Some(from.into()),
            to: Some(to.into()),
            ..AuditFilter::default()
        };
        let range = wanted("2026-03-04", "2026-03-04").range().expect("a day");
        assert_eq!((range.until_ms - range.from_ms, range.from_ms), (86_400_000, 1_772_582_400_000));
        let open = wanted("", " ").range().expect("everything");
        assert_eq!((open.from_ms, open.until_ms), (i64::MIN, i64::MAX));
        for bad in ["yesterday", "2026-13-01", "9999-12-31"] {
            let error = wanted("", bad).range().expect_err(bad).to_string();
            assert!(error.starts_with("to: ") && error.contains(bad), "{error}");
        }
    }

    #[test]
    fn details_are_formatted_as_text() {
        let act = AuditEvent::by_owner(Action::TokenMade, "ci").with(json!({"scope": "read", "expires_in_days": 7}));
        let entry = Entry {
            id: 1,
            at_ms: 0,
            actor: act.actor,
            action: act.action.as_str().to_owned(),
            object: act.object,
            detail: act.detail,
            address: None,
        };
        assert_eq!(entry.describe(), "expires in days: 7, scope: read");
        assert_eq!(
            csv_line(&entry),
            "1970-01-01T00:00:00Z,owner of the data folder,token created,ci,\"expires in days: 7, scope: read\",\r\n"
        );
    }
}
