//! What agents tell takes its place, also when it comes again, and listeners hear what is new of it.

use brewbench_agent::{
    series::histogram::Histogram,
    wire::series::{Packed, Stretch},
};

use super::*;

fn second(until_ms: u32, requests: u64) -> Second {
    let succeeded = Histogram::new(3, 0, 0, [(-80, requests)]).expect("a histogram");
    Second { until_ms, succeeded, ..Second::default() }
}

fn portion(run: wire::RunId, part: Part, start_ms: i64, after_ms: u32, seconds: &[(u32, u64)]) -> Portion {
    let mut series = Series::default();
    let seconds = seconds.iter().map(|(until, requests)| second(*until, *requests)).collect();
    *series.part_mut(part) = Some(Stretch { start_ms, seconds, ..Stretch::default() });
    Portion { run, seconds_after_ms: after_ms, usage_after_ms: i32::MAX, points: Packed::pack(&series) }
}

fn measured(run: wire::RunId, after_ms: u32, seconds: &[(u32, u64)]) -> Portion {
    portion(run, Part::Measured, 10_000, after_ms, seconds)
}

fn opened() -> (Underway, wire::RunId) {
    let (underway, run) = (Underway::default(), wire::RunId::now());
    underway.open(run, "rack");
    (underway, run)
}

fn times(news: &News) -> (Option<i64>, Vec<u32>) {
    (news.seconds.after_ms, news.seconds.points.iter().map(|second| second.until_ms).collect())
}

fn known(underway: &Underway, run: wire::RunId) -> Vec<(u32, u64)> {
    let series = underway.series(run).expect("a series");
    let seconds = series.parts().flat_map(|(_, stretch)| stretch.seconds.clone()).collect::<Vec<_>>();
    seconds.iter().map(|second| (second.until_ms, second.requests())).collect()
}

#[test]
fn a_listener_hears_the_past_and_then_what_is_new() {
    let (underway, run) = opened();
    underway.take("rack", &measured(run, 0, &[(1_000, 5), (2_000, 6)])).expect("taken");
    let (past, mut news) = underway.listen(run, None).expect("open");
    assert_eq!(past.iter().map(times).collect::<Vec<_>>(), [(None, vec![1_000, 2_000])]);
    underway.take("rack", &measured(run, 2_000, &[(3_000, 7)])).expect("taken");
    assert_eq!(times(&news.try_recv().expect("news")), (Some(2_000), vec![3_000]));
    // The last second has grown.
    underway.take("rack", &measured(run, 2_000, &[(3_300, 9)])).expect("taken");
    assert_eq!(times(&news.try_recv().expect("news")), (Some(2_000), vec![3_300]));
    assert_eq!(known(&underway, run), [(1_000, 5), (2_000, 6), (3_300, 9)]);
}

#[test]
fn a_past_that_is_told_again_is_no_news() {
    let (underway, run) = opened();
    let all = [(1_000, 5), (2_000, 6), (3_000, 7)];
    underway.take("rack", &measured(run, 0, &all)).expect("taken");
    let (_, mut news) = underway.listen(run, None).expect("open");
    for (after, some) in [(0, &all[..2]), (2_000, &all[2..]), (0, &all)] {
        underway.take("rack", &measured(run, after, some)).expect("taken");
        assert_eq!(known(&underway, run), all);
    }
    assert!(news.try_recv().is_err());
}

#[test]
fn who_knows_everything_up_to_a_mark_hears_only_the_rest() {
    let (underway, run) = opened();
    underway.take("rack", &measured(run, 0, &[(1_000, 5), (2_000, 6)])).expect("taken");
    let mark = underway.listen(run, None).expect("open").0[0].mark;
    assert_eq!(mark, 11_000, "the last second may still grow");
    underway.take("rack", &measured(run, 2_000, &[(3_000, 7)])).expect("taken");
    let (rest, _) = underway.listen(run, Some(mark)).expect("open");
    assert_eq!(rest.iter().map(times).collect::<Vec<_>>(), [(Some(1_000), vec![2_000, 3_000])]);
    let whole = underway.series(run).expect("a series");
    assert_eq!(since(whole, Some(mark)).iter().map(times).collect::<Vec<_>>(), [(Some(1_000), vec![2_000, 3_000])]);
}

#[test]
fn times_count_from_the_warm_up_which_stays_when_the_measurement_begins() {
    let (underway, run) = opened();
    underway.take("rack", &portion(run, Part::WarmUp, 7_000, 0, &[(1_000, 5), (2_000, 6)])).expect("taken");
    underway.take("rack", &measured(run, 0, &[(1_000, 7)])).expect("taken");
    let (past, _) = underway.listen(run, None).expect("open");
    assert_eq!(
        past.iter().map(|news| (news.start_ms, news.offset_ms)).collect::<Vec<_>>(),
        [(7_000, 0), (7_000, 3_000)]
    );
    assert_eq!(past.iter().map(times).collect::<Vec<_>>(), [(None, vec![1_000, 2_000]), (Some(2_000), vec![1_000])]);
    // The same agent does the run once more.
    underway.take("rack", &portion(run, Part::WarmUp, 90_000, 0, &[(1_000, 8)])).expect("taken");
    assert_eq!(known(&underway, run), [(1_000, 8)]);
}

#[test]
fn what_makes_no_sense_or_too_much_is_refused_and_harms_nothing() {
    let (underway, run) = opened();
    underway.take("rack", &measured(run, 0, &[(1_000, 5)])).expect("taken");
    let many: Vec<(u32, u64)> = (2..4_100).map(|number| (number * 1_000, 0)).collect();
    for bad in [
        measured(run, 1_000, &[(3_000, 1), (2_000, 1)]),
        measured(run, 1_000, &[(2_000, 1), (2_000, 1)]),
        measured(run, 1_000, &[(500, 1)]),
        measured(run, 1_000, &many),
        Portion { points: Packed::from_bytes(vec![1, 2, 3]), ..measured(run, 0, &[]) },
        Portion { points: Packed::pack(&Series::default()), ..measured(run, 0, &[]) },
    ] {
        underway.take("rack", &bad).expect_err("refused");
        assert_eq!(known(&underway, run), [(1_000, 5)]);
    }
    let zeros = Series {
        measured: Some(Stretch { seconds: vec![Second::default(); 400_000], ..Stretch::default() }),
        ..Series::default()
    };
    let bomb = Portion { points: Packed::pack(&zeros), ..measured(run, 0, &[]) };
    assert!(bomb.points.as_bytes().len() < 64 << 10, "a small message");
    underway.take("rack", &bomb).expect_err("that is large inside is refused");
}

#[test]
fn an_agent_has_one_run_and_what_is_over_is_forgotten() {
    let (underway, first) = opened();
    let (_, mut news) = underway.listen(first, None).expect("open");
    let second = wire::RunId::now();
    underway.open(second, "rack");
    assert!(!underway.is_open(first, "rack") && underway.is_open(second, "rack") && !underway.is_open(second, "attic"));
    assert_eq!(news.try_recv().err(), Some(broadcast::error::TryRecvError::Closed));
    underway.take("rack", &measured(first, 0, &[(1_000, 5)])).expect("nobody is told");
    assert_eq!((underway.series(first), underway.series(second)), (None, None));
    underway.forget(second);
    assert_eq!(underway.open_runs(), []);
}

#[test]
fn the_rate_is_that_of_the_last_second() {
    let (underway, run) = opened();
    assert_eq!(underway.rate(run), None);
    underway.take("rack", &measured(run, 0, &[(1_000, 5), (1_500, 6)])).expect("taken");
    assert_eq!(underway.rate(run), Some(Rate { rps: 12.0, failed_rps: 0.0 }));
}

#[test]
fn a_slow_listener_holds_nobody_up_and_learns_that_it_missed_something() {
    let (underway, run) = opened();
    let (_, mut slow) = underway.listen(run, None).expect("open");
    for number in 1..=100 {
        underway.take("rack", &measured(run, (number - 1) * 1_000, &[(number * 1_000, 1)])).expect("taken");
    }
    assert!(matches!(slow.try_recv(), Err(broadcast::error::TryRecvError::Lagged(_))));
    assert_eq!(known(&underway, run).len(), 100);
}

#[test]
fn what_is_sent_is_written_once_for_all() {
    let (underway, run) = opened();
    let mut listeners: Vec<_> = (0..100).map(|_| underway.listen(run, None).expect("open").1).collect();
    underway.take("rack", &measured(run, 0, &[(1_000, 5)])).expect("taken");
    let mut written = 0;
    for listener in &mut listeners {
        let news = listener.try_recv().expect("news");
        assert_eq!(
            news.written(|_| {
                written += 1;
                "text".to_owned()
            }),
            "text"
        );
    }
    assert_eq!(written, 1);
}

#[test]
fn those_who_begin_at_the_same_moment_keep_what_the_other_has_told() {
    let (underway, run) = (Underway::default(), wire::RunId::now());
    let teller = |agent: &str| Teller { agent: agent.to_owned(), clock: None };
    let open = || underway.open_together(run, teller("rack"), vec![teller("one"), teller("two")]);
    open();
    underway.take("one", &measured(run, 0, &[(1_000, 5)])).expect("taken");
    open();
    underway.take("two", &measured(run, 0, &[(1_000, 7)])).expect("taken");
    let whole = underway.series(run).and_then(|series| series.measured).expect("both have told");
    assert_eq!(whole.seconds.iter().map(Second::requests).collect::<Vec<_>>(), [12]);
}
