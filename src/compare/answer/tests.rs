//! Tests of the sentences.

use crate::{
    compare::{
        answer::{Answer, Headline},
        testing::{failed, faster, judged, repeated, run, sized},
        trust::TrustLevel,
        view::Comparison,
    },
    runs::{
        model::{Origin, Run},
        verdict::Verdict,
    },
    web::{card::Tone, series_style::Marks},
};

fn answer(runs: Vec<Run>, baseline: Option<&str>) -> Answer {
    Comparison::new(runs, &Marks::default(), baseline).answer
}

/// Sentence, details and tone of each headline, with plain spaces.
fn results(runs: Vec<Run>) -> Vec<(String, String, Tone)> {
    let plain = |text: &str| text.replace('\u{a0}', " ");
    let result = |one: Headline| (plain(&one.line()), plain(&one.details), one.tone);
    answer(runs, None).headlines.into_iter().map(result).collect()
}

fn against(factor: f64) -> Vec<Run> {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| faster(run("servy", n), factor)));
    runs
}

#[test]
fn two_targets_are_compared_in_a_sentence() {
    let all = results(against(1.25));
    let details = "Throughput: +24.4 % to +25.6 % (95 % interval). servy: p50 20.0 % faster and p99 20.0 % faster. No difference \
                   found in CPU time per request and memory.";
    let expected = ("servy is 25.0 % faster than gosherve".to_owned(), details.to_owned(), Tone::Good);
    assert_eq!(all, [expected]);
}

#[test]
fn from_twofold_on_a_difference_is_a_factor() {
    assert_eq!(results(against(2.14))[0].0, "servy is 2.1× as fast as gosherve");
    assert_eq!(results(against(0.25))[0].0, "servy is 75.0 % slower than gosherve");
}

#[test]
fn slower_is_bad_and_close_is_no_difference() {
    assert_eq!(results(against(0.8))[0].2, Tone::Bad);
    let (sentence, details, tone) = results(against(1.004)).remove(0);
    assert_eq!((sentence.as_str(), tone), ("No difference found between servy and gosherve", Tone::Plain));
    assert!(details.starts_with("A difference below ") && details.contains(" could have been missed."), "{details}");
}

#[test]
fn one_repetition_is_too_few() {
    let (sentence, details, tone) = results(vec![run("gosherve", 1), faster(run("servy", 1), 2.0)]).remove(0);
    assert_eq!((sentence.as_str(), tone), ("Too little data to compare servy with gosherve", Tone::Doubtful));
    let only = "Only 1 of 5 repetitions on each side were measured in turn.";
    assert!(details.starts_with(only), "{details}");
}

#[test]
fn a_target_without_counting_runs_is_named() {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.push(failed(run("servy", 1), "did not start"));
    let (sentence, details, tone) = results(runs).remove(0);
    assert_eq!((sentence.as_str(), tone), ("gosherve: 10,000 requests/s", Tone::Doubtful));
    assert!(details.starts_with("Nothing to compare with: servy has no run that counts."), "{details}");
}

#[test]
fn a_target_that_counts_under_another_setting_is_not_said_to_have_no_runs() {
    let mut runs = repeated(|n| run("viak6", n));
    let with_threads = |mut run: Run| {
        run.spec.parameters.insert("threads".to_owned(), "2".to_owned());
        run
    };
    runs.extend(repeated(|n| with_threads(run("viawrk", n))));
    let all = results(runs);
    let starts = [
        "Nothing to compare with: viawrk has 6 runs under another setting: threads=2.",
        "Nothing to compare with: viak6 has 6 runs under another setting: no parameters.",
    ];
    for ((line, details, _), start) in all.iter().zip(starts) {
        assert!(details.starts_with(start), "{line} {details}");
    }
    assert_eq!(all.len(), 2);
}

#[test]
fn failures_of_one_repetition_are_shown() {
    let mut runs = against(1.25);
    runs[7].figures.error_rate = Some(0.004);
    let (_, details, _) = results(runs).remove(0);
    assert!(details.ends_with("Failed requests in the worst run: servy 0.40 %."), "{details}");
}

#[test]
fn mostly_suspect_runs_are_not_reliable_and_never_green() {
    let noisy = |run: Run| judged(run, Verdict::Suspect, "other programs used 1.7 of 2 cores");
    let all = answer(against(1.25).into_iter().map(noisy).collect(), None);
    assert_eq!((all.trust.level, all.headlines[0].tone), (TrustLevel::Unreliable, Tone::Doubtful));
    assert_eq!(all.trust.text, "All 12 runs are suspect: other programs used 1.7 of 2 cores.");
    let mut runs = against(1.25);
    runs[0] = noisy(runs[0].clone());
    let one = answer(runs, None);
    assert_eq!((one.trust.level, one.headlines[0].tone), (TrustLevel::Doubtful, Tone::Good));
    assert_eq!(one.trust.text, "1 of 12 runs is suspect: other programs used 1.7 of 2 cores.");
    let disturbed = |run: Run| if run.spec.target == "servy" { noisy(run) } else { run };
    let side = answer(against(1.25).into_iter().map(disturbed).collect(), None);
    assert_eq!((side.trust.level, side.headlines[0].tone), (TrustLevel::Unreliable, Tone::Doubtful), "one side");
    let none = answer(against(1.25), None);
    assert_eq!(
        (none.trust.level, none.trust.text.as_str()),
        (TrustLevel::Reliable, "12 valid runs, measured in turn, equal work.")
    );
}

#[test]
fn imported_runs_are_never_reliable_and_keep_their_doubts() {
    let imported = |run: Run| Run { origin: Origin::Import, queued_at_ms: 1_795_760_432_295, ..run };
    let provenance = "All 12 runs were imported from k6 summaries by ada on 2026-11-27; order as stated.";
    let all = answer(against(1.25).into_iter().map(imported).collect(), None);
    assert_eq!((all.trust.level, all.trust.text.as_str()), (TrustLevel::Imported, provenance));
    assert_eq!((all.trust.level.title(), all.trust.level.tone()), ("Imported", Tone::Plain));
    let mut runs: Vec<Run> = against(1.25).into_iter().map(imported).collect();
    runs[0] = judged(runs[0].clone(), Verdict::Suspect, "the load is unknown");
    let one = answer(runs, None);
    assert_eq!(one.trust.level, TrustLevel::Doubtful);
    assert_eq!(one.trust.text, format!("1 of 12 runs is suspect: the load is unknown. {provenance}"));
}

fn on(experiment: &str, target: &str, factor: f64) -> Vec<Run> {
    let within = |run: Run| Run {
        id: format!("{experiment}-{target}-{}", run.repetition).into(),
        experiment: Some(experiment.to_owned().into()),
        ..run
    };
    repeated(|n| within(faster(run(target, n), factor)))
}

/// The fast day has a and b, the slow day b and c: b is better than both, but a has the highest median.
#[test]
fn the_sentence_names_the_target_that_the_test_found_and_not_the_highest_median() {
    let runs = [on("fast", "a", 1.0), on("fast", "b", 1.03), on("slow", "b", 0.82), on("slow", "c", 0.8)].concat();
    assert_eq!(results(runs)[0].0, "b is first, 2.5 % faster than c");
}

/// The machine slows down half-way, and the slow half of a is invalid.
#[test]
fn a_target_whose_slow_half_is_invalid_does_not_lead() {
    let machine = |n: u32| if n > 6 { 0.7 } else { 1.0 + 0.0005 * f64::from(n) };
    let of = |target: &'static str, factor: f64| {
        (1..=12).map(move |n| faster(run(target, n), factor * machine(n))).collect::<Vec<_>>()
    };
    let mut runs = of("a", 0.96);
    for run in runs.iter_mut().skip(6) {
        *run = judged(run.clone(), Verdict::Invalid, "all requests failed");
    }
    runs.extend([of("b", 1.0), of("c", 0.9)].concat());
    let all = results(runs);
    assert!(all[0].0.starts_with("b is first"), "{all:?}");
}

/// The repetitions of different blocks are not compared, however many there are.
#[test]
fn compared_repetitions_are_counted_by_common_blocks() {
    let night = |target: &'static str, night: &'static str, numbers: std::ops::RangeInclusive<u32>| {
        numbers.map(move |n| Run {
            id: format!("{target}-{night}-{n}").into(),
            experiment: Some(night.to_owned().into()),
            ..run(target, n)
        })
    };
    let base: Vec<Run> = night("a", "one", 1..=9).chain(night("a", "two", 1..=1)).collect();
    let other: Vec<Run> = night("b", "one", 1..=1).chain(night("b", "two", 1..=9)).collect();
    let all = results([base, other].concat());
    assert!(all[0].1.contains("Only 2 of 4 repetitions on each side"), "{all:?}");
}

#[test]
fn a_difference_below_the_minimum_effect_is_called_that() {
    let (sentence, details, tone) = results(against(1.009)).remove(0);
    assert_eq!((sentence.as_str(), tone), ("servy is 0.9 % faster than gosherve", Tone::Plain));
    let below = "Throughput: +0.4 % to +1.4 % (95 % interval). This is below the minimum effect of 1 %.";
    assert!(details.starts_with(below), "{details}");
}

#[test]
fn with_a_chosen_baseline_each_target_is_compared_with_it() {
    let of = |target: &'static str, factor: f64| repeated(move |n| faster(run(target, n), factor));
    let runs = [of("a", 1.0), of("b", 1.2), of("c", 1.2)].concat();
    let lines = |baseline: Option<&str>| -> Vec<(String, Tone)> {
        let all = answer(runs.clone(), baseline).headlines;
        all.iter().map(|one| (one.line().replace('\u{a0}', " "), one.tone)).collect()
    };
    assert_eq!(lines(None), [("b and c lead".to_owned(), Tone::Plain)]);
    let details = &answer(runs.clone(), None).headlines[0].details;
    assert_eq!(details, "No difference found between them. Behind at least one other (slower): a.");
    let chosen = [("b is 20.0 % faster than a", Tone::Good), ("c is 20.0 % faster than a", Tone::Good)];
    assert_eq!(lines(Some("a")), chosen.map(|(text, tone)| (text.to_owned(), tone)));
    assert_eq!(lines(Some("b"))[0], ("a is 16.7 % slower than b".to_owned(), Tone::Bad));
}

#[test]
fn each_of_several_sizes_has_a_sentence() {
    let mut runs = repeated(|n| sized("gosherve", n, 1.0));
    runs.extend(repeated(|n| faster(sized("servy", n, 1.0), 1.5)));
    runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
    runs.push(sized("servy", 1, 4.0));
    let all = results(runs);
    assert_eq!(all[0].0, "1 vCPU / 2 GiB: servy is 50.0 % faster than gosherve");
    assert!(all[1].0.ends_with("Too little data to compare servy with gosherve"), "{all:?}");
}
