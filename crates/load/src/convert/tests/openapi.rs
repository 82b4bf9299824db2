//! Tests of OpenAPI descriptions.

use super::*;

const SHOP: &str = r##"
openapi: 3.0.3
info: { title: Shop, version: "1" }
servers:
  - url: https://{region}.shop.example/api/
    variables: { region: { default: eu } }
security:
  - token: []
paths:
  /health:
    get:
      security: []
      responses: { 200: { description: ok } }
  /items:
    get:
      security: [{}]
      parameters:
        - { name: limit, in: query, example: 10 }
        - { name: tags, in: query, explode: false, schema: { type: array, example: [a b, "c&d"] } }
        - { name: sort, in: query, schema: { type: string, default: name } }
        - { name: kind, in: query, required: true, schema: { enum: [new, used] } }
      responses: { "200": {}, "404": {} }
    post:
      requestBody: { $ref: "#/components/requestBodies/Item" }
      responses: { "201": {} }
    delete: {}
  /items/{id}:
    parameters:
      - $ref: "#/components/parameters/Id"
    get:
      responses: { "200": {}, "304": {} }
  /users/{name}:
    get:
      parameters: [{ name: name, in: path, required: true, schema: { type: string } }]
  /loop/{x}:
    get:
      parameters: [{ $ref: "#/components/parameters/Loop" }]
  /odd/{y}:
    get: {}
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
  parameters:
    Id: { name: id, in: path, required: true, examples: { one: { value: a/b } } }
    Loop: { $ref: "#/components/parameters/Loop" }
  requestBodies:
    Item:
      content:
        text/plain: { example: text }
        application/json: { schema: { $ref: "#/components/schemas/Item" } }
  schemas:
    Item: { type: object, example: { name: Tea, price: 3 } }
"##;

#[test]
fn operations_with_examples_are_requests() {
    let list = converted(SHOP);
    let expected = r#"[[request]]
path = "/health"
expect = { status = 200 }

[[request]]
path = "/items?kind=new&limit=10&tags=a%20b,c%26d"
expect = { status = 200 }

[[request]]
method = "POST"
path = "/items"
headers = { authorization = "${AUTHORIZATION}", content-type = "application/json" }
body = '{"name":"Tea","price":3}'
expect = { status = 201 }

[[request]]
path = "/items/a%2Fb"
headers = { authorization = "${AUTHORIZATION}" }
"#;
    assert_eq!(list.list, expected);
    assert_eq!(list.base_url.as_deref(), Some("https://eu.shop.example/api"));
    assert_eq!(
        list.left_out,
        [
            "POST /items and 1 more: `authorization` is a secret: give it as the parameter AUTHORIZATION",
            "DELETE /items: it has no example of a body",
            "GET /loop/{x}: a $ref has no end, or leads out of the document",
            "GET /odd/{y}: its path has a parameter that is not described",
            "GET /users/{name}: the path parameter `name` has no example that can be written",
        ]
    );
}

#[test]
fn the_path_of_a_server_without_a_host_is_kept() {
    let text = r#"{"openapi":"3.1.0","servers":[{"url":"/api/v3"}],"paths":{"/a":{"get":{"servers":[]},"put":{"requestBody":{
        "content":{"application/x-www-form-urlencoded":{"example":{"a":"b c","d":1}}}}}},
        "/b":{"get":{"parameters":[{"in":"header","name":"X-Trace","required":true,"schema":{"const":"on"}},
        {"in":"cookie","name":"id","required":true,"example":"hush"}]}}}}"#;
    let list = converted(text);
    let expected = r#"[[request]]
method = "PUT"
path = "/api/v3/a"
headers = { content-type = "application/x-www-form-urlencoded" }
body = "a=b+c&d=1"

[[request]]
path = "/api/v3/b"
headers = { cookie = "${COOKIE}", x-trace = "on" }
"#;
    assert_eq!((list.list.as_str(), list.base_url), (expected, None));
    assert_eq!(list.left_out[0], "GET /a: it has servers of its own");
}

#[test]
fn keys_of_an_api_become_parameters() {
    let api = |place: &str| {
        let scheme = format!(r#"{{"type":"apiKey","in":"{place}","name":"X-Key"}}"#);
        let text = format!(
            r#"{{"openapi":"3.0.0","security":[{{"k":[]}}],"components":{{"securitySchemes":{{"k":{scheme}}}}},"paths":{{"/":{{"get":{{}}}}}}}}"#
        );
        converted(&text)
    };
    assert!(api("query").list.contains("path = \"/?X-Key=${X_KEY}\""));
    assert!(api("header").list.contains("x-key = \"${X_KEY}\""));
    assert_eq!(api("header").parameters, BTreeMap::from([("X_KEY".to_owned(), None)]));
    assert!(api("cookie").list.contains("cookie = \"${COOKIE}\""));
}

#[test]
fn other_documents_are_refused() {
    assert_eq!(fault("swagger: \"2.0\"\npaths: {}\n"), "it: a version of OpenAPI other than 3: convert it first");
    assert_eq!(fault("{\"openapi\": \"4.0\"}"), "it: a version of OpenAPI other than 3: convert it first");
    assert_eq!(fault("openapi: 3.1\npaths: {}"), "it: no request can be taken over: there is none");
    assert!(fault("openapi: 3.1.0\na: [").starts_with("it: line "));
    // Aliases that would grow without bound, and deep nesting.
    let names: Vec<_> = ('a'..='z').collect();
    let bomb = names.windows(2).fold(String::new(), |all, pair| {
        format!("{all}{}: &{} [{}]\n", pair[1], pair[1], format!("*{}, ", pair[0]).repeat(9))
    });
    assert!(fault(&format!("openapi: 3.1.0\na: &a [x]\n{bomb}")).contains("too large"));
    assert!(fault(&format!("openapi: 3.1.0\na: {}", "[".repeat(100_000))).contains("not YAML"));
    assert!(fault(&format!("openapi: 3.1.0\n{}", "- ".repeat(100_000))).contains("not YAML"));
}
