//! Floods of logins that could lock users out or fill the audit log.

use std::net::IpAddr;

use brewbench::{
    app::{
        config::{Config, Rate, Rates},
        networks::Networks,
    },
    auth::{
        audit::{AuditEvent, action::Action},
        store::audit::note_all,
    },
};
use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, App};

const START: &str = "/api/v1/auth/login/start";
const FINISH: &str = "/api/v1/auth/login/finish";

/// Allows three attempts per address, and thirty for all unknown addresses together.
fn strict(config: &mut Config) {
    config.proxies = Networks::loopback();
    config.rates = Rates { sign_in: Rate::new(3, 1), wrong_secrets: Rate::new(3, 1) };
}

async fn from(address: impl AsRef<[u8]>, who: &Actor, path: &str, body: &Value) -> Answer {
    let address = HeaderValue::from_bytes(address.as_ref()).expect("a header");
    Answer::to(who.request(&Method::POST, path).header("x-forwarded-for", address).json(body)).await
}

/// The end of a login with an unknown passkey.
fn unknown_passkey(ceremony: &Value) -> Value {
    json!({"ceremony": ceremony, "credential": {"id": "AAAA", "rawId": "AAAA",
        "type": "public-key", "extensions": {}, "response": {"authenticatorData": "AAAA", "clientDataJSON": "AAAA",
        "signature": "AAAA", "userHandle": "AAAAAAAAAAAAAAAAAAAAAA"}}})
}

/// Uses up the attempts of all unknown addresses, as a botnet would.
async fn exhaust(nobody: &Actor) {
    for n in 0..30 {
        from(format!("198.51.100.{n}"), nobody, START, &json!({})).await.ok();
    }
    from("198.51.100.99", nobody, START, &json!({})).await.refused(429);
}

#[tokio::test]
async fn one_site_with_many_networks_does_not_lock_others_out() {
    let app = App::with(strict).await;
    let nobody = app.anonymous();
    let mut accepted = 0;
    for n in 0..100 {
        let answer = from(format!("2001:db8:0:{n:x}00::1"), &nobody, START, &json!({})).await;
        accepted += usize::from(answer.status.is_success());
    }
    assert_eq!(accepted, 12, "four times what one network has");
    from("2001:db8:1::1", &nobody, START, &json!({})).await.ok();
    from("192.0.2.1", &nobody, START, &json!({})).await.ok();
}

#[tokio::test]
async fn an_address_with_an_earlier_login_is_not_locked_out_even_after_a_restart() {
    let app = App::with(strict).await;
    let (ada, address): (_, IpAddr) = ("ada", [192, 0, 2, 1].into());
    let earlier = [AuditEvent::new(ada, Some(address), Action::LoggedIn, "")];
    note_all(&app.state.db.write, &earlier).await.expect("an entry of the log");
    let app = App::on(app.stop().await, strict).await;
    let nobody = app.anonymous();
    exhaust(&nobody).await;
    from("192.0.2.1", &nobody, START, &json!({})).await.ok();
}

#[tokio::test]
async fn a_started_login_can_be_finished_during_a_flood() {
    let app = App::with(strict).await;
    let nobody = app.anonymous();
    let started = from("192.0.2.1", &nobody, START, &json!({})).await.ok().json();
    for n in 0..29 {
        from(format!("198.51.100.{n}"), &nobody, START, &json!({})).await.ok();
    }
    from("198.51.100.99", &nobody, START, &json!({})).await.refused(429);
    let error = from("192.0.2.1", &nobody, FINISH, &unknown_passkey(&started["ceremony"])).await.refused(403);
    assert!(error.contains("passkey"), "the passkey was checked: {error}");
    from("192.0.2.1", &nobody, FINISH, &unknown_passkey(&started["ceremony"])).await.refused(429);
}

#[tokio::test]
async fn forged_entries_before_the_proxys_do_not_hide_a_caller() {
    let app = App::with(strict).await;
    let nobody = app.anonymous();
    for junk in [&b"\xff\xfe"[..], b"\xc3\xa4, \x80", b"unknown", b", ,"] {
        let forwarded = [junk, b", 192.0.2.1"].concat();
        from(&forwarded, &nobody, START, &json!({})).await;
    }
    from("192.0.2.1", &nobody, START, &json!({})).await.refused(429);
    from("192.0.2.2", &nobody, START, &json!({})).await.ok();
    // Callers whom the proxy does not know share the attempts of one address.
    for unknown in [&b"192.0.2.3, \xff"[..], b"192.0.2.4, unknown", b"192.0.2.5, \x80"] {
        from(unknown, &nobody, START, &json!({})).await.ok();
    }
    from(b"192.0.2.6, \xff", &nobody, START, &json!({})).await.refused(429);
}

#[tokio::test]
async fn ports_that_a_proxy_adds_do_not_hide_a_caller() {
    let app = App::with(strict).await;
    let nobody = app.anonymous();
    let forms = ["192.0.2.1:5678", "192.0.2.1", "::ffff:192.0.2.1"];
    for form in forms {
        from(form, &nobody, START, &json!({})).await.ok();
    }
    from("[::ffff:192.0.2.1]:80", &nobody, START, &json!({})).await.refused(429);
    // All callers whose address cannot be read share the attempts of one.
    for form in ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443"] {
        from(form, &nobody, START, &json!({})).await.ok();
    }
    from("[2001:db8::1]:1", &nobody, START, &json!({})).await.refused(429);
    for form in ["192.0.2.3:", "192.0.2.3:99999", "[2001:db8::3", "[192.0.2.3]", "192.0.2.3:80:80"].iter().take(3) {
        from(form, &nobody, START, &json!({})).await.ok();
    }
    from("2001:db8::3]", &nobody, START, &json!({})).await.refused(429);
    // Other headers that clients can send are not read.
    let request = nobody.request(&Method::POST, START).header("x-forwarded-for", "192.0.2.1");
    let request = request.header("forwarded", "for=192.0.2.77").header("x-real-ip", "192.0.2.78");
    Answer::to(request.json(&json!({}))).await.refused(429);
}

#[tokio::test]
async fn refused_logins_are_aggregated_in_the_audit_log() {
    let app = App::start().await;
    let (nobody, admin) = (app.anonymous(), app.admin().await);
    for _ in 0..30 {
        let started = nobody.post(START, &json!({})).await.ok().json();
        nobody.post(FINISH, &unknown_passkey(&started["ceremony"])).await.refused(403);
    }
    let entries = app.until("all of them", async || {
        let list = admin.get("/api/v1/audit?action=login+refused").await.ok().json();
        let entries = list["entries"].as_array().expect("a list").clone();
        let times = |entry: &Value| entry["detail"]["times"].as_u64().unwrap_or(1);
        Some(entries.len()).filter(|_| entries.iter().map(times).sum::<u64>() == 30)
    });
    assert!(entries.await < 30);
}
