//! Tests of the title and the cards.

use crate::{
    compare::{
        testing::{failed, faster, judged, repeated, run, sized},
        view::Comparison,
    },
    runs::{model::Run, verdict::Verdict},
    web::{card::Tone, series_style::Marks},
};

fn cards(runs: Vec<Run>) -> Vec<(String, String, Tone)> {
    let plain = |text: &str| text.replace('\u{a0}', " ");
    let cards = Comparison::new(runs, &Marks::default(), None).cards;
    cards.into_iter().map(|card| (plain(&card.value), plain(&card.detail), card.tone)).collect()
}

fn against(factor: f64) -> Vec<Run> {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| faster(run("servy", n), factor)));
    runs
}

#[test]
fn two_targets_are_compared_in_words_and_figures() {
    let cards = cards(against(1.25));
    let expected = (
        "+25.0 %".to_owned(),
        "faster than gosherve (+24.4 % to +25.6 %) · 12,500 instead of 10,000 requests/s".to_owned(),
        Tone::Good,
    );
    assert_eq!(cards[0], expected);
    assert_eq!(cards[2].0, "−20.0 %");
    assert_eq!((cards[3].0.as_str(), cards[3].1.as_str()), ("none", "on either side"));
}

#[test]
fn slower_is_bad_and_close_is_no_difference() {
    assert_eq!(cards(against(0.8))[0].2, Tone::Bad);
    let close = &cards(against(1.004))[0];
    assert_eq!((close.0.as_str(), close.2), ("no difference found", Tone::Plain));
    assert!(
        close.1.contains("could have been missed") && close.1.contains("· 10,040 instead of 10,000"),
        "{}",
        close.1
    );
}

#[test]
fn one_repetition_is_too_few() {
    let cards = cards(vec![run("gosherve", 1), faster(run("servy", 1), 2.0)]);
    assert_eq!(cards[0].0, "too little data");
    let only = "+100 %, but only 1 of 5 repetitions on each side were measured in turn";
    assert!(cards[0].1.starts_with(only), "{cards:?}");
    assert_eq!(cards[0].2, Tone::Doubtful);
}

#[test]
fn a_target_without_counting_runs_is_named() {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.push(failed(run("servy", 1), "did not start"));
    assert_eq!(cards(runs)[0].1, "servy has no run that counts");
}

#[test]
fn failures_of_one_repetition_are_shown() {
    let mut runs = against(1.25);
    runs[7].figures.error_rate = Some(0.004);
    let card = &cards(runs)[3];
    assert_eq!((card.0.as_str(), card.1.as_str()), ("0.40 %", "in the worst repetition; gosherve 0 %"));
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
fn the_card_names_the_target_that_the_test_found_and_not_the_highest_median() {
    let runs = [on("fast", "a", 1.0), on("fast", "b", 1.03), on("slow", "b", 0.82), on("slow", "c", 0.8)].concat();
    let cards = cards(runs);
    assert_eq!(cards[0].0, "b", "{cards:?}");
    assert!(cards[0].1.ends_with("2.5 % faster than c"), "{cards:?}");
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
    let cards = cards(runs);
    assert_eq!(cards[0].0, "b", "{cards:?}");
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
    let cards = cards([base, other].concat());
    assert!(cards[0].1.contains("only 2 of 4 repetitions on each side"), "{cards:?}");
}

#[test]
fn a_difference_below_the_minimum_effect_is_called_that() {
    let cards = cards(against(1.009));
    let less = "+0.9 % (+0.4 % to +1.4 %): smaller than the minimum effect (1 %) · 10,090 instead of 10,000";
    assert_eq!((cards[0].0.as_str(), cards[0].2), ("below 1 %", Tone::Plain));
    assert!(cards[0].1.starts_with(less), "{cards:?}");
}

#[test]
fn with_a_chosen_baseline_each_target_is_compared_with_it() {
    let of = |target: &'static str, factor: f64| repeated(move |n| faster(run(target, n), factor));
    let runs = [of("a", 1.0), of("b", 1.2), of("c", 1.2)].concat();
    let cards = |baseline: Option<&str>| Comparison::new(runs.clone(), &Marks::default(), baseline).cards;
    let open = &cards(None)[0];
    assert_eq!((open.label.as_str(), open.value.as_str()), ("Throughput", "no difference found"));
    let chosen = cards(Some("a"));
    let texts: Vec<_> = chosen.iter().map(|card| (card.label.as_str(), card.value.replace('\u{a0}', " "))).collect();
    assert_eq!(texts, [("b", "+20.0 %".to_owned()), ("c", "+20.0 %".to_owned())]);
    let slowest = &cards(Some("b"))[0];
    assert_eq!((slowest.label.as_str(), slowest.tone), ("a", Tone::Bad));
}

#[test]
fn each_of_several_sizes_shows_its_leader() {
    let mut runs = repeated(|n| sized("gosherve", n, 1.0));
    runs.extend(repeated(|n| faster(sized("servy", n, 1.0), 1.5)));
    runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
    runs.push(sized("servy", 1, 4.0));
    let cards = cards(runs);
    assert_eq!((cards[0].0.as_str(), cards[0].1.as_str()), ("servy", "15,000 requests/s, 50.0 % faster than gosherve"));
    assert_eq!(cards[1].0, "too little data");
}
