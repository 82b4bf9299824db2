//! How long requests take, counted as they are answered.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use prometheus_client::metrics::{family::Family, histogram::Histogram};

/// The upper edges of the buckets, seconds.
const EDGES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The kind of a path and the class of an answer's status.
type Labels = [(&'static str, &'static str); 2];

/// Of one server, since it was started: seconds from a request to the head of its answer.
#[derive(Clone, Debug)]
pub struct Meters(pub Family<Labels, Histogram>);

impl Default for Meters {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(EDGES)))
    }
}

impl Meters {
    fn add(&self, path: &str, status: u16, took: Duration) {
        self.0.get_or_create(&labels(path, status)).observe(took.as_secs_f64());
    }
}

fn labels(path: &str, status: u16) -> Labels {
    let kind = if path.starts_with("/api/v1/agent/") {
        "agent"
    } else if path.starts_with("/api/") {
        "api"
    } else if path.starts_with("/static/") {
        "file"
    } else {
        "page"
    };
    let class = match status / 100 {
        0 | 1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    [("kind", kind), ("status", class)]
}

/// Middleware: counts each request, from its arrival to the head of its answer. What is streamed afterwards is not in it.
pub async fn count(State(meters): State<Arc<Meters>>, request: Request, next: Next) -> Response {
    let (begun, path) = (Instant::now(), request.uri().path().to_owned());
    let response = next.run(request).await;
    meters.add(&path, response.status().as_u16(), begun.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn each_request_is_counted_once_where_it_belongs() {
        let (meters, mut registry, mut page) = (Meters::default(), Registry::default(), String::new());
        let requests =
            [("/runs", 200, 3), ("/runs", 200, 5), ("/runs", 303, 11_000), ("/api/v1/agent/channel", 101, 1)];
        for (path, status, ms) in requests {
            meters.add(path, status, Duration::from_millis(ms));
        }
        registry.register("took", "Time", meters.0);
        encode(&mut page, &registry).expect("a page");
        for line in [
            r#"took_bucket{le="0.005",kind="page",status="2xx"} 2"#,
            r#"took_bucket{le="10.0",kind="page",status="3xx"} 0"#,
            r#"took_bucket{le="+Inf",kind="page",status="3xx"} 1"#,
            r#"took_sum{kind="page",status="2xx"} 0.008"#,
            r#"took_count{kind="agent",status="1xx"} 1"#,
        ] {
            assert!(page.lines().any(|seen| seen == line), "{line}: {page}");
        }
    }
}
