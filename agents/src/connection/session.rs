//! What an agent does next, decided without any I/O: an input goes in, effects come out. [`crate::connection::daemon`]
//! carries them out. Pure.

use uuid::Uuid;

use crate::run::barrier::Opening;
use crate::scenarios;
use crate::wire::job::{Job, Scenario};
use crate::wire::messages::{AgentMessage, Finding, Gate, ServerMessage};
use crate::wire::{Phase, RunId};

/// Whose scripts an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Those that came with the program.
    BundledScenarios,
    /// Whatever the server sends.
    AnyScenario,
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The server said something.
    Server(ServerMessage),
    /// There is a new connection.
    Connected,
    /// The job in work entered a phase.
    Phase(RunId, Phase),
    /// The job in work, which others do too, is at a gate; where the target serves, if it is here.
    At(RunId, Gate, Option<String>),
    /// The job in work is over, well or badly, and has left nothing behind.
    Over(RunId),
    /// The script that was looked at has been, and nothing of that is left behind.
    Inspected(Uuid, Finding),
    /// The agent is asked to end.
    Shutdown,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Say this, if there is a connection.
    Send(AgentMessage),
    /// Begin this job.
    Start(Box<Job>),
    /// Stop the job in work; it will be [`Input::Over`].
    Stop,
    /// Let k6 look at a script.
    Inspect(Uuid, Box<Scenario>),
    /// Stop looking; when this is done, nothing of it is left.
    StopInspecting,
    /// Put the outcome of the job that was in work on the disk, then say that it is done.
    Keep(RunId),
    /// Forget the outcome of the job that was in work: the run was handed back.
    Forget,
    /// A gate of the job in work has opened.
    Open(Opening),
    /// Say what the clock says.
    TellClock {
        /// As it was asked.
        asked_ms: i64,
    },
    /// Make another key and use it, beside whatever goes on.
    ChangeKey,
}

/// What an agent knows of its own doing; outlives connections.
#[derive(Clone, Debug)]
pub struct Session {
    accepts: Accepts,
    work: Work,
    /// Where the job in work waits for others, to be said again at each connection.
    at: Option<(Gate, Option<String>)>,
    stopping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    None,
    Running(RunId),
    /// Being stopped, and somebody else will do it.
    HandedBack(RunId),
    /// k6 looks at a script; a job goes first.
    Inspecting(Uuid),
}

impl Session {
    /// At the start of an agent.
    pub fn new(accepts: Accepts) -> Self {
        Self { accepts, work: Work::None, at: None, stopping: false }
    }

    /// The run in work that is still this agent's.
    pub fn running(&self) -> Option<RunId> {
        match self.work {
            Work::Running(run) => Some(run),
            Work::None | Work::HandedBack(_) | Work::Inspecting(_) => None,
        }
    }

    /// Whether it may end: asked to, and nothing in work.
    pub fn is_over(&self) -> bool {
        self.stopping && self.work == Work::None
    }

    /// What follows from an input.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Server(ServerMessage::Start(job)) => self.start(job),
            Input::Server(ServerMessage::Cancel { run }) if self.work == Work::Running(run) => vec![Effect::Stop],
            Input::Phase(run, phase) if self.work == Work::Running(run) && !phase.is_final() => {
                vec![Effect::Send(AgentMessage::Phase { run, phase })]
            }
            Input::At(run, gate, base_url) if self.work == Work::Running(run) => {
                self.at = Some((gate, base_url));
                self.say_where()
            }
            Input::Connected => self.say_where(),
            Input::Server(ServerMessage::Pass { run, gate, at_ms, base_url }) => {
                self.open(run, Opening { gate, at_ms, base_url })
            }
            Input::Server(ServerMessage::Clock { asked_ms }) => vec![Effect::TellClock { asked_ms }],
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
        let foreign = !self.welcomes(&job.scenario);
        let reason = match self.work {
            // The same order once more, after a connection broke: it is being done.
            Work::Running(run) if run == job.run => return Vec::new(),
            Work::Running(run) | Work::HandedBack(run) => Some(format!("it is busy with run {run}")),
            Work::None if self.stopping => Some("it is ending".to_owned()),
            Work::None if foreign => {
                Some(format!("it runs only scenarios that came with it, and {:?} did not", job.scenario.name))
            }
            Work::None | Work::Inspecting(_) => None,
        };
        if let Some(reason) = reason {
            return vec![Effect::Send(AgentMessage::Declined { run: job.run, reason })];
        }
        // Nothing may go on beside a measurement.
        let mut effects = self.stop_inspecting("a run came");
        self.work = Work::Running(job.run);
        effects.push(Effect::Start(job));
        effects
    }

    fn welcomes(&self, scenario: &Scenario) -> bool {
        self.accepts == Accepts::AnyScenario || scenarios::is_bundled(scenario)
    }

    fn inspect(&mut self, id: Uuid, scenario: Box<Scenario>) -> Vec<Effect> {
        let reason = match self.work {
            _ if self.stopping => "it is ending",
            Work::None if self.welcomes(&scenario) => {
                self.work = Work::Inspecting(id);
                return vec![Effect::Inspect(id, scenario)];
            }
            Work::None => "it takes only scenarios that came with it",
            Work::Running(_) | Work::HandedBack(_) | Work::Inspecting(_) => "it is busy",
        };
        vec![inspected(id, Finding::Declined { reason: reason.to_owned() })]
    }

    fn stop_inspecting(&mut self, reason: &str) -> Vec<Effect> {
        let Work::Inspecting(id) = self.work else { return Vec::new() };
        self.work = Work::None;
        vec![Effect::StopInspecting, inspected(id, Finding::Declined { reason: reason.to_owned() })]
    }

    fn say_where(&self) -> Vec<Effect> {
        let (Some(run), Some((gate, base_url))) = (self.running(), &self.at) else { return Vec::new() };
        vec![Effect::Send(AgentMessage::At { run, gate: *gate, base_url: base_url.clone() })]
    }

    fn open(&mut self, run: RunId, opening: Opening) -> Vec<Effect> {
        let waits = self.at.as_ref().is_some_and(|(gate, _)| *gate == opening.gate);
        if self.work != Work::Running(run) || !waits {
            return Vec::new();
        }
        self.at = None;
        vec![Effect::Open(opening)]
    }

    fn over(&mut self, run: RunId) -> Vec<Effect> {
        self.at = None;
        match std::mem::replace(&mut self.work, Work::None) {
            Work::Running(running) if running == run => vec![Effect::Keep(run)],
            _ => vec![Effect::Forget],
        }
    }

    fn shutdown(&mut self) -> Vec<Effect> {
        self.stopping = true;
        if let Work::Inspecting(_) = self.work {
            return self.stop_inspecting("it is ending");
        }
        let Work::Running(run) = self.work else { return Vec::new() };
        self.work = Work::HandedBack(run);
        let reason = "it is ending".to_owned();
        vec![Effect::Send(AgentMessage::Declined { run, reason }), Effect::Stop]
    }
}

fn inspected(id: Uuid, finding: Finding) -> Effect {
    Effect::Send(AgentMessage::Inspected { id, finding })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::job::tests::a_job;

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
        let said = Effect::Send(AgentMessage::Phase { run: job.run, phase });
        assert_eq!(session.step(Input::Phase(job.run, phase)), [said]);
        assert_eq!(session.running(), Some(job.run));
        assert_eq!(session.step(Input::Over(job.run)), [Effect::Keep(job.run)]);
        assert_eq!(session.running(), None);
    }

    #[test]
    fn one_job_at_a_time_and_the_same_order_twice_is_one_job() {
        let (mut session, first, second) = (Session::new(Accepts::AnyScenario), job(), job());
        start(&mut session, &first);
        assert_eq!(start(&mut session, &first), []);
        let declined = start(&mut session, &second);
        assert!(matches!(&declined[..], [Effect::Send(AgentMessage::Declined { run, .. })] if *run == second.run));
    }

    #[test]
    fn a_script_that_did_not_come_along_is_declined_unless_accepted() {
        let mut foreign = job();
        foreign.scenario.script.push_str("// changed");
        let declined = start(&mut Session::new(Accepts::BundledScenarios), &foreign);
        assert!(matches!(&declined[..], [Effect::Send(AgentMessage::Declined { .. })]));
        assert_eq!(start(&mut Session::new(Accepts::AnyScenario), &foreign), [Effect::Start(foreign)]);
    }

    #[test]
    fn a_cancellation_stops_only_the_run_that_it_names() {
        let (mut session, job) = (Session::new(Accepts::AnyScenario), job());
        start(&mut session, &job);
        assert_eq!(session.step(Input::Server(ServerMessage::Cancel { run: RunId::now() })), []);
        assert_eq!(session.step(Input::Server(ServerMessage::Cancel { run: job.run })), [Effect::Stop]);
        assert_eq!(session.step(Input::Over(job.run)), [Effect::Keep(job.run)]);
    }

    #[test]
    fn ending_hands_the_run_back_and_forgets_what_came_of_it() {
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
    fn where_a_run_waits_for_others_is_said_at_each_connection_until_that_gate_opens() {
        let (mut session, job) = (Session::new(Accepts::BundledScenarios), job());
        let (run, gate) = (job.run, Gate::Measure);
        start(&mut session, &job);
        assert_eq!(session.step(Input::Connected), []);
        let said = [Effect::Send(AgentMessage::At { run, gate, base_url: None })];
        assert_eq!(session.step(Input::At(run, gate, None)), said);
        assert_eq!(session.step(Input::Connected), said);
        let pass = |run, gate| {
            Input::Server(ServerMessage::Pass { run, gate, at_ms: 7, base_url: "http://10.0.0.5:1".to_owned() })
        };
        for stray in [pass(run, Gate::Load), pass(RunId::now(), gate)] {
            assert_eq!(session.step(stray), []);
        }
        let opening = Opening { gate, at_ms: 7, base_url: "http://10.0.0.5:1".to_owned() };
        assert_eq!(session.step(pass(run, gate)), [Effect::Open(opening)]);
        assert_eq!(session.step(pass(run, gate)), [], "twice is once");
        assert_eq!(session.step(Input::Connected), []);
        session.step(Input::At(run, Gate::End, None));
        session.step(Input::Over(run));
        assert_eq!(session.step(Input::Connected), [], "it is over");
        let asked = Input::Server(ServerMessage::Clock { asked_ms: 3 });
        assert_eq!(session.step(asked), [Effect::TellClock { asked_ms: 3 }]);
    }

    #[test]
    fn a_key_is_changed_whatever_else_goes_on() {
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

    fn declined(effects: &[Effect], asked: Uuid) -> bool {
        let declines = |finding: &Finding| matches!(finding, Finding::Declined { .. });
        matches!(effects, [.., Effect::Send(AgentMessage::Inspected { id, finding })] if *id == asked && declines(finding))
    }

    #[test]
    fn a_script_is_looked_at_by_who_has_nothing_else_to_do() {
        let (mut session, job, id) = (Session::new(Accepts::AnyScenario), job(), Uuid::now_v7());
        let asked = Effect::Inspect(id, Box::new(job.scenario.clone()));
        assert_eq!(inspect(&mut session, id, &job.scenario), [asked]);
        assert!(declined(&inspect(&mut session, job.run.0, &job.scenario), job.run.0), "one at a time");
        let said = Effect::Send(AgentMessage::Inspected { id, finding: Finding::Valid });
        assert_eq!(session.step(Input::Inspected(id, Finding::Valid)), [said]);
        start(&mut session, &job);
        assert!(declined(&inspect(&mut session, id, &job.scenario), id), "never beside a run");
        let mut foreign = job.scenario.clone();
        foreign.script.push_str("// changed");
        assert!(declined(&inspect(&mut Session::new(Accepts::BundledScenarios), id, &foreign), id));
    }

    #[test]
    fn a_run_and_an_end_go_before_looking_at_a_script() {
        let (mut session, job, id) = (Session::new(Accepts::AnyScenario), job(), Uuid::now_v7());
        inspect(&mut session, id, &job.scenario);
        let effects = start(&mut session, &job);
        assert_eq!(effects.first(), Some(&Effect::StopInspecting));
        assert_eq!(effects.last(), Some(&Effect::Start(job.clone())));
        assert!(declined(&effects[..2], id));
        assert_eq!(session.step(Input::Inspected(id, Finding::Valid)), [], "it was told already");

        let mut session = Session::new(Accepts::AnyScenario);
        inspect(&mut session, id, &job.scenario);
        let effects = session.step(Input::Shutdown);
        assert!(effects.first() == Some(&Effect::StopInspecting) && declined(&effects, id) && session.is_over());
    }
}
