//! Where the load of a real k6 goes, by the sockets of the kernel.

use std::net::{Ipv4Addr, Ipv6Addr};

use brewbench_agent::run::execute;
use brewbench_wire::job::Job;
use brewbench_wire::outcome::Ended;
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::traffic::{Peer, Traffic};
use tokio_util::sync::CancellationToken;

use crate::support::web::Web;
use crate::support::{Bench, job, scenario, vus};

/// Runs a script for six seconds and returns the traffic.
async fn traffic(bench: &Bench, manner: &str, script: &str) -> Traffic {
    bench.offer(manner, "");
    let job = Job {
        scenario: scenario(script),
        spec: RunSpec { load: Some(vus(2, 6_000)), ..job(manner).spec },
        ..job(manner)
    };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
    let traffic = outcome.conditions.traffic.expect("this kernel has sock_diag");
    println!("{traffic:?}");
    traffic
}

fn peers(traffic: &Traffic) -> &[Peer] {
    traffic.peers.as_deref().expect("k6's sockets are visible")
}

#[tokio::test]
async fn bytes_are_counted_by_address() {
    let Some(mut bench) = Bench::new("traffic").await else { return };
    // As on a machine that can't confine k6: its traffic elsewhere must be seen.
    bench.work.also_reachable = vec![Ipv4Addr::LOCALHOST.into()];
    let other = Web::start("127.0.0.1:0").await;
    // Neither the kept connection of setup nor the push of the series counts.
    let script = format!(
        "import http from 'k6/http'; const other = 'http://{at}';
         export function setup() {{ http.get(other); }}
         export default function () {{ http.get(__ENV.BASE_URL + '/'); if (__ITER % 2) http.get(other + '/api/'); }}
         export function teardown() {{ http.get('http://127.0.0.1:1'); }}",
        at = other.at
    );
    let both = traffic(&bench, "good", &script).await;
    let [one, two] = peers(&both) else { panic!("{both:?}") };
    let (target, helper) = if one.is_target { (one, two) } else { (two, one) };
    assert_eq!((target.address.to_string(), helper.address), (both.target.clone(), other.at));
    assert!(!helper.is_target && helper.bytes > 1_000 && target.bytes > helper.bytes, "{both:?}");
    assert!(both.looks >= 1 && both.elapsed_ms >= 900 && both.segments.sent > 100, "{both:?}");
    assert!(both.ends >= 2 && both.held_back == 0, "{both:?}");

    let script = format!(
        "import http from 'k6/http'; export function setup() {{ http.get('http://{}'); }}
         export default function () {{ http.get(__ENV.BASE_URL + '/'); }}",
        other.at
    );
    let alone = traffic(&bench, "good", &script).await;
    assert_eq!(peers(&alone).iter().map(|peer| peer.is_target).collect::<Vec<_>>(), [true], "{alone:?}");
}

#[tokio::test]
async fn responses_that_wait_for_acknowledgements_are_seen() {
    let Some(bench) = Bench::new("halting").await else { return };
    let script = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/'); }";
    let halting = traffic(&bench, "halting", script).await;
    assert!(halting.ends >= 2 && halting.held_back * 2 >= halting.ends, "{halting:?}");
}

/// Without cgroup v2 some of these connections, or all, are gone before they are found; none is taken for another's.
#[tokio::test]
async fn connections_that_are_closed_at_once_are_taken_for_no_others() {
    let Some(mut bench) = Bench::new("closed").await else { return };
    bench.work.also_reachable = vec![Ipv6Addr::LOCALHOST.into()];
    let other = Web::start("[::1]:0").await;
    let script = format!(
        "import http from 'k6/http'; export const options = {{ noConnectionReuse: true }};
         export default function () {{ http.get('http://{}/'); }}",
        other.at
    );
    let elsewhere = traffic(&bench, "good", &script).await;
    assert!(peers(&elsewhere).iter().all(|peer| !peer.is_target && peer.address == other.at), "{elsewhere:?}");
    let script = "import http from 'k6/http'; export const options = { noConnectionReuse: true };
        export default function () { http.get(__ENV.BASE_URL.replace('127.0.0.1', 'localhost') + '/'); }";
    let own = traffic(&bench, "good", script).await;
    assert!(peers(&own).iter().all(|peer| peer.is_target), "{own:?}");
}
