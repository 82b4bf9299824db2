//! Tests of loads.

use super::*;

fn stages(stages: &[(u64, u32)]) -> Form {
    Form::Stages(stages.iter().map(|&(duration_ms, target)| Stage { duration_ms, target }).collect())
}

#[test]
fn an_invalid_load_can_not_be_created_and_names_the_invalid_part() {
    let constant = |level, duration_ms| Form::Constant { level, duration_ms };
    let closed = [
        (constant(0, 1_000), "vus: between 1 and 100000"),
        (constant(100_001, 1_000), "vus: between 1 and 100000"),
        (constant(1, 999), "duration: between 1 and 86400 seconds"),
        (constant(1, 86_400_001), "duration: between 1 and 86400 seconds"),
        (stages(&[]), "stages: name at least one"),
        (stages(&[(1_000, 0)]), "stages: none of them goes above 0"),
        (stages(&[(1_000, 5), (1_000, 100_001)]), "stages: stage 2 goes to 100001; at most 100000"),
        (stages(&[(0, 5), (500, 5)]), "stages: together between 1 and 86400 seconds"),
        (stages(&[(u64::MAX, 5), (u64::MAX, 5)]), "stages: together between 1 and 86400 seconds"),
        (stages(&[(20, 1); 101]), "stages: there are 101; at most 100"),
    ];
    for (form, sentence) in closed {
        assert_eq!(Closed::new(form).expect_err(sentence).to_string(), sentence);
    }
    let fault = |form, vus| Open::new(form, vus).expect_err("a fault").to_string();
    assert_eq!(fault(constant(0, 1_000), None), "rate: between 1 and 1000000");
    assert_eq!(fault(constant(5, 1_000), Some(0)), "max_vus: between 1 and 100000");
    let text = r#"{"kind":"rate","rate":0,"duration_s":1,"max_vus":1}"#;
    assert!(serde_json::from_str::<Load>(text).expect_err("a fault").to_string().contains("rate: between"));
}

#[test]
fn a_shape_has_a_duration_a_peak_and_an_area() {
    let open = |form| Load::Open(Open::new(form, None).expect("a load"));
    let ramp = open(stages(&[(1_000, 100), (1_000, 100), (0, 50), (1_000, 0)]));
    assert_eq!((ramp.duration(), ramp.iterations()), (Some(Duration::from_secs(3)), Some(175.0)));
    let at_once = open(stages(&[(0, 50), (2_000, 50)]));
    assert_eq!(at_once.shape().expect("a shape").points(), [(0, 50), (2_000, 50)]);
    assert_eq!(at_once.iterations(), Some(100.0));
    let constant = open(Form::Constant { level: 2_000, duration_ms: 1_500 });
    assert_eq!((constant.iterations(), constant.shape().map(Shape::peak)), (Some(3_000.0), Some(2_000)));
}

#[test]
fn a_rate_has_enough_virtual_users_by_default() {
    let default = |rate| Open::new(Form::Constant { level: rate, duration_ms: 1_000 }, None).expect("a load").max_vus();
    assert_eq!([default(1), default(2_000), default(50_000)], [10, 200, 1_000]);
    let open = Open::new(stages(&[(1_000, 10)]), Some(7)).expect("a load");
    assert_eq!(open.max_vus(), 7);
}
