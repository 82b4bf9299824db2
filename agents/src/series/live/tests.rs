//! Whoever listens is told everything once, and again only what has changed.

use super::*;

fn second(number: u32) -> Second {
    Second { until_ms: number * 1_000, iterations: number.into(), ..Second::default() }
}

fn usage(number: i32) -> Usage {
    Usage { at_ms: number * 1_000, ..Usage::default() }
}

fn stretch(start_ms: i64, seconds: u32) -> Stretch {
    let usage = (0..=seconds.cast_signed()).map(usage).collect();
    Stretch { start_ms, seconds: (1..=seconds).map(second).collect(), usage, ..Stretch::default() }
}

/// All that a listener has not been told, as it knows it then.
fn hear(live: &Live, told: &mut Told, known: &mut Series) -> usize {
    let mut portions = 0;
    while let Some(portion) = live.portion(told) {
        portions += 1;
        let points = portion.points.unpack().expect("our own");
        for (part, new) in points.parts() {
            let place = known.part_mut(part).get_or_insert_default();
            place.start_ms = new.start_ms;
            place.seconds.retain(|second| second.until_ms <= portion.seconds_after_ms);
            place.usage.retain(|sample| sample.at_ms <= portion.usage_after_ms);
            place.seconds.extend_from_slice(&new.seconds);
            place.usage.extend_from_slice(&new.usage);
        }
    }
    portions
}

#[test]
fn a_listener_is_told_the_past_bit_by_bit_and_then_nothing() {
    let (live, mut told, mut known) = (Live::default(), Told::default(), Series::default());
    live.begin(RunId::now());
    assert_eq!(live.portion(&mut told), None, "nothing has happened");
    let (warm_up, measured) = (stretch(1, 2), stretch(9, 3_600));
    live.keep(Part::WarmUp, warm_up.clone());
    live.keep(Part::Measured, measured.clone());
    assert_eq!(hear(&live, &mut told, &mut known), 1 + 37, "a hundred at a time");
    assert_eq!(known, Series { warm_up: Some(warm_up), measured: Some(measured) });
    assert_eq!(hear(&live, &mut told, &mut known), 0);
}

#[test]
fn another_run_is_told_from_its_beginning() {
    let (live, mut told, mut known) = (Live::default(), Told::default(), Series::default());
    for start_ms in [1, 2] {
        live.begin(RunId::now());
        live.keep(Part::Measured, stretch(start_ms, 3));
        assert_eq!(hear(&live, &mut told, &mut known), 1);
        assert_eq!(known.measured, Some(stretch(start_ms, 3)));
        live.end();
        assert_eq!(live.portion(&mut told), None);
    }
}

fn next(column: &mut Column<Second, u32>, halvings: u32, all: &[Second]) -> Option<(u32, Vec<u32>)> {
    let later = |after: u32| all.iter().filter(|second| second.until_ms > after).cloned().collect();
    let (after, points) = column.next(halvings, later, |second| second.until_ms)?;
    Some((after, points.iter().map(|point| point.until_ms).collect()))
}

#[test]
fn a_second_that_has_grown_is_told_again_and_takes_its_own_place() {
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
fn a_past_that_is_told_in_less_detail_is_told_anew() {
    let mut column = Column::new(0);
    assert!(next(&mut column, 0, &[second(1), second(2), second(3)]).is_some());
    let halved = [second(2), second(4)];
    assert_eq!(next(&mut column, 1, &halved), Some((0, vec![2_000, 4_000])));
    assert_eq!(next(&mut column, 1, &halved), None);
}

#[tokio::test]
async fn what_happened_before_somebody_listens_is_news_to_them() {
    let live = Live::default();
    let mut news = live.listen();
    news.changed().await.expect("the bell is there");
    assert!(!news.has_changed().expect("the bell is there"));
    live.bell().send_replace(());
    news.changed().await.expect("the bell is there");
}
