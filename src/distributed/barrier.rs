//! Where those who do a run together wait for each other, decided without any I/O: what they say goes in, what is to be
//! said to them comes out.
//!
//! A gate opens when all of them are at it. Before a load begins, each one's clock is asked some times; of the answers the
//! fastest counts, as in Cristian's algorithm: the clock was read between question and answer, so it is known to half the
//! time that lies between. All are told one moment, each by its own clock.

use brewbench_agent::wire::{
    self,
    messages::{Gate, ServerMessage},
};

/// So many answers of each clock are awaited; the fastest counts.
const PROBES: u32 = 5;
/// A measurement begins so much later than it is told: the word has to reach everybody.
const LEAD_MS: i64 = 500;
/// On slow lines it takes this many times as long as the slowest answer.
const LEAD_ANSWERS: f64 = 4.0;

/// What an agent's clock says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Its clock minus the server's, milliseconds.
    pub offset_ms: f64,
    /// How wrong that may be, milliseconds.
    pub error_ms: f64,
}

/// One who takes part.
#[derive(Clone, Debug)]
struct Member {
    agent: String,
    at: Option<Gate>,
    /// Answers since it came to that gate.
    answers: u32,
    clock: Option<Reading>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Say this to an agent.
    Say(String, ServerMessage),
    /// Keep what is known of the clock of the one at this place.
    Keep(usize, Reading),
    /// It can't become one run any more: why.
    Fail(String),
}

/// Those who do one run; who runs the target comes first.
#[derive(Clone, Debug)]
pub struct Meeting {
    run: wire::RunId,
    members: Vec<Member>,
    base_url: Option<String>,
    /// The gate that opened last, and when, by the server's clock.
    opened: Option<(Gate, i64)>,
}

impl Meeting {
    /// Of these agents; those who have delivered already are at the end.
    pub fn new(run: wire::RunId, agents: impl IntoIterator<Item = (String, bool)>) -> Self {
        let member = |(agent, has_delivered): (String, bool)| Member {
            agent,
            at: has_delivered.then_some(Gate::End),
            answers: 0,
            clock: None,
        };
        Self { run, members: agents.into_iter().map(member).collect(), base_url: None, opened: None }
    }

    /// An agent is at a gate; it may say so more than once.
    pub fn arrive(&mut self, agent: &str, gate: Gate, base_url: Option<String>, now_ms: i64) -> Vec<Step> {
        let Some(place) = self.place(agent) else { return Vec::new() };
        if let Some((opened, at_ms)) = self.opened
            && gate <= opened
        {
            // The word did not reach it.
            return if gate == opened {
                vec![self.pass(place, gate, at_ms)]
            } else {
                vec![Step::Fail(format!("{agent} has not heard that the load begins"))]
            };
        }
        if place == 0 {
            self.base_url = base_url.or_else(|| self.base_url.take());
        }
        let member = &mut self.members[place];
        member.at = Some(gate);
        if gate == Gate::Measure {
            member.answers = 0;
            return vec![Step::Say(agent.to_owned(), ServerMessage::Clock { asked_ms: now_ms })];
        }
        self.open(now_ms)
    }

    /// An agent's clock has said something.
    pub fn clock(&mut self, agent: &str, asked_ms: i64, said_ms: i64, now_ms: i64) -> Vec<Step> {
        let Some(place) = self.place(agent) else { return Vec::new() };
        let member = &mut self.members[place];
        if member.at != Some(Gate::Measure) || asked_ms > now_ms {
            return Vec::new();
        }
        member.answers += 1;
        let between_ms = (now_ms - asked_ms) as f64;
        // Clocks are told in whole milliseconds.
        let error_ms = between_ms / 2.0 + 1.0;
        let reading = Reading { offset_ms: said_ms as f64 - (asked_ms as f64 + between_ms / 2.0), error_ms };
        if member.clock.is_none_or(|known| error_ms <= known.error_ms) {
            member.clock = Some(reading);
        }
        if member.answers < PROBES {
            return vec![Step::Say(agent.to_owned(), ServerMessage::Clock { asked_ms: now_ms })];
        }
        let kept = member.clock.map(|reading| Step::Keep(place, reading));
        kept.into_iter().chain(self.open(now_ms)).collect()
    }

    /// An agent's result is stored: it has nothing to do any more.
    pub fn delivered(&mut self, agent: &str, now_ms: i64) -> Vec<Step> {
        let Some(place) = self.place(agent) else { return Vec::new() };
        self.members[place].at = Some(Gate::End);
        self.open(now_ms)
    }

    fn place(&self, agent: &str) -> Option<usize> {
        self.members.iter().position(|member| member.agent == agent)
    }

    /// Opens the gate that all are at.
    fn open(&mut self, now_ms: i64) -> Vec<Step> {
        let Some(gate) = self.members.iter().map(|member| member.at).min().flatten() else { return Vec::new() };
        if self.base_url.is_none() || self.opened.is_some_and(|(opened, _)| opened >= gate) {
            return Vec::new();
        }
        let waiting: Vec<usize> = (0..self.members.len()).filter(|&at| self.members[at].at == Some(gate)).collect();
        let lead_ms = match gate {
            Gate::Load | Gate::End => 0,
            Gate::Measure => {
                if waiting.len() < self.members.len() {
                    // Somebody was let through by a server that has ended since, before it could tell all.
                    return vec![Step::Fail(
                        "the load could not begin together, for the server was started anew".to_owned(),
                    )];
                }
                if self.members.iter().any(|member| member.answers < PROBES) {
                    return Vec::new();
                }
                self.lead_ms()
            }
        };
        let at_ms = now_ms + lead_ms;
        self.opened = Some((gate, at_ms));
        waiting.into_iter().map(|place| self.pass(place, gate, at_ms)).collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, which is meant")]
    fn lead_ms(&self) -> i64 {
        let slowest = self.members.iter().filter_map(|member| member.clock).map(|clock| clock.error_ms * 2.0);
        LEAD_MS.max((slowest.fold(0.0, f64::max) * LEAD_ANSWERS) as i64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, which is meant")]
    fn pass(&self, place: usize, gate: Gate, at_ms: i64) -> Step {
        let member = &self.members[place];
        let offset_ms = member.clock.map_or(0.0, |clock| clock.offset_ms);
        let by_its_clock = at_ms.saturating_add(offset_ms.round() as i64);
        let base_url = self.base_url.clone().unwrap_or_default();
        // Only a measurement begins at a moment; whoever may go on otherwise goes on at once, whatever its clock says.
        let at_ms = if gate == Gate::Measure { by_its_clock } else { 0 };
        Step::Say(member.agent.clone(), ServerMessage::Pass { run: self.run, gate, at_ms, base_url })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const URL: &str = "http://10.0.0.5:1";

    fn meeting() -> Meeting {
        let crew = ["host", "one", "two"].map(|name| (name.to_owned(), false));
        Meeting::new(wire::RunId(uuid::Uuid::nil()), crew)
    }

    fn arrive(meeting: &mut Meeting, agent: &str, gate: Gate, now_ms: i64) -> Vec<Step> {
        meeting.arrive(agent, gate, (agent == "host").then(|| URL.to_owned()), now_ms)
    }

    /// Who was let through which gate, and when by its own clock.
    fn passes(steps: &[Step]) -> Vec<(&str, Gate, i64)> {
        let pass = |step: &Step| match step {
            Step::Say(_, ServerMessage::Pass { base_url, .. }) if base_url != URL => panic!("{step:?}"),
            _ => (),
        };
        steps.iter().for_each(pass);
        steps
            .iter()
            .filter_map(|step| match step {
                Step::Say(agent, ServerMessage::Pass { gate, at_ms, .. }) => Some((agent.as_str(), *gate, *at_ms)),
                _ => None,
            })
            .collect()
    }

    /// Answers all questions of a clock that is off by so much, each answer after so long; gives what came of the last.
    fn tell_time(meeting: &mut Meeting, agent: &str, now_ms: &mut i64, off_ms: i64, takes_ms: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..PROBES {
            let asked_ms = *now_ms;
            *now_ms += takes_ms;
            steps = meeting.clock(agent, asked_ms, asked_ms + takes_ms / 2 + off_ms, *now_ms);
        }
        steps
    }

    #[test]
    fn a_gate_opens_when_all_are_there_and_a_measurement_at_one_moment_by_all_clocks() {
        let mut meeting = meeting();
        for agent in ["one", "two"] {
            assert_eq!(arrive(&mut meeting, agent, Gate::Load, 0), []);
        }
        let steps = arrive(&mut meeting, "host", Gate::Load, 0);
        assert_eq!(passes(&steps), [("host", Gate::Load, 0), ("one", Gate::Load, 0), ("two", Gate::Load, 0)]);
        let mut now_ms = 10_000;
        for (agent, off_ms) in [("host", 0), ("one", 3_600_000)] {
            assert_eq!(arrive(&mut meeting, agent, Gate::Measure, now_ms).len(), 1, "its clock is asked");
            let steps = tell_time(&mut meeting, agent, &mut now_ms, off_ms, 2);
            assert!(passes(&steps).is_empty() && matches!(steps[0], Step::Keep(..)), "{steps:?}");
        }
        arrive(&mut meeting, "two", Gate::Measure, now_ms);
        let steps = tell_time(&mut meeting, "two", &mut now_ms, -250, 4);
        let at_ms = now_ms + LEAD_MS;
        let expected = [("host", at_ms), ("one", at_ms + 3_600_000), ("two", at_ms - 250)];
        assert_eq!(passes(&steps), expected.map(|(agent, at_ms)| (agent, Gate::Measure, at_ms)));
        // Whoever has not heard is told the same moment once more.
        let again = arrive(&mut meeting, "two", Gate::Measure, now_ms + 400);
        assert_eq!(passes(&again), [("two", Gate::Measure, at_ms - 250)]);
        assert_eq!(arrive(&mut meeting, "host", Gate::End, now_ms), []);
        assert_eq!(arrive(&mut meeting, "one", Gate::End, now_ms), []);
        let steps = meeting.delivered("two", now_ms);
        assert_eq!(passes(&steps).len(), 3);
        assert_eq!(arrive(&mut meeting, "stranger", Gate::End, now_ms), []);
    }

    #[test]
    fn of_a_clock_s_answers_the_fastest_counts() {
        let mut meeting = meeting();
        arrive(&mut meeting, "one", Gate::Measure, 0);
        let mut steps = Vec::new();
        for (asked_ms, takes_ms) in [(0, 100), (100, 2), (200, 800), (1_000, 40), (2_000, 6)] {
            // The way there takes all the time.
            steps = meeting.clock("one", asked_ms, asked_ms + takes_ms + 5_000, asked_ms + takes_ms);
        }
        assert_eq!(steps, [Step::Keep(1, Reading { offset_ms: 5_001.0, error_ms: 2.0 })]);
    }

    #[test]
    fn a_server_that_was_started_anew_opens_what_is_left_and_never_half_a_measurement() {
        let mut anew = meeting();
        assert_eq!(arrive(&mut anew, "host", Gate::End, 0), []);
        assert_eq!(arrive(&mut anew, "one", Gate::End, 0), [], "two is at work, and says nothing");
        assert_eq!(passes(&arrive(&mut anew, "two", Gate::End, 0)).len(), 3);

        let mut half = meeting();
        arrive(&mut half, "host", Gate::End, 0);
        arrive(&mut half, "one", Gate::Measure, 0);
        let steps = [arrive(&mut half, "two", Gate::End, 0), tell_time(&mut half, "one", &mut 0, 0, 1)].concat();
        assert!(steps.iter().any(|step| matches!(step, Step::Fail(_))), "{steps:?}");
        assert!(passes(&steps).is_empty());

        let done = [("host", false), ("one", true), ("two", true)].map(|(name, done)| (name.to_owned(), done));
        let mut late = Meeting::new(wire::RunId(uuid::Uuid::nil()), done);
        assert_eq!(passes(&arrive(&mut late, "host", Gate::End, 0)).first(), Some(&("host", Gate::End, 0)));
    }

    proptest! {
        /// Whatever is said, how often and in which order: nobody is let through a gate that somebody has not reached,
        /// and all begin to measure at the same moment.
        #[test]
        fn nobody_is_let_through_before_all_are_there(said in prop::collection::vec((0..3_usize, 0..4_u8, 0..50_i64), 0..200)) {
            let names = ["host", "one", "two"];
            let (mut meeting, mut now_ms) = (meeting(), 0_i64);
            let mut reached = [None::<Gate>; 3];
            let mut begins = std::collections::BTreeSet::new();
            for (who, what, takes_ms) in said {
                now_ms += takes_ms;
                let gate = [Gate::Load, Gate::Measure, Gate::End].get(usize::from(what)).copied();
                let steps = match gate {
                    // Nobody turns back.
                    Some(gate) if reached[who] > Some(gate) => continue,
                    Some(gate) => {
                        reached[who] = Some(gate);
                        arrive(&mut meeting, names[who], gate, now_ms)
                    }
                    None => meeting.clock(names[who], now_ms - takes_ms, now_ms - takes_ms, now_ms),
                };
                if steps.iter().any(|step| matches!(step, Step::Fail(_))) {
                    return Ok(());
                }
                for (_, gate, at_ms) in passes(&steps) {
                    prop_assert!(reached.iter().all(|place| *place >= Some(gate)), "{gate:?} opened at {reached:?}");
                    if gate == Gate::Measure && begins.insert(at_ms) {
                        prop_assert!(begins.iter().all(|other| (other - at_ms).abs() <= 60), "{begins:?}");
                    }
                }
            }
        }
    }
}
