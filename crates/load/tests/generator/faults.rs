//! Targets that break the protocol, the connection or their promise to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use brewbench_load::plan::{Body, Request, Reuse};
use brewbench_load::tally::Failure;

use super::server::{OK, Server};
use super::{assert_one_connection_each, closed, open, plan, plan_of, run};

#[test]
fn a_target_that_closes_after_each_response_costs_connections_but_no_errors() {
    let server = Server::start(|connection| {
        connection.request()?;
        connection.respond(OK.as_bytes())
    });
    for think_time_ms in [0, 2] {
        let before = server.responses();
        let mut plan = plan(&server, closed(2));
        plan.list.think_time_ms = think_time_ms;
        let (_, summary) = run(&plan);
        assert_eq!((summary.failed, summary.requests), (0, server.responses() - before), "{:?}", summary.errors);
        assert_one_connection_each(&summary);
    }
}

#[test]
fn a_response_that_is_shorter_than_announced_is_a_read_error_or_times_out() {
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort";
    let closing = Server::start(move |connection| {
        connection.request()?;
        connection.send(short.as_bytes())
    });
    let (_, summary) = run(&plan(&closing, closed(1)));
    assert!(summary.requests > 0 && summary.requests == closing.requests(), "{summary:?}");
    assert_eq!(summary.errors_of(Failure::Read), summary.requests);
    let waiting = Server::answering(short);
    let mut plan = plan(&waiting, closed(1));
    plan.request_timeout_ms = 100;
    let (_, summary) = run(&plan);
    assert!(summary.requests > 0 && summary.requests == waiting.requests(), "{summary:?}");
    assert_eq!(summary.errors_of(Failure::Timeout), summary.requests);
    assert!(summary.failed_durations.min_ns >= Some(100_000_000));
}

#[test]
fn bytes_after_a_response_are_a_protocol_error() {
    let doubled = OK.repeat(2);
    for response in ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nlong", doubled.as_str()] {
        let server = Server::answering(response);
        let (_, summary) = run(&plan(&server, closed(2)));
        assert!(summary.requests > 0 && summary.requests == server.requests(), "{summary:?}");
        assert_eq!(summary.errors_of(Failure::Protocol), summary.requests, "{response}");
    }
}

#[test]
fn bytes_without_a_request_close_the_connection() {
    let server = Server::start(|connection| {
        loop {
            connection.request()?;
            connection.respond(OK.as_bytes())?;
            thread::sleep(Duration::from_millis(20));
            connection.send(OK.as_bytes())?;
        }
    });
    let mut plan = plan(&server, closed(1));
    plan.list.think_time_ms = 200;
    let (_, summary) = run(&plan);
    assert_eq!(summary.requests, server.requests());
    assert!(summary.unsolicited > 0 && summary.opened > 1, "{summary:?}");
}

#[test]
fn endless_headers_are_a_protocol_error() {
    let server = Server::start(|connection| {
        connection.request()?;
        connection.send(b"HTTP/1.1 200 OK\r\n")?;
        let line = format!("X: {}\r\n", "y".repeat(1_000));
        loop {
            connection.send(line.as_bytes())?;
        }
    });
    let (_, summary) = run(&plan(&server, closed(1)));
    assert!(summary.requests > 0 && summary.requests == server.requests(), "{summary:?}");
    assert_eq!(summary.errors_of(Failure::Protocol), summary.requests);
}

#[test]
fn resets_are_read_errors() {
    let resets = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&resets);
    let server = Server::start(move |connection| {
        if connection.number.is_multiple_of(2) {
            counted.fetch_add(1, Ordering::SeqCst);
            return connection.byte();
        }
        for _ in 0..5 {
            connection.request()?;
            connection.respond(OK.as_bytes())?;
        }
        // The next request is not read either.
        connection.byte()
    });
    let (_, summary) = run(&plan(&server, closed(2)));
    assert_eq!(summary.requests - summary.failed, server.responses());
    assert!(summary.failed > 0 && summary.failed <= resets.load(Ordering::SeqCst), "{summary:?}");
    assert_eq!(summary.errors_of(Failure::Read) + summary.errors_of(Failure::Write), summary.failed);
}

#[test]
fn an_answer_before_the_request_is_read_counts() {
    let response = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(|connection| {
        connection.respond(response)?;
        connection.finish()?;
        connection.ignore();
        None
    });
    let body = Body(vec![b'x'; 10_000_000]);
    let request = Request { method: "POST".to_owned(), body, ..Request::get("/") };
    let (_, summary) = run(&plan_of(&server, closed(1), request.clone()));
    // It answers connections in the making at the end, too.
    let answered = summary.requests..=summary.requests + summary.interrupted_requests;
    assert!(summary.requests > 0 && answered.contains(&server.responses()), "{summary:?}");
    assert_eq!(summary.statuses, [(413, summary.requests)]);
    // Closing at once resets the connection, which may destroy the response.
    let rude = Server::start(|connection| connection.respond(response));
    let (_, summary) = run(&plan_of(&rude, closed(1), request));
    assert!(summary.requests > 0 && summary.requests <= rude.responses(), "{summary:?}");
    let broken =
        summary.errors_of(Failure::Write) + summary.errors_of(Failure::Read) + summary.errors_of(Failure::Connect);
    assert_eq!(broken + summary.errors_of(Failure::Status), summary.requests, "{summary:?}");
}

#[test]
fn refused_connections_are_counted_and_tried_again_without_haste() {
    let server = Server::limited(10, |connection| {
        connection.request()?;
        connection.respond(OK.as_bytes())
    });
    let mut plan = plan(&server, closed(1));
    plan.list.connection = Reuse::PerRequest;
    let (_, summary) = run(&plan);
    let refused = summary.errors_of(Failure::Connect) + summary.errors_of(Failure::Read);
    assert_eq!(summary.requests - summary.failed, server.responses(), "{summary:?}");
    assert_eq!(refused, summary.failed, "{:?}", summary.errors);
    // Pauses of 1, 2, 4 … ms fill a second.
    assert!(server.responses() == 10 && (1..=12).contains(&refused), "{refused}");
}

#[test]
fn a_target_that_never_answers_times_out_or_interrupts() {
    let server = Server::start(|connection| {
        connection.ignore();
        None
    });
    let mut plan = plan(&server, closed(2));
    plan.grace_ms = 0;
    let (_, summary) = run(&plan);
    assert_eq!((summary.requests, summary.interrupted_requests, summary.opened), (0, 2, 2));
    assert_eq!(summary.succeeded.min_ns, None);
    plan.request_timeout_ms = 100;
    let (_, summary) = run(&plan);
    assert!(summary.requests >= 2, "{summary:?}");
    assert_eq!(summary.errors_of(Failure::Timeout), summary.requests);
}

#[test]
fn a_response_may_come_byte_by_byte() {
    let server = Server::start(|connection| {
        loop {
            connection.request()?;
            let (last, rest) = OK.as_bytes().split_last()?;
            for byte in rest {
                connection.send(&[*byte])?;
            }
            connection.respond(&[*last])?;
        }
    });
    let (_, summary) = run(&plan(&server, closed(1)));
    assert!(summary.requests > 0 && summary.requests == server.responses());
    assert_eq!((summary.failed, summary.bytes_in), (0, server.sent()), "{summary:?}");
}

#[test]
fn what_is_not_http_is_a_protocol_error() {
    let server = Server::answering("SSH-2.0-OpenSSH_9.2\r\n");
    let (_, summary) = run(&plan(&server, closed(1)));
    assert!(summary.requests > 0 && summary.requests == server.requests());
    assert_eq!(summary.errors_of(Failure::Protocol), summary.requests);
    assert!(summary.errors["protocol"].first.as_ref().is_some_and(|text| text.contains("not HTTP/1")));
}

#[test]
fn starts_that_never_happen_are_dropped() {
    let server = Server::start(|connection| {
        connection.ignore();
        None
    });
    let mut plan = plan(&server, open(100, 1, 2));
    plan.grace_ms = 0;
    let (_, summary) = run(&plan);
    assert_eq!((summary.requests, summary.interrupted_requests, summary.dropped), (0, 2, 98));
}
