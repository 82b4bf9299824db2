//! Checks that the load reached the target, and nothing else: what another server answers says nothing about it. Pure.

use brewbench_wire::{
    outcome::Mechanism,
    reports::summary::Figures,
    traffic::{Peer, Traffic},
};

use crate::{
    results::{
        conditions::Conditions,
        verdict::{
            limits::{Limit, Limits},
            model::Context,
        },
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// CPU time that any server needs for a request, microseconds: to receive it and to send the response takes two system
/// calls, and more than this.
const MIN_CPU_US: f64 = 1.0;

/// Without control groups the kernel reports CPU time in ticks of 10 ms, microseconds.
const TICK_US: f64 = 10_000.0;

/// A mean of fewer requests says nothing.
const MIN_REQUESTS: f64 = 100.0;

/// A server to which the load connects again in as many looks gets requests all the time.
const RECURRING: u32 = 3;

/// Most addresses that a sentence names.
const MAX_NAMED: usize = 3;

/// The code of the reason for load on other addresses.
pub(super) const OTHER_ORIGIN: &str = "other_origin";

pub(super) fn judge(figures: &Figures, context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let cpu_us = cpu_per_request(figures, context);
    // Generators on other machines are judged one by one.
    let is_alone = context.generators.is_empty();
    let found = is_alone.then(|| elsewhere(context.conditions, Some(figures), cpu_us, limits)).flatten();
    reasons.extend(found.or_else(|| idle(context, cpu_us?)));
}

/// Judges the load on other addresses than the target's. Without figures the bytes that the kernel showed are all there
/// are.
pub(super) fn elsewhere(
    conditions: &Conditions,
    figures: Option<&Figures>,
    cpu_us: Option<f64>,
    limits: &Limits,
) -> Option<Reason> {
    let traffic = conditions.traffic.as_ref()?;
    let peers = traffic.peers.as_ref()?;
    let others: Vec<&Peer> = peers.iter().filter(|peer| !peer.is_target).collect();
    let (share, least, what) = share(traffic, peers, &others, figures)?;
    let limit = limits.get(Limit::OtherOrigin);
    if share <= limit {
        return None;
    }
    let named: Vec<String> = others.iter().take(MAX_NAMED).map(|peer| peer.address.to_string()).collect();
    let more = others.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} other addresses") } else { String::new() };
    let mut text = format!(
        "{least}{} of the {what} went to {}{more}; the target is at {}",
        Unit::Share.text(share),
        named.join(", "),
        traffic.target
    );
    if !peers.iter().any(|peer| peer.is_target) {
        text.push_str(", had no connection");
        text.push_str(
            &cpu_us.map_or_else(String::new, |us| format!(" and used {} of CPU per request", microseconds(us))),
        );
    }
    text.push_str("; check whether the script uses BASE_URL, and where the target redirects");
    Some(Reason::new(OTHER_ORIGIN, Verdict::Invalid, text).with(share, limit, Unit::Share))
}

/// Returns the share of other addresses, the word before it, and what it is a share of.
///
/// Bytes are counted exactly on connections that are kept open. A connection that is closed after each response shows
/// few of its bytes, so k6's own count is the whole, and connections are compared where the load connects again all the
/// time.
fn share(
    traffic: &Traffic,
    peers: &[Peer],
    others: &[&Peer],
    figures: Option<&Figures>,
) -> Option<(f64, &'static str, &'static str)> {
    let ratio = |part: u64, whole: f64| (whole > 0.0).then(|| part as f64 / whole);
    let sum = |value: fn(&Peer) -> u64| peers.iter().fold(0_u64, |sum, peer| sum.saturating_add(value(peer)));
    let counted = figures.and_then(|figures| {
        let all = figures.data_received_bytes?.saturating_add(figures.data_sent_bytes?) as f64;
        (figures.measured_ms > 0.0).then(|| all * (traffic.elapsed_ms as f64 / figures.measured_ms).min(1.0))
    });
    let bytes = others.iter().fold(0_u64, |sum, peer| sum.saturating_add(peer.bytes));
    let (shown, counted) = (sum(|peer| peer.bytes) as f64, counted.unwrap_or(0.0));
    let least = if counted > shown { "at least " } else { "" };
    let bytes = ratio(bytes, shown.max(counted))?;
    let reconnected = others.iter().filter(|peer| peer.reconnects >= RECURRING);
    let connections = reconnected.fold(0_u64, |sum, peer| sum.saturating_add(peer.connections));
    let connections = ratio(connections, sum(|peer| peer.connections) as f64).unwrap_or(0.0);
    Some(if connections > bytes { (connections, "", "connections in use") } else { (bytes, least, "bytes") })
}

/// Judges a target that practically used no CPU, although k6 had responses, unless its connections are known.
fn idle(context: &Context<'_>, cpu_us: f64) -> Option<Reason> {
    let peers = context.conditions.traffic.as_ref().and_then(|traffic| traffic.peers.as_ref());
    let is_reached = peers.is_some_and(|peers| peers.iter().any(|peer| peer.is_target));
    if cpu_us >= MIN_CPU_US || is_reached {
        return None;
    }
    let text = format!(
        "the target used {} of CPU per request, less than any server needs: the requests went elsewhere",
        microseconds(cpu_us)
    );
    let reason = Reason::new("target_idle", Verdict::Invalid, text);
    Some(reason.with(cpu_us / 1_000.0, MIN_CPU_US / 1_000.0, Unit::Milliseconds))
}

/// Returns the most CPU time that the target can have used per request, microseconds; None if it was not measured, or
/// for too few requests.
fn cpu_per_request(figures: &Figures, context: &Context<'_>) -> Option<f64> {
    let used = context.conditions.core_use.filter(|_| !context.cores.target.is_empty())?;
    let observed = (used.elapsed_us as f64 / 1_000.0 / figures.measured_ms).min(1.0);
    let requests = figures.requests as f64 * observed;
    // Control groups count exactly.
    let unknown_us = if context.enforced.cpu == Mechanism::None { TICK_US } else { 0.0 };
    (requests >= MIN_REQUESTS).then(|| (used.target_us as f64 + unknown_us) / requests)
}

fn microseconds(us: f64) -> String {
    format!("{us:.2} µs")
}

#[cfg(test)]
mod tests;
