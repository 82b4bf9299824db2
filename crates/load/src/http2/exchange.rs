//! One request and its response on a connection with HTTP/2.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::time::timeout;

use super::Context;
use crate::content::{BodyCheck, SAMPLE};
use crate::message::Message;
use crate::tally::Failure;
use crate::work::backoff_ns;

/// A place for a connection.
#[derive(Default)]
pub struct Slot {
    client: Option<SendRequest<Bytes>>,
    /// Whether the connection has carried a complete response.
    is_used: bool,
    /// Failures since the last complete response.
    failures: u32,
    /// When it last became free.
    pub free_ns: u64,
}

/// A response, or why there is none.
type Answer = Result<(u16, BodyCheck), (Failure, String)>;

/// A request on its way.
struct Attempt<'a> {
    message: &'a Message,
    path: usize,
    compares_content: bool,
    has_first_byte: bool,
    from_ns: u64,
}

impl Context {
    /// Sends a request and counts its response. Returns how long to rest after a failure of the connection.
    pub(super) async fn exchange(self: &Rc<Self>, slot: &mut Slot, intended_ns: Option<u64>) -> Option<u64> {
        let mut attempt = self.draw();
        let started_ns = self.clock.now_ns();
        let answer = loop {
            if slot.client.is_none()
                && let Err(failed) = self.open(slot).await
            {
                let Some(text) = failed else {
                    self.state.borrow_mut().in_flight -= 1;
                    return None;
                };
                attempt.from_ns = intended_ns.unwrap_or(started_ns);
                break Err((Failure::Connect, text));
            }
            let is_second = attempt.from_ns != u64::MAX;
            if !is_second && intended_ns.is_none() && self.has_ended() {
                self.give_up();
                return None;
            }
            if !is_second {
                attempt.from_ns = intended_ns.unwrap_or_else(|| self.clock.now_ns());
            }
            let (answer, is_stale) = self.attempt(slot, &mut attempt).await;
            let may_resend = slot.is_used && attempt.message.is_idempotent && !attempt.has_first_byte && !is_second;
            if !(is_stale && may_resend) {
                break answer;
            }
            slot.client = None;
            self.state.borrow_mut().outbox.tally.counts.resent += 1;
        };
        self.count_answer(slot, &attempt, answer)
    }

    /// Ends a request whose connection took longer than a closed load. In an open one, it has started.
    fn give_up(&self) {
        let mut state = self.state.borrow_mut();
        state.in_flight -= 1;
        state.outbox.tally.counts.interrupted += 1;
    }

    /// Draws a request.
    fn draw(&self) -> Attempt<'_> {
        let mut state = self.state.borrow_mut();
        let number = self.work.weights.draw(&mut state.rng);
        let message = &self.work.messages[number];
        let is_about_content = message.expected.is_about_content();
        state.contents += u64::from(is_about_content);
        state.in_flight += 1;
        Attempt {
            message,
            path: state.cursors[number].next_path(message.paths()),
            compares_content: is_about_content && state.contents % SAMPLE == 1,
            has_first_byte: false,
            from_ns: u64::MAX,
        }
    }

    /// Opens a connection. The error is empty if it is a fault of this machine, which ends the load.
    async fn open(self: &Rc<Self>, slot: &mut Slot) -> Result<(), Option<String>> {
        let since_ns = self.clock.now_ns();
        let connected = timeout(Duration::from_nanos(self.work.connect_timeout_ns), self.connect()).await;
        let client = connected.map_err(|_| Some("no connection in time".to_owned()))?.map_err(|error| {
            let Some(fault) = crate::limits::local_fault(&error, self.work.address) else {
                return Some(error.to_string());
            };
            self.stop.fail(fault);
            None
        })?;
        slot.client = Some(client);
        slot.is_used = false;
        let mut state = self.state.borrow_mut();
        state.outbox.tally.connect.record(self.clock.now_ns() - since_ns);
        state.outbox.tally.counts.opened += 1;
        Ok(())
    }

    /// Sends a request once. Returns its answer, and whether it failed because the connection had ended before.
    async fn attempt(&self, slot: &mut Slot, attempt: &mut Attempt<'_>) -> (Answer, bool) {
        let Some(client) = slot.client.clone() else { return (Err((Failure::Connect, String::new())), false) };
        let limit = Duration::from_nanos(self.work.request_timeout_ns);
        match timeout(limit, self.send(client, attempt)).await {
            Err(_) => (Err((Failure::Timeout, "no response in time".to_owned())), false),
            Ok(Ok(answer)) => (Ok(answer), false),
            Ok(Err(error)) => {
                let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
                let is_stale = error.is_io() || error.is_go_away() || is_refused;
                // What this side found wrong is not HTTP/2; the rest is how the target or the network ended it.
                let by_target = error.is_io() || error.is_remote();
                let failure = if by_target { Failure::Read } else { Failure::Protocol };
                (Err((failure, error.to_string())), is_stale)
            }
        }
    }

    async fn send(&self, client: SendRequest<Bytes>, attempt: &mut Attempt<'_>) -> Result<(u16, BodyCheck), h2::Error> {
        let message = attempt.message;
        let mut client = client.ready().await?;
        let (response, mut stream) = client.send_request(message.head(attempt.path), message.body.is_empty())?;
        if !message.body.is_empty() {
            stream.send_data(message.body.clone(), true)?;
        }
        let (head, mut body) = response.await?.into_parts();
        attempt.has_first_byte = true;
        let elapsed_ns = self.clock.now_ns().saturating_sub(attempt.from_ns);
        self.state.borrow_mut().outbox.tally.first_byte.record(elapsed_ns);
        let mut check = BodyCheck::default();
        check.begin(attempt.compares_content);
        while let Some(bytes) = body.data().await {
            let bytes = bytes?;
            check.update(&bytes, &message.expected);
            body.flow_control().release_capacity(bytes.len())?;
        }
        body.trailers().await?;
        Ok((head.status.as_u16(), check))
    }

    fn count_answer(&self, slot: &mut Slot, attempt: &Attempt<'_>, answer: Answer) -> Option<u64> {
        let now_ns = self.clock.now_ns();
        let elapsed_ns = now_ns.saturating_sub(attempt.from_ns);
        let mut state = self.state.borrow_mut();
        state.in_flight -= 1;
        let tally = &mut *state.outbox.tally;
        tally.counts.late += u64::from(now_ns > self.work.end_ns);
        match answer {
            Ok((status, mut body)) => {
                tally.status(status);
                tally.counts.contents_checked += u64::from(body.compares_content());
                match attempt.message.expected.failure(status, &mut body) {
                    None => tally.succeeded.record(elapsed_ns),
                    Some((failure, text)) => tally.fail(failure, elapsed_ns, text),
                }
                slot.is_used = true;
                slot.failures = 0;
                None
            }
            Err((failure, text)) => {
                tally.fail(failure, elapsed_ns, text);
                slot.client = None;
                slot.failures += 1;
                Some(backoff_ns(slot.failures))
            }
        }
    }
}
