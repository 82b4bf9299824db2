//! Sentences about small examples.

use super::*;
use crate::profiles::{
    functions::Functions,
    stacks::{Profile, Stacks},
    tree::testing::{run, stacks},
};

/// Milliseconds of one stack on both sides.
type Line = (&'static str, f64, f64);

/// Four runs a side of these stacks. Each run's time differs by up to one percent.
fn runs(lines: &[Line], noise: f64) -> Vec<(Stacks, f64)> {
    let run = |number: u32| {
        let is_candidate = number >= 4;
        let factor = 1.0 + noise * (f64::from(number % 4) - 1.5) / 1.5;
        let value = |line: &Line| if is_candidate { line.2 } else { line.1 };
        let whole: f64 = lines.iter().map(value).sum();
        let own = |(place, line): (u32, &Line)| {
            // Sampling noise, different in each run and stack.
            let samples = value(line) * (100_000.0 + 300.0 * f64::from((number * 7 + place * 3) % 5));
            format!("{} {samples:.0}", line.0)
        };
        let lines: Vec<String> = (0..).zip(lines).map(own).collect();
        (stacks(&lines.iter().map(String::as_str).collect::<Vec<_>>()), whole * factor)
    };
    (0..8).map(run).collect()
}

fn headline_of(runs: &[(Stacks, f64)], baseline: usize) -> Headline {
    let profiles: Vec<Profile<'_>> = runs.iter().map(|(stacks, ms)| run(stacks, *ms)).collect();
    let tree = Tree::union(&profiles);
    Headline::new(&tree, &Changes::new(&tree, &Functions::new(&tree), baseline))
}

fn text(headline: &Headline) -> String {
    headline.sentences().join(" ").replace('\u{a0}', " ")
}

const GO: [Line; 4] = [
    ("runtime.goexit;net/http.(*conn).serve;main.handle", 0.02, 0.02),
    ("runtime.goexit;net/http.(*conn).serve;bufio.NewReader;runtime.mallocgc", 0.03, 0.018),
    ("runtime.goexit;net/http.(*conn).serve;bufio.NewReader", 0.01, 0.007),
    ("runtime.goexit;runtime.schedule", 0.01, 0.01),
];

#[test]
fn the_sentence_names_the_place_of_the_difference() {
    let headline = headline_of(&runs(&GO, 0.01), 4);
    let place = headline.place.as_ref().expect("a place");
    assert_eq!(place.symbol.name, "runtime.mallocgc");
    assert_eq!(place.caller.as_ref().map(|caller| caller.name.as_str()), Some("bufio.NewReader"));
    let text = text(&headline);
    let first = "80 % of the difference of −0.015 ms per request is in `bufio.NewReader` → `runtime.mallocgc`. Own \
                 time: `runtime.mallocgc` −0.0121 ms (−40 %), `bufio.NewReader` −0.00299 ms (−30 %). \
 `runtime.mallocgc` itself explains 80 % (78 % to 85 %) of the difference.";
    assert_eq!(text, first);
}

#[test]
fn the_place_is_the_last_node_with_half_of_the_difference() {
    let lines = [("main;serve;a", 0.1, 0.13), ("main;serve;b", 0.1, 0.13), ("main;serve;c", 0.1, 0.13)];
    let headline = headline_of(&runs(&lines, 0.01), 4);
    assert_eq!(headline.place.as_ref().map(|place| place.symbol.name.as_str()), Some("serve"));
    assert_eq!(headline.functions.len(), 3);
    let explains = headline.explains_most.and_then(|one| one.explains).expect("a share");
    assert!((explains.share - 1.0 / 3.0).abs() < 0.03, "{explains:?}");
}

#[test]
fn no_difference_is_said_with_its_interval() {
    let headline = headline_of(&runs(&[("main;a", 0.1, 0.1), ("main;b", 0.1, 0.1001)], 0.02), 4);
    assert_eq!((headline.verdict, headline.place.is_none()), (Verdict::NoDifference, true));
    let text = text(&headline);
    assert!(text.starts_with("No difference in CPU time per request is shown (+0.0001 ms, 95 % interval −"), "{text}");
}

#[test]
fn a_difference_of_many_functions_is_spread() {
    let names: Vec<String> = (0..120).map(|number| format!("main;f{number:03}")).collect();
    let runs: Vec<(Stacks, f64)> = (0..8_u32)
        .map(|run| {
            let samples = |place: u32| 100 + (run * 13 + place * 7 + run * place * 5) % 30;
            let lines: Vec<String> =
                (0..).zip(&names).map(|(place, name)| format!("{name} {}", samples(place))).collect();
            let ms = if run < 4 { 1.0 } else { 1.03 } + f64::from(run % 4) * 0.005;
            (stacks(&lines.iter().map(String::as_str).collect::<Vec<_>>()), ms)
        })
        .collect();
    let mut headline = headline_of(&runs, 4);
    assert_eq!(headline.verdict, Verdict::Difference);
    // `main` is the only node that holds the difference; without it nothing does.
    assert_eq!(headline.place.take().map(|place| place.symbol.name), Some("main".to_owned()));
    headline.functions.clear();
    let text = text(&headline);
    assert!(text.starts_with("CPU time per request differs (+0.03 ms, 95 % interval +"), "{text}");
    assert!(text.contains("spread over many functions: none differs significantly by itself."), "{text}");
}

#[test]
fn new_and_vanished_functions_are_named() {
    let lines = [("main;old", 0.1, 0.0), ("main;new", 0.0, 0.2), ("main;same", 0.1, 0.1)];
    let text = text(&headline_of(&runs(&lines, 0.01), 4));
    assert!(text.contains("Own time: `new` is new (0.2 ms), `old` is gone (−0.1 ms)."), "{text}");
    assert!(text.contains("`new` itself explains 200 % ("), "{text}");
}

#[test]
fn too_few_and_unknown_runs_are_said() {
    let mut all = runs(&GO, 0.01);
    let three: Vec<(Stacks, f64)> = all[1..7].to_vec();
    assert_eq!(text(&headline_of(&three, 3)), "Too few profiles (3 and 3): a difference needs 4 a side.");
    assert_eq!(text(&headline_of(&[], 0)), "Not compared: no samples on one side.");
    all[0].1 = f64::NAN;
    let shares = headline_of(&all, 4);
    assert_eq!((shares.verdict, shares.difference, shares.explains_most.is_none()), (Verdict::SharesOnly, None, true));
    let text = text(&shares);
    assert!(text.starts_with("The CPU time per request is unknown, so shares"), "{text}");
    assert!(text.contains("`runtime.mallocgc` −10.2 points"), "{text}");
}

#[test]
fn names_cannot_leave_their_backticks() {
    let lines = [("main;a`b", 0.1, 0.2), ("main;c", 0.1, 0.1)];
    assert!(text(&headline_of(&runs(&lines, 0.01), 4)).contains("`a'b`"));
}
