//! Imports that are looked at first: tables, collections, archives, folders and results in two forms.

use std::path::PathBuf;

use brewbench::auth::model::Role;
use reqwest::Method;
use serde_json::json;

use crate::harness::{
    Actor, Answer, App,
    program::{Output, as_user, brewbench},
    root,
    submit::text,
};

fn fixtures() -> PathBuf {
    root().join("crates/wire/tests/fixtures")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).expect("a fixture")
}

/// Uploads files as a browser does; returns the address of the preview.
async fn upload(person: &Actor, files: &[(&str, &[u8])]) -> String {
    let mut body = Vec::new();
    for (name, bytes) in files {
        let head = format!("--X\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\r\n");
        body.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    }
    body.extend(b"--X--\r\n");
    let request =
        person.request(&Method::POST, "/runs/import").header("content-type", "multipart/form-data; boundary=X");
    let answer = Answer::to(request.body(body)).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    answer.header("location").to_owned()
}

async fn targets(user: &Actor) -> Vec<String> {
    let runs = user.get("/api/v1/runs").await.ok().json();
    let mut targets: Vec<String> =
        runs["runs"].as_array().expect("runs").iter().map(|run| text(&run["target"])).collect();
    targets.sort();
    targets
}

const TABLE: &[u8] = b"Server;Req/s;Langsamste\nold;1500;12,5\nnew;2000;8,1\n";

#[tokio::test]
async fn meanings_of_columns_can_be_corrected() {
    let app = App::start().await;
    let person = app.signed_in(Role::Member).await.in_browser();
    let address = upload(&person, &[("table.csv", TABLE)]).await;
    let page = person.get(&address).await.ok().text();
    assert!(page.contains("value=\"requests/s\"") && page.contains("value=\"ignore\""), "{page}");
    assert!(
        page.contains("12,5") && page.contains("fewer than two of requests, rate and duration: specify the duration"),
        "{page}"
    );
    let wrong = person.get(&format!("{address}?column:Langsamste=max+kg")).await;
    assert!(wrong.status == 422 && wrong.text().contains("is no column"), "{}", wrong.text());
    let hints = [("column:Langsamste", "max ms"), ("duration", "10")];
    let page = person.get(&format!("{address}?column:Langsamste=max+ms&duration=10")).await.ok().text();
    assert!(page.contains("value=\"old\"") && page.contains("1,500") && page.contains("value=\"max ms\""), "{page}");
    let none = person.form(&address, &hints).await;
    assert!(none.status == 422 && none.text().contains("no result is selected"), "{}", none.text());
    let row = [("row:0:1", "on"), ("target:0:1", "brand new"), ("version:0:1", "2"), ("size:0:1", "2/4GiB")];
    let bad = [&hints[..], &row, &[("size:0:1", "big")]].concat();
    let bad = person.form(&address, &bad).await;
    assert!(bad.status == 422 && bad.text().contains("new: size: write it as 2/4GiB"), "{}", bad.text());
    assert!(bad.text().contains("value=\"brand new\""), "what was entered is kept");
    let done = person.form(&address, &[&hints[..], &row].concat()).await;
    assert_eq!(done.status, 303, "{}", done.text());
    let runs = person.get("/api/v1/runs").await.ok().json();
    let run = &runs["runs"][0];
    assert_eq!(
        (&run["target"], &run["size"]["name"], &run["rps"], &run["max_ms"], &run["p99_ms"]),
        (&json!("brand new"), &json!("2 vCPU / 4 GiB"), &json!(2000.0), &json!(8.1), &json!(null))
    );
    assert_eq!((run["verdict"].as_str(), runs["runs"].as_array().map(Vec::len)), (Some("suspect"), Some(1)));
    let stored = person.get(&format!("/api/v1/runs/{}/summary", text(&run["id"]))).await.ok().text();
    assert!(stored.contains("brewbench_entry_of"), "{stored}");
    person.get(&format!("/runs/{}", text(&run["id"]))).await.ok();
    assert_eq!(person.get(&address).await.status, 404, "the upload is gone");
    let other = app.signed_in(Role::Member).await.in_browser();
    let wrk = fixture("wrk.txt");
    let address = upload(&person, &[("table.csv", TABLE), ("wrk.txt", &wrk)]).await;
    let both = person.get(&format!("{address}?column:Langsamste=max+ms&duration=10")).await.ok().text();
    assert!(
        both.contains("Import: 3 results") && both.contains("wrk&#39;s output"),
        "hints on columns apply to the table: {both}"
    );
    assert_eq!(other.get(&address).await.status, 404, "another user's upload");
}

#[tokio::test]
async fn a_collection_is_filtered_by_name() {
    let app = App::start().await;
    let person = app.signed_in(Role::Member).await.in_browser();
    let collection = fixture("techempower.json");
    let address = upload(&person, &[("results.json", &collection)]).await;
    let all = person.get(&address).await.ok().text();
    let some = person.get(&format!("{address}?only=plaintext")).await.ok().text();
    let count = |page: &str| page.matches("name=\"row:").count();
    assert!(count(&some) > 0 && count(&some) < count(&all), "{some}");
    let user = app.user().await;
    let path = fixtures().join("techempower.json").display().to_string();
    let command = ["run", "import", &path, "--only", "plaintext", "--json"];
    let imported = as_user(&app, user.secret(), &command).await.json();
    let runs = imported["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), count(&some), "{imported}");
    for run in runs {
        let run = user.run(run["id"].as_str().expect("an id")).await;
        let known = (&run["target"], &run["parameters"]["test"], &run["repetition"]);
        assert_eq!(known, (&json!("alpha"), &json!("plaintext"), &json!(1)), "{run}");
    }
    let nothing = as_user(&app, user.secret(), &["run", "import", &path, "--only", "cobol"]).await.refused(1);
    assert!(nothing.contains("has no report named \"cobol\""), "{nothing}");
}

#[tokio::test]
async fn a_folder_or_an_archive_is_imported_without_what_is_no_result() {
    let app = App::start().await;
    let user = app.user().await;
    let folder = tempfile::tempdir().expect("a folder");
    let empty = as_user(&app, user.secret(), &["run", "import", &folder.path().display().to_string()]).await.refused(1);
    assert!(empty.contains("has no files"), "{empty}");
    for (path, from) in [("go/one.txt", "wrk.txt"), ("rust/two.json", "oha.json"), ("picture.png", "locust_stats.csv")]
    {
        let path = folder.path().join("results").join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        let bytes = if path.ends_with("picture.png") { b"\x89PNG\r\n\x1a\n\0\xff".to_vec() } else { fixture(from) };
        std::fs::write(path, bytes).expect("written");
    }
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("results/link.txt")).expect("a link");
    let path = folder.path().join("results").display().to_string();
    let done = as_user(&app, user.secret(), &["run", "import", &path]).await;
    assert!(
        done.err.contains("skipped picture.png: ") && done.err.contains("skipped link.txt: it is a link"),
        "{}",
        done.err
    );
    done.ok();
    assert_eq!(targets(&user).await, ["one", "two"]);
    // The same as an archive: nothing is imported twice.
    let packed =
        std::process::Command::new("tar").args(["-C", &path, "-czf", "-", "go", "rust"]).output().expect("tar");
    let again = user.request(&Method::POST, "/api/v1/runs/import").body(packed.stdout.clone());
    let again = Answer::to(again).await.refused(409);
    assert!(again.contains("go/one.txt") && again.contains("was imported before"), "{again}");
    let shown = user.request(&Method::POST, "/api/v1/runs/import/preview").body(packed.stdout.clone());
    let shown = Answer::to(shown).await.ok().json();
    assert_eq!(
        (&shown[0]["file"], &shown[1]["reports"][0]["kind"]),
        (&json!("go/one.txt"), &json!("oha's output as JSON"))
    );
    // A damaged result is no file to skip.
    let cut = fixture("k6.txt");
    std::fs::write(folder.path().join("results/go/three.txt"), &cut[..cut.len() / 2]).expect("written");
    let refused = as_user(&app, user.secret(), &["run", "import", &path, "--target", "x"]).await.refused(1);
    assert!(refused.contains("go/three.txt"), "{refused}");
    assert_eq!(targets(&user).await, ["one", "two"]);
    let person = app.signed_in(Role::Member).await.in_browser();
    let page = person.get(&upload(&person, &[("all.tar.gz", &packed.stdout)]).await).await.ok().text();
    assert!(page.contains("value=\"go\"") || page.contains("value=\"one\""), "{page}");
}

#[tokio::test]
async fn one_result_in_two_forms_is_one_measurement() {
    let app = App::start().await;
    let user = app.user().await;
    let send = async |name: &str| {
        let request = user.request(&Method::POST, "/api/v1/runs/import?target=t").body(fixture(name));
        Answer::to(request).await
    };
    for [one, other] in [["k6.txt", "k6-summary-export.json"], ["vegeta.json", "vegeta.txt"]] {
        send(one).await.ok();
        let refused = send(other).await.refused(409);
        assert!(refused.starts_with("this result, in another form, was imported before, as run "), "{refused}");
    }
    send("autocannon.json").await.ok();
    send("autocannon.txt").await.ok();
}

#[tokio::test]
async fn a_preview_notes_a_result_in_two_forms() {
    let app = App::start().await;
    let person = app.signed_in(Role::Member).await.in_browser();
    let (json, text) = (fixture("vegeta.json"), fixture("vegeta.txt"));
    let page = person.get(&upload(&person, &[("a.json", &json), ("b.txt", &text)]).await).await.ok().text();
    assert_eq!(page.matches("the same result as in a.json, in another form").count(), 1, "{page}");
    let chosen = |row: &str| page.contains(&format!("name=\"row:{row}\" value=\"on\" checked"));
    assert_eq!((chosen("0:0"), chosen("1:0")), (true, false), "{page}");
    let files = ["vegeta.json", "vegeta.txt"].map(|name| fixtures().join(name).display().to_string());
    let command = ["run", "import", "--dry-run", &files[0], &files[1]];
    let printed = Output::of(brewbench(&command)).await.ok();
    let line = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains("vegeta.json, in another form: import one of them"), "{printed}");
}

#[tokio::test]
async fn what_must_not_be_believed_is_in_the_verdict() {
    let app = App::start().await;
    let user = app.user().await;
    let fortio = String::from_utf8(fixture("fortio.json")).expect("text");
    let missed = fortio.replace("\"RequestedQPS\": \"200\"", "\"RequestedQPS\": \"400\"");
    let request = user.request(&Method::POST, "/api/v1/runs/import?target=t").body(missed);
    let run = Answer::to(request).await.ok().json()["runs"][0].take();
    let reasons: Vec<String> =
        run["reasons"].as_array().expect("reasons").iter().map(|why| text(&why["code"])).collect();
    assert!(run["verdict"] == "suspect" && reasons.contains(&"rate_missed".to_owned()), "{run}");
}
