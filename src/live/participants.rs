//! Merges the live points of the participants of a distributed run. Pure.
//!
//! A second is shown once every generator has reported it, so that no value jumps because one of them was late.

use brewbench_wire::series::{DecodeError, Series, Window, WindowKind};

use crate::{
    distributed::merge_series::{self, Fresh, Since},
    live::series_buffer::{After, SeriesBuffer},
    results::clock::{Clock, Clocked},
};

/// An agent that reports a part of a run.
#[derive(Clone, Debug)]
pub struct Participant {
    /// The agent.
    pub agent: String,
    /// Its clock compared with the server's, if known.
    pub clock: Option<Clock>,
}

/// The participants of a distributed run, with their series.
#[derive(Debug)]
pub struct Participants {
    host: Member,
    generators: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    participant: Participant,
    series: SeriesBuffer,
}

impl From<Participant> for Member {
    fn from(participant: Participant) -> Self {
        Self { participant, series: SeriesBuffer::default() }
    }
}

impl Member {
    fn clocked(&self) -> Clocked<'_> {
        Clocked { series: self.series.series(), clock: self.participant.clock }
    }
}

/// Points of one part, and the times after which they replace others.
type Addition = (After, (WindowKind, Window));

impl Participants {
    /// Returns participants without any points.
    pub fn new(host: Participant, generators: Vec<Participant>) -> Self {
        Self { host: host.into(), generators: generators.into_iter().map(Member::from).collect() }
    }

    /// Returns the agent that runs the target.
    pub fn host(&self) -> &str {
        &self.host.participant.agent
    }

    /// Returns the names of all agents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.host).chain(&self.generators).map(|member| member.participant.agent.as_str())
    }

    /// Whether an agent is one of them.
    pub fn has(&self, agent: &str) -> bool {
        self.names().any(|name| name == agent)
    }

    /// Adds points of an agent; returns what is new in the merged series, which is `known` so far, if anything.
    pub fn put(
        &mut self,
        agent: &str,
        known: &Series,
        after: After,
        (part, points): (WindowKind, Window),
    ) -> Result<Option<Addition>, DecodeError> {
        let since = match self.generators.iter().position(|member| member.participant.agent == agent) {
            Some(generator) => {
                self.generators[generator].series.put(after, (part, points))?;
                Since::Seconds { generator, after_ms: after.seconds_ms }
            }
            None if self.host() == agent => {
                self.host.series.put(after, (part, points))?;
                Since::Usage { after_ms: after.usage_ms }
            }
            None => return Ok(None),
        };
        let generators: Vec<Clocked<'_>> = self.generators.iter().map(Member::clocked).collect();
        let host = Some(self.host.clocked());
        let known_start = known.parts().find_map(|(other, window)| (other == part).then_some(window.start_ms));
        let continues = known_start.is_some() && merge_series::start_ms(part, host, &generators) == known_start;
        let since = if continues { since } else { Since::All };
        let Some(fresh) = merge_series::fresh(part, host, &generators, since) else { return Ok(None) };
        let Fresh { seconds_after_ms, usage_after_ms, points } = fresh;
        Ok(Some((After { seconds_ms: seconds_after_ms, usage_ms: usage_after_ms }, (part, points))))
    }
}
