//! How long requests take, counted as they are answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

/// The upper edges of the buckets, seconds.
pub const EDGES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Kinds of addresses.
pub const KINDS: [&str; 4] = ["page", "api", "agent", "file"];

/// Classes of answers; what is below is switching protocols.
pub const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Durations of one kind and class.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; EDGES.len() + 1],
    sum_us: AtomicU64,
}

impl Durations {
    fn add(&self, took: Duration) {
        let bucket = EDGES.iter().position(|edge| took.as_secs_f64() <= *edge).unwrap_or(EDGES.len());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// How many took no longer than each of [`EDGES`], and last how many there were.
    pub fn cumulative(&self) -> [u64; EDGES.len() + 1] {
        let mut sum = 0;
        std::array::from_fn(|bucket| {
            sum += self.buckets[bucket].load(Relaxed);
            sum
        })
    }

    /// All of them together, seconds.
    pub fn sum(&self) -> f64 {
        self.sum_us.load(Relaxed) as f64 / 1e6
    }
}

/// Of one server, since it was started.
#[derive(Debug, Default)]
pub struct Meters([[Durations; CLASSES.len()]; KINDS.len()]);

impl Meters {
    fn of(&self, path: &str, status: u16) -> &Durations {
        let kind = if path.starts_with("/api/v1/agent/") {
            2
        } else if path.starts_with("/api/") {
            1
        } else if path.starts_with("/static/") {
            3
        } else {
            0
        };
        let class = usize::from((status / 100).clamp(1, 5)) - 1;
        &self.0[kind][class]
    }

    /// What was counted: kind, class and durations, where there were any.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, &Durations)> {
        let kinds = KINDS.into_iter().zip(&self.0);
        let all = kinds.flat_map(|(kind, classes)| {
            CLASSES.into_iter().zip(classes).map(move |(class, durations)| (kind, class, durations))
        });
        all.filter(|(_, _, durations)| durations.cumulative()[EDGES.len()] > 0)
    }
}

/// Middleware: counts each request, from its arrival to the head of its answer. What is streamed afterwards is not in it.
pub async fn count(State(meters): State<Arc<Meters>>, request: Request, next: Next) -> Response {
    let (begun, path) = (Instant::now(), request.uri().path().to_owned());
    let response = next.run(request).await;
    meters.of(&path, response.status().as_u16()).add(begun.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_counted_once_where_it_belongs() {
        let meters = Meters::default();
        let requests =
            [("/runs", 200, 3), ("/runs", 200, 5), ("/runs", 303, 11_000), ("/api/v1/agent/channel", 101, 1)];
        for (path, status, ms) in requests {
            meters.of(path, status).add(Duration::from_millis(ms));
        }
        let all: Vec<_> = meters.all().map(|(kind, class, of)| (kind, class, of.cumulative(), of.sum())).collect();
        let slow = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(
            all,
            [("page", "2xx", [2; 12], 0.008), ("page", "3xx", slow, 11.0), ("agent", "1xx", [1; 12], 0.001)]
        );
    }
}
