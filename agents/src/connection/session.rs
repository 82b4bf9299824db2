//! What an agent does next: turns inputs into effects, which [`crate::connection::daemon`] carries out. Pure.

use brewbench_wire::job::Job;
use brewbench_wire::messages::{AgentMessage, Finding, Gate, ServerMessage};
use brewbench_wire::scenario::Scenario;
use brewbench_wire::scenarios;
use brewbench_wire::{Phase, RunId};
use uuid::Uuid;

use crate::run::barrier::Opening;

/// Which scripts an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Those bundled with the program.
    BundledScenarios,
    /// Any script that the server sends.
    AnyScenario,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The server sent a message.
    Server(ServerMessage),
    /// A new connection is open.
    Connected,
    /// The current job entered a phase.
    Phase(RunId, Phase),
    /// The current part of a distributed run is at a gate; with the target's URL if the target runs here.
    At(RunId, Gate, Option<String>),
    /// The current job has ended and left nothing behind.
    Over(RunId),
    /// The inspection of a script has ended and left nothing behind.
    Inspected(Uuid, Finding),
    /// The agent shall stop.
    Shutdown,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this if there is a connection.
    Send(AgentMessage),
    /// Start this job.
    Start(Box<Job>),
    /// Stop the current job; [`Input::Over`] follows.
    Stop,
    /// Inspect a script with k6.
    Inspect(Uuid, Box<Scenario>),
    /// Stop the inspection and wait until it has left nothing behind.
    StopInspecting,
    /// Store the outcomes of the last job, then report that it is done.
    Keep(RunId),
    /// Drop the outcomes of the last job: its runs were handed back.
    Forget,
    /// Pass on that a gate of the current job has opened.
    Open(Opening),
    /// Report the time of this machine.
    ReportClock {
        /// Timestamp of the request, returned as it is.
        sent_ms: i64,
    },
    /// Create another key and use it, in the background.
    ChangeKey,
}

/// Why a stopping agent declines work.
const STOPPING: &str = "the agent is stopping";

/// The agent's view of its work; outlives connections.
#[derive(Clone, Debug)]
pub struct Session {
    accepts: Accepts,
    work: Work,
    /// The gate where the current job waits, sent again at each connection.
    at: Option<(Gate, Option<String>)>,
    stopping: bool,
    /// Why it takes no runs.
    fault: Option<String>,
}

/// The runs of a job: one, or the two of a duet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Runs {
    run: RunId,
    partner: Option<RunId>,
}

impl Runs {
    fn of(job: &Job) -> Self {
        Self { run: job.run, partner: job.partner.as_ref().map(|partner| partner.run) }
    }

    fn all(self) -> impl Iterator<Item = RunId> {
        [self.run].into_iter().chain(self.partner)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    None,
    Running(Runs),
    /// Being stopped; another agent will run it.
    HandedBack(Runs),
    /// k6 inspects a script; a job takes precedence.
    Inspecting(Uuid),
}

impl Session {
    /// Creates the session of a starting agent.
    pub fn new(accepts: Accepts) -> Self {
        Self { accepts, work: Work::None, at: None, stopping: false, fault: None }
    }

    /// Returns the current run unless it was handed back; of a duet, that with which the server started it.
    pub fn running(&self) -> Option<RunId> {
        self.current().map(|runs| runs.run)
    }

    /// Returns the current runs unless they were handed back: none, one, or the two of a duet.
    pub fn all_running(&self) -> Vec<RunId> {
        self.current().into_iter().flat_map(Runs::all).collect()
    }

    fn current(&self) -> Option<Runs> {
        match self.work {
            Work::Running(runs) => Some(runs),
            Work::None | Work::HandedBack(_) | Work::Inspecting(_) => None,
        }
    }

    fn is_running(&self, run: RunId) -> bool {
        self.current().is_some_and(|runs| runs.all().any(|own| own == run))
    }

    /// Sets why the agent takes no runs; `None` if it does.
    pub fn set_fault(&mut self, fault: Option<String>) {
        self.fault = fault;
    }

    /// Whether the agent waits for work.
    pub fn is_idle(&self) -> bool {
        !self.stopping && self.work == Work::None
    }

    /// Whether the agent may exit: it is stopping and has no work.
    pub fn is_over(&self) -> bool {
        self.stopping && self.work == Work::None
    }

    /// Returns the effects of an input.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Server(ServerMessage::Start(job)) => self.start(job),
            Input::Server(ServerMessage::Cancel { run }) if self.is_running(run) => vec![Effect::Stop],
            Input::Phase(run, phase) if self.is_running(run) && !phase.is_final() => {
                vec![Effect::Send(AgentMessage::Phase { run, phase })]
            }
            Input::At(run, gate, base_url) if self.is_running(run) => {
                self.at = Some((gate, base_url));
                self.report_gate()
            }
            Input::Connected => self.report_gate(),
            Input::Server(ServerMessage::Pass { run, gate, at_ms, base_url }) => {
                self.open(run, Opening { gate, at_ms, base_url })
            }
            Input::Server(ServerMessage::Clock { sent_ms }) => vec![Effect::ReportClock { sent_ms }],
            Input::Server(ServerMessage::Inspect { id, scenario }) => self.inspect(id, scenario),
            Input::Inspected(id, finding) if self.work == Work::Inspecting(id) => {
                self.work = Work::None;
                vec![inspected(id, finding)]
            }
            Input::Server(ServerMessage::ChangeKey) => vec![Effect::ChangeKey],
            Input::Server(_) | Input::Phase(..) | Input::At(..) | Input::Inspected(..) => Vec::new(),
            Input::Over(run) => self.over(run),
            Input::Shutdown => self.shutdown(),
        }
    }

    fn start(&mut self, job: Box<Job>) -> Vec<Effect> {
        let foreign = !self.is_accepted(&job.scenario);
        let reason = match self.work {
            // Sent again after a connection broke: already running.
            Work::Running(runs) if runs.run == job.run => return Vec::new(),
            Work::Running(runs) | Work::HandedBack(runs) => Some(format!("the agent is busy with run {}", runs.run)),
            Work::None if self.stopping => Some(STOPPING.to_owned()),
            Work::None if foreign => {
                Some(format!("the agent runs only bundled scenarios, and {:?} is not one", job.scenario.name))
            }
            Work::None | Work::Inspecting(_) => self.fault.clone().or_else(|| job.fault()),
        };
        let runs = Runs::of(&job);
        if let Some(reason) = reason {
            return declined(runs, &reason);
        }
        // Nothing may run beside a measurement.
        let mut effects = self.stop_inspecting("a run has started");
        self.work = Work::Running(runs);
        effects.push(Effect::Start(job));
        effects
    }

    fn is_accepted(&self, scenario: &Scenario) -> bool {
        self.accepts == Accepts::AnyScenario || scenarios::is_bundled(scenario)
    }

    fn inspect(&mut self, id: Uuid, scenario: Box<Scenario>) -> Vec<Effect> {
        let reason = match self.work {
            _ if self.stopping => STOPPING,
            Work::None if self.is_accepted(&scenario) => {
                self.work = Work::Inspecting(id);
                return vec![Effect::Inspect(id, scenario)];
            }
            Work::None => "the agent accepts only bundled scenarios",
            Work::Running(_) | Work::HandedBack(_) | Work::Inspecting(_) => "the agent is busy",
        };
        vec![inspected(id, Finding::Declined { reason: reason.to_owned() })]
    }

    fn stop_inspecting(&mut self, reason: &str) -> Vec<Effect> {
        let Work::Inspecting(id) = self.work else { return Vec::new() };
        self.work = Work::None;
        vec![Effect::StopInspecting, inspected(id, Finding::Declined { reason: reason.to_owned() })]
    }

    fn report_gate(&self) -> Vec<Effect> {
        let (Some(run), Some((gate, base_url))) = (self.running(), &self.at) else { return Vec::new() };
        vec![Effect::Send(AgentMessage::At { run, gate: *gate, base_url: base_url.clone() })]
    }

    fn open(&mut self, run: RunId, opening: Opening) -> Vec<Effect> {
        let waits = self.at.as_ref().is_some_and(|(gate, _)| *gate == opening.gate);
        if !self.is_running(run) || !waits {
            return Vec::new();
        }
        self.at = None;
        vec![Effect::Open(opening)]
    }

    fn over(&mut self, run: RunId) -> Vec<Effect> {
        self.at = None;
        match std::mem::replace(&mut self.work, Work::None) {
            Work::Running(runs) if runs.run == run => vec![Effect::Keep(run)],
            _ => vec![Effect::Forget],
        }
    }

    fn shutdown(&mut self) -> Vec<Effect> {
        self.stopping = true;
        if let Work::Inspecting(_) = self.work {
            return self.stop_inspecting(STOPPING);
        }
        let Some(runs) = self.current() else { return Vec::new() };
        self.work = Work::HandedBack(runs);
        let mut effects = declined(runs, STOPPING);
        effects.push(Effect::Stop);
        effects
    }
}

fn declined(runs: Runs, reason: &str) -> Vec<Effect> {
    runs.all().map(|run| Effect::Send(AgentMessage::Declined { run, reason: reason.to_owned() })).collect()
}

fn inspected(id: Uuid, finding: Finding) -> Effect {
    Effect::Send(AgentMessage::Inspected { id, finding })
}

#[cfg(test)]
mod tests {
    use brewbench_wire::samples::a_job;

    use brewbench_wire::messages::ScriptReport;

    use super::*;

    fn job() -> Box<Job> {
        Box::new(a_job())
    }

    fn start(session: &mut Session, job: &Job) -> Vec<Effect> {
        session.step(Input::Server(ServerMessage::Start(Box::new(job.clone()))))
    }

    #[test]
    fn a_job_is_started_reported_and_kept() {
        let (mut session, job) = (Session::new(Accepts::BundledScenarios), job());
        assert_eq!(start(&mut session, &job), [Effect::Start(job.clone())]);
        let phase = Phase::Measuring;
        let report = Effect::Send(AgentMessage::Phase { run: job.run, phase });
        assert_eq!(session.step(Input::Phase(job.run, phase)), [report]);
        assert_eq!((session.running(), session.is_idle()), (Some(job.run), false));
        assert_eq!(session.step(Input::Over(job.run)), [Effect::Keep(job.run)]);
        assert_eq!((session.running(), session.is_idle()), (None, true));
    }

    #[test]
    fn one_job_runs_at_a_time_and_a_repeated_start_is_ignored() {
        let (mut session, first, second) = (Session::new(Accepts::AnyScenario), job(), job());
        start(&mut session, &first);
        assert_eq!(start(&mut session, &first), []);
        let declined = start(&mut session, &second);
        assert!(matches!(&declined[..], [Effect::Send(AgentMessage::Declined { run, .. })] if *run == second.run));
    }

    #[test]
    fn a_foreign_script_is_declined_unless_accepted() {
        let mut foreign = job();
        foreign.scenario = foreign.scenario.with_default("CHANGED", "1");
        let declined = start(&mut Session::new(Accepts::BundledScenarios), &foreign);
        assert!(matches!(&declined[..], [Effect::Send(AgentMessage::Declined { .. })]));
        assert_eq!(start(&mut Session::new(Accepts::AnyScenario), &foreign), [Effect::Start(foreign)]);
    }

    #[test]
    fn a_cancellation_stops_only_the_named_run() {
        let (mut session, job) = (Session::new(Accepts::AnyScenario), job());
        start(&mut session, &job);
        assert_eq!(session.step(Input::Server(ServerMessage::Cancel { run: RunId::now() })), []);
        assert_eq!(session.step(Input::Server(ServerMessage::Cancel { run: job.run })), [Effect::Stop]);
        assert_eq!(session.step(Input::Over(job.run)), [Effect::Keep(job.run)]);
    }

    #[test]
    fn shutdown_hands_the_run_back_and_drops_its_outcome() {
        let (mut session, job) = (Session::new(Accepts::AnyScenario), job());
        start(&mut session, &job);
        let effects = session.step(Input::Shutdown);
        assert!(matches!(&effects[..], [Effect::Send(AgentMessage::Declined { .. }), Effect::Stop]));
        assert!(!session.is_over());
        assert_eq!(session.running(), None);
        assert_eq!(session.step(Input::Over(job.run)), [Effect::Forget]);
        assert!(session.is_over());
        assert!(matches!(&start(&mut session, &job)[..], [Effect::Send(AgentMessage::Declined { .. })]));
    }

    #[test]
    fn a_waiting_run_reports_its_gate_at_each_connection_until_it_opens() {
        let (mut session, job) = (Session::new(Accepts::BundledScenarios), job());
        let (run, gate) = (job.run, Gate::Measure);
        start(&mut session, &job);
        assert_eq!(session.step(Input::Connected), []);
        let report = [Effect::Send(AgentMessage::At { run, gate, base_url: None })];
        assert_eq!(session.step(Input::At(run, gate, None)), report);
        assert_eq!(session.step(Input::Connected), report);
        let pass = |run, gate| {
            Input::Server(ServerMessage::Pass { run, gate, at_ms: 7, base_url: "http://10.0.0.5:1".to_owned() })
        };
        for stray in [pass(run, Gate::Load), pass(RunId::now(), gate)] {
            assert_eq!(session.step(stray), []);
        }
        let opening = Opening { gate, at_ms: 7, base_url: "http://10.0.0.5:1".to_owned() };
        assert_eq!(session.step(pass(run, gate)), [Effect::Open(opening)]);
        assert_eq!(session.step(pass(run, gate)), [], "a gate opens once");
        assert_eq!(session.step(Input::Connected), []);
        session.step(Input::At(run, Gate::End, None));
        session.step(Input::Over(run));
        assert_eq!(session.step(Input::Connected), [], "the run is over");
        let request = Input::Server(ServerMessage::Clock { sent_ms: 3 });
        assert_eq!(session.step(request), [Effect::ReportClock { sent_ms: 3 }]);
    }

    #[test]
    fn a_key_change_is_accepted_at_any_time() {
        let (mut session, job) = (Session::new(Accepts::AnyScenario), job());
        for _ in 0..2 {
            assert_eq!(session.step(Input::Server(ServerMessage::ChangeKey)), [Effect::ChangeKey]);
            start(&mut session, &job);
        }
        assert_eq!(session.running(), Some(job.run));
    }

    fn inspect(session: &mut Session, id: Uuid, scenario: &Scenario) -> Vec<Effect> {
        session.step(Input::Server(ServerMessage::Inspect { id, scenario: Box::new(scenario.clone()) }))
    }

    fn declined(effects: &[Effect], requested: Uuid) -> bool {
        let declines = |finding: &Finding| matches!(finding, Finding::Declined { .. });
        matches!(effects, [.., Effect::Send(AgentMessage::Inspected { id, finding })]
            if *id == requested && declines(finding))
    }

    #[test]
    fn only_an_idle_agent_inspects_a_script() {
        let (mut session, job, id) = (Session::new(Accepts::AnyScenario), job(), Uuid::now_v7());
        let effect = Effect::Inspect(id, Box::new(job.scenario.clone()));
        assert_eq!(inspect(&mut session, id, &job.scenario), [effect]);
        assert!(declined(&inspect(&mut session, job.run.0, &job.scenario), job.run.0), "one at a time");
        let report = Effect::Send(AgentMessage::Inspected { id, finding: Finding::Valid(ScriptReport::default()) });
        assert_eq!(session.step(Input::Inspected(id, Finding::Valid(ScriptReport::default()))), [report]);
        start(&mut session, &job);
        assert!(declined(&inspect(&mut session, id, &job.scenario), id), "never beside a run");
        let mut foreign = job.scenario.clone();
        foreign = foreign.with_default("CHANGED", "1");
        assert!(declined(&inspect(&mut Session::new(Accepts::BundledScenarios), id, &foreign), id));
    }

    #[test]
    fn a_run_and_a_shutdown_take_precedence_over_an_inspection() {
        let (mut session, job, id) = (Session::new(Accepts::AnyScenario), job(), Uuid::now_v7());
        inspect(&mut session, id, &job.scenario);
        let effects = start(&mut session, &job);
        assert_eq!(effects.first(), Some(&Effect::StopInspecting));
        assert_eq!(effects.last(), Some(&Effect::Start(job.clone())));
        assert!(declined(&effects[..2], id));
        assert_eq!(session.step(Input::Inspected(id, Finding::Valid(ScriptReport::default()))), [], "already reported");

        let mut session = Session::new(Accepts::AnyScenario);
        inspect(&mut session, id, &job.scenario);
        let effects = session.step(Input::Shutdown);
        assert!(effects.first() == Some(&Effect::StopInspecting) && declined(&effects, id) && session.is_over());
    }
}
