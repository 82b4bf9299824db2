//! Tests of the choice of two sides.

use super::*;

fn run(number: u32, target: &str, experiment: Option<&str>, size: &str) -> CandidateRun {
    CandidateRun {
        id: format!("r{number}").into(),
        experiment: experiment.map(|id| id.to_owned().into()),
        finished_at_ms: i64::from(number),
        values: ["hash".to_owned(), size.to_owned(), "10 VUs".to_owned(), "k6".to_owned()],
        target: target.to_owned(),
        version: Some("1".to_owned()),
        labels: vec![format!("on-{size}")],
    }
}

fn stock() -> Candidates {
    let runs = vec![
        run(9, "servy", Some("e3"), "4/8"),
        run(8, "servy", Some("e2"), "1/1"),
        run(7, "gosherve", Some("e2"), "1/1"),
        run(6, "servy", Some("e2"), "1/1"),
        run(5, "gosherve", Some("e1"), "4/8"),
    ];
    Candidates { runs, baselines: BTreeMap::from([("main".to_owned(), vec!["r5".to_owned().into()])]) }
}

fn ids(side: &ChosenSide) -> Vec<&str> {
    side.runs.iter().map(RunId::as_str).collect()
}

#[test]
fn the_default_is_the_newest_cell_with_two_targets() {
    let builder = Builder::new(Choice::default(), &stock());
    assert_eq!(ids(&builder.sides[0]), ["r8", "r6"]);
    assert_eq!(ids(&builder.sides[1]), ["r7"]);
    assert!(builder.in_one_experiment && builder.is_complete());
    let size = builder.fields.iter().find(|field| field.key == "size").expect("a field");
    assert_eq!((size.chosen.as_str(), size.groups[0].options.len()), ("1/1", 2));
}

#[test]
fn without_a_common_experiment_each_side_has_its_newest() {
    let choice = Choice {
        candidate: "servy@1".to_owned(),
        against: "gosherve@1".to_owned(),
        size: "4/8".to_owned(),
        ..Choice::default()
    };
    let builder = Builder::new(choice, &stock());
    assert_eq!((ids(&builder.sides[0]), ids(&builder.sides[1])), (vec!["r9"], vec!["r5"]));
    assert!(!builder.in_one_experiment);
    assert_eq!(builder.new_run(), "/experiments/new?run=r9&target=servy&target=gosherve");
}

#[test]
fn a_side_that_was_not_measured_has_no_runs_and_stays_chosen() {
    let choice = Choice { candidate: "gone@2".to_owned(), against: "servy@1".to_owned(), ..Choice::default() };
    let builder = Builder::new(choice, &stock());
    assert!(builder.runs().is_empty());
    let field = &builder.fields[0];
    assert!(field.groups[0].options.contains(&("gone@2".to_owned(), "gone 2".to_owned())), "{field:?}");
}

#[test]
fn labels_and_baselines_are_sides() {
    let choice =
        Choice { candidate: "label:on-1/1".to_owned(), against: "baseline:main".to_owned(), ..Choice::default() };
    let builder = Builder::new(choice, &stock());
    assert_eq!((ids(&builder.sides[0]), ids(&builder.sides[1])), (vec!["r8", "r7", "r6"], vec!["r5"]));
    assert_eq!(builder.by(), By::Target);
    let choice =
        Choice { candidate: "label:on-1/1".to_owned(), against: "label:on-4/8".to_owned(), ..Choice::default() };
    assert_eq!(Builder::new(choice, &stock()).by(), By::Label);
}

#[test]
fn nothing_is_chosen_where_nothing_was_measured() {
    let builder = Builder::new(Choice::default(), &Candidates::default());
    assert!(!builder.is_complete() && builder.runs().is_empty());
}
