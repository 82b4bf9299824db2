//! The load generator against servers that misbehave: what it counts is what they did.

mod faults;
mod framing;
mod http2;
mod models;
mod process;
mod server;
mod tls;

use brewbench_load::events::{Event, Second, Summary};
use brewbench_load::generator::Generator;
use brewbench_load::plan::{Plan, Request};
use brewbench_load::stop::Stop;
use brewbench_wire::load::{Closed, Form, Load, Open};

use server::Server;

/// A closed load for a second.
fn closed(connections: u32) -> Load {
    Load::Closed(Closed::new(Form::Constant { level: connections, duration_ms: 1_000 }).expect("a load"))
}

/// An open load for some seconds.
fn open(rate: u32, seconds: u64, connections: u32) -> Load {
    let form = Form::Constant { level: rate, duration_ms: seconds * 1_000 };
    Load::Open(Open::new(form, Some(connections)).expect("a load"))
}

/// A plan of `GET /`. Pauses leave the machine to other tests.
fn plan(server: &Server, load: Load) -> Plan {
    let mut plan = Plan::get(&server.url(), "/", load);
    plan.threads = Some(1);
    if matches!(plan.load, Load::Closed(_)) {
        plan.list.think_time_ms = 2;
    }
    plan
}

/// A plan of a request of one's own.
fn plan_of(server: &Server, load: Load, request: Request) -> Plan {
    let mut plan = plan(server, load);
    plan.list.requests = vec![request];
    plan
}

/// Executes a plan, and checks that the seconds add up to the summary.
fn run(plan: &Plan) -> (Vec<Second>, Summary) {
    let generator = Generator::prepare(plan).expect("a valid plan");
    let (mut seconds, mut summary) = (Vec::new(), None);
    let events = |event| {
        match event {
            Event::Ready => panic!("the caller reports that"),
            Event::Started => {}
            Event::Second(second) => seconds.push(*second),
            Event::Summary(last) => summary = Some(*last),
        }
        Ok(())
    };
    generator.run(&Stop::default(), events).expect("a load");
    let summary = summary.expect("a summary");
    let sum = |of: fn(&Second) -> u64| seconds.iter().map(of).sum::<u64>();
    assert_eq!(sum(|second| second.requests), summary.requests);
    assert_eq!(sum(|second| second.failed), summary.failed);
    assert_eq!(sum(|second| second.bytes_in), summary.bytes_in);
    assert_eq!(sum(|second| second.opened), summary.opened);
    assert_eq!(
        seconds.iter().map(|second| &second.succeeded).sum::<brewbench_wire::histogram::Histogram>(),
        summary.succeeded.histogram
    );
    assert!(seconds.iter().map(|second| second.until_ms).is_sorted());
    (seconds, summary)
}

/// Checks that each request had a connection of its own. Those in the making at the end have none.
fn assert_one_connection_each(summary: &Summary) {
    let opened = summary.requests..=summary.requests + summary.interrupted_requests;
    assert!(opened.contains(&summary.opened), "{summary:?}");
}

/// Returns how many latencies are certainly at least as long.
fn at_least(summary: &Summary, ms: f64) -> u64 {
    let histogram = &summary.succeeded.histogram;
    histogram.buckets().filter(|&(index, _)| histogram.bounds_ms(index).0 >= ms).map(|(_, count)| count).sum()
}
