//! The OpenAPI document describes the bodies that operations read.

use std::collections::BTreeSet;

use brewbench::auth::model::Role;
use reqwest::Method;
use serde_json::Value;

use crate::harness::{Actor, Answer, App};

/// Not valid as JSON, as a form or as a file.
const GARBAGE: &str = "\u{1}garbage";

/// The OpenAPI document, and its POST, PUT and PATCH operations with method and path.
async fn writes(app: &App) -> (Value, Vec<(Method, String, Value)>) {
    let document = app.reader().await.get("/api/v1/openapi.json").await.ok().json();
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            if matches!(method.as_str(), "post" | "put" | "patch") {
                all.push((method.to_uppercase().parse().expect("a method"), path.clone(), operation.clone()));
            }
        }
    }
    assert!(all.len() > 40, "only {} writes", all.len());
    (document, all)
}

/// Sends garbage as the body of an operation.
async fn answer_to_garbage(who: &Actor, method: &Method, path: &str) -> Answer {
    let address = path
        .split('/')
        .map(|step| match step {
            "{id}" if path.contains("/passkeys/") => "1",
            "{id}" | "{run}" => "00000000-0000-7000-8000-000000000000",
            step if step.starts_with('{') => "nobody",
            step => step,
        })
        .collect::<Vec<_>>()
        .join("/");
    let query = if path.ends_with("/import") { "?target=t" } else { "" };
    let request = who.request(method, &format!("{address}{query}"));
    Answer::to(request.header("content-type", "application/json").body(GARBAGE)).await
}

#[tokio::test]
async fn exactly_the_operations_that_read_a_body_describe_one() {
    let app = App::start().await;
    let person = app.signed_in(Role::Admin).await;
    let agent = app.anonymous().with_secret(&app.key("rack").await);
    let newcomer = app.anonymous().with_secret(&app.one_time_key("new").await);
    for (method, path, operation) in writes(&app).await.1 {
        let who = match path.as_str() {
            "/api/v1/agent/enrolment" => &newcomer,
            path if path.starts_with("/api/v1/agent/") => &agent,
            _ => &person,
        };
        let answer = answer_to_garbage(who, &method, &path).await;
        assert!(!matches!(answer.status.as_u16(), 401 | 405), "{method} {path}: {}", answer.status);
        // Without a body to read, a request for missing items succeeds or is refused with 404.
        let reads = answer.status.as_u16() == 422;
        let describes = operation.get("requestBody").is_some();
        assert_eq!(reads, describes, "{method} {path}: {} {}", answer.status, answer.text());
    }
}

#[tokio::test]
async fn every_described_body_has_a_schema_or_a_description() {
    let app = App::start().await;
    let (document, writes) = writes(&app).await;
    for (method, path, operation) in writes {
        let Some(body) = operation.get("requestBody") else { continue };
        for (kind, content) in body["content"].as_object().expect("contents") {
            let what = format!("{method} {path} {kind}: {body}");
            match content["schema"]["$ref"].as_str() {
                Some(reference) => {
                    let place = reference.trim_start_matches('#');
                    assert!(document.pointer(place).is_some_and(|schema| !schema.is_null()), "{what}");
                }
                None => assert!(content.get("schema").is_some() || body.get("description").is_some(), "{what}"),
            }
        }
    }
}

#[tokio::test]
async fn a_client_can_be_generated() {
    let app = App::start().await;
    let document = app.reader().await.get("/api/v1/openapi.json").await.ok().json();
    let (mut ids, mut references) = (BTreeSet::new(), Vec::new());
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(ids.insert(id.to_owned()), "{method} {path}: another operation is {id:?}, too");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(is_text(&parameter["description"]), "{method} {path}: {parameter}");
            }
            for (status, response) in operation["responses"].as_object().expect("responses") {
                assert!(is_text(&response["description"]), "{method} {path}: {status}");
            }
        }
    }
    assert!(ids.contains("runs_list") && ids.contains("experiments_submit"), "{ids:?}");
    collect_references(&document, &mut references);
    assert!(references.len() > 200, "{}", references.len());
    for reference in references {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference} does not exist");
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn collect_references(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            into.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect_references(field, into));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, into)),
        _ => {}
    }
}
