//! The whole conversation with everything that can happen to it: real sessions of agents on one side, on the other the
//! server's own decisions over a real database, and between them a line that loses, delays, doubles and reorders across
//! connections, and that both sides find dead at different times. Both sides are killed and started anew. Time passes by
//! moving leases into the past. Some runs are done by one agent, some by all of them together.

mod agent;
mod laws;
mod world;

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use world::World;

/// Agents in a world: as many as a run takes whose load two others make.
const AGENTS: usize = 3;

/// Something that happens. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Event {
    /// Somebody submits a run that may be done again so often.
    Submit(u32),
    /// The same of one whose target this agent is to run, while the others make its load.
    SubmitTogether(usize, u32),
    /// For a moment everything works between an agent and the server.
    Calm(usize),
    /// Somebody cancels one.
    Cancel(usize),
    /// The server hands out what it can.
    HandOut,
    /// An agent dials, if it believes that it has no connection.
    Dial(usize),
    /// A message arrives at the server over one of an agent's connections, also over one that the agent has given up.
    ToServer(usize, usize),
    /// A message arrives at an agent.
    ToAgent(usize),
    /// An agent gives a sign of life.
    Beat(usize),
    /// An agent finds its connection dead.
    AgentHangsUp(usize),
    /// The server finds one of an agent's connections dead.
    ServerHangsUp(usize, usize),
    /// An agent's work goes on.
    Work(usize),
    /// An agent's work goes wrong.
    Fail(usize),
    /// An agent sends an outcome home; it may be under way for long.
    Send(usize),
    /// An outcome arrives, and may arrive again; its acknowledgement may get lost.
    Arrive { which: usize, again: bool, acknowledged: bool },
    /// An outcome under way is lost.
    Drop(usize),
    /// An agent is killed and started anew.
    KillAgent(usize),
    /// An agent is asked to end, and started anew once it has.
    EndAgent(usize),
    /// The server is killed and started anew.
    KillServer,
    /// So many seconds pass.
    Pass(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let agent = || 0..AGENTS;
    prop_oneof![
        2 => (0..3_u32).prop_map(Event::Submit),
        2 => (agent(), 0..3_u32).prop_map(|(host, retries)| Event::SubmitTogether(host, retries)),
        3 => agent().prop_map(Event::Calm),
        1 => (0..8_usize).prop_map(Event::Cancel),
        4 => Just(Event::HandOut),
        4 => agent().prop_map(Event::Dial),
        8 => (agent(), 0..3_usize).prop_map(|(agent, line)| Event::ToServer(agent, line)),
        8 => agent().prop_map(Event::ToAgent),
        3 => agent().prop_map(Event::Beat),
        2 => agent().prop_map(Event::AgentHangsUp),
        2 => (agent(), 0..3_usize).prop_map(|(agent, line)| Event::ServerHangsUp(agent, line)),
        9 => agent().prop_map(Event::Work),
        1 => agent().prop_map(Event::Fail),
        4 => agent().prop_map(Event::Send),
        5 => (0..4_usize, any::<bool>(), any::<bool>())
            .prop_map(|(which, again, acknowledged)| Event::Arrive { which, again, acknowledged }),
        1 => (0..4_usize).prop_map(Event::Drop),
        1 => agent().prop_map(Event::KillAgent),
        1 => agent().prop_map(Event::EndAgent),
        1 => Just(Event::KillServer),
        2 => (1..40_u8).prop_map(Event::Pass),
    ]
}

/// Lives through all of it, and then until everything has ended.
async fn live(events: Vec<Event>) -> Result<(), TestCaseError> {
    let mut world = World::new().await;
    for event in events {
        world.happen(event).await;
        world.check().await?;
    }
    world.come_to_rest().await
}

#[test]
fn where_nothing_goes_wrong_a_run_that_three_do_is_finished() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let phases = runtime.block_on(async {
        let mut world = World::new().await;
        for event in [Event::SubmitTogether(1, 0), Event::Submit(0), Event::SubmitTogether(0, 0)] {
            world.happen(event).await;
        }
        world.come_to_rest().await.expect("at rest");
        world.phases().await
    });
    assert_eq!(phases, ["finished"; 3]);
}

#[test]
fn whatever_happens_every_run_ends_once_and_no_result_is_lost_or_counted_twice() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = Config { failure_persistence: None, max_shrink_iters: 300, ..Config::with_cases(cases()) };
    let lived = TestRunner::new(config).run(&vec(event(), 20..150), |events| runtime.block_on(live(events)));
    lived.unwrap_or_else(|fault| panic!("{fault}"));
}

/// Each takes a database of its own, so there are fewer than usual; `PROPTEST_CASES` says how many.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48)
}
