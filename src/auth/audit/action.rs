//! The actions that the audit log records. Pure.

/// An action in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Logged in with a passkey.
    LoggedIn,
    /// A passkey was not accepted. The entry names no user, because nothing was proven.
    LoginRefused,
    /// A logged-in user confirmed their identity with a passkey.
    Confirmed,
    /// A user ended their own session.
    LoggedOut,
    /// A new user registered with an invitation.
    Registered,
    /// A user registered another passkey with a recovery link.
    Recovered,
    /// A logged-in user added a passkey.
    PasskeyAdded,
    /// A user renamed a passkey.
    PasskeyRenamed,
    /// A user removed one of several passkeys.
    PasskeyRemoved,
    /// A user ended a session on another device.
    SessionEnded,
    /// A user ended all sessions except the current one.
    SessionsEnded,
    /// A registration link was created.
    InvitationMade,
    /// An unused invitation was withdrawn.
    InvitationWithdrawn,
    /// A user's role changed.
    RoleChanged,
    /// A user was removed with all passkeys, sessions and tokens.
    PersonRemoved,
    /// An API token was created.
    TokenMade,
    /// An API token was revoked.
    TokenRevoked,
    /// A one-time key for a new agent was created.
    AgentKeyMade,
    /// An agent's key was revoked.
    AgentKeyRevoked,
    /// An agent exchanged its one-time key for its own key.
    AgentEnrolled,
    /// An agent was asked to rotate its key.
    AgentKeyChangeAsked,
    /// An agent rotated its key; the old one no longer works.
    AgentKeyChanged,
    /// An agent finishes its runs and gets no more.
    AgentDrained,
    /// An agent may no longer connect.
    AgentDisabled,
    /// An agent gets runs again.
    AgentEnabled,
    /// An agent was renamed, also in its runs.
    AgentRenamed,
    /// An agent was removed; its runs stay.
    AgentForgotten,
    /// An agent's labels changed.
    AgentLabelsChanged,
    /// A run was moved to the front of the queue.
    RunPutFirst,
    /// A run was deleted with its results.
    RunDeleted,
    /// A deleted run was restored in time.
    RunRestored,
    /// A saved view of the history was removed. Only in old entries.
    ViewRemoved,
    /// A preset of the form for a new run was saved, replaced or deleted. Only in old entries.
    PresetChanged,
    /// A machine size was added.
    SizeAdded,
    /// An unused machine size was removed.
    SizeRemoved,
    /// A target that no agent offers and no run uses was removed.
    TargetRemoved,
    /// A scenario or a revision of one was added.
    ScenarioAdded,
    /// The limits for runs of a scenario changed.
    LimitsChanged,
    /// Stored runs were judged again.
    RunsRejudged,
    /// The runs of a baseline were set.
    BaselineSet,
    /// A baseline was removed; its runs stay.
    BaselineRemoved,
    /// A share link to a comparison was created.
    ShareMade,
    /// A share link was revoked.
    ShareRevoked,
    /// An experiment starts no more runs for now.
    ExperimentPaused,
    /// An experiment starts runs again.
    ExperimentResumed,
    /// The remaining runs of an experiment were cancelled.
    ExperimentCancelled,
    /// Repetitions were added to an experiment.
    RepetitionsAdded,
    /// A copy of the database was written.
    BackupMade,
    /// A backup replaced the database.
    Restored,
    /// The retention of series changed.
    SeriesRuleSet,
    /// Retention downsampled or deleted series.
    SeriesReduced,
    /// The thresholds of an alert changed.
    AlertRuleSet,
    /// A webhook was added.
    WebhookAdded,
    /// A webhook was removed with its pending deliveries.
    WebhookRemoved,
    /// A change in a trend was confirmed, dismissed or opened again.
    ChangeAnnotated,
    /// A difference in the work of two targets was accepted, so that their speed is compared anyway.
    DifferenceAccepted,
    /// An accepted difference was revoked, so that their speed is no longer compared.
    DifferenceRevoked,
}
