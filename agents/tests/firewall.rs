//! What the kernel lets a load generator reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;

use brewbench_agent::run::execute;
use brewbench_agent::sandbox::firewall::{self, Firewall, Reachable};
use brewbench_testing::skip;
use brewbench_wire::job::Job;
use brewbench_wire::load::Load;
use brewbench_wire::run_spec::RunSpec;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, scenario};

/// Users that run nothing else on this machine, one per test: tests run at the same time.
const USERS: [u32; 3] = [3_000_000_001, 3_000_000_002, 3_000_000_003];

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn can_confine() -> bool {
    firewall::check().inspect_err(|why| skip(why)).is_ok()
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((HERE, 0)).expect("a port");
    let at = listener.local_addr().expect("an address");
    (listener, at)
}

/// Whether a user's shell can open a connection or send a packet.
fn reaches(user: u32, protocol: &str, at: SocketAddr) -> bool {
    let user = user.to_string();
    let shell = format!("echo x > /dev/{protocol}/{}/{}", at.ip(), at.port());
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "bash", "-c", &shell]);
    command.output().expect("util-linux").status.success()
}

fn to(at: &[SocketAddr]) -> Reachable {
    let addresses = at.iter().map(|at| (at.ip(), Some(at.port()))).collect();
    Reachable { addresses, ..Reachable::default() }
}

#[test]
fn only_named_addresses_are_reached_and_by_all_other_users_everything() {
    if !can_confine() {
        return;
    }
    let ([user, other, _], (_target, target), (_stranger, stranger)) = (USERS, listen(), listen());
    let firewall = Firewall::raise("test", user, &to(&[target])).expect("rules");
    assert!(reaches(user, "tcp", target) && !reaches(user, "tcp", stranger));
    assert!(reaches(other, "tcp", stranger) && reaches(0, "tcp", stranger));
    // Nor anything but TCP.
    let socket = UdpSocket::bind((HERE, 0)).expect("a port");
    let resolver = socket.local_addr().expect("an address");
    assert!(!reaches(user, "udp", resolver) && reaches(other, "udp", resolver));
    drop(firewall);
    assert!(reaches(user, "tcp", stranger), "the rules have outlived the run");
}

#[test]
fn runs_of_several_agents_do_not_hinder_each_other() {
    if !can_confine() {
        return;
    }
    let ([_, user, _], (_one, one), (_two, two), (_none, none)) = (USERS, listen(), listen(), listen());
    let first = Firewall::raise("test one", user, &to(&[one])).expect("rules");
    let second = Firewall::raise("test two", user, &to(&[two])).expect("rules");
    assert!(reaches(user, "tcp", one) && reaches(user, "tcp", two) && !reaches(user, "tcp", none));
    // As if the first agent had been killed.
    std::mem::forget(first);
    assert!(firewall::sweep("test three").is_empty());
    assert_eq!(firewall::sweep("test one").len(), 1);
    assert!(firewall::sweep("test one").is_empty());
    assert!(!reaches(user, "tcp", one) && reaches(user, "tcp", two));
    drop(second);
    assert!(reaches(user, "tcp", none));
}

#[test]
fn any_address_is_any_but_the_excepted() {
    if !can_confine() {
        return;
    }
    let ([_, _, user], (_listener, at)) = (USERS, listen());
    let (one, other) = (at, SocketAddr::new(Ipv4Addr::new(127, 9, 9, 9).into(), at.port()));
    let except = ["127.9.0.0/16", "fe80::/10"].map(|net| net.parse().expect("a network"));
    let _firewall = Firewall::raise(
        "test any",
        user,
        &Reachable {
            addresses: vec![("::1".parse().expect("an address"), None)],
            anywhere: Some((at.port(), except.to_vec())),
            resolvers: vec![HERE],
        },
    )
    .expect("rules");
    let listener = TcpListener::bind(other).expect("another address");
    assert!(reaches(user, "tcp", one) && !reaches(user, "tcp", other));
    let (_closed, closed) = listen();
    assert!(!reaches(user, "tcp", closed) && reaches(user, "udp", SocketAddr::new(HERE, 53)));
    drop(listener);
}

#[tokio::test]
async fn a_script_reaches_its_target_and_nothing_else() {
    if let Err(why) = firewall::user().ok_or("this agent has no other user for k6, or no nftables") {
        skip(why);
        return;
    }
    let Some(bench) = Bench::new("script firewall").await else { return };
    bench.offer("good", "");
    let (stranger, at) = listen();
    stranger.set_nonblocking(true).expect("a listener");
    let port = at.port();
    let script = format!(
        "import http from 'k6/http'; import ws from 'k6/ws';
         export const options = {{ vus: 1, iterations: 1 }};
         const faults = [];
         try {{ require('https://127.0.0.1:{port}/x.js'); }} catch (error) {{ faults.push(String(error)); }}
         export default () => {{
           console.log('target ' + http.get(__ENV.BASE_URL).status);
           faults.push(http.get('http://127.0.0.1:{port}/').error);
           faults.push(http.get('https://localhost:{port}/').error);
           console.log('faults ' + faults.filter((fault) => fault.includes('refused')).length + ' ' + faults);
           ws.connect('ws://127.0.0.1:{port}/', () => {{}});
         }};"
    );
    let job = Job {
        scenario: scenario(&script),
        spec: RunSpec { load: Some(Load::Script), ..job("good").spec },
        ..job("good")
    };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    let log = &outcome.generator_log;
    assert!(log.contains("target 200") && log.contains("faults 3"), "{:?} {log}", outcome.ended);
    let asked = stranger.accept().map(|(_, by)| by);
    assert!(asked.is_err(), "{asked:?} reached another server: {log}");
    // Series come by the receiver.
    assert!(outcome.series.is_some_and(|series| series.unpack().is_ok_and(|series| series.measured.is_some())));
    assert_eq!(firewall::sweep(&bench.agent), Vec::<String>::new(), "rules are left");
}
