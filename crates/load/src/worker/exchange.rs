//! One request and its response on a slot.

use std::io;

use mio::Token;

use super::Worker;
use super::slot::{Exchange, Phase};
use crate::content::SAMPLE;
use crate::response::{Piece, ProtocolError};
use crate::tally::Failure;
use crate::transport::{Traffic, Transport};

/// Reads of one connection before others have their turn.
const READS: usize = 16;

impl Worker {
    /// Starts a request, on the slot's connection or on a new one.
    pub(super) fn start(&mut self, place: usize, intended_ns: Option<u64>) {
        let message = self.work.weights.draw(&mut self.rng);
        let path = self.cursors[message].next_path(self.work.messages[message].paths());
        self.slots[place].exchange = Exchange { message, path, intended_ns, ..Exchange::default() };
        self.in_flight += 1;
        if self.slots[place].transport.is_some() {
            self.begin(place);
        } else {
            self.connect(place);
        }
    }

    /// Continues what a slot does, because its connection is ready.
    pub(super) fn ready(&mut self, place: usize, is_readable: bool, is_writable: bool, is_closed: bool) {
        let slot = &mut self.slots[place];
        slot.is_closed_by_target |= is_closed;
        match slot.phase {
            Phase::Off => {}
            Phase::Connecting | Phase::Handshaking => {
                self.establish(place);
                // A target may answer before it has read the request.
                if is_readable && self.slots[place].phase == Phase::Busy {
                    self.receive(place);
                }
            }
            Phase::Busy | Phase::Idle | Phase::Resting => {
                let is_unsent = slot.exchange.written < slot.exchange.length && slot.exchange.write_error.is_none();
                if is_writable && slot.phase == Phase::Busy && is_unsent {
                    self.send(place);
                } else if is_writable && let Some(transport) = &mut slot.transport {
                    let mut traffic = Traffic::default();
                    // A broken connection shows when it is read.
                    let _ = transport.flush(&mut traffic);
                    self.tally().counts.bytes_out += traffic.sent;
                }
                if is_readable {
                    self.receive(place);
                }
            }
        }
    }

    fn connect(&mut self, place: usize) {
        self.now_ns = self.clock.now_ns();
        let (address, security) = (self.work.address, self.work.security.as_ref());
        let transport = Transport::connect(address, security, self.poll.registry(), Token(place));
        let slot = &mut self.slots[place];
        slot.connecting_ns = self.now_ns;
        slot.is_used = false;
        slot.is_closed_by_target = false;
        slot.phase = Phase::Connecting;
        self.timers.set_deadline(place, self.now_ns + self.work.connect_timeout_ns);
        match transport {
            Ok(transport) => slot.transport = Some(transport),
            Err(error) => self.refuse(place, &error),
        }
    }

    /// Sends the request once the connection is established.
    fn establish(&mut self, place: usize) {
        let mut traffic = Traffic::default();
        let slot = &mut self.slots[place];
        let Some(transport) = &mut slot.transport else { return };
        let is_established = match slot.phase {
            Phase::Connecting => transport.is_established(),
            _ => Ok(true),
        };
        let is_done = is_established.and_then(|is_established| {
            if is_established {
                slot.phase = Phase::Handshaking;
            }
            Ok(is_established && transport.handshake(&mut traffic)?)
        });
        let connecting_ns = slot.connecting_ns;
        self.count(traffic);
        match is_done {
            Ok(false) => {}
            Err(error) => self.refuse(place, &error),
            Ok(true) => {
                self.now_ns = self.clock.now_ns();
                let elapsed_ns = self.now_ns - connecting_ns;
                self.tally().connect.record(elapsed_ns);
                self.tally().counts.opened += 1;
                self.open += 1;
                let Exchange { intended_ns, is_resent, .. } = self.slots[place].exchange;
                if self.has_ended() && intended_ns.is_none() && !is_resent {
                    self.slots[place].phase = Phase::Busy;
                    return self.give_up(place);
                }
                self.begin(place);
            }
        }
    }

    /// Ends an attempt to connect that has failed.
    fn refuse(&mut self, place: usize, error: &io::Error) {
        if let Some(fault) = crate::limits::local_fault(error, self.work.address) {
            self.withdraw(place);
            self.stop.fail(fault);
        } else {
            self.fail(place, Failure::Connect, error);
        }
    }

    /// Begins to send on an established connection.
    fn begin(&mut self, place: usize) {
        let work = &self.work;
        let slot = &mut self.slots[place];
        let message = &work.messages[slot.exchange.message];
        let is_about_content = message.expected.is_about_content();
        self.contents += u64::from(is_about_content);
        slot.body.begin(is_about_content && self.contents % SAMPLE == 1);
        slot.reader.begin(message.is_head);
        slot.phase = Phase::Busy;
        self.now_ns = self.clock.now_ns();
        if !slot.exchange.is_resent {
            slot.exchange.from_ns = slot.exchange.intended_ns.unwrap_or(self.now_ns);
        }
        self.timers.set_deadline(place, self.now_ns + work.request_timeout_ns);
        self.send(place);
    }

    fn send(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        let Some(transport) = &mut slot.transport else { return };
        let exchange = &mut slot.exchange;
        let bytes = self.work.messages[exchange.message].bytes(exchange.path, &mut self.scratch);
        exchange.length = bytes.len();
        let mut traffic = Traffic::default();
        while exchange.written < bytes.len() {
            match transport.write(&bytes[exchange.written..], &mut traffic) {
                Ok(length) => exchange.written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    exchange.write_error = Some(error.kind());
                    slot.is_closed_by_target = true;
                    self.again.push(place);
                    break;
                }
            }
        }
        self.count(traffic);
    }

    fn receive(&mut self, place: usize) {
        // Lent, because what is read changes other fields.
        let mut buffer = std::mem::take(&mut self.buffer);
        self.receive_into(place, &mut buffer);
        self.buffer = buffer;
    }

    fn receive_into(&mut self, place: usize, buffer: &mut [u8]) {
        for _ in 0..READS {
            let slot = &mut self.slots[place];
            let Some(transport) = &mut slot.transport else { return };
            let mut traffic = Traffic::default();
            let read = transport.read(buffer, &mut traffic);
            let short_is_complete = transport.short_reads_are_complete() && !slot.is_closed_by_target;
            self.count(traffic);
            self.now_ns = self.clock.now_ns();
            match read {
                Ok(0) => return self.end_of_connection(place, &io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.parse(place, &buffer[..length]);
                    // The next request may be on another connection.
                    let is_same = !matches!(self.slots[place].phase, Phase::Connecting | Phase::Handshaking);
                    if !is_same || (length < buffer.len() && short_is_complete) {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.slots[place].exchange.write_error.is_some() {
                        self.end_of_connection(place, &error);
                    }
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.end_of_connection(place, &error),
            }
        }
        self.again.push(place);
    }

    /// Parses bytes that have arrived.
    fn parse(&mut self, place: usize, mut bytes: &[u8]) {
        let slot = &mut self.slots[place];
        if slot.phase != Phase::Busy {
            self.outbox.tally.counts.unsolicited += 1;
            self.close(place);
            return;
        }
        if !slot.exchange.has_first_byte {
            slot.exchange.has_first_byte = true;
            self.outbox.tally.first_byte.record(self.now_ns.saturating_sub(slot.exchange.from_ns));
        }
        loop {
            match slot.reader.next(&mut bytes) {
                Ok(Piece::More) => return,
                Ok(Piece::Head(head)) => slot.exchange.head = Some(head),
                Ok(Piece::Body(body)) => slot.body.update(body, &self.work.messages[slot.exchange.message].expected),
                Ok(Piece::End) => return self.complete(place, !bytes.is_empty()),
                Err(error) => return self.fail(place, Failure::Protocol, error),
            }
        }
    }

    /// Counts a complete response.
    fn complete(&mut self, place: usize, has_excess: bool) {
        if has_excess {
            return self.fail(place, Failure::Protocol, ProtocolError::Excess);
        }
        let is_late = self.is_late();
        let slot = &mut self.slots[place];
        let expected = &self.work.messages[slot.exchange.message].expected;
        let status = slot.exchange.head.map_or(0, |head| head.status);
        let elapsed_ns = self.now_ns.saturating_sub(slot.exchange.from_ns);
        let tally = &mut *self.outbox.tally;
        tally.status(status);
        tally.counts.late += u64::from(is_late);
        tally.counts.contents_checked += u64::from(slot.body.compares_content());
        match expected.failure(status, &mut slot.body) {
            None => tally.succeeded.record(elapsed_ns),
            Some((failure, text)) => tally.fail(failure, elapsed_ns, text),
        }
        self.in_flight -= 1;
        self.timers.set_deadline(place, u64::MAX);
        slot.failures = 0;
        let was_used = std::mem::replace(&mut slot.is_used, true);
        if !slot.is_reusable(self.work.reuse) {
            self.close(place);
        }
        if !was_used {
            self.confirm();
        }
        self.follow_up(place, false);
    }

    /// Ends the request of a connection that has ended.
    fn end_of_connection(&mut self, place: usize, error: &io::Error) {
        let slot = &mut self.slots[place];
        if slot.phase != Phase::Busy {
            return self.close(place);
        }
        let is_end_of_body = error.kind() == io::ErrorKind::UnexpectedEof && slot.reader.ends_with_connection();
        slot.is_closed_by_target = true;
        if slot.exchange.head.is_some() && is_end_of_body {
            return self.complete(place, false);
        }
        if slot.may_resend(self.work.messages[slot.exchange.message].is_idempotent) {
            slot.exchange.is_resent = true;
            slot.exchange.written = 0;
            slot.exchange.write_error = None;
            self.close(place);
            self.tally().counts.resent += 1;
            return self.connect(place);
        }
        match slot.exchange.write_error {
            Some(kind) => self.fail(place, Failure::Write, format!("the request was not sent: {kind}")),
            None if error.kind() != io::ErrorKind::UnexpectedEof => self.fail(place, Failure::Read, error),
            None if slot.exchange.has_first_byte => self.fail(place, Failure::Read, ProtocolError::Truncated),
            None => self.fail(place, Failure::Read, "the target closed the connection without a response"),
        }
    }

    /// Counts a request that has failed, and closes its connection.
    fn fail(&mut self, place: usize, failure: Failure, text: impl std::fmt::Display) {
        self.now_ns = self.clock.now_ns();
        let slot = &mut self.slots[place];
        let is_connecting = matches!(slot.phase, Phase::Connecting | Phase::Handshaking);
        let from_ns = match slot.exchange.intended_ns {
            Some(intended_ns) => intended_ns,
            None if is_connecting && !slot.exchange.is_resent => slot.connecting_ns,
            None => slot.exchange.from_ns,
        };
        slot.failures += 1;
        self.in_flight -= 1;
        let is_late = self.is_late();
        let tally = &mut *self.outbox.tally;
        tally.counts.late += u64::from(is_late);
        tally.fail(failure, self.now_ns.saturating_sub(from_ns), text);
        self.timers.set_deadline(place, u64::MAX);
        self.close(place);
        self.follow_up(place, true);
    }

    /// Fails requests whose time is up.
    pub(super) fn expire(&mut self) {
        if !self.timers.begin_sweep(self.now_ns) {
            return;
        }
        let (now_ns, mut from) = (self.now_ns, 0);
        while let Some(place) = self.timers.expired(from, now_ns) {
            from = place + 1;
            match self.slots[place].phase {
                Phase::Connecting | Phase::Handshaking => {
                    self.fail(place, Failure::Connect, "no connection in time");
                }
                Phase::Busy => self.fail(place, Failure::Timeout, "no response in time"),
                Phase::Off | Phase::Idle | Phase::Resting => self.timers.set_deadline(place, u64::MAX),
            }
        }
    }

    /// Closes the connection of a slot.
    pub(super) fn close(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        let was_open = !matches!(slot.phase, Phase::Connecting | Phase::Handshaking);
        if slot.transport.take().is_some() {
            self.open -= u64::from(was_open);
        }
    }

    fn count(&mut self, traffic: Traffic) {
        let counts = &mut self.tally().counts;
        counts.bytes_in += traffic.received;
        counts.bytes_out += traffic.sent;
    }
}
