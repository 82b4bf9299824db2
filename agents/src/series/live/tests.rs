//! A connection sends every point once, and again only if it has changed.

use super::*;

fn second(number: u32) -> Second {
    Second { until_ms: number * 1_000, iterations: number.into(), ..Second::default() }
}

fn usage(number: i32) -> Usage {
    Usage { at_ms: number * 1_000, ..Usage::default() }
}

fn window(start_ms: i64, seconds: u32) -> Window {
    let usage = (0..=seconds.cast_signed()).map(usage).collect();
    Window { start_ms, seconds: (1..=seconds).map(second).collect(), usage, ..Window::default() }
}

/// Sends everything that is pending into `known`; returns the number of deltas.
fn send_all(live: &Live, sent: &mut Sent, known: &mut Series) -> usize {
    let mut deltas = 0;
    while let Some(delta) = live.delta(sent) {
        deltas += 1;
        let points = delta.points.unpack().expect("unpacked");
        for (part, new) in points.parts() {
            let place = known.part_mut(part).get_or_insert_default();
            place.start_ms = new.start_ms;
            place.seconds.retain(|second| second.until_ms <= delta.seconds_after_ms);
            place.usage.retain(|sample| sample.at_ms <= delta.usage_after_ms);
            place.seconds.extend_from_slice(&new.seconds);
            place.usage.extend_from_slice(&new.usage);
        }
    }
    deltas
}

#[test]
fn the_past_is_sent_in_pieces_and_only_once() {
    let (live, mut sent, mut known) = (Live::default(), Sent::default(), Series::default());
    live.begin(RunId::now());
    assert_eq!(live.delta(&mut sent), None, "nothing has happened");
    let (warm_up, measured) = (window(1, 2), window(9, 3_600));
    live.store(WindowKind::WarmUp, warm_up.clone());
    live.store(WindowKind::Measured, measured.clone());
    assert_eq!(send_all(&live, &mut sent, &mut known), 1 + 37, "a hundred at a time");
    assert_eq!(known, Series { warm_up: Some(warm_up), measured: Some(measured) });
    assert_eq!(send_all(&live, &mut sent, &mut known), 0);
}

#[test]
fn both_runs_of_a_duet_are_sent() {
    let (live, mut sent) = (Live::default(), Sent::default());
    let partner = live.of_partner();
    let runs = [RunId::now(), RunId::now()];
    for (live, run) in [&live, &partner].into_iter().zip(runs) {
        live.begin(run);
        live.set_step("pulling".to_owned());
        live.store(WindowKind::Measured, window(1, 3));
    }
    let steps = [live.step(&mut sent), live.step(&mut sent), live.step(&mut sent)];
    assert_eq!(steps.map(|step| step.map(|(run, _)| run)), [Some(runs[0]), Some(runs[1]), None]);
    let deltas = [live.delta(&mut sent), live.delta(&mut sent), live.delta(&mut sent)];
    assert_eq!(deltas.map(|delta| delta.map(|delta| delta.run)), [Some(runs[0]), Some(runs[1]), None]);
    live.end();
    partner.store(WindowKind::Measured, window(1, 4));
    assert_eq!(live.delta(&mut sent).map(|delta| delta.run), Some(runs[1]));
}

#[test]
fn another_run_is_sent_from_its_start() {
    let (live, mut sent, mut known) = (Live::default(), Sent::default(), Series::default());
    for start_ms in [1, 2] {
        live.begin(RunId::now());
        live.store(WindowKind::Measured, window(start_ms, 3));
        assert_eq!(send_all(&live, &mut sent, &mut known), 1);
        assert_eq!(known.measured, Some(window(start_ms, 3)));
        live.end();
        assert_eq!(live.delta(&mut sent), None);
    }
}

fn next(column: &mut Column<Second, u32>, halvings: u32, all: &[Second]) -> Option<(u32, Vec<u32>)> {
    let later = |after: u32| all.iter().filter(|second| second.until_ms > after).cloned().collect();
    let (after, points) = column.next(halvings, later, |second| second.until_ms)?;
    Some((after, points.iter().map(|point| point.until_ms).collect()))
}

#[test]
fn a_second_that_has_grown_is_sent_again_and_replaced() {
    let mut column = Column::new(0);
    let mut all = vec![second(1), second(2)];
    assert_eq!(next(&mut column, 0, &all), Some((0, vec![1_000, 2_000])));
    assert_eq!(next(&mut column, 0, &all), None);
    all[1].add(Second { until_ms: 2_300, iterations: 7, ..Second::default() });
    assert_eq!(next(&mut column, 0, &all), Some((1_000, vec![2_300])));
    all.push(second(3));
    assert_eq!(next(&mut column, 0, &all), Some((2_300, vec![3_000])));
    all[2].iterations = 70;
    all.push(second(4));
    assert_eq!(next(&mut column, 0, &all), Some((2_300, vec![3_000, 4_000])));
}

#[test]
fn a_downsampled_past_is_sent_again() {
    let mut column = Column::new(0);
    assert!(next(&mut column, 0, &[second(1), second(2), second(3)]).is_some());
    let halved = [second(2), second(4)];
    assert_eq!(next(&mut column, 1, &halved), Some((0, vec![2_000, 4_000])));
    assert_eq!(next(&mut column, 1, &halved), None);
}

#[tokio::test]
async fn a_new_subscriber_is_notified_of_earlier_points() {
    let live = Live::default();
    let mut news = live.listen();
    news.changed().await.expect("notified");
    assert!(!news.has_changed().expect("open"));
    live.notifier().send_replace(());
    news.changed().await.expect("notified");
}
