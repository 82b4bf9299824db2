//! Notes a target whose latency is a timer of TCP. Pure.
//!
//! It writes a response in parts: Nagle's algorithm (RFC 896) holds back the last one until the client acknowledges the
//! others, and the client delays that (RFC 1122, section 4.2.3.2), Linux by 40 ms.

use brewbench_wire::{outcome::Conditions, reports::summary::Figures};

use crate::{results::verdict::records::count, runs::verdict::Reason};

/// The shortest delay of an acknowledgement, milliseconds: `TCP_DELACK_MIN` of Linux.
const DELAY_MS: f64 = 40.0;

/// With fewer looks at connections nothing is said.
const MIN_ENDS: u64 = 10;

/// Where a response waits for a timer it does so at most looks.
const MIN_SHARE: f64 = 0.5;

pub(super) fn judge(figures: &Figures, conditions: &Conditions) -> Option<Reason> {
    let traffic = conditions.traffic.as_ref().filter(|traffic| traffic.ends >= MIN_ENDS)?;
    let share = traffic.held_back as f64 / traffic.ends as f64;
    (share >= MIN_SHARE && figures.latency.p50_ms? >= DELAY_MS).then(|| {
        let text = format!(
            "latency is mostly the 40 ms timer of TCP acknowledgements: at {} of {} looks at a connection, the kernel held \
             back the last part of a response; let the target write each response at once, or set TCP_NODELAY",
            count(traffic.held_back),
            count(traffic.ends)
        );
        Reason::note("delayed_ack", text)
    })
}

#[cfg(test)]
mod tests {
    use brewbench_wire::traffic::Traffic;

    use crate::{
        results::verdict::tests::{Case, fine, only, with},
        runs::verdict::Verdict,
    };

    fn case(p50_ms: f64, ends: u64, held_back: u64) -> Case {
        with(|case| {
            case.figures.latency.p50_ms = Some(p50_ms);
            case.conditions.traffic = Some(Traffic { ends, held_back, ..Traffic::default() });
        })
    }

    #[test]
    fn a_latency_that_is_a_timer_is_noted() {
        let reason = only(&case(43.9, 90, 81), "delayed_ack", Verdict::Valid);
        assert!(reason.is_note() && reason.text.contains("at 81 of 90 looks"), "{reason:?}");
        // Parts that are acknowledged at once, a slow target, and too few looks.
        for (p50_ms, ends, held_back) in [(0.3, 90, 81), (43.9, 90, 40), (43.9, 9, 9)] {
            fine(&case(p50_ms, ends, held_back));
        }
        fine(&with(|case| case.figures.latency.p50_ms = Some(43.9)));
    }
}
