//! Tests of parsing the form.

use brewbench_wire::load::Load;

use super::*;
use crate::{
    experiments::describe,
    runs::load::{
        LoadBody,
        tests::{rate, vus, vus_stages},
    },
};

fn draft(query: &str) -> Draft {
    Draft::parse(query.as_bytes())
}

#[test]
fn a_form_becomes_a_plan_and_a_plan_the_same_form() {
    let query = "target=a&target=b+c&size=2%2F4GiB&scenario=single-file&set.PAYLOAD=10k&vus=20&duration=1m30s&\
                 warm-up=0.5&repeat=5&agent=rack&load-from=one&load-from=two&name=x";
    let defaults = BTreeMap::from([("PAYLOAD".to_owned(), "1k".to_owned())]);
    let plan = draft(query).plan(&defaults).expect("a plan");
    assert_eq!((plan.targets.as_slice(), &plan.loads), (&["a".to_owned(), "b c".to_owned()][..], &vec![vus(20, 90.0)]));
    assert_eq!((plan.warm_up_s, plan.repetitions), (Some(0.5), 5));
    assert_eq!(plan.parameters.get("PAYLOAD").map(String::as_str), Some("10k"));
    assert_eq!(plan.generators, ["one", "two"]);
    let again = draft(&Draft::from_plan(&plan).query());
    assert_eq!(again.plan(&defaults).expect("a plan"), plan);
    let few = LoadBody::Rate { rate: 50, duration_s: 1.5, max_vus: Some(7) }.try_into().expect("a load");
    let (stages, _) = draft("load=rate-stages&rate-stages=500ms:10,2s:0&max-vus=3").loads().expect("a load");
    for load in [Load::Script, rate(2_000, 5.0), few, vus_stages("5s:10,500ms:50"), stages[0].clone()] {
        let plan = Plan { loads: vec![load], agent: None, ..plan.clone() };
        assert_eq!(draft(&Draft::from_plan(&plan).query()).plan(&defaults).expect("a plan"), plan);
    }
}

#[test]
fn one_field_selects_an_agent_or_a_label() {
    let none = BTreeMap::new();
    let plan_of = |query: &str| draft(query).plan(&none).expect("a plan");
    let labelled = plan_of("agent=label:rack+2&spread=on");
    assert_eq!((&labelled.agent, labelled.agent_label.as_deref(), labelled.spread), (&None, Some("rack 2"), true));
    assert_eq!(plan_of("agent-label=rack+2&spread=on"), labelled);
    assert_eq!(draft(&Draft::from_plan(&labelled).query()).plan(&none).expect("a plan"), labelled);
    assert_eq!(plan_of("agent=label:arm&agent=rack").agent_label, None, "the last choice counts");
    for name in ["rack", "label:arm", "agent:label:arm"] {
        let plan = Plan { agent: Some(name.to_owned()), ..plan_of("") };
        assert_eq!(draft(&Draft::from_plan(&plan).query()).plan(&none).expect("a plan"), plan);
    }
}

#[test]
fn an_automatic_warm_up_is_parsed() {
    let none = BTreeMap::new();
    let plan = draft("warm-up=auto").plan(&none).expect("a plan");
    assert_eq!((plan.warm_up_s, plan.warm_up_auto, plan.longest_warm_up_s()), (Some(2.0), true, 20.0));
    assert_eq!(draft(&Draft::from_plan(&plan).query()).plan(&none).expect("a plan"), plan);
    assert!(crate::experiments::new::command::command(&plan).contains(" --warm-up auto "));
    assert!(describe::describe_plan(&plan).replace('\u{a0}', " ").contains("warm-up until steady, at most 20 s"));
    let faults = draft("warm-up=automatic").plan(&none).expect_err("a fault");
    assert!(faults.of("warm-up").is_some_and(|fault| fault.ends_with("or auto")));
}

#[test]
fn default_parameters_and_those_of_other_scenarios_are_omitted() {
    let defaults = BTreeMap::from([("N".to_owned(), "1".to_owned())]);
    let plan = draft("set.N=1&set.OTHER=2").plan(&defaults).expect("a plan");
    assert_eq!(plan.parameters, BTreeMap::new());
}

#[test]
fn all_faults_are_reported_by_field() {
    let faults = draft("vus=many&duration=soon&warm-up=-1s&repeat=").plan(&BTreeMap::new()).expect_err("faults");
    for field in ["vus", "duration", "warm-up", "repeat"] {
        assert!(faults.of(field).is_some(), "{field}: {faults:?}");
    }
    let script = draft("load=script&vus=many&duration=soon").plan(&BTreeMap::new());
    assert!(script.is_ok(), "hidden fields are ignored: {script:?}");
    assert!(draft("duration=inf").plan(&BTreeMap::new()).is_err());
    let table = [
        ("vus=0", "vus", "between 1 and 100000"),
        ("duration=0.5s", "duration", "between 1 and 86400 seconds"),
        ("load=rate&rate=0", "rate", "between 1 and 1000000"),
        ("load=rate&rate=5&max-vus=0", "max-vus", "between 1 and 100000"),
        ("load=rate&rate=5&max-vus=few", "max-vus", "must be a whole number, such as 10"),
        ("load=vus-stages&vus-stages=5s", "vus-stages", "stage 1 (\"5s\"): write it as 10s:50"),
        ("load=rate-stages&rate-stages=5s:0", "rate-stages", "none of them goes above 0"),
        ("vus=1..8", "vus", "a range needs a step: 1..8x2 doubles, 1..8+10 adds 10"),
        ("load=knee&knee=1000", "knee", "write a range, such as 1000..20000"),
        ("load=knee&knee=0..9", "knee", "rate: between 1 and 1000000"),
        ("load=knee&objective=p99", "objective", "condition 1 (\"p99\"): write it as p99<50ms or failures<0.1%"),
        ("load=knee&precision=5", "precision", "must be a share, such as 2%"),
        ("until=2", "until", "must be a share, such as 2%"),
        ("until=2%25&at-most=many", "at-most", "must be a whole number, such as 10"),
        ("retries=-1", "retries", "must be a whole number, such as 10"),
        ("seed=x", "seed", "must be a whole number, such as 10"),
    ];
    for (query, field, sentence) in table {
        let faults = draft(query).plan(&BTreeMap::new()).expect_err(query);
        assert_eq!(faults.of(field), Some(sentence), "{query}: {faults:?}");
    }
}

#[test]
fn an_api_error_is_assigned_to_its_field_or_is_general() {
    let mut faults = Faults::default();
    faults.add_refusal("warm_up_s: must be between 0 and 86400 seconds");
    faults.add_refusal("this makes 90000 runs; an experiment has at most 10000");
    assert_eq!(faults.of("warm-up"), Some("must be between 0 and 86400 seconds"));
    assert_eq!(faults.general(), Some("this makes 90000 runs; an experiment has at most 10000"));
}

#[test]
fn several_levels_are_a_sweep_and_a_knee_search_has_its_own_fields() {
    let none = BTreeMap::new();
    let sweep = draft("vus=1..8x2&duration=5s&seed=7&retries=0&until=2%25&at-most=9").plan(&none).expect("a plan");
    assert_eq!(sweep.loads, [1, 2, 4, 8].map(|level| vus(level, 5.0)));
    assert_eq!((sweep.seed, sweep.retries, sweep.stopping_rule.map(|until| until.at_most)), (Some(7), 0, Some(9)));
    let again = draft(&Draft::from_plan(&sweep).query()).plan(&none).expect("a plan");
    assert_eq!(again, Plan { seed: None, ..sweep }, "a copy has no seed");
    let search = draft("load=knee&knee=100..9000&objective=p95%3C1s&precision=10%25&duration=5s&max-vus=50&until=2%25");
    let search = search.plan(&none).expect("a plan");
    let knee = search.knee.clone().expect("a search");
    assert_eq!(
        (knee.from, knee.to, knee.objective.to_string(), knee.max_vus),
        (100, 9_000, "p95<1s".to_owned(), Some(50))
    );
    assert_eq!((search.loads.len(), search.stopping_rule), (0, None));
    assert_eq!(draft(&Draft::from_plan(&search).query()).plan(&none).expect("a plan"), search);
}
