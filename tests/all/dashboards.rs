//! The Grafana dashboard and the alert rules use metrics that the server has.

use std::collections::BTreeSet;

use crate::harness::{Agent, App, root};

const FILES: [&str; 2] = ["deploy/grafana/dashboard.json", "deploy/prometheus/alerts.yaml"];

/// A metric of a server that serves TLS itself.
const WITH_TLS: &str = "brewbench_certificate_expiry_timestamp_seconds";

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("brewbench_")).collect()
}

#[tokio::test]
async fn dashboard_and_alert_rules_name_metrics_of_the_server() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    app.admin().await.get("/api/v1/backup").await.ok();
    let answer = app.reader().await.get("/metrics").await.ok().text();
    let mut known = names(&answer);
    known.insert(WITH_TLS);
    for file in FILES {
        let text = std::fs::read_to_string(root().join(file)).expect(file);
        let used = names(&text);
        assert!(used.len() >= 7, "{file}: {used:?}");
        let unknown: Vec<_> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}
