//! Reasons from the target's behaviour and failures.

use super::*;

#[test]
fn the_targets_behaviour_is_judged() {
    let oom = only(&with(|case| case.oom_kills = 2), "oom_killed", Verdict::Invalid);
    assert_eq!((oom.observed, oom.unit), (Some(2.0), Some(Unit::Count)));
    let gone =
        |all, gone| with(|case| (case.conditions.processes, case.conditions.processes_gone) = (Some(all), Some(gone)));
    fine(&gone(4, 0));
    assert!(suspect(&gone(4, 1), "target_restarted").text.starts_with("1 of the target's 4 processes"));
    only(&gone(4, 4), "target_restarted", Verdict::Invalid);
    let answer = |text: &str| with(|case| case.conditions.response_change = Some(text.to_owned()));
    fine(&answer(""));
    let changed = only(&answer("status 500 instead of 200"), "response_changed", Verdict::Invalid);
    assert!(changed.text.ends_with("status 500 instead of 200"));
    let text = |text: &str| with(|case| case.conditions.response_text_change = Some(text.to_owned()));
    fine(&text(""));
    let note = only(&text("35 bytes, not 39"), "response_text_changed", Verdict::Valid);
    assert!(note.is_note() && note.text.ends_with("35 bytes, not 39"), "{note:?}");
}

#[test]
fn only_failures_of_the_target_yield_a_verdict() {
    for (cause, code) in [
        (Cause::TargetNotReady, "target_not_ready"),
        (Cause::TargetDied, "target_died"),
        (Cause::TargetOutOfMemory, "oom_killed"),
    ] {
        let judgement = judge_failure(cause, "it is so").expect("a verdict");
        assert_eq!(judgement.verdict, Verdict::Invalid);
        assert_eq!((judgement.reasons[0].code.as_str(), judgement.reasons[0].text.as_str()), (code, "it is so"));
    }
    assert_eq!(judge_failure(Cause::Generator, "k6"), None);
    assert_eq!(judge_failure(Cause::Other, "?"), None);
}
