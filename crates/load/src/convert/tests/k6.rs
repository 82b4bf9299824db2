//! Tests of k6 scripts.

use super::*;

fn script(body: &str) -> String {
    format!("import http from 'k6/http';\nexport default function () {{\n{body}\n}}\n")
}

fn left_out(body: &str) -> Vec<String> {
    converted(&script(&format!("http.get('http://h/');\n{body}"))).left_out
}

#[test]
fn a_usual_script_is_read() {
    let list = converted(
        r"// A usual script.
import http from 'k6/http';
import { check, group, sleep } from 'k6';

const BASE = __ENV.BASE_URL || 'http://localhost:8080/api';
const SIZE = __ENV['SIZE'] ?? '1k';
const params = { headers: { 'Content-Type': 'application/json', Accept: '*/*' }, tags: { name: 'items' } };

export const options = { vus: 10, thresholds: { http_req_failed: ['rate<0.01'] } };

export default function () {
  const res = http.get(`${BASE}/items?size=${SIZE}`);
  check(res, {
    'is 200': (r) => r.status === 200,
    'is fast': (r) => r.timings.duration < 100,
  });
  group('order', () => {
    const url = BASE + '/orders/é';
    check(http.post(url, JSON.stringify({ id: 7, tags: ['a', null], 'it\'s': true }), params), { ok: r => r.status == 201 });
  });
  http.del(`${BASE}/orders/1`)
  sleep(1.5)
}
",
    );
    let expected = r#"think_time_ms = 500

[[request]]
path = "/items?size=${SIZE}"
expect = { status = 200 }

[[request]]
method = "POST"
path = "/orders/%C3%A9"
headers = { accept = "*/*", content-type = "application/json" }
body = "{\"id\":7,\"it's\":true,\"tags\":[\"a\",null]}"
expect = { status = 201 }

[[request]]
method = "DELETE"
path = "/orders/1"
"#;
    assert_eq!(list.list, expected);
    assert_eq!(list.base_url.as_deref(), Some("http://localhost:8080/api"));
    assert_eq!(list.parameters, BTreeMap::from([("SIZE".to_owned(), Some("1k".to_owned()))]));
    assert_eq!(
        list.left_out,
        [
            "line 15: a check other than of one status of a request",
            "line 22: the pause is spread over 3 requests",
            "line 9: the options are not taken over: vus, thresholds",
        ]
    );
}

#[test]
fn secrets_are_hidden() {
    let list = converted(
        r"import http from 'k6/http'
const TOKEN = 'hush', other = 1
const key = 'hush'
export default () => {
  http.post(`http://${__ENV.HOST || 'h'}:80/?q=a b#c`, `password=${__ENV.A}`, { headers: { Authorization: `Bearer ${key}` } })
  http.get(`http://${__ENV.HOST}:80/x`, { headers: { Authorization: `Bearer ${__ENV.JWT || 'hush'}`, Cookie: key } })
  http.get(`http://${__ENV.HOST}:80/${__ENV.SID}?token=${__ENV.T || 'hush'}`, {
    headers: { Cookie: `hush; sid=${__ENV.SID || 'hush'}`, Accept: `${__ENV.T}` } })
}",
    );
    let expected = r#"[[request]]
method = "POST"
path = "/?q=a%20b"
headers = { authorization = "${AUTHORIZATION}" }
body = "password=${A}"

[[request]]
path = "/x"
headers = { authorization = "Bearer ${JWT}", cookie = "${COOKIE}" }

[[request]]
path = "/${SID}?token=${T}"
headers = { accept = "${T}", cookie = "${COOKIE}" }
"#;
    assert_eq!(list.list, expected);
    assert_eq!(list.base_url.as_deref(), Some("http://h:80"));
    assert!(list.parameters.values().all(Option::is_none) && list.parameters.len() == 6);
    assert!(!shown(&list).contains("hush"), "{list:?}");
    assert!(list.left_out.contains(&"line 5: its body may contain a secret: check it".to_owned()));
}

#[test]
fn what_decides_how_often_a_request_is_sent_is_named() {
    assert_eq!(
        left_out("for (const i of [1, 2]) {\n http.get('http://h/') }"),
        ["line 5: a request in a loop or a function is taken once"]
    );
    assert_eq!(
        left_out("while (a) http.get('http://h/')"),
        ["line 4: a request in a loop or a function is taken once"]
    );
    let condition = ["line 4: a request under a condition is always sent"];
    for text in
        ["if (a) { http.get('http://h/') }", "if (a)\n{} else http.get('http://h/')", "a && http.get('http://h/')"]
    {
        assert_eq!(left_out(text)[0][6..], condition[0][6..], "{text}");
    }
    assert_eq!(
        left_out("[1, 2].forEach((a) => { http.get('http://h/') })"),
        ["line 4: a request in a loop or a function is taken once"]
    );
    assert_eq!(
        left_out("}\nexport function setup() { http.get('http://h/');"),
        ["line 5: k6 sends it once, before or after the load"]
    );
    assert_eq!(
        left_out("}\nfunction more() { http.get('http://h/');"),
        ["line 5: a request in a loop or a function is taken once"]
    );
    assert_eq!(
        left_out("}\nclass A { more() { http.get('http://h/') }"),
        ["line 5: a request in a loop or a function is taken once"]
    );
    assert_eq!(left_out("if (a) return;"), ["line 4: `return`: what follows is always sent"]);
    for text in ["const a = b ? 1 : 2", "const a = b => c()", "if (a) { b() }", "if (a) b()"] {
        assert_eq!(left_out(&format!("{text}\nhttp.get('http://h/')")), [""; 0], "{text}");
    }
    assert_eq!(left_out("sleep(Math.random())"), ["line 4: the pauses are not one of a constant length"]);
    assert_eq!(left_out("sleep(1); sleep(2)"), ["line 4: the pauses are not one of a constant length"]);
    assert_eq!(left_out("}\nimport { a } from './a.js'; {"), ["line 5: what the module `./a.js` does is not seen"]);
    assert_eq!(left_out("check(other, {})"), ["line 4: a check other than of one status of a request"]);
}

#[test]
fn what_is_not_constant_is_left_out() {
    let url = "line 4: a request whose URL is not constant";
    for text in [
        "http.get(`http://h/${Math.random()}`)",
        "http.get('http://h/' + id)",
        "let a = 'http://h/'; http.get(a)",
        "const a = 'http://h/'; (a => http.get(a))()",
        "const a = 'http://h/'; { const a = f(); http.get(a) }",
        "http.get(1)",
        "const a = { b: 'http://h/' }; a.b += 'x'; http.get(a.b)",
        "http.get('http://h/$' + '{A}')",
        "http.get('http://h/${A}')",
        "const a = a; http.get(a)",
        "http.get(__ENV.A || __ENV.B)",
        "http.get('http://h/' + 1 + 2 - 3)",
        "http.get(/'/)",
        "const f = (a = 'http://x/') => a; const a = 'http://h/'; http.get(a)",
        "http.get(a ? 'http://h/' : 'http://h/b')",
    ] {
        assert!(left_out(text).contains(&url.to_owned()), "{text}: {:?}", left_out(text));
    }
    assert_eq!(left_out("http.get('/a')"), ["line 4: a request whose host is not constant"]);
    assert_eq!(left_out("http.post('http://h/', open('a'))"), ["line 4: a request whose body is not constant"]);
    let pushed = "const a = [1]; a.push(2); http.post('http://h/', JSON.stringify(a))";
    assert_eq!(left_out(pushed), ["line 4: a request whose body is not constant"]);
    assert_eq!(left_out("http.get('http://h/', { auth: 'basic' })"), ["line 4: a request with the parameter `auth`"]);
    assert_eq!(left_out("http.get('http://h/', f())"), ["line 4: a request whose parameters are not constant"]);
    assert_eq!(left_out("http.request(m, 'http://h/')"), ["line 4: a request whose method is not constant"]);
    assert_eq!(left_out("http.batch([['GET', 'http://h/']])"), ["line 4: `http.batch` is not taken over"]);
    assert_eq!(left_out("http.get()"), ["line 4: `http.get` is not taken over"]);
    assert_eq!(left_out("http.get('http://other/')"), ["line 4: another target: http://other"]);
}

#[test]
fn scripts_that_are_not_understood_are_refused() {
    let with = |text: &str| fault(&script(text));
    let end = ": run the script with k6 instead";
    for (text, line, mark) in [("`abc", 3, '`'), ("'abc", 3, '\''), ("/* abc", 3, '/'), ("(", 4, '}')] {
        assert_eq!(with(text), format!("it: line {line}: what {mark:?} begins or ends is not complete{end}"));
    }
    assert_eq!(fault("import http from 'k6/http'; ("), format!("it: line 1: a bracket or a template has no end{end}"));
    assert_eq!(
        fault("import { get } from 'k6/http'"),
        format!("it: it has no line like `import http from 'k6/http'`{end}")
    );
    assert_eq!(
        with("http.get(a)"),
        "it: no request can be taken over: line 3: a request whose URL is not constant: run the script with k6 instead"
    );
    assert_eq!(with("if (a) { b = a / 2 } // '"), format!("it: no request can be taken over: there is none{end}"));
}

#[test]
fn hostile_scripts_end_soon() {
    let doubled: String = (1..60).fold("const a0 = '';\n".to_owned(), |all, number| {
        format!("{all}const a{number} = a{0} + a{0};\n", number - 1)
    });
    let bombs = [
        format!("{doubled}http.get(a59);"),
        format!("http.get({}'http://h/'{});", "(".repeat(50_000), ")".repeat(50_000)),
        format!("{}http.get('http://h/'){}", "{".repeat(50_000), "}".repeat(50_000)),
        format!("http.post('http://h/', {}{});", "[".repeat(50_000), "]".repeat(50_000)),
        format!("{}0{};", "`${".repeat(50_000), "}`".repeat(50_000)),
        format!("{} 1", "a => ".repeat(50_000)),
        "http.get(x)\n".repeat(50_000),
    ];
    assert_eq!(
        fault(&script(&" ;".repeat(8 << 20))),
        "it: the script has more than 8 MiB: run the script with k6 instead"
    );
    for bomb in bombs {
        let _ = convert(&script(&bomb), "it");
    }
}
