//! Tests of reading request lists.

use super::*;

fn no_files(name: &str) -> Result<Vec<u8>, String> {
    Err(format!("there is no {name}"))
}

fn error(text: &str) -> String {
    read(text, no_files).expect_err("an error").to_string()
}

#[test]
fn a_list_of_few_words_is_read() {
    let text = r#"
        http = "1.1"
        connection = "per_request"
        think_time_ms = 5
        tls = { insecure = true }

        [[request]]
        path = "/a"
        weight = 3
        expect = { status = 201, length = 2, contains = "x" }

        [[request]]
        method = "POST"
        paths = "paths.txt"
        headers = { Accept = "text/plain", b = "c" }
        body_file = "body.bin"
    "#;
    let files = |name: &str| match name {
        "paths.txt" => Ok(b"/one\r\n\r\n/two?x=%20\r\n".to_vec()),
        "body.bin" => Ok(vec![0, 1]),
        _ => no_files(name),
    };
    let list = read(text, files).expect("a list");
    assert_eq!((list.http, list.connection, list.think_time_ms), (HttpVersion::One, Reuse::PerRequest, 5));
    assert!(list.tls.insecure);
    let [first, second] = &list.requests[..] else { panic!("two requests") };
    let expect = Expect { status: Some(201), length: Some(2), sha256: None, contains: Some("x".to_owned()) };
    assert_eq!(first, &Request { weight: 3, expect, ..Request::get("/a") });
    assert_eq!(second.paths, ["/one", "/two?x=%20"]);
    assert_eq!((second.method.as_str(), second.weight, second.body.0.as_slice()), ("POST", 1, &[0, 1][..]));
    assert_eq!(second.headers, [("Accept".to_owned(), "text/plain".to_owned()), ("b".to_owned(), "c".to_owned())]);
}

#[test]
fn errors_name_the_line_and_the_field() {
    let two = |rest: &str| format!("[[request]]\npath = \"/\"\n[[request]]\n{rest}\n");
    assert_eq!(
        error(&two("path = \"/\"\nweight = 0")),
        "line 5: weight: with 0 it is never sent: use 1 or more, or remove the request"
    );
    assert_eq!(error(&two("path = \"/a b\"")), "line 4: paths: \"/a b\" contains a space: write %20");
    assert_eq!(error(&two("weight = 1")), "line 3: path: missing: add `path = \"/\"`");
    assert_eq!(error(&two("path = \"/\"\npaths = \"x\"")), "line 5: `path` and `paths` exclude each other: remove one");
    assert_eq!(error(&two("paths = \"x\"")), "line 4: paths: x: there is no x");
    assert_eq!(
        error(&two("path = \"/\"\n\nheaders = { x = \"a\\r\\nb\" }")),
        "line 6: headers: x: its value contains a line break or another control character"
    );
    assert!(error(&two("path = \"/\"\nexpect = { sha256 = \"no\" }")).starts_with("line 5: expect.sha256: 64"));
    assert!(error(&two("path = \"/\"\nwait = 1")).starts_with("line 5: unknown field `wait`, expected"));
    assert!(error(&two("path = \"/\"\nexpect = { state = 1 }")).starts_with("line 5: unknown field `state`"));
    assert!(error(&two("path = 5")).starts_with("line 4: invalid type: integer"), "{}", error(&two("path = 5")));
    assert!(error(&two("path = ")).starts_with("line 4: "), "{}", error(&two("path = ")));
    assert!(error("").starts_with("line 1: request: the list is empty"));
    assert!(
        error("tls = {}\nthink_time_ms = 99999999\n[[request]]\npath = \"/\"").starts_with("line 2: think_time_ms")
    );
}

#[test]
fn a_file_of_paths_may_be_long_and_its_faults_have_a_line() {
    let list = |content: Vec<u8>| read("[[request]]\npaths = \"p\"", |_| Ok(content.clone()));
    let many = "/item?x=1\r\n".repeat(1_000_000);
    assert_eq!(list(many.into_bytes()).expect("a list").requests[0].paths.len(), 1_000_000);
    let fault = |content: &[u8]| list(content.to_vec()).expect_err("an error").to_string();
    assert_eq!(fault(b"/a\n/b c\n"), "line 2: p, line 2: \"/b c\" contains a space: write %20");
    assert_eq!(fault(b"/a\n/\xff\n"), "line 2: p, line 2: not UTF-8: percent-encode it");
    assert_eq!(fault(b"\n\r\n"), "line 2: p: there is no path in it");
}
