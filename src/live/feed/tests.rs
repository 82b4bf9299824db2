//! Points are stored in order, also when repeated, and subscribers get what is new.

use brewbench_wire::{
    histogram::Histogram,
    series::{Packed, Window},
};

use super::*;

fn second(until_ms: u32, requests: u64) -> Second {
    let succeeded = Histogram::new(3, 0, 0, [(-80, requests)]).expect("a histogram");
    Second { until_ms, succeeded, ..Second::default() }
}

fn delta(run: brewbench_wire::RunId, part: WindowKind, start_ms: i64, after_ms: u32, seconds: &[(u32, u64)]) -> Delta {
    let mut series = Series::default();
    let seconds = seconds.iter().map(|(until, requests)| second(*until, *requests)).collect();
    *series.part_mut(part) = Some(Window { start_ms, seconds, ..Window::default() });
    Delta { run, seconds_after_ms: after_ms, usage_after_ms: i32::MAX, points: Packed::pack(&series) }
}

fn measured(run: brewbench_wire::RunId, after_ms: u32, seconds: &[(u32, u64)]) -> Delta {
    delta(run, WindowKind::Measured, 10_000, after_ms, seconds)
}

fn opened() -> (LiveFeed, brewbench_wire::RunId) {
    let (live_feed, run) = (LiveFeed::default(), brewbench_wire::RunId::now());
    live_feed.open(run, "rack");
    (live_feed, run)
}

fn times(update: &Update) -> (Option<i64>, Vec<u32>) {
    (update.seconds.after_ms, update.seconds.points.iter().map(|second| second.until_ms).collect())
}

fn known(live_feed: &LiveFeed, run: brewbench_wire::RunId) -> Vec<(u32, u64)> {
    let series = live_feed.series(run).expect("a series");
    let seconds = series.parts().flat_map(|(_, window)| window.seconds.clone()).collect::<Vec<_>>();
    seconds.iter().map(|second| (second.until_ms, second.requests())).collect()
}

#[test]
fn a_subscriber_gets_the_past_and_then_updates() {
    let (live_feed, run) = opened();
    live_feed.receive("rack", &measured(run, 0, &[(1_000, 5), (2_000, 6)])).expect("accepted");
    let (past, mut updates) = live_feed.subscribe(run, None).expect("open");
    assert_eq!(past.iter().map(times).collect::<Vec<_>>(), [(None, vec![1_000, 2_000])]);
    live_feed.receive("rack", &measured(run, 2_000, &[(3_000, 7)])).expect("accepted");
    assert_eq!(times(&updates.try_recv().expect("an update")), (Some(2_000), vec![3_000]));
    // The last second has grown.
    live_feed.receive("rack", &measured(run, 2_000, &[(3_300, 9)])).expect("accepted");
    assert_eq!(times(&updates.try_recv().expect("an update")), (Some(2_000), vec![3_300]));
    assert_eq!(known(&live_feed, run), [(1_000, 5), (2_000, 6), (3_300, 9)]);
}

#[test]
fn a_repeated_past_is_no_update() {
    let (live_feed, run) = opened();
    let all = [(1_000, 5), (2_000, 6), (3_000, 7)];
    live_feed.receive("rack", &measured(run, 0, &all)).expect("accepted");
    let (_, mut updates) = live_feed.subscribe(run, None).expect("open");
    for (after, some) in [(0, &all[..2]), (2_000, &all[2..]), (0, &all)] {
        live_feed.receive("rack", &measured(run, after, some)).expect("accepted");
        assert_eq!(known(&live_feed, run), all);
    }
    assert!(updates.try_recv().is_err());
}

#[test]
fn a_subscriber_with_a_mark_gets_only_the_rest() {
    let (live_feed, run) = opened();
    live_feed.receive("rack", &measured(run, 0, &[(1_000, 5), (2_000, 6)])).expect("accepted");
    let mark = live_feed.subscribe(run, None).expect("open").0[0].mark;
    assert_eq!(mark, 11_000, "the last second may still grow");
    live_feed.receive("rack", &measured(run, 2_000, &[(3_000, 7)])).expect("accepted");
    let (rest, _) = live_feed.subscribe(run, Some(mark)).expect("open");
    assert_eq!(rest.iter().map(times).collect::<Vec<_>>(), [(Some(1_000), vec![2_000, 3_000])]);
    let whole = live_feed.series(run).expect("a series");
    assert_eq!(since(whole, Some(mark)).iter().map(times).collect::<Vec<_>>(), [(Some(1_000), vec![2_000, 3_000])]);
}

#[test]
fn times_count_from_the_warm_up_which_stays_when_the_measurement_begins() {
    let (live_feed, run) = opened();
    live_feed.receive("rack", &delta(run, WindowKind::WarmUp, 7_000, 0, &[(1_000, 5), (2_000, 6)])).expect("accepted");
    live_feed.receive("rack", &measured(run, 0, &[(1_000, 7)])).expect("accepted");
    let (past, _) = live_feed.subscribe(run, None).expect("open");
    assert_eq!(
        past.iter().map(|updates| (updates.start_ms, updates.offset_ms)).collect::<Vec<_>>(),
        [(7_000, 0), (7_000, 3_000)]
    );
    assert_eq!(past.iter().map(times).collect::<Vec<_>>(), [(None, vec![1_000, 2_000]), (Some(2_000), vec![1_000])]);
    // The same agent starts the run again.
    live_feed.receive("rack", &delta(run, WindowKind::WarmUp, 90_000, 0, &[(1_000, 8)])).expect("accepted");
    assert_eq!(known(&live_feed, run), [(1_000, 8)]);
}

#[test]
fn invalid_or_too_many_points_are_refused_and_change_nothing() {
    let (live_feed, run) = opened();
    live_feed.receive("rack", &measured(run, 0, &[(1_000, 5)])).expect("accepted");
    let many: Vec<(u32, u64)> = (2..4_100).map(|number| (number * 1_000, 0)).collect();
    for bad in [
        measured(run, 1_000, &[(3_000, 1), (2_000, 1)]),
        measured(run, 1_000, &[(2_000, 1), (2_000, 1)]),
        measured(run, 1_000, &[(500, 1)]),
        measured(run, 1_000, &many),
        Delta { points: Packed::from_bytes(vec![1, 2, 3]), ..measured(run, 0, &[]) },
        Delta { points: Packed::pack(&Series::default()), ..measured(run, 0, &[]) },
    ] {
        live_feed.receive("rack", &bad).expect_err("refused");
        assert_eq!(known(&live_feed, run), [(1_000, 5)]);
    }
    let zeros = Series {
        measured: Some(Window { seconds: vec![Second::default(); 400_000], ..Window::default() }),
        ..Series::default()
    };
    let bomb = Delta { points: Packed::pack(&zeros), ..measured(run, 0, &[]) };
    assert!(bomb.points.as_bytes().len() < 64 << 10, "a small message");
    live_feed.receive("rack", &bomb).expect_err("refused, because it unpacks to too much");
}

#[test]
fn an_agent_has_one_open_run() {
    let (live_feed, first) = opened();
    let (_, mut updates) = live_feed.subscribe(first, None).expect("open");
    let second = brewbench_wire::RunId::now();
    live_feed.open(second, "rack");
    assert!(
        !live_feed.is_open(first, "rack") && live_feed.is_open(second, "rack") && !live_feed.is_open(second, "attic")
    );
    assert_eq!(updates.try_recv().err(), Some(broadcast::error::TryRecvError::Closed));
    live_feed.receive("rack", &measured(first, 0, &[(1_000, 5)])).expect("ignored");
    assert_eq!((live_feed.series(first), live_feed.series(second)), (None, None));
    live_feed.forget(second);
    assert_eq!(live_feed.open_runs(), []);
}

#[test]
fn the_rate_is_that_of_the_last_second() {
    let (live_feed, run) = opened();
    assert_eq!(live_feed.rate(run), None);
    live_feed.receive("rack", &measured(run, 0, &[(1_000, 5), (1_500, 6)])).expect("accepted");
    assert_eq!(live_feed.rate(run), Some(Rate { rps: 12.0, failed_rps: 0.0 }));
}

#[test]
fn a_slow_subscriber_blocks_nothing_and_learns_that_it_lagged() {
    let (live_feed, run) = opened();
    let (_, mut slow) = live_feed.subscribe(run, None).expect("open");
    for number in 1..=100 {
        live_feed.receive("rack", &measured(run, (number - 1) * 1_000, &[(number * 1_000, 1)])).expect("accepted");
    }
    assert!(matches!(slow.try_recv(), Err(broadcast::error::TryRecvError::Lagged(_))));
    assert_eq!(known(&live_feed, run).len(), 100);
}

#[test]
fn an_update_is_serialized_once() {
    let (live_feed, run) = opened();
    let mut subscribers: Vec<_> = (0..100).map(|_| live_feed.subscribe(run, None).expect("open").1).collect();
    live_feed.receive("rack", &measured(run, 0, &[(1_000, 5)])).expect("accepted");
    let mut serialized = 0;
    for subscriber in &mut subscribers {
        let update = subscriber.try_recv().expect("an update");
        assert_eq!(
            update.json(|_| {
                serialized += 1;
                "text".to_owned()
            }),
            "text"
        );
    }
    assert_eq!(serialized, 1);
}

#[test]
fn participants_that_start_together_keep_each_others_points() {
    let (live_feed, run) = (LiveFeed::default(), brewbench_wire::RunId::now());
    let participant = |agent: &str| Participant { agent: agent.to_owned(), clock: None };
    let open = || live_feed.open_distributed(run, participant("rack"), vec![participant("one"), participant("two")]);
    open();
    live_feed.receive("one", &measured(run, 0, &[(1_000, 5)])).expect("accepted");
    open();
    live_feed.receive("two", &measured(run, 0, &[(1_000, 7)])).expect("accepted");
    let whole = live_feed.series(run).and_then(|series| series.measured).expect("both have reported");
    assert_eq!(whole.seconds.iter().map(Second::requests).collect::<Vec<_>>(), [12]);
}
