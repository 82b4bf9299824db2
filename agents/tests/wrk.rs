//! wrk as a load generator: its totals are what the target counted, and what needs a series is absent.

use brewbench_testing::Counter;
use brewbench_wire::engine::EngineKind;
use brewbench_wire::load::{Form, Load, Open};
use brewbench_wire::outcome::{Ended, Outcome};
use brewbench_wire::reports::read::parse_own;

use crate::native::run_with;
use crate::support::vus;

async fn run(target: &str, list: &str, load: Load) -> Option<Outcome> {
    run_with(EngineKind::Wrk, target, list, load).await
}

#[tokio::test]
async fn its_totals_are_what_the_target_counted() {
    let target = Counter::start();
    let list = "[[request]]\npath = \"/load/${WHICH}\"\nheaders = { X-Quote = \"\\\"]]\" }\n";
    let Some(outcome) = run(&target.base, list, vus(6, 2_000)).await else { return };
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
    assert!(outcome.engine.as_ref().is_some_and(|engine| engine.name == "wrk"), "{:?}", outcome.engine);
    let summary = parse_own(outcome.summary.as_deref().expect("a summary").as_bytes()).expect("wrk's output");
    let figures = summary.figures_over(outcome.conditions.load_time);
    assert_eq!((figures.failed, figures.vus_max), (Some(figures.requests), Some(6)), "all had the status 500");
    // The target has also answered the warm-up.
    assert!(figures.requests > 100 && figures.requests <= target.count("/load/bad"), "{figures:?}");
    let series = outcome.series.as_ref().and_then(|packed| packed.unpack().ok()).expect("a series");
    let measured = series.measured.expect("a load");
    assert!(measured.seconds.is_empty(), "{measured:?}");
    assert!(measured.usage.iter().any(|usage| usage.generator.cpu_us.is_some_and(|used| used > 0)), "{measured:?}");
    assert!(outcome.conditions.load_record.is_some_and(|record| record.load_start_ms.is_some()));
}

#[tokio::test]
async fn what_it_can_not_do_fails_the_run_with_a_sentence() {
    let target = Counter::start();
    let (one, two) = ("[[request]]\npath = \"/\"\n", "[[request]]\npath = \"/\"\n[[request]]\npath = \"/b\"\n");
    let open = Load::Open(Open::new(Form::Constant { level: 20, duration_ms: 1_000 }, Some(5)).expect("a load"));
    for (list, load, what) in [
        (two, vus(1, 1_000), "requests.toml: wrk can't send several requests; native can"),
        (one, vus(1, 1_500), "wrk measures whole seconds only, not 1.5 s"),
        (one, open, "can't send requests at a rate or in stages, which this run needs"),
    ] {
        let Some(outcome) = run(&target.base, list, load).await else { return };
        let Ended::Failed { reason, .. } = outcome.ended else { panic!("{:?}", outcome.ended) };
        assert!(reason.ends_with(what), "{reason}");
    }
    assert_eq!(target.count("/b"), 0);
}
