//! Notes that change no verdict, and how a run's cores and network use are shown.

use brewbench::auth::model::Scope;
use brewbench_wire::outcome::{Conditions, CoreUse, NetworkUse, Placement};
use serde_json::{Value, json};

use crate::{
    harness::{Agent, App, program::as_user, submit::text, summaries::good},
    verdict::{codes, ended},
};

/// A summary in which `failed` of `of` requests failed.
fn failing(failed: u64, of: u64) -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    let metrics = &mut summary["metrics"];
    metrics["http_reqs"]["values"]["count"] = json!(of);
    // k6 counts failures as passes.
    metrics["http_req_failed"]["values"] =
        json!({"passes": failed, "fails": of - failed, "rate": failed as f64 / of as f64});
    summary.to_string()
}

#[tokio::test]
async fn one_failed_request_in_millions_is_shown_as_a_note() {
    let app = App::start().await;
    let user = app.user().await;
    let run = user.import(failing(1, 3_000_000)).await.ok().json()["runs"][0].clone();
    assert_eq!(run["verdict"], "valid", "{run}");
    let note = &run["reasons"][0];
    assert_eq!((&note["code"], &note["verdict"]), (&json!("requests_failed"), &json!("valid")), "{run}");
    assert_eq!(note["text"], "1 of 3,000,000 requests failed: 0.000033 %, the limit is 0.01 %");
    let id = text(&run["id"]);
    let page = user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("<u>1 note</u>") && page.contains("0.000033 %, the limit is 0.01 %"), "{page}");
    assert!(!page.contains("<b>Suspect"));
    let token = app.token_secret(Scope::Read, None).await;
    let shown = as_user(&app, &token, &["run", "show", &id]).await.ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("verdict valid remark 1 of 3,000,000 requests failed"), "{shown}");
    let compared = user.get(&format!("/api/v1/compare?runs={id}")).await.ok().json();
    assert!(!compared.to_string().contains("suspect run"), "{compared}");

    let many = user.import(failing(301, 3_000_000)).await.ok().json()["runs"][0].clone();
    assert_eq!((&many["verdict"], codes(&many)), (&json!("suspect"), vec!["requests_failed".to_owned()]));
    let table = as_user(&app, &token, &["run", "list"]).await.ok();
    assert!(table.contains("0.000033 %") && !table.contains(" 0.00 %"), "{table}");
}

#[tokio::test]
async fn placement_and_network_use_are_shown_and_affect_the_verdict() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let conditions = Conditions {
        placement: Some(Placement::SharedPhysicalCore),
        core_use: Some(CoreUse {
            cores: 2,
            elapsed_us: 10_000_000,
            busy_us: 18_000_000,
            target_us: 2_000_000,
            generator_us: 3_000_000,
            target_waited_us: None,
            generator_waited_us: None,
        }),
        network: Some(NetworkUse {
            interface: Some("eth0".to_owned()),
            speed_bits: Some(1_000_000_000),
            peak_bits: Some(950_000_000),
            segments: Some(10_000),
            retransmitted: Some(20),
        }),
        ..Conditions::default()
    };
    let id = ended(&user, &mut agent, |outcome| outcome.conditions = conditions).await;
    let run = user.run(&id).await;
    let expected = ["host_disturbed", "network_saturated", "retransmits", "shared_physical_core"];
    assert_eq!((&run["verdict"], codes(&run)), (&json!("suspect"), expected.map(str::to_owned).to_vec()));
    let page = user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    for words in [
        "physical cores shared with the load generator",
        "peak 950.0 Mbit/s of 1000.0 Mbit/s",
        "1.30 of 2",
        "of the run&#39;s 2 cores",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let stored = user.get(&format!("/api/v1/runs/{id}/environment")).await.ok().json()["conditions"].clone();
    assert_eq!(
        (&stored["placement"], &stored["network"]["retransmitted"]),
        (&json!("shared_physical_core"), &json!(20))
    );

    let siblings = Conditions { placement: Some(Placement::SiblingThreads), ..Conditions::default() };
    let id = ended(&user, &mut agent, |outcome| outcome.conditions = siblings).await;
    let run = user.run(&id).await;
    assert_eq!((&run["verdict"], codes(&run)), (&json!("valid"), vec!["sibling_threads".to_owned()]));
}
