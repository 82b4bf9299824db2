//! Histograms of HTTP request durations.

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

/// Upper bounds of the buckets, seconds.
const EDGES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Labels: the kind of the path and the class of the response status.
type Labels = [(&'static str, &'static str); 2];

/// Seconds from a request to the head of its response, since the server started.
#[derive(Clone, Debug)]
pub struct HttpMetrics(pub Family<Labels, Histogram>);

impl Default for HttpMetrics {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(EDGES)))
    }
}

impl HttpMetrics {
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

/// Middleware: observes each request from its arrival to the head of its response, without streamed bodies.
pub async fn count(State(metrics): State<Arc<HttpMetrics>>, request: Request, next: Next) -> Response {
    let (started, path) = (Instant::now(), request.uri().path().to_owned());
    let response = next.run(request).await;
    metrics.add(&path, response.status().as_u16(), started.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn requests_are_counted_by_kind_and_status() {
        let (metrics, mut registry, mut page) = (HttpMetrics::default(), Registry::default(), String::new());
        let requests =
            [("/runs", 200, 3), ("/runs", 200, 5), ("/runs", 303, 11_000), ("/api/v1/agent/channel", 101, 1)];
        for (path, status, ms) in requests {
            metrics.add(path, status, Duration::from_millis(ms));
        }
        registry.register("took", "Time", metrics.0);
        encode(&mut page, &registry).expect("a page");
        for line in [
            r#"took_bucket{le="0.005",kind="page",status="2xx"} 2"#,
            r#"took_bucket{le="10.0",kind="page",status="3xx"} 0"#,
            r#"took_bucket{le="+Inf",kind="page",status="3xx"} 1"#,
            r#"took_sum{kind="page",status="2xx"} 0.008"#,
            r#"took_count{kind="agent",status="1xx"} 1"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }
}
