//! Responses as HTTP allows them.

use brewbench_load::plan::{Body, Expect, Request, Reuse};
use brewbench_load::tally::Failure;
use brewbench_wire::hex;
use sha2::{Digest, Sha256};

use super::server::{OK, Server};
use super::{assert_one_connection_each, closed, plan, plan_of, run};

#[test]
fn what_the_server_counts_is_what_the_generator_reports() {
    let server = Server::answering(OK);
    let request = Request { method: "POST".to_owned(), body: Body(b"body".to_vec()), ..Request::get("/") };
    let (seconds, summary) = run(&plan_of(&server, closed(3), request));
    assert_eq!((summary.failed, summary.requests), (0, server.responses()));
    assert_eq!((summary.opened, server.connections()), (3, 3));
    assert_eq!((summary.bytes_in, summary.bytes_out), (server.sent(), server.received()));
    assert_eq!(summary.statuses, [(200, summary.requests)]);
    assert_eq!(summary.first_byte.histogram.total(), summary.requests);
    assert_eq!(summary.connect.histogram.total(), 3);
    assert_eq!(summary.interrupted_requests + summary.dropped + summary.resent + summary.unsolicited, 0);
    assert!(!summary.interrupted && summary.fault.is_none());
    assert!(seconds.iter().all(|second| second.connections <= 3 && second.in_flight <= 3), "{seconds:?}");
    let (min, max) = (summary.succeeded.min_ns.expect("one"), summary.succeeded.max_ns.expect("one"));
    let sum = summary.succeeded.histogram.sum_ns();
    assert!(min <= max && min * summary.requests <= sum && sum <= max * summary.requests);
}

#[test]
fn all_framings_are_read_and_lengths_and_contents_compared() {
    for response in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: x\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 12\r\n\r\nhello, world",
    ] {
        let server = Server::answering(response);
        let expect = Expect {
            status: Some(200),
            length: Some(12),
            sha256: Some(hex(&Sha256::digest("hello, world"))),
            contains: Some("lo, w".to_owned()),
        };
        let (_, summary) = run(&plan_of(&server, closed(2), Request { expect, ..Request::get("/") }));
        assert_eq!((summary.failed, summary.requests, summary.opened), (0, server.responses(), 2), "{response}");
        assert_eq!(summary.contents_checked, summary.requests.div_ceil(16), "a sample");
    }
}

#[test]
fn other_lengths_and_contents_are_failures() {
    let server = Server::answering(OK);
    let failed = |expect: Expect, kind| {
        let (_, summary) = run(&plan_of(&server, closed(1), Request { expect, ..Request::get("/") }));
        assert_eq!(summary.failed, summary.errors_of(kind), "{:?}", summary.errors);
        (summary.failed, summary.requests)
    };
    let (length, all) = failed(Expect { length: Some(3), ..Expect::default() }, Failure::Length);
    assert_eq!(length, all);
    let (status, all) = failed(Expect { status: Some(201), ..Expect::default() }, Failure::Status);
    assert_eq!(status, all);
    let (body, all) = failed(Expect { contains: Some("no".to_owned()), ..Expect::default() }, Failure::Body);
    assert_eq!(body, all.div_ceil(16), "of the sample");
}

#[test]
fn a_body_may_end_with_the_connection() {
    let server = Server::start(|connection| {
        connection.request()?;
        connection.respond(b"HTTP/1.0 200 OK\r\n\r\nhello")
    });
    let expect = Expect { length: Some(5), ..Expect::default() };
    let (_, summary) = run(&plan_of(&server, closed(2), Request { expect, ..Request::get("/") }));
    assert_eq!((summary.failed, summary.requests), (0, server.responses()));
    assert_one_connection_each(&summary);
}

#[test]
fn a_connection_that_the_target_announces_to_close_is_not_used_again() {
    let server = Server::start(|connection| {
        connection.request()?;
        connection.respond(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
    });
    let (_, summary) = run(&plan(&server, closed(2)));
    assert_eq!((summary.failed, summary.resent, summary.requests), (0, 0, server.responses()));
    assert_one_connection_each(&summary);
}

#[test]
fn each_request_may_have_a_connection_of_its_own() {
    let server = Server::answering(OK);
    let mut plan = plan(&server, closed(2));
    plan.list.connection = Reuse::PerRequest;
    let (_, summary) = run(&plan);
    assert_eq!((summary.failed, summary.requests), (0, server.responses()));
    assert_one_connection_each(&summary);
}

#[test]
fn responses_without_a_body_are_complete_after_their_head() {
    for (method, head) in [
        ("HEAD", "200 OK\r\nContent-Length: 9"),
        ("GET", "204 No Content"),
        ("GET", "304 Not Modified\r\nContent-Length: 9"),
    ] {
        let server = Server::answering(format!("HTTP/1.1 {head}\r\n\r\n"));
        let request = Request { method: method.to_owned(), ..Request::get("/") };
        let (_, summary) = run(&plan_of(&server, closed(1), request));
        assert_eq!((summary.failed, summary.requests, summary.opened), (0, server.responses(), 1), "{head}");
    }
}

#[test]
fn bodies_of_100_mb_are_streamed() {
    const LENGTH: usize = 100_000_000;
    let server = Server::start(|connection| {
        let piece = vec![b'x'; 1_000_000];
        loop {
            connection.request()?;
            connection.respond(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").as_bytes())?;
            for _ in 0..LENGTH / piece.len() {
                connection.send(&piece)?;
            }
        }
    });
    let expect = Expect { length: Some(LENGTH as u64), ..Expect::default() };
    let mut plan = plan_of(&server, closed(1), Request { expect, ..Request::get("/") });
    plan.grace_ms = 60_000;
    let (_, summary) = run(&plan);
    assert_eq!((summary.failed, summary.requests), (0, server.responses()));
    assert_eq!(summary.bytes_in, server.sent());
}

#[test]
fn paths_are_taken_in_turns_by_all_threads() {
    let server = Server::start(|connection| {
        loop {
            let line = connection.request()?;
            let status = if line == "GET /even HTTP/1.1" { 200 } else { 404 };
            connection.respond(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
        }
    });
    let mut plan = plan_of(&server, super::open(101, 1, 101), Request::get("/even"));
    plan.list.requests[0].paths.push("/odd".to_owned());
    plan.threads = Some(2);
    let (_, summary) = run(&plan);
    assert_eq!((summary.failed, summary.dropped), (summary.errors_of(Failure::Status), 0));
    assert_eq!(summary.statuses, [(200, 51), (404, 50)]);
}
