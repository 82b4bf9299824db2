//! Tests of HAR files.

use super::*;
use serde_json::json;

fn entry(url: &str, status: i64) -> serde_json::Value {
    json!({
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": { "method": "GET", "url": url, "httpVersion": "h2", "headers": [], "queryString": [], "headersSize": -1 },
        "response": { "status": status, "headers": [], "content": { "size": 2, "mimeType": "text/plain" } },
        "timings": {},
    })
}

fn har(entries: &[serde_json::Value]) -> String {
    json!({ "log": { "version": "1.2", "creator": { "name": "WebInspector" }, "entries": entries } }).to_string()
}

#[test]
fn requests_of_the_most_frequent_origin_get_weights() {
    let mut post = entry("https://shop.example/api/cart?x=1", 201);
    post["request"]["method"] = json!("POST");
    post["request"]["postData"] = json!({ "mimeType": "application/json", "text": "{\"id\":7}" });
    let entries = [
        entry("https://cdn.example/app.js", 200),
        entry("https://shop.example/", 200),
        post,
        entry("https://shop.example/", 200),
        entry("https://shop.example/gone", 404),
        entry("https://cdn.example/app.css", 200),
    ];
    let list = converted(&format!("\u{feff}{}", har(&entries)));
    let expected = r#"[[request]]
path = "/"
weight = 2
expect = { status = 200 }

[[request]]
method = "POST"
path = "/api/cart?x=1"
headers = { content-type = "application/json" }
body = '{"id":7}'
expect = { status = 201 }

[[request]]
path = "/gone"
"#;
    assert_eq!(list.list, expected);
    assert_eq!(list.base_url.as_deref(), Some("https://shop.example"));
    assert_eq!(
        list.left_out,
        [
            "entry 5: it was answered with 404, but the list expects a status below 400",
            "entry 1 and 1 more: another target: https://cdn.example",
        ]
    );
}

#[test]
fn fields_of_the_client_are_dropped_and_secrets_are_hidden() {
    let mut first = entry("https://h/a?token=hush&page=2", 200);
    let fields = [
        (":authority", "h"),
        ("Host", "h"),
        ("User-Agent", "x"),
        ("sec-fetch-mode", "cors"),
        ("Accept", "text/html"),
        ("Authorization", "Bearer hush"),
        ("Cookie", "id=hush"),
        ("cookie", "b=hush"),
        ("X-Api-Key", "hush"),
        ("accept-encoding", "gzip"),
        ("Content-Length", "3"),
    ];
    first["request"]["headers"] = fields.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let list = converted(&har(&[first]));
    let expected = r#"[[request]]
path = "/a?token=${TOKEN}&page=2"
expect = { status = 200 }
[request.headers]
accept = "text/html"
accept-encoding = "gzip"
authorization = "${AUTHORIZATION}"
cookie = "${COOKIE}"
x-api-key = "${X_API_KEY}"
"#;
    assert_eq!(list.list, expected);
    let names: Vec<_> = list.parameters.keys().map(String::as_str).collect();
    assert_eq!(names, ["AUTHORIZATION", "COOKIE", "TOKEN", "X_API_KEY"]);
    assert!(
        list.left_out
            .contains(&"entry 1: `authorization` is a secret: give it as the parameter AUTHORIZATION".to_owned())
    );
    assert!(!shown(&list).contains("hush"));
    // Nor do errors show them.
    let broken = r#"{"log":{"entries":[{"request":{"method":"GET"},"response":"Bearer hush"}]}}"#;
    assert_eq!(fault(broken), "it: line 1, column 71: not HAR 1.2");
}

#[test]
fn what_is_no_request_is_named() {
    let with = |key: &str, value: serde_json::Value| {
        let mut entry = entry("https://h/", 200);
        entry[key] = value;
        entry
    };
    let mut preflight = entry("https://h/", 204);
    preflight["request"]["method"] = json!("OPTIONS");
    preflight["request"]["headers"] = json!([{ "name": "Access-Control-Request-Method", "value": "PUT" }]);
    let entries = [
        entry("https://h/", 200),
        entry("wss://h/", 101),
        with("_resourceType", json!("websocket")),
        preflight,
        with("_resourceType", json!("eventsource")),
        with("_fromCache", json!("disk")),
        entry("https://h/", 0),
        with("response", json!(null)),
        entry("data:text/plain,x", 200),
        entry("https://u:p@h/", 200),
        entry("https://h/?${x}", 200),
    ];
    assert_eq!(
        converted(&har(&entries)).left_out,
        [
            "entry 2 and 1 more: a WebSocket",
            "entry 4: a preflight request of a browser",
            "entry 5: a stream of events, which does not end",
            "entry 6: the browser took it from its cache",
            "entry 7 and 1 more: it was aborted: there is no response",
            "entry 9: not a URL of HTTP",
            "entry 10: the URL contains a user: use the header field `authorization`",
            "entry 11: it contains `${`, which begins a parameter in a request list",
        ]
    );
    assert_eq!(fault(&har(&entries[1..2])), "it: no request can be taken over: entry 1: a WebSocket");
    assert_eq!(fault(&har(&[])), "it: no request can be taken over: there is none");
}

#[test]
fn bodies_that_do_not_read_well_are_files() {
    let with = |data: serde_json::Value| {
        let mut entry = entry("https://h/", 200);
        entry["request"]["method"] = json!("PUT");
        entry["request"]["postData"] = data;
        entry
    };
    let long = "x".repeat(2_000);
    let entries = [
        with(json!({ "mimeType": "", "text": "AP8=", "encoding": "base64" })),
        with(json!({ "mimeType": "application/json", "text": "{\"a\": \"${b}\",\n\"password\": 1}" })),
        with(json!({ "mimeType": "text/plain", "text": long })),
        with(json!({ "mimeType": "application/x-www-form-urlencoded", "params": [{ "name": "a b", "value": "c&d" }] })),
        with(
            json!({ "mimeType": "multipart/form-data; boundary=x", "params": [{ "name": "f", "fileName": "f.png" }] }),
        ),
        with(json!({ "mimeType": "", "text": "%", "encoding": "base64" })),
    ];
    let list = converted(&har(&entries));
    let files: Vec<_> = list.files.iter().map(|(name, file)| (name.as_str(), file.len())).collect();
    assert_eq!(files, [("body-1.bin", 2), ("body-2.txt", 28), ("body-3.txt", 2_000)]);
    assert!(list.list.contains("body = \"a+b=c%26d\"\n"), "{}", list.list);
    assert_eq!(
        list.left_out,
        [
            "entry 2: its body may contain a secret: check it",
            "entry 5: its body is a form with several parts, which was not recorded as it was sent",
            "entry 6: its body is not base64",
        ]
    );
}

#[test]
fn many_requests_are_bounded_by_weight() {
    let entry = |path: &str, status: u16| {
        format!(r#"{{"request":{{"method":"GET","url":"https://h/{path}"}},"response":{{"status":{status}}}}}"#)
    };
    let mut entries: Vec<_> = (0..100_000).map(|number: u32| entry(&number.to_string(), 200)).collect();
    entries.extend([entry("last", 200), entry("last", 304)]);
    let list = converted(&format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")));
    assert_eq!(list.list.matches("[[request]]").count(), MAX_REQUESTS);
    assert!(
        list.list
            .ends_with("path = \"/9998\"\nexpect = { status = 200 }\n\n[[request]]\npath = \"/last\"\nweight = 2\n")
    );
    assert_eq!(list.left_out, ["entry 10000 and 90000 more: not one of the 10000 most frequent requests"]);
}

#[test]
fn truncated_files_are_refused_at_any_place() {
    let text = har(&[entry("https://h/", 200)]);
    for end in 1..text.len() {
        assert!(fault(&text[..end]).starts_with("it: line 1, column "), "{end}");
    }
}
