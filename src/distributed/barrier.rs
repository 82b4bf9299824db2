//! The barrier at which the participants of a run wait for each other. No I/O: messages from agents go in, steps come
//! out.
//!
//! A gate opens when all participants have reached it. Before a load begins, the clock of each is probed several times
//! and the fastest answer counts, as in Cristian's algorithm: the clock was read between request and response, so its
//! error is at most half the round trip. All participants then get the same start time, each by its own clock.

use brewbench_wire::messages::{Gate, ServerMessage};

/// How many answers of each clock are awaited.
const PROBES: u32 = 5;
/// The minimum time from the message to the start of a measurement.
const LEAD_MS: i64 = 500;
/// The same on slow connections, as a multiple of the slowest round trip.
const LEAD_ROUND_TRIPS: f64 = 4.0;

/// A reading of an agent's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Its clock minus the server's, milliseconds.
    pub offset_ms: f64,
    /// The maximum error of the offset, milliseconds.
    pub error_ms: f64,
}

/// A participant's progress.
#[derive(Clone, Debug)]
struct Participant {
    agent: String,
    at: Option<Gate>,
    /// Answers of its clock since it reached that gate.
    answers: u32,
    clock: Option<Reading>,
}

/// An action for the caller to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send a message to an agent.
    Send(String, ServerMessage),
    /// Store the clock reading of the participant at this place.
    StoreClock(usize, Reading),
    /// Fail the run for this reason.
    Fail(String),
}

/// The barrier of one run. The host is the first participant.
#[derive(Clone, Debug)]
pub struct Barrier {
    run: brewbench_wire::RunId,
    participants: Vec<Participant>,
    base_url: Option<String>,
    /// The gate that opened last, and when, by the server's clock.
    opened: Option<(Gate, i64)>,
}

impl Barrier {
    /// Creates the barrier of these agents. Those that have delivered are at the end.
    pub fn new(run: brewbench_wire::RunId, agents: impl IntoIterator<Item = (String, bool)>) -> Self {
        let participant = |(agent, has_delivered): (String, bool)| Participant {
            agent,
            at: has_delivered.then_some(Gate::End),
            answers: 0,
            clock: None,
        };
        Self { run, participants: agents.into_iter().map(participant).collect(), base_url: None, opened: None }
    }

    /// Handles an agent's arrival at a gate, which it may repeat.
    pub fn arrive(&mut self, agent: &str, gate: Gate, base_url: Option<String>, now_ms: i64) -> Vec<Step> {
        let Some(place) = self.position(agent) else { return Vec::new() };
        if let Some((opened, at_ms)) = self.opened
            && gate <= opened
        {
            // The message did not reach it.
            return if gate == opened {
                vec![self.pass(place, gate, at_ms)]
            } else {
                vec![Step::Fail(format!("{agent} missed the start of the load"))]
            };
        }
        if place == 0 {
            self.base_url = base_url.or_else(|| self.base_url.take());
        }
        let participant = &mut self.participants[place];
        participant.at = Some(gate);
        if gate == Gate::Measure {
            participant.answers = 0;
            return vec![Step::Send(agent.to_owned(), ServerMessage::Clock { sent_ms: now_ms })];
        }
        self.open(now_ms)
    }

    /// Handles the answer of an agent's clock.
    pub fn clock(&mut self, agent: &str, sent_ms: i64, agent_ms: i64, now_ms: i64) -> Vec<Step> {
        let Some(place) = self.position(agent) else { return Vec::new() };
        let participant = &mut self.participants[place];
        if participant.at != Some(Gate::Measure) || sent_ms > now_ms {
            return Vec::new();
        }
        participant.answers += 1;
        let round_trip_ms = (now_ms - sent_ms) as f64;
        // Agents report whole milliseconds.
        let error_ms = round_trip_ms / 2.0 + 1.0;
        let reading = Reading { offset_ms: agent_ms as f64 - (sent_ms as f64 + round_trip_ms / 2.0), error_ms };
        if participant.clock.is_none_or(|known| error_ms <= known.error_ms) {
            participant.clock = Some(reading);
        }
        if participant.answers < PROBES {
            return vec![Step::Send(agent.to_owned(), ServerMessage::Clock { sent_ms: now_ms })];
        }
        let store = participant.clock.map(|reading| Step::StoreClock(place, reading));
        store.into_iter().chain(self.open(now_ms)).collect()
    }

    /// Marks an agent whose result is stored as finished.
    pub fn delivered(&mut self, agent: &str, now_ms: i64) -> Vec<Step> {
        let Some(place) = self.position(agent) else { return Vec::new() };
        self.participants[place].at = Some(Gate::End);
        self.open(now_ms)
    }

    fn position(&self, agent: &str) -> Option<usize> {
        self.participants.iter().position(|participant| participant.agent == agent)
    }

    /// Opens the gate that all participants have reached.
    fn open(&mut self, now_ms: i64) -> Vec<Step> {
        let Some(gate) = self.participants.iter().map(|one| one.at).min().flatten() else { return Vec::new() };
        if self.base_url.is_none() || self.opened.is_some_and(|(opened, _)| opened >= gate) {
            return Vec::new();
        }
        let waiting: Vec<usize> =
            (0..self.participants.len()).filter(|&at| self.participants[at].at == Some(gate)).collect();
        let lead_ms = match gate {
            Gate::Load | Gate::End => 0,
            Gate::Measure => {
                if waiting.len() < self.participants.len() {
                    // The server stopped after it had opened the gate for some participants only.
                    return vec![Step::Fail(
                        "the load could not start on all agents at once because the server restarted".to_owned(),
                    )];
                }
                if self.participants.iter().any(|participant| participant.answers < PROBES) {
                    return Vec::new();
                }
                self.lead_ms()
            }
        };
        let at_ms = now_ms + lead_ms;
        self.opened = Some((gate, at_ms));
        waiting.into_iter().map(|place| self.pass(place, gate, at_ms)).collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
    fn lead_ms(&self) -> i64 {
        let round_trips = self.participants.iter().filter_map(|one| one.clock).map(|clock| clock.error_ms * 2.0);
        LEAD_MS.max((round_trips.fold(0.0, f64::max) * LEAD_ROUND_TRIPS) as i64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
    fn pass(&self, place: usize, gate: Gate, at_ms: i64) -> Step {
        let participant = &self.participants[place];
        let offset_ms = participant.clock.map_or(0.0, |clock| clock.offset_ms);
        let by_its_clock = at_ms.saturating_add(offset_ms.round() as i64);
        let base_url = self.base_url.clone().unwrap_or_default();
        // Only a measurement has a start time; the other gates open immediately, whatever the clock of the agent.
        let at_ms = if gate == Gate::Measure { by_its_clock } else { 0 };
        Step::Send(participant.agent.clone(), ServerMessage::Pass { run: self.run, gate, at_ms, base_url })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const URL: &str = "http://10.0.0.5:1";

    fn barrier() -> Barrier {
        let agents = ["host", "one", "two"].map(|name| (name.to_owned(), false));
        Barrier::new(brewbench_wire::RunId(uuid::Uuid::nil()), agents)
    }

    fn arrive(barrier: &mut Barrier, agent: &str, gate: Gate, now_ms: i64) -> Vec<Step> {
        barrier.arrive(agent, gate, (agent == "host").then(|| URL.to_owned()), now_ms)
    }

    /// The opened gates: agent, gate, and start time by its own clock.
    fn passes(steps: &[Step]) -> Vec<(&str, Gate, i64)> {
        let pass = |step: &Step| match step {
            Step::Send(_, ServerMessage::Pass { base_url, .. }) if base_url != URL => panic!("{step:?}"),
            _ => (),
        };
        steps.iter().for_each(pass);
        steps
            .iter()
            .filter_map(|step| match step {
                Step::Send(agent, ServerMessage::Pass { gate, at_ms, .. }) => Some((agent.as_str(), *gate, *at_ms)),
                _ => None,
            })
            .collect()
    }

    /// Answers all probes of a clock with this offset and round trip; returns the steps after the last one.
    fn answer_probes(barrier: &mut Barrier, agent: &str, now_ms: &mut i64, off_ms: i64, takes_ms: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..PROBES {
            let sent_ms = *now_ms;
            *now_ms += takes_ms;
            steps = barrier.clock(agent, sent_ms, sent_ms + takes_ms / 2 + off_ms, *now_ms);
        }
        steps
    }

    #[test]
    fn a_gate_opens_for_all_and_a_measurement_starts_at_the_same_time_by_all_clocks() {
        let mut barrier = barrier();
        for agent in ["one", "two"] {
            assert_eq!(arrive(&mut barrier, agent, Gate::Load, 0), []);
        }
        let steps = arrive(&mut barrier, "host", Gate::Load, 0);
        assert_eq!(passes(&steps), [("host", Gate::Load, 0), ("one", Gate::Load, 0), ("two", Gate::Load, 0)]);
        let mut now_ms = 10_000;
        for (agent, off_ms) in [("host", 0), ("one", 3_600_000)] {
            assert_eq!(arrive(&mut barrier, agent, Gate::Measure, now_ms).len(), 1, "its clock is probed");
            let steps = answer_probes(&mut barrier, agent, &mut now_ms, off_ms, 2);
            assert!(passes(&steps).is_empty() && matches!(steps[0], Step::StoreClock(..)), "{steps:?}");
        }
        arrive(&mut barrier, "two", Gate::Measure, now_ms);
        let steps = answer_probes(&mut barrier, "two", &mut now_ms, -250, 4);
        let at_ms = now_ms + LEAD_MS;
        let expected = [("host", at_ms), ("one", at_ms + 3_600_000), ("two", at_ms - 250)];
        assert_eq!(passes(&steps), expected.map(|(agent, at_ms)| (agent, Gate::Measure, at_ms)));
        // A repeated arrival gets the same start time.
        let again = arrive(&mut barrier, "two", Gate::Measure, now_ms + 400);
        assert_eq!(passes(&again), [("two", Gate::Measure, at_ms - 250)]);
        assert_eq!(arrive(&mut barrier, "host", Gate::End, now_ms), []);
        assert_eq!(arrive(&mut barrier, "one", Gate::End, now_ms), []);
        let steps = barrier.delivered("two", now_ms);
        assert_eq!(passes(&steps).len(), 3);
        assert_eq!(arrive(&mut barrier, "stranger", Gate::End, now_ms), []);
    }

    #[test]
    fn the_fastest_answer_of_a_clock_counts() {
        let mut barrier = barrier();
        arrive(&mut barrier, "one", Gate::Measure, 0);
        let mut steps = Vec::new();
        for (sent_ms, takes_ms) in [(0, 100), (100, 2), (200, 800), (1_000, 40), (2_000, 6)] {
            // The whole delay is on the way to the agent.
            steps = barrier.clock("one", sent_ms, sent_ms + takes_ms + 5_000, sent_ms + takes_ms);
        }
        assert_eq!(steps, [Step::StoreClock(1, Reading { offset_ms: 5_001.0, error_ms: 2.0 })]);
    }

    #[test]
    fn a_restarted_server_opens_the_last_gate_but_never_half_a_measurement() {
        let mut restarted = barrier();
        assert_eq!(arrive(&mut restarted, "host", Gate::End, 0), []);
        assert_eq!(arrive(&mut restarted, "one", Gate::End, 0), [], "two is still measuring");
        assert_eq!(passes(&arrive(&mut restarted, "two", Gate::End, 0)).len(), 3);

        let mut half = barrier();
        arrive(&mut half, "host", Gate::End, 0);
        arrive(&mut half, "one", Gate::Measure, 0);
        let steps = [arrive(&mut half, "two", Gate::End, 0), answer_probes(&mut half, "one", &mut 0, 0, 1)].concat();
        assert!(steps.iter().any(|step| matches!(step, Step::Fail(_))), "{steps:?}");
        assert!(passes(&steps).is_empty());

        let agents = [("host", false), ("one", true), ("two", true)].map(|(name, done)| (name.to_owned(), done));
        let mut late = Barrier::new(brewbench_wire::RunId(uuid::Uuid::nil()), agents);
        assert_eq!(passes(&arrive(&mut late, "host", Gate::End, 0)).first(), Some(&("host", Gate::End, 0)));
    }

    proptest! {
        /// For any messages in any order, no gate opens before all participants have reached it, and all measurements
        /// start at the same time.
        #[test]
        fn no_gate_opens_before_all_have_reached_it(
            messages in prop::collection::vec((0..3_usize, 0..4_u8, 0..50_i64), 0..200),
        ) {
            let names = ["host", "one", "two"];
            let (mut barrier, mut now_ms) = (barrier(), 0_i64);
            let mut reached = [None::<Gate>; 3];
            let mut starts = std::collections::BTreeSet::new();
            for (who, what, takes_ms) in messages {
                now_ms += takes_ms;
                let gate = [Gate::Load, Gate::Measure, Gate::End].get(usize::from(what)).copied();
                let steps = match gate {
                    // Participants never go back.
                    Some(gate) if reached[who] > Some(gate) => continue,
                    Some(gate) => {
                        reached[who] = Some(gate);
                        arrive(&mut barrier, names[who], gate, now_ms)
                    }
                    None => barrier.clock(names[who], now_ms - takes_ms, now_ms - takes_ms, now_ms),
                };
                if steps.iter().any(|step| matches!(step, Step::Fail(_))) {
                    return Ok(());
                }
                for (_, gate, at_ms) in passes(&steps) {
                    prop_assert!(reached.iter().all(|place| *place >= Some(gate)), "{gate:?} opened at {reached:?}");
                    if gate == Gate::Measure && starts.insert(at_ms) {
                        prop_assert!(starts.iter().all(|other| (other - at_ms).abs() <= 60), "{starts:?}");
                    }
                }
            }
        }
    }
}
