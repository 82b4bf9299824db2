//! Tests of conversions.

mod har;
mod k6;
mod openapi;

use proptest::prelude::*;

use super::*;

fn converted(source: &str) -> Converted {
    convert(source, "it").expect("a list")
}

fn fault(source: &str) -> String {
    convert(source, "it").expect_err("an error")
}

/// All that a conversion returns.
fn shown(converted: &Converted) -> String {
    let files: Vec<_> = converted.files.values().map(|file| String::from_utf8_lossy(file)).collect();
    format!("{converted:?} {files:?}")
}

#[test]
fn a_url_is_one_request() {
    let list = converted(" https://example.org:8443/a%20b/ü?q=1&r=#top\n");
    assert_eq!(list.list, "[[request]]\npath = \"/a%20b/%C3%BC?q=1&r=\"\n");
    assert_eq!(list.base_url.as_deref(), Some("https://example.org:8443"));
    assert!(list.left_out.is_empty() && list.files.is_empty() && list.parameters.is_empty());
    assert_eq!(converted("http://localhost").list, "[[request]]\npath = \"/\"\n");
}

#[test]
fn secrets_in_a_url_become_parameters() {
    let list = converted("http://localhost/?api_key=hush&author=jane&accessToken=hush");
    assert_eq!(list.list, "[[request]]\npath = \"/?api_key=${API_KEY}&author=jane&accessToken=${ACCESSTOKEN}\"\n");
    assert_eq!(list.parameters, BTreeMap::from([("API_KEY".to_owned(), None), ("ACCESSTOKEN".to_owned(), None)]));
    assert_eq!(list.left_out[0], "the URL: `api_key` is a secret: give it as the parameter API_KEY");
    assert!(!shown(&list).contains("hush"));
    assert_eq!(fault("http://me:hush@localhost/"), "it: the URL contains a user: use the header field `authorization`");
}

#[test]
fn what_is_not_known_is_an_error() {
    assert_eq!(fault(""), "it: neither a URL with http:// or https://, nor HAR, OpenAPI 3 or a k6 script");
    assert_eq!(fault("http://"), "it: not a URL: empty host");
    assert_eq!(fault("http://h/?${A}"), "it: it contains `${`, which begins a parameter in a request list");
    assert_eq!(fault("{}"), "it: neither HAR nor OpenAPI 3");
    assert_eq!(fault("{\"log\":\n{\"entries\": ["), "it: line 2, column 13: it ends too early");
    assert_eq!(
        fault(&format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000))),
        "it: line 1, column 636: not JSON"
    );
    assert_eq!(fault(&" ".repeat(MAX_SOURCE + 1)), "it: it has more than 64 MiB");
}

#[test]
fn strings_are_written_and_read_back() {
    for text in ["\u{7f}\u{80}\u{0}", "'\"\\", "\"quoted\"", "a\nb\r\n", "${", "é\u{2028}", "'''", "\\"] {
        let call = Call { method: "POST".to_owned(), path: "/".to_owned(), body: text.into(), ..Call::default() };
        let mut draft = Draft::default();
        draft.add("it", call, None);
        let list = draft.finish().expect("a list");
        let read = request_list::read(&list.list, |name| Ok(list.files[name].clone())).expect("read");
        assert_eq!(read.requests[0].body.0, text.as_bytes(), "{}", list.list);
    }
}

#[test]
fn long_header_fields_are_a_table_and_odd_names_are_quoted() {
    let mut call = Call { method: "GET".to_owned(), path: "/".to_owned(), ..Call::default() };
    call.header("X.Y", &"y".repeat(100));
    call.header("accept", "a");
    call.header("Accept", "b");
    let mut draft = Draft::default();
    draft.add("it", call, Some(200));
    let expected = format!(
        "[[request]]\npath = \"/\"\nexpect = {{ status = 200 }}\n[request.headers]\naccept = \"a, b\"\n\"x.y\" = \"{}\"\n",
        "y".repeat(100)
    );
    assert_eq!(draft.finish().expect("a list").list, expected);
}

#[test]
fn the_sentences_are_bounded() {
    let mut left_out = LeftOut::default();
    (0..60).for_each(|number| left_out.add("here", &number.to_string(), 1));
    left_out.add("there", "0", 4);
    let sentences = left_out.sentences();
    assert_eq!((sentences.len(), sentences[50].as_str()), (51, "and 10 more"));
    assert_eq!((sentences[0].as_str(), sentences[49].as_str()), ("here and 4 more: 0", "here: 49"));
}

/// Text of parts that the converters look for.
fn any_source() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "import http from 'k6/http';",
        "http.get(",
        "http.post(",
        "'http://h/a'",
        "`${",
        "}`",
        "BASE",
        "const ",
        " = ",
        "__ENV.X",
        " || ",
        "'d'",
        ")",
        "(",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        ";",
        "\n",
        "=>",
        "check(",
        "r.status === 200",
        "sleep(1)",
        "/",
        "\\",
        "headers",
        "JSON.stringify(",
        "+",
        "1",
        ".",
        "function f() {",
        "if (",
        "for (",
        "'",
        "\"",
        "$",
        "é",
        "//",
        "/*",
        "options",
        "openapi: 3.1.0\n",
        "paths:\n",
        "  /a:\n",
        "    get: {}\n",
        "&a ",
        "*a",
        "- ",
        "{\"log\":{\"entries\":[",
        "\"openapi\":\"3.0\"",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_text_is_converted_or_refused(text in any::<String>(), parts in any_source(), begin in 0..3_usize) {
        let begin = ["", "import http from 'k6/http';\nhttp.get('http://h/');", "{\"log\":"][begin];
        for source in [text.clone(), parts.clone(), format!("{begin}{text}"), format!("{begin}{parts}")] {
            if let Ok(list) = convert(&source, "it") {
                let file = |name: &str| Ok(list.files[name].clone());
                let filled = request_list::fill(&list.list, |_| Some("x")).expect("filled");
                prop_assert!(request_list::read(&filled, file).is_ok(), "{filled}");
                // A path with such a value is refused, but the list is still TOML.
                let filled = request_list::fill(&list.list, |_| Some("\"'\\")).expect("filled");
                prop_assert!(toml::from_str::<toml::Table>(&filled).is_ok(), "{filled}");
                prop_assert!(list.left_out.len() <= 51);
            }
        }
    }
}
