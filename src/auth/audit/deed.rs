//! Every act that the audit log records. Pure.

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// With a passkey.
    LoggedIn,
    /// A passkey that was not accepted. Nobody is named: nothing was proven.
    LoginRefused,
    /// With a passkey, by somebody who was logged in.
    Confirmed,
    /// A person ended her own session.
    LoggedOut,
    /// A new person, by invitation.
    Registered,
    /// A person got another passkey by an invitation that an administrator made for her.
    Recovered,
    /// A further passkey of somebody who is logged in.
    PasskeyAdded,
    /// Another name for it.
    PasskeyRenamed,
    /// One of several.
    PasskeyRemoved,
    /// On another device.
    SessionEnded,
    /// All but the one that said so.
    SessionsEnded,
    /// A registration link.
    InvitationMade,
    /// Before it was used.
    InvitationWithdrawn,
    /// Of a person.
    RoleChanged,
    /// With passkeys, sessions and tokens.
    PersonRemoved,
    /// For programs.
    TokenMade,
    /// For good.
    TokenRevoked,
    /// A new agent.
    AgentKeyMade,
    /// For good.
    AgentKeyRevoked,
    /// It exchanged its one-time key for a key of its own.
    AgentEnrolled,
    /// An agent is to make itself another key.
    AgentKeyChangeAsked,
    /// It uses it; the one before opens nothing any more.
    AgentKeyChanged,
    /// It finishes what it does and gets nothing more.
    AgentDrained,
    /// It is not let in.
    AgentDisabled,
    /// It gets runs again.
    AgentEnabled,
    /// Its runs as well.
    AgentRenamed,
    /// The runs stay.
    AgentForgotten,
    /// What people call it.
    AgentLabelsChanged,
    /// Before all others that wait.
    RunPutFirst,
    /// With its figures.
    RunDeleted,
    /// Within the time in which that goes.
    RunRestored,
    /// A saved view of the history.
    ViewRemoved,
    /// A machine size.
    SizeAdded,
    /// One that no run has had.
    SizeRemoved,
    /// One that nobody offers and no run uses.
    TargetRemoved,
    /// A scenario or another revision of one.
    ScenarioAdded,
    /// From where on figures speak against runs of a scenario.
    LimitsChanged,
    /// From what is stored.
    RunsRejudged,
    /// Runs under a name, in place of those that it had.
    BaselineSet,
    /// The runs stay.
    BaselineRemoved,
    /// A link to a comparison that needs no login.
    ShareMade,
    /// For good.
    ShareRevoked,
    /// None of its runs is begun.
    ExperimentPaused,
    /// They are begun again.
    ExperimentResumed,
    /// What was left of it.
    ExperimentCancelled,
    /// Of an experiment.
    RepetitionsAdded,
    /// A copy of the database.
    BackupMade,
    /// A backup took the place of the database.
    Restored,
    /// How long series are kept.
    SeriesRuleSet,
    /// Series were thinned or deleted by that rule.
    SeriesReduced,
    /// From when on something is an alert.
    AlertRuleSet,
    /// Where events are sent.
    WebhookAdded,
    /// With what was to be sent to it.
    WebhookRemoved,
    /// In the work of two targets, so that their speed is compared anyway.
    DifferenceAccepted,
    /// Their speed is not compared any more.
    DifferenceRevoked,
}
