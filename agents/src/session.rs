//! What an agent does next, decided without any I/O: an input goes in, effects come out. [`crate::daemon`] carries them
//! out.

use crate::{
    scenarios,
    wire::{
        Phase, RunId,
        job::Job,
        messages::{AgentMessage, ServerMessage},
    },
};

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
    /// The job in work entered a phase.
    Phase(RunId, Phase),
    /// The job in work is over, well or badly, and has left nothing behind.
    Over(RunId),
    /// It is time for a sign of life.
    Beat,
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
    /// Put the outcome of the job that was in work on the disk, then say that it is done.
    Keep(RunId),
    /// Forget the outcome of the job that was in work: the run was handed back.
    Forget,
}

/// What an agent knows of its own doing; outlives connections.
#[derive(Clone, Debug)]
pub struct Session {
    accepts: Accepts,
    work: Work,
    stopping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    None,
    Running(RunId),
    /// Being stopped, and somebody else will do it.
    HandedBack(RunId),
}

impl Session {
    /// At the start of an agent.
    pub fn new(accepts: Accepts) -> Self {
        Self { accepts, work: Work::None, stopping: false }
    }

    /// The run in work that is still this agent's.
    pub fn running(&self) -> Option<RunId> {
        match self.work {
            Work::Running(run) => Some(run),
            Work::None | Work::HandedBack(_) => None,
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
            Input::Server(_) | Input::Phase(..) => Vec::new(),
            Input::Over(run) => self.over(run),
            Input::Beat => vec![Effect::Send(AgentMessage::Heartbeat { running: self.running() })],
            Input::Shutdown => self.shutdown(),
        }
    }

    fn start(&mut self, job: Box<Job>) -> Vec<Effect> {
        let foreign = self.accepts == Accepts::BundledScenarios && !scenarios::is_bundled(&job.scenario);
        let reason = match self.work {
            // The same order once more, after a connection broke: it is being done.
            Work::Running(run) if run == job.run => return Vec::new(),
            Work::Running(run) | Work::HandedBack(run) => Some(format!("it is busy with run {run}")),
            Work::None if self.stopping => Some("it is ending".to_owned()),
            Work::None if foreign => {
                Some(format!("it runs only scenarios that came with it, and {:?} did not", job.scenario.name))
            }
            Work::None => None,
        };
        if let Some(reason) = reason {
            return vec![Effect::Send(AgentMessage::Declined { run: job.run, reason })];
        }
        self.work = Work::Running(job.run);
        vec![Effect::Start(job)]
    }

    fn over(&mut self, run: RunId) -> Vec<Effect> {
        match std::mem::replace(&mut self.work, Work::None) {
            Work::Running(running) if running == run => vec![Effect::Keep(run)],
            _ => vec![Effect::Forget],
        }
    }

    fn shutdown(&mut self) -> Vec<Effect> {
        self.stopping = true;
        let Work::Running(run) = self.work else { return Vec::new() };
        self.work = Work::HandedBack(run);
        let reason = "it is ending".to_owned();
        vec![Effect::Send(AgentMessage::Declined { run, reason }), Effect::Stop]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::job::{Load, Size};

    fn job() -> Box<Job> {
        let scenario = scenarios::bundled().remove(0);
        Box::new(Job {
            run: RunId::now(),
            target: "t".to_owned(),
            size: Size { name: "s".to_owned(), vcpus: 1.0, memory_bytes: 1 },
            scenario,
            parameters: BTreeMap::new(),
            load: Load::Script,
            warm_up_ms: 0,
        })
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
}
