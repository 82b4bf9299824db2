//! A run that several agents tell of, each for its part: what can be shown of the sum. Pure.
//!
//! A second is shown when every generator has told of it, so that no figure jumps because one of them was late.

use brewbench_agent::wire::series::{Damaged, Part, Series, Stretch};

use crate::{
    distributed::merge_series::{self, Fresh, Since},
    live::series_buffer::{After, Growing},
    results::clock::{Clock, Clocked},
};

/// Somebody who tells of a run.
#[derive(Clone, Debug)]
pub struct Teller {
    /// The agent.
    pub agent: String,
    /// Its clock held against the server's, where that was done.
    pub clock: Option<Clock>,
}

/// Those who do a run together.
#[derive(Debug)]
pub struct Crew {
    host: Told,
    generators: Vec<Told>,
}

#[derive(Debug)]
struct Told {
    teller: Teller,
    series: Growing,
}

impl From<Teller> for Told {
    fn from(teller: Teller) -> Self {
        Self { teller, series: Growing::default() }
    }
}

impl Told {
    fn clocked(&self) -> Clocked<'_> {
        Clocked { series: self.series.whole(), clock: self.teller.clock }
    }
}

/// Points of one part, and after which they come.
type Addition = (After, (Part, Stretch));

impl Crew {
    /// Nobody has told anything yet.
    pub fn new(host: Teller, generators: Vec<Teller>) -> Self {
        Self { host: host.into(), generators: generators.into_iter().map(Told::from).collect() }
    }

    /// The agent that runs the target.
    pub fn host(&self) -> &str {
        &self.host.teller.agent
    }

    /// All of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.host).chain(&self.generators).map(|told| told.teller.agent.as_str())
    }

    /// Whether this is one of them.
    pub fn has(&self, agent: &str) -> bool {
        self.names().any(|name| name == agent)
    }

    /// Takes points of one of them; gives what is new of the sum, which is known so far, if anything can be shown.
    pub fn put(
        &mut self,
        agent: &str,
        known: &Series,
        after: After,
        (part, points): (Part, Stretch),
    ) -> Result<Option<Addition>, Damaged> {
        let since = match self.generators.iter().position(|told| told.teller.agent == agent) {
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
        let generators: Vec<Clocked<'_>> = self.generators.iter().map(Told::clocked).collect();
        let host = Some(self.host.clocked());
        let known_start = known.parts().find_map(|(other, stretch)| (other == part).then_some(stretch.start_ms));
        let goes_on = known_start.is_some() && merge_series::start_ms(part, host, &generators) == known_start;
        let since = if goes_on { since } else { Since::All };
        let Some(fresh) = merge_series::fresh(part, host, &generators, since) else { return Ok(None) };
        let Fresh { seconds_after_ms, usage_after_ms, points } = fresh;
        Ok(Some((After { seconds_ms: seconds_after_ms, usage_ms: usage_after_ms }, (part, points))))
    }
}
