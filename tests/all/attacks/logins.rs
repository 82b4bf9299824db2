//! Strangers who try so often that nobody else gets in, or so that the log does.

use std::net::IpAddr;

use brewbench::{
    app::{
        config::{Config, Rate, Rates},
        networks::Networks,
    },
    auth::{
        audit::{Act, deed::Deed},
        store::audit::note_all,
    },
};
use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, App};

const START: &str = "/api/v1/auth/login/start";
const FINISH: &str = "/api/v1/auth/login/finish";

/// One address may try three times, and all strangers together thirty times.
fn strict(config: &mut Config) {
    config.proxies = Networks::loopback();
    config.rates = Rates { sign_in: Rate::new(3, 1), wrong_secrets: Rate::new(3, 1) };
}

async fn from(address: impl AsRef<[u8]>, who: &Actor, path: &str, body: &Value) -> Answer {
    let address = HeaderValue::from_bytes(address.as_ref()).expect("a header");
    Answer::of(who.request(&Method::POST, path).header("x-forwarded-for", address).json(body)).await
}

/// The end of a login by a passkey that nobody has.
fn made_up(ceremony: &Value) -> Value {
    json!({"ceremony": ceremony, "credential": {"id": "AAAA", "rawId": "AAAA",
        "type": "public-key", "extensions": {}, "response": {"authenticatorData": "AAAA", "clientDataJSON": "AAAA",
        "signature": "AAAA", "userHandle": "AAAAAAAAAAAAAAAAAAAAAA"}}})
}

/// Whatever all strangers together have is used up by addresses of a botnet.
async fn exhaust(nobody: &Actor) {
    for n in 0..30 {
        from(format!("198.51.100.{n}"), nobody, START, &json!({})).await.ok();
    }
    from("198.51.100.99", nobody, START, &json!({})).await.refused(429);
}

#[tokio::test]
async fn one_site_with_many_networks_keeps_nobody_else_out() {
    let app = App::with(strict).await;
    let nobody = app.nobody();
    let mut let_in = 0;
    for n in 0..100 {
        let answer = from(format!("2001:db8:0:{n:x}00::1"), &nobody, START, &json!({})).await;
        let_in += usize::from(answer.status.is_success());
    }
    assert_eq!(let_in, 12, "four times what one network has");
    from("2001:db8:1::1", &nobody, START, &json!({})).await.ok();
    from("192.0.2.1", &nobody, START, &json!({})).await.ok();
}

#[tokio::test]
async fn who_has_logged_in_from_somewhere_is_not_kept_out_by_strangers_also_after_a_restart() {
    let app = App::with(strict).await;
    let (ada, address): (_, IpAddr) = ("ada", [192, 0, 2, 1].into());
    let earlier = [Act::new(ada, Some(address), Deed::LoggedIn, "")];
    note_all(&app.state.db.write, &earlier).await.expect("an entry of the log");
    let app = App::on(app.stop().await, strict).await;
    let nobody = app.nobody();
    exhaust(&nobody).await;
    from("192.0.2.1", &nobody, START, &json!({})).await.ok();
}

#[tokio::test]
async fn a_login_that_has_begun_can_be_ended_whatever_strangers_do() {
    let app = App::with(strict).await;
    let nobody = app.nobody();
    let begun = from("192.0.2.1", &nobody, START, &json!({})).await.ok().json();
    for n in 0..29 {
        from(format!("198.51.100.{n}"), &nobody, START, &json!({})).await.ok();
    }
    from("198.51.100.99", &nobody, START, &json!({})).await.refused(429);
    let told = from("192.0.2.1", &nobody, FINISH, &made_up(&begun["ceremony"])).await.refused(403);
    assert!(told.contains("passkey"), "it was looked at: {told}");
    from("192.0.2.1", &nobody, FINISH, &made_up(&begun["ceremony"])).await.refused(429);
}

#[tokio::test]
async fn what_a_caller_writes_before_the_proxys_entry_hides_nobody() {
    let app = App::with(strict).await;
    let nobody = app.nobody();
    for junk in [&b"\xff\xfe"[..], b"\xc3\xa4, \x80", b"unknown", b", ,"] {
        let forwarded = [junk, b", 192.0.2.1"].concat();
        from(&forwarded, &nobody, START, &json!({})).await;
    }
    from("192.0.2.1", &nobody, START, &json!({})).await.refused(429);
    from("192.0.2.2", &nobody, START, &json!({})).await.ok();
    // Of whom even the proxy does not know, all have together what one address has.
    for unknown in [&b"192.0.2.3, \xff"[..], b"192.0.2.4, unknown", b"192.0.2.5, \x80"] {
        from(unknown, &nobody, START, &json!({})).await.ok();
    }
    from(b"192.0.2.6, \xff", &nobody, START, &json!({})).await.refused(429);
}

#[tokio::test]
async fn many_refused_logins_are_few_entries_with_their_count() {
    let app = App::start().await;
    let (nobody, admin) = (app.nobody(), app.admin().await);
    for _ in 0..30 {
        let begun = nobody.post(START, &json!({})).await.ok().json();
        nobody.post(FINISH, &made_up(&begun["ceremony"])).await.refused(403);
    }
    let entries = app.until("all of them", async || {
        let list = admin.get("/api/v1/audit?what=login+refused").await.ok().json();
        let entries = list["entries"].as_array().expect("a list").clone();
        let times = |entry: &Value| entry["detail"]["times"].as_u64().unwrap_or(1);
        Some(entries.len()).filter(|_| entries.iter().map(times).sum::<u64>() == 30)
    });
    assert!(entries.await < 30);
}
