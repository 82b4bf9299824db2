//! A plan that was checked and prepared: what all threads share.

use std::net::SocketAddr;

use brewbench_wire::job::Segment;
use brewbench_wire::load::Load;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::clock::{Clock, ms, nanoseconds};
use crate::message::{Message, Weights};
use crate::plan::{Fault, HttpVersion, Plan, RequestList, Reuse, Spacing, fault};
use crate::schedule::{Arrivals, Level};
use crate::share::Share;
use crate::target::Target;
use crate::tls::{self, Security};
use crate::turns::Turns;

/// What all threads of a load share.
#[derive(Debug)]
pub struct Work {
    /// The requests.
    pub messages: Vec<Message>,
    /// How often each is sent.
    pub weights: Weights,
    /// Where connections go.
    pub address: SocketAddr,
    /// The version of HTTP, which is certain.
    pub http: HttpVersion,
    /// The TLS of connections.
    pub security: Option<Security>,
    /// Connections, or requests per second, over time.
    pub level: Level,
    /// The model of the load.
    pub model: Model,
    /// Whether connections are used again.
    pub reuse: Reuse,
    /// Pause between a response and the next request.
    pub think_ns: u64,
    /// Time to connect.
    pub connect_timeout_ns: u64,
    /// Time for a response.
    pub request_timeout_ns: u64,
    /// End of the load.
    pub end_ns: u64,
    /// Its turns, if it takes turns with another load.
    pub turns: Option<Turns>,
    /// Time for requests in flight after it.
    pub grace_ns: u64,
    /// Number of threads.
    pub threads: u32,
    segment: Option<Segment>,
    seed: u64,
}

/// How a load depends on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Each connection sends when it has its response.
    Closed {
        /// Connections of all generators at the peak.
        connections: u64,
    },
    /// Requests start on schedule.
    Open {
        /// Connections of all generators at most.
        connections: u64,
        /// How starts are spread.
        spacing: Spacing,
    },
}

impl Work {
    /// Checks a plan, looks up the target's address, and decides the version of HTTP.
    pub fn prepare(plan: &Plan) -> Result<Self, Fault> {
        plan.check()?;
        let Plan { url, connect_to, list, load, spacing, segment, threads, turns, seed, .. } = plan;
        let RequestList { requests, http, connection, think_time_ms, tls } = list;
        let target = Target::parse(url)?;
        let shape = load.shape().ok_or_else(|| fault("load", "a script's load has no level"))?;
        let peak = u64::from(shape.peak());
        let model = match load {
            Load::Open(open) => Model::Open { connections: open.max_vus().into(), spacing: *spacing },
            Load::Closed(_) | Load::Script => Model::Closed { connections: peak },
        };
        let own = Share::of_thread(*segment, 0, 1).count(model.connections());
        crate::limits::allow_connections(own)?;
        let cores = std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1));
        // A thread without a connection would have nothing to do.
        let threads = threads.unwrap_or(cores).min(u32::try_from(own).unwrap_or(u32::MAX)).max(1);
        let address = connect_to.map_or_else(|| target.address(), Ok)?;
        let http = match http {
            // A connection per request is not for HTTP/2.
            HttpVersion::Auto if target.is_tls && *connection == Reuse::KeepAlive => {
                tls::preferred_version(tls, &target, address)?
            }
            HttpVersion::Auto => HttpVersion::One,
            certain => *certain,
        };
        if turns.is_some() && http == HttpVersion::Two {
            return Err(fault("turns", "only loads with HTTP/1.1 can take turns"));
        }
        let lasts = turns.map_or(shape.duration(), |_| Turns::lasts(shape.duration()));
        Ok(Self {
            messages: requests.iter().map(|request| Message::new(request, &target, *connection)).collect(),
            weights: Weights::new(requests),
            address,
            security: Security::new(tls, &target, http)?,
            http,
            level: Level::new(shape),
            model,
            reuse: *connection,
            think_ns: ms(*think_time_ms),
            connect_timeout_ns: ms(plan.connect_timeout_ms),
            request_timeout_ns: ms(plan.request_timeout_ms),
            end_ns: nanoseconds(lasts),
            turns: *turns,
            grace_ns: ms(plan.grace_ms),
            threads,
            segment: *segment,
            seed: *seed,
        })
    }

    /// Returns a thread's part of the load.
    pub fn share(&self, thread: u32) -> Share {
        Share::of_thread(self.segment, thread, self.threads)
    }

    /// Returns a thread's source of random numbers.
    pub fn rng(&self, thread: u32) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.share(thread).index);
        rng
    }

    /// Returns when a thread's requests start; `None` for a closed load.
    pub fn arrivals(&self, thread: u32, clock: Clock) -> Option<Arrivals> {
        let Model::Open { spacing, .. } = self.model else { return None };
        let mut rng = self.rng(thread);
        // Other numbers than those that draw the requests.
        rng.set_word_pos(1 << 60);
        Some(Arrivals::new(self.level.clone(), spacing, self.share(thread), clock, rng))
    }

    /// Returns the most connections of a thread.
    pub fn connections(&self, thread: u32) -> u64 {
        self.share(thread).count(self.model.connections())
    }

    /// Returns how many connections of a thread a closed load uses after so much time to start requests.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the peak")]
    pub fn active_connections(&self, thread: u32, open_ns: u64) -> u64 {
        // A ramp that reaches a level reaches it in spite of rounding.
        self.share(thread).count((self.level.at(open_ns) + 1e-9) as u64)
    }
}

/// Returns the pause after a number of failures in a row: 1 ms, and twice as long each time, up to a second.
pub fn backoff_ns(failures: u32) -> u64 {
    (ms(1) << failures.saturating_sub(1).min(10)).min(ms(1_000))
}

impl Model {
    pub fn connections(self) -> u64 {
        match self {
            Self::Closed { connections } | Self::Open { connections, .. } => connections,
        }
    }
}
