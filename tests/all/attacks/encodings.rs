//! JSON in the encodings of some editors and shells.

use std::collections::BTreeMap;

use reqwest::Method;

use crate::harness::{Answer, App, submit::text, summaries::good};

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn with_bom(text: &str) -> Vec<u8> {
    [b"\xef\xbb\xbf", text.as_bytes()].concat()
}

#[tokio::test]
async fn a_byte_order_mark_is_accepted_and_preserved() {
    let app = App::start().await;
    let user = app.user().await;
    let imported = user.import(with_bom(&good())).await.ok().json();
    let path = format!("/api/v1/runs/{}/summary", text(&imported["runs"][0]["id"]));
    assert_eq!(user.get(&path).await.ok().body, with_bom(&good()));
    let index = "\u{feff}[{\"file\": \"a.json\", \"target\": \"u\"}]";
    let files = BTreeMap::from([("a.json".to_owned(), format!("\u{feff}{}", good()))]);
    user.import_folder(index, &files).await.ok();
}

#[tokio::test]
async fn another_encoding_is_refused_by_name() {
    let app = App::start().await;
    let user = app.user().await;
    // An imported file is decoded: PowerShell writes UTF-16.
    assert_eq!(user.import(utf16(&good())).await.ok().json()["runs"][0]["requests"], 51_230);
    for (path, body) in
        [("/api/v1/experiments", utf16("{}")), ("/api/v1/auth/register/start", utf16("{\"token\": \"x\"}"))]
    {
        let request = user.request(&Method::POST, path).header("content-type", "application/json").body(body);
        let error = Answer::to(request).await.refused(422);
        assert!(error.starts_with("the body is UTF-16, not UTF-8"), "{path}: {error}");
    }
    let request = app.anonymous().request(&Method::POST, "/api/v1/auth/register/start");
    let request =
        request.header("content-type", "application/json").body(with_bom("{\"token\": \"x\", \"name\": \"ada\"}"));
    Answer::to(request).await.refused(403);
}
