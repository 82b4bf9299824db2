//! Simulates agents and server under random faults.
//!
//! The agents' sessions, the server's decisions and its database are real. The network between them loses, delays,
//! duplicates and reorders messages across connections, and each side notices a dead connection at a different time.
//! Both sides are killed and restarted. Time passes by moving leases into the past. Runs are single or distributed.

mod agent;
mod invariants;
mod world;

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use world::World;

/// Agents in a world: enough for a distributed run with two generators.
const AGENTS: usize = 3;

/// A random event. Numbers select an agent, a run, a connection or an outcome.
#[derive(Clone, Debug)]
enum Event {
    /// A user submits a run with this many retries.
    Submit(u32),
    /// A user submits a distributed run: this agent is the host and the others are generators.
    SubmitDistributed(usize, u32),
    /// Everything between an agent and the server works for a moment.
    Calm(usize),
    /// A user cancels a run.
    Cancel(usize),
    /// The server assigns runs.
    Assign,
    /// An agent connects, if it believes that it is disconnected.
    Connect(usize),
    /// The server receives a message over one of an agent's connections, perhaps one that the agent has abandoned.
    ToServer(usize, usize),
    /// An agent receives a message.
    ToAgent(usize),
    /// An agent sends a heartbeat.
    Heartbeat(usize),
    /// An agent notices that its connection is dead.
    AgentHangsUp(usize),
    /// The server notices that one of an agent's connections is dead.
    ServerHangsUp(usize, usize),
    /// An agent's run continues.
    Work(usize),
    /// An agent's run fails.
    Fail(usize),
    /// An agent uploads an outcome, which may take long to arrive.
    Send(usize),
    /// An outcome arrives, perhaps to arrive again later; its acknowledgement may be lost.
    Arrive { which: usize, again: bool, acknowledged: bool },
    /// An outcome in transit is lost.
    Drop(usize),
    /// An agent is killed and restarted.
    KillAgent(usize),
    /// An agent is asked to shut down, and restarted afterwards.
    ShutDownAgent(usize),
    /// The server is killed and restarted.
    KillServer,
    /// This many seconds pass.
    Pass(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let agent = || 0..AGENTS;
    prop_oneof![
        2 => (0..3_u32).prop_map(Event::Submit),
        2 => (agent(), 0..3_u32).prop_map(|(host, retries)| Event::SubmitDistributed(host, retries)),
        3 => agent().prop_map(Event::Calm),
        1 => (0..8_usize).prop_map(Event::Cancel),
        4 => Just(Event::Assign),
        4 => agent().prop_map(Event::Connect),
        8 => (agent(), 0..3_usize).prop_map(|(agent, line)| Event::ToServer(agent, line)),
        8 => agent().prop_map(Event::ToAgent),
        3 => agent().prop_map(Event::Heartbeat),
        2 => agent().prop_map(Event::AgentHangsUp),
        2 => (agent(), 0..3_usize).prop_map(|(agent, line)| Event::ServerHangsUp(agent, line)),
        9 => agent().prop_map(Event::Work),
        1 => agent().prop_map(Event::Fail),
        4 => agent().prop_map(Event::Send),
        5 => (0..4_usize, any::<bool>(), any::<bool>())
            .prop_map(|(which, again, acknowledged)| Event::Arrive { which, again, acknowledged }),
        1 => (0..4_usize).prop_map(Event::Drop),
        1 => agent().prop_map(Event::KillAgent),
        1 => agent().prop_map(Event::ShutDownAgent),
        1 => Just(Event::KillServer),
        2 => (1..40_u8).prop_map(Event::Pass),
    ]
}

/// Plays all events, then lets the world settle.
async fn play(events: Vec<Event>) -> Result<(), TestCaseError> {
    let mut world = World::new().await;
    for event in events {
        world.apply(event).await;
        world.check().await?;
    }
    world.settle().await
}

#[test]
fn distributed_runs_finish_without_faults() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let phases = runtime.block_on(async {
        let mut world = World::new().await;
        // Many runs: how long a world takes to settle depends on their number.
        for host in (0..AGENTS).cycle().take(18) {
            world.apply(Event::SubmitDistributed(host, 0)).await;
            world.apply(Event::Submit(0)).await;
        }
        world.settle().await.expect("settled");
        world.phases().await
    });
    assert_eq!(phases, ["finished"; 36]);
}

#[test]
fn every_run_ends_once_and_no_result_is_lost_or_counted_twice() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = Config { failure_persistence: None, max_shrink_iters: 300, ..Config::with_cases(cases()) };
    let result = TestRunner::new(config).run(&vec(event(), 20..150), |events| runtime.block_on(play(events)));
    result.unwrap_or_else(|fault| panic!("{fault}"));
}

/// Returns `PROPTEST_CASES`, by default fewer than usual because each case creates a database.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48)
}
