//! Authorization: every route, requested by callers with and without access.

use std::collections::{BTreeMap, BTreeSet};

use brewbench::auth::model::{Role, Scope};
use brewbench_wire::now_ms;
use reqwest::{Method, StatusCode, header::HeaderMap};

use crate::{
    harness::{Actor, Answer, App},
    tidy::{production_part, sources},
};

/// The access that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    Nothing,
    /// A logged-in user of any role; no token.
    User,
    /// A logged-in user of any role, or a token of the scope admin.
    UserOrAdminToken,
    Read,
    Submit,
    Admin,
    AgentKey,
}

pub use Needs::{Admin, AgentKey, Nothing, Read, Submit, User, UserOrAdminToken};

/// All routes except static files. A new route must be added with its required access.
pub const ROUTES: &[(&str, &str, Needs)] = &[
    ("GET", "/", Read),
    ("GET", "/healthz", Nothing),
    ("GET", "/readyz", Nothing),
    ("GET", "/metrics", Read),
    ("GET", "/login", Nothing),
    ("GET", "/register", Nothing),
    ("GET", "/docs", Nothing),
    ("GET", "/docs/search", Nothing),
    ("GET", "/docs/{*chapter}", Nothing),
    ("GET", "/confirm", User),
    ("POST", "/logout", User),
    ("GET", "/account", User),
    ("POST", "/account/notices/dismiss", User),
    ("POST", "/account/passkeys/{id}/rename", User),
    ("GET", "/account/passkeys/{id}/remove", User),
    ("POST", "/account/passkeys/{id}/remove", User),
    ("POST", "/account/sessions/{id}/end", User),
    ("GET", "/account/sessions/end-others", User),
    ("POST", "/account/sessions/end-others", User),
    ("GET", "/tokens", UserOrAdminToken),
    ("POST", "/tokens", UserOrAdminToken),
    ("GET", "/tokens/{name}/revoke", UserOrAdminToken),
    ("POST", "/tokens/{name}/revoke", UserOrAdminToken),
    ("GET", "/users", Admin),
    ("POST", "/users/invites", Admin),
    ("GET", "/users/invites/{id}/withdraw", Admin),
    ("POST", "/users/invites/{id}/withdraw", Admin),
    ("POST", "/users/{name}/role", Admin),
    ("GET", "/users/{name}/remove", Admin),
    ("POST", "/users/{name}/remove", Admin),
    ("GET", "/users/{name}/reset-passkeys", Admin),
    ("POST", "/users/{name}/reset-passkeys", Admin),
    ("GET", "/audit", Admin),
    ("POST", "/mcp", Read),
    ("GET", "/runs", Read),
    ("GET", "/runs/live", Read),
    ("GET", "/runs/import", Submit),
    ("POST", "/runs/import", Submit),
    ("GET", "/runs/import/{id}", Submit),
    ("POST", "/runs/import/{id}", Submit),
    ("GET", "/runs/imported", Read),
    ("GET", "/runs/label", Submit),
    ("POST", "/runs/label", Submit),
    ("GET", "/runs/delete", Submit),
    ("POST", "/runs/delete", Submit),
    ("POST", "/runs/undelete", Submit),
    ("GET", "/runs/{id}", Read),
    ("GET", "/runs/{id}/logs", Read),
    ("GET", "/runs/{id}/environment", Read),
    ("POST", "/runs/{id}/note", Submit),
    ("POST", "/runs/{id}/labels", Submit),
    ("POST", "/runs/{id}/labels/remove", Submit),
    ("GET", "/runs/{id}/live", Read),
    ("GET", "/runs/{id}/cancel", Submit),
    ("POST", "/runs/{id}/cancel", Submit),
    ("GET", "/runs/{id}/delete", Submit),
    ("POST", "/runs/{id}/delete", Submit),
    ("GET", "/experiments/new", Read),
    ("GET", "/runs/new", Read),
    ("POST", "/experiments/new", Submit),
    ("GET", "/experiments/new/check", Read),
    ("GET", "/experiments", Read),
    ("GET", "/experiments/live", Read),
    ("POST", "/experiments/from-imports", Submit),
    ("GET", "/experiments/{id}", Read),
    ("GET", "/experiments/{id}/live", Read),
    ("POST", "/experiments/{id}/note", Submit),
    ("POST", "/experiments/{id}/labels", Submit),
    ("POST", "/experiments/{id}/labels/remove", Submit),
    ("POST", "/experiments/{id}/pause", Submit),
    ("POST", "/experiments/{id}/resume", Submit),
    ("GET", "/experiments/{id}/repetitions", Submit),
    ("POST", "/experiments/{id}/repetitions", Submit),
    ("GET", "/experiments/{id}/cancel", Submit),
    ("POST", "/experiments/{id}/cancel", Submit),
    ("GET", "/compare", Read),
    ("GET", "/compare/metrics", Read),
    ("GET", "/profiles", Read),
    ("GET", "/profiles/compare", Read),
    ("GET", "/gate", Read),
    ("GET", "/baselines", Read),
    ("POST", "/baselines", Submit),
    ("GET", "/baselines/{name}", Read),
    ("GET", "/baselines/{name}/remove", Submit),
    ("POST", "/baselines/{name}/remove", Submit),
    ("GET", "/differences", Read),
    ("POST", "/differences", Submit),
    ("GET", "/differences/{id}/revoke", Submit),
    ("POST", "/differences/{id}/revoke", Submit),
    ("GET", "/shares", Read),
    ("POST", "/shares", Submit),
    ("GET", "/shares/{id}/revoke", Submit),
    ("POST", "/shares/{id}/revoke", Submit),
    ("GET", "/shared/{secret}", Nothing),
    ("GET", "/trends", Read),
    ("GET", "/trends/{target}/{cell}", Read),
    ("POST", "/trends/{target}/{cell}/annotate", Submit),
    ("POST", "/trends/{target}/{cell}/pin", User),
    ("POST", "/trends/{target}/{cell}/unpin", User),
    ("GET", "/search", Nothing),
    ("GET", "/dashboard/live", Read),
    ("GET", "/scenarios", Read),
    ("POST", "/scenarios", Submit),
    ("GET", "/scenarios/{name}", Read),
    ("POST", "/scenarios/{name}/check", Submit),
    ("POST", "/scenarios/{name}/addresses", Submit),
    ("POST", "/scenarios/{name}/limits", Submit),
    ("GET", "/scenarios/{name}/differences", Read),
    ("GET", "/settings", Read),
    ("POST", "/settings/theme", Read),
    ("POST", "/settings/series", Admin),
    ("POST", "/settings/alerts", Admin),
    ("GET", "/settings/webhooks", Admin),
    ("POST", "/settings/webhooks", Admin),
    ("GET", "/settings/webhooks/{id}", Admin),
    ("POST", "/settings/webhooks/{id}/test", Admin),
    ("GET", "/settings/webhooks/{id}/remove", Admin),
    ("POST", "/settings/webhooks/{id}/remove", Admin),
    ("GET", "/agents", Read),
    ("POST", "/agents", Admin),
    ("GET", "/agents/{name}", Read),
    ("GET", "/agents/{name}/revoke", Admin),
    ("POST", "/agents/{name}/revoke", Admin),
    ("POST", "/agents/{name}/drain", Admin),
    ("POST", "/agents/{name}/enable", Admin),
    ("GET", "/agents/{name}/disable", Admin),
    ("POST", "/agents/{name}/disable", Admin),
    ("GET", "/agents/{name}/remove", Admin),
    ("POST", "/agents/{name}/remove", Admin),
    ("POST", "/agents/{name}/labels", Admin),
    ("POST", "/agents/{name}/change-key", Admin),
    ("POST", "/agents/{name}/rename", Admin),
    ("GET", "/queue", Read),
    ("GET", "/queue/live", Read),
    ("POST", "/queue/runs/{id}/next", Submit),
    ("POST", "/queue/experiments/{id}/next", Submit),
    ("GET", "/sizes", Read),
    ("POST", "/sizes", Admin),
    ("GET", "/sizes/{name}/remove", Admin),
    ("POST", "/sizes/{name}/remove", Admin),
    ("GET", "/targets", Read),
    ("GET", "/targets/new", Read),
    ("POST", "/targets/new", Read),
    ("POST", "/targets/new/check", Read),
    ("POST", "/targets/new/manifest", Read),
    ("GET", "/targets/new/live", Read),
    ("GET", "/targets/{name}", Read),
    ("GET", "/targets/{name}/remove", Admin),
    ("POST", "/targets/{name}/remove", Admin),
    ("GET", "/unused-targets/remove", Admin),
    ("POST", "/unused-targets/remove", Admin),
    ("GET", "/api/v1/openapi.json", Read),
    ("POST", "/api/v1/auth/register/start", Nothing),
    ("POST", "/api/v1/auth/register/finish", Nothing),
    ("POST", "/api/v1/auth/login/start", Nothing),
    ("POST", "/api/v1/auth/login/finish", Nothing),
    ("POST", "/api/v1/auth/confirm/start", User),
    ("POST", "/api/v1/auth/confirm/finish", User),
    ("GET", "/api/v1/account", User),
    ("DELETE", "/api/v1/account/notices", User),
    ("POST", "/api/v1/account/passkeys/start", User),
    ("POST", "/api/v1/account/passkeys/finish", User),
    ("PUT", "/api/v1/account/passkeys/{id}", User),
    ("DELETE", "/api/v1/account/passkeys/{id}", User),
    ("DELETE", "/api/v1/account/sessions", User),
    ("DELETE", "/api/v1/account/sessions/{id}", User),
    ("GET", "/api/v1/tokens", UserOrAdminToken),
    ("POST", "/api/v1/tokens", UserOrAdminToken),
    ("DELETE", "/api/v1/tokens/{name}", UserOrAdminToken),
    ("GET", "/api/v1/users", Admin),
    ("PUT", "/api/v1/users/{name}", Admin),
    ("DELETE", "/api/v1/users/{name}", Admin),
    ("GET", "/api/v1/users/{name}/ends", Admin),
    ("GET", "/api/v1/invites", Admin),
    ("POST", "/api/v1/invites", Admin),
    ("DELETE", "/api/v1/invites/{id}", Admin),
    ("GET", "/api/v1/audit", Admin),
    ("GET", "/api/v1/audit/export", Admin),
    ("GET", "/api/v1/targets", Read),
    ("POST", "/api/v1/target-manifest", Read),
    ("DELETE", "/api/v1/targets", Admin),
    ("DELETE", "/api/v1/targets/{name}", Admin),
    ("GET", "/api/v1/sizes", Read),
    ("POST", "/api/v1/sizes", Admin),
    ("DELETE", "/api/v1/sizes/{name}", Admin),
    ("GET", "/api/v1/scenarios", Read),
    ("POST", "/api/v1/scenarios", Submit),
    ("GET", "/api/v1/scenarios/{name}", Read),
    ("POST", "/api/v1/scenarios/{name}/check", Submit),
    ("GET", "/api/v1/scenarios/{name}/revisions", Read),
    ("GET", "/api/v1/scenarios/{name}/limits", Read),
    ("PUT", "/api/v1/scenarios/{name}/limits", Submit),
    ("DELETE", "/api/v1/scenarios/{name}/limits", Submit),
    ("GET", "/api/v1/agents", Read),
    ("POST", "/api/v1/agent-keys", Admin),
    ("DELETE", "/api/v1/agent-keys/{name}", Admin),
    ("POST", "/api/v1/agent-keys/{name}/change", Admin),
    ("PUT", "/api/v1/agents/{name}/availability", Admin),
    ("PUT", "/api/v1/agents/{name}/labels", Admin),
    ("PUT", "/api/v1/agents/{name}/name", Admin),
    ("DELETE", "/api/v1/agents/{name}", Admin),
    ("POST", "/api/v1/agent/enrolment", AgentKey),
    ("PUT", "/api/v1/agent/key", AgentKey),
    ("GET", "/api/v1/agent/files/{sha256}", AgentKey),
    ("GET", "/api/v1/agent/self", AgentKey),
    ("GET", "/api/v1/queue", Read),
    ("POST", "/api/v1/runs/{id}/next", Submit),
    ("POST", "/api/v1/experiments/{id}/next", Submit),
    ("GET", "/api/v1/runs", Read),
    ("POST", "/api/v1/runs/import", Submit),
    ("POST", "/api/v1/runs/import/preview", Submit),
    ("GET", "/api/v1/runs/{id}", Read),
    ("DELETE", "/api/v1/runs/{id}", Submit),
    ("GET", "/api/v1/runs/{id}/series", Read),
    ("GET", "/api/v1/runs/{id}/environment", Read),
    ("GET", "/api/v1/runs/{id}/logs", Read),
    ("GET", "/api/v1/runs/{id}/environment/difference", Read),
    ("GET", "/api/v1/runs/{id}/generators", Read),
    ("GET", "/api/v1/runs/{id}/summary", Read),
    ("GET", "/api/v1/runs/{id}/judgement", Read),
    ("POST", "/api/v1/runs/rejudge", Submit),
    ("GET", "/api/v1/runs/{id}/series/live", Read),
    ("GET", "/api/v1/runs/now", Read),
    ("POST", "/api/v1/runs/{id}/cancel", Submit),
    ("GET", "/api/v1/experiments", Read),
    ("POST", "/api/v1/runs/{id}/undelete", Submit),
    ("PUT", "/api/v1/runs/{id}/note", Submit),
    ("PUT", "/api/v1/runs/{id}/labels/{label}", Submit),
    ("DELETE", "/api/v1/runs/{id}/labels/{label}", Submit),
    ("GET", "/api/v1/runs/export", Read),
    ("POST", "/api/v1/experiments", Submit),
    ("POST", "/api/v1/experiments/from-imports", Submit),
    ("GET", "/api/v1/experiments/{id}", Read),
    ("POST", "/api/v1/experiments/{id}/pause", Submit),
    ("POST", "/api/v1/experiments/{id}/resume", Submit),
    ("POST", "/api/v1/experiments/{id}/repetitions", Submit),
    ("POST", "/api/v1/experiments/{id}/cancel", Submit),
    ("PUT", "/api/v1/experiments/{id}/note", Submit),
    ("PUT", "/api/v1/experiments/{id}/labels/{label}", Submit),
    ("DELETE", "/api/v1/experiments/{id}/labels/{label}", Submit),
    ("GET", "/api/v1/experiments/{id}/events", Read),
    ("GET", "/api/v1/compare", Read),
    ("GET", "/api/v1/compare/metrics", Read),
    ("GET", "/api/v1/compare/gate", Read),
    ("GET", "/api/v1/report", Read),
    ("GET", "/api/v1/baselines", Read),
    ("GET", "/api/v1/baselines/{name}", Read),
    ("PUT", "/api/v1/baselines/{name}", Submit),
    ("DELETE", "/api/v1/baselines/{name}", Submit),
    ("GET", "/api/v1/differences", Read),
    ("POST", "/api/v1/differences", Submit),
    ("DELETE", "/api/v1/differences/{id}", Submit),
    ("GET", "/api/v1/shares", Read),
    ("POST", "/api/v1/shares", Submit),
    ("DELETE", "/api/v1/shares/{id}", Submit),
    ("GET", "/api/v1/profiles", Read),
    ("GET", "/api/v1/profiles/compare", Read),
    ("GET", "/api/v1/profiles/compare/graph", Read),
    ("GET", "/api/v1/profiles/graph", Read),
    ("GET", "/api/v1/runs/{id}/profile", Read),
    ("GET", "/api/v1/trends", Read),
    ("GET", "/api/v1/trends/{target}/{cell}", Read),
    ("PUT", "/api/v1/trends/{target}/{cell}/changes/{run}", Submit),
    ("DELETE", "/api/v1/trends/{target}/{cell}/changes/{run}", Submit),
    ("GET", "/api/v1/pins", Read),
    ("PUT", "/api/v1/trends/{target}/{cell}/pin", Submit),
    ("DELETE", "/api/v1/trends/{target}/{cell}/pin", Submit),
    ("GET", "/api/v1/search", Read),
    ("GET", "/api/v1/alerts", Read),
    ("GET", "/api/v1/alert-rule", Read),
    ("PUT", "/api/v1/alert-rule", Admin),
    ("GET", "/api/v1/webhooks", Admin),
    ("POST", "/api/v1/webhooks", Admin),
    ("DELETE", "/api/v1/webhooks/{id}", Admin),
    ("GET", "/api/v1/webhooks/{id}/deliveries", Admin),
    ("POST", "/api/v1/webhooks/{id}/test", Admin),
    ("GET", "/api/v1/backup", Admin),
    ("GET", "/api/v1/retention", Read),
    ("PUT", "/api/v1/retention", Admin),
    ("DELETE", "/api/v1/retention", Admin),
    ("GET", "/api/v1/agent/channel", AgentKey),
    ("PUT", "/api/v1/agent/runs/{id}/result", AgentKey),
];

pub fn address(path: &str) -> String {
    path.replace("{id}", "00000000-0000-7000-8000-000000000000")
        .replace("{name}", "nobody")
        .replace("{label}", "quick")
        .replace("{target}", "nobody")
        .replace("{cell}", "0123456789abcdef")
        .replace("{run}", "00000000-0000-7000-8000-000000000000")
        .replace("{secret}", "bbc_nothing")
}

pub fn is_page(path: &str) -> bool {
    !path.starts_with("/api/")
}

/// Returns status and headers only, because some responses never end.
pub async fn ask(who: &Actor, method: &str, path: &str) -> (StatusCode, HeaderMap) {
    let method: Method = method.parse().expect("a method");
    let mut request = who.request(&method, &address(path));
    if method != Method::GET {
        request = request.header("content-type", "application/json").body("{}");
    }
    let answer = request.send().await.expect("an answer");
    assert_locked_down(answer.headers(), path);
    (answer.status(), answer.headers().clone())
}

#[track_caller]
fn assert_locked_down(headers: &HeaderMap, path: &str) {
    for name in ["content-security-policy", "x-content-type-options", "referrer-policy", "cross-origin-opener-policy"] {
        assert!(headers.contains_key(name), "the response of {path} has no {name}");
    }
}

fn let_in(status: StatusCode) -> bool {
    !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[tokio::test]
async fn the_table_knows_every_route_of_the_api() {
    let app = App::start().await;
    let document = app.reader().await.get("/api/v1/openapi.json").await.ok().json();
    let mut documented = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            documented.insert((method.to_uppercase(), path.clone()));
        }
    }
    // The document does not describe itself and the WebSocket.
    let undocumented = ["/api/v1/openapi.json", "/api/v1/agent/channel"];
    let known: BTreeSet<_> = ROUTES
        .iter()
        .filter(|(_, path, _)| !is_page(path) && !undocumented.contains(path))
        .map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    let new: Vec<_> = documented.difference(&known).collect();
    assert!(new.is_empty(), "{new:?} are new: add them with their access to the table in tests/all/routes.rs");
    let gone: Vec<_> = known.difference(&documented).collect();
    assert!(gone.is_empty(), "{gone:?} are in the table of tests/all/routes.rs and not in the OpenAPI document");
}

#[test]
fn the_table_knows_every_page() {
    let mut pages: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in sources("src") {
        for part in production_part(&text).split(".route(\"").skip(1) {
            let (path, rest) = part.split_once('"').expect("a quoted path");
            let handlers = rest.split(".route(").next().unwrap_or_default();
            // To the end of the call: handlers are functions or one-line closures.
            let handlers = handlers.lines().next().unwrap_or_default();
            let methods = pages.entry(path.to_owned()).or_default();
            for (word, method) in [("get(", "GET"), ("post(", "POST"), ("put(", "PUT"), ("delete(", "DELETE")] {
                if handlers
                    .split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '('))
                    .any(|part| part.starts_with(word))
                {
                    methods.insert(method);
                }
            }
            assert!(!methods.is_empty(), "{file}: no method found for {path}");
        }
    }
    assert!(pages.len() >= 10, "only {} pages were found: has the syntax of routes changed?", pages.len());
    for (path, methods) in &pages {
        for method in methods {
            assert!(
                ROUTES.iter().any(|(known, route, _)| known == method && route == path),
                "{method} {path} is new: add it with its access to the table in tests/all/routes.rs"
            );
        }
    }
    for (method, path, _) in ROUTES.iter().filter(|(_, path, _)| is_page(path)) {
        let found = pages.get(*path).is_some_and(|methods| methods.contains(method));
        assert!(found, "{method} {path} is in the table of tests/all/routes.rs but not in src/");
    }
}

#[tokio::test]
async fn anonymous_callers_get_only_login_registration_health_docs_and_static_files() {
    let app = App::start().await;
    let (program, browser) = (app.anonymous(), app.anonymous().in_browser());
    for (method, path, needs) in ROUTES {
        let (status, _) = ask(&program, method, path).await;
        if *needs == Nothing {
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
            continue;
        }
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
        let (status, headers) = ask(&browser, method, path).await;
        if is_page(path) {
            assert_eq!(status, StatusCode::SEE_OTHER, "{method} {path}");
            let login = headers["location"].to_str().expect("text");
            assert!(login.starts_with("/login?next=%2F"), "{method} {path} → {login}");
        } else {
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
        }
    }
    program.get("/api/v1/runs").await.refused(401);
    assert_eq!(program.get("/healthz").await.ok().text(), "ok");
    let style = program.get(brewbench::web::assets::asset("app.css")).await.ok();
    assert_locked_down(&style.headers, "app.css");
    let nowhere = program.get("/api/v1/nowhere").await;
    assert_locked_down(&nowhere.headers, "nowhere");
    nowhere.refused(404);
}

/// Method, address, body, status and error of requests that no handler serves.
const INVALID_REQUESTS: &[(&str, &str, &str, u16, &str)] = &[
    ("GET", "/api/v1/nowhere", "", 404, "there is no endpoint at /api/v1/nowhere"),
    ("POST", "/api/v1/", "{}", 404, "there is no endpoint at /api/v1/"),
    ("GET", "/nowhere", "", 404, "there is no page at /nowhere"),
    ("GET", "/runs/", "", 404, "there is no page at /runs/"),
    ("GET", "/api/v1/runs/%FF", "", 400, "UTF-8"),
    ("DELETE", "/api/v1/runs/%FF", "", 400, "UTF-8"),
    ("GET", "/api/v1/runs/%FF/summary", "", 400, "UTF-8"),
    ("POST", "/api/v1/runs/%FF/cancel", "", 400, "UTF-8"),
    ("GET", "/api/v1/experiments/%C0%80", "", 400, "UTF-8"),
    ("GET", "/api/v1/experiments/%FF/events", "", 400, "UTF-8"),
    ("GET", "/api/v1/scenarios/%FF", "", 400, "UTF-8"),
    ("DELETE", "/api/v1/tokens/%FF", "", 400, "UTF-8"),
    ("DELETE", "/api/v1/agent-keys/%FF", "", 400, "UTF-8"),
    ("GET", "/runs/%FF", "", 400, "UTF-8"),
    ("GET", "/experiments/%FF", "", 400, "UTF-8"),
    ("GET", "/runs/x", "", 404, "there is no run \"x\""),
    ("GET", "/experiments/x", "", 404, "there is no experiment \"x\""),
    ("GET", "/runs?runs=%FF&after=%FF", "", 200, ""),
    ("GET", "/api/v1/runs?limit=many", "", 422, "limit"),
    ("GET", "/api/v1/runs?limit=-1", "", 422, "limit"),
    ("DELETE", "/api/v1/runs", "", 405, "method DELETE is not allowed for this address"),
    ("PATCH", "/api/v1/runs/x", "{}", 405, "is not allowed"),
    ("POST", "/api/v1/compare", "{}", 405, "is not allowed"),
    ("POST", "/api/v1/openapi.json", "{}", 405, "is not allowed"),
    ("POST", "/runs", "", 405, "is not allowed"),
    ("PUT", "/login", "", 405, "is not allowed"),
    ("POST", "/api/v1/experiments", "not JSON", 422, "JSON"),
    ("POST", "/api/v1/experiments", "", 422, "JSON"),
    ("POST", "/api/v1/experiments", "[]", 422, "JSON"),
    ("POST", "/api/v1/sizes", "{\"name\": 1}", 422, "name"),
    ("POST", "/api/v1/scenarios", "\u{0}", 422, "JSON"),
    ("POST", "/api/v1/invites", "{\"role\": \"king\"}", 422, "king"),
    ("POST", "/api/v1/runs/import?target=t", "not JSON", 422, "is neither JSON"),
];

#[tokio::test]
async fn invalid_requests_get_errors_in_json_or_as_pages() {
    let app = App::start().await;
    let (program, user) = (app.admin().await, app.signed_in(Role::Admin).await.in_browser());
    for (method, path, body, status, words) in INVALID_REQUESTS {
        let verb: Method = method.parse().expect("a method");
        let what = format!("{method} {path} {body:?}");
        let ask = async |who: &Actor| {
            let request = who.request(&verb, path).header("content-type", "application/json").body(*body);
            Answer::to(request).await
        };
        let answer = ask(&program).await;
        if *status == 200 {
            answer.ok();
            continue;
        }
        assert_eq!(answer.header("allow").is_empty(), *status != 405, "{what}");
        let sentence = answer.refused(*status);
        assert!(sentence.contains(words), "{what}: {sentence}");
        let page = ask(&user).await;
        assert_eq!(page.status.as_u16(), *status, "{what}");
        if is_page(path) {
            assert!(page.header("content-type").starts_with("text/html"), "{what}: {}", page.text());
            let html = page.text();
            assert!(html.contains("<h1>") && html.contains(r#"href="/runs""#), "{what}: {html}");
        } else {
            assert_eq!(page.refused(*status), sentence, "{what}");
        }
    }
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    let forbidden = viewer.get("/runs/x/delete").await;
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
    let text = forbidden.text();
    assert!(text.contains("Only members and administrators can do this; you are a viewer"), "{text}");
    assert!(text.contains(r#"href="/runs""#), "{text}");
    let no_type = program.request(&Method::POST, "/api/v1/experiments").body("{}");
    assert!(Answer::to(no_type).await.refused(422).contains("Content-Type"));
    let no_upgrade = app.anonymous().with_secret(&app.key("rack").await).get("/api/v1/agent/channel").await;
    let (status, sentence) = (no_upgrade.status.as_u16(), no_upgrade.clone().refused(no_upgrade.status.as_u16()));
    assert!((400..500).contains(&status) && sentence.contains("upgrade"), "{status} {sentence}");
}

#[tokio::test]
async fn server_errors_do_not_reveal_their_cause() {
    let app = App::start().await;
    let reader = app.reader().await;
    sqlx::query("alter table experiment rename to gone").execute(&app.state.db.write).await.expect("a broken store");
    let sentence = "internal server error; see the server's log";
    assert_eq!(reader.get("/api/v1/experiments/x").await.refused(500), sentence);
    let page = reader.in_browser().get("/experiments/x").await;
    assert_eq!(page.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(page.text().contains("Something went wrong") && page.text().contains(r#"href="/docs/"#));
    assert!(!page.text().contains("no such table"));
}

#[tokio::test]
async fn scopes_and_roles_allow_exactly_their_routes() {
    let app = App::start().await;
    let scopes =
        [(Scope::Read, Role::Viewer, Read), (Scope::Submit, Role::Member, Submit), (Scope::Admin, Role::Admin, Admin)];
    for (scope, role, reach) in scopes {
        let token = app.token(scope).await;
        for (method, path, needs) in ROUTES {
            let user = app.signed_in(role).await;
            for (who, kind) in [(&token, "token"), (&user, "user")] {
                let (status, _) = ask(who, method, path).await;
                let what = format!("{method} {path} as a {kind} of scope {scope:?}: {status}");
                match needs {
                    // The login itself may refuse invalid requests.
                    Nothing => assert_ne!(status, StatusCode::UNAUTHORIZED, "{what}"),
                    AgentKey => assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}"),
                    User if kind == "token" => assert_eq!(status, StatusCode::FORBIDDEN, "{what}"),
                    UserOrAdminToken if kind == "token" && scope < Scope::Admin => {
                        assert_eq!(status, StatusCode::FORBIDDEN, "{what}");
                    }
                    needs if *needs <= reach => assert!(let_in(status), "{what}"),
                    _ => assert_eq!(status, StatusCode::FORBIDDEN, "{what}"),
                }
            }
        }
    }
    let sentence = app.admin().await.get("/api/v1/account").await.refused(403);
    assert_eq!(sentence, "this needs a logged-in user; tokens are not accepted");
    let sentence = app.reader().await.post("/api/v1/experiments", &()).await.refused(403);
    assert_eq!(sentence, "this needs the scope submit; yours is read");
}

#[tokio::test]
async fn a_lowered_role_applies_to_sessions_and_tokens_at_once() {
    let app = App::start().await;
    let admin = app.admin().await;
    let user = app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    app.signed_in_as("Kept", Role::Admin, now_ms() + 86_400_000).await;
    let token = app.anonymous().with_secret(&admin_token(&user, "hers").await);
    for (role, reach) in [(Role::Member, Submit), (Role::Viewer, Read)] {
        admin.put("/api/v1/users/Ada", &serde_json::json!({"role": role})).await.ok();
        for (method, path, needs) in ROUTES.iter().filter(|(_, _, needs)| matches!(needs, Submit | Admin)) {
            for who in [&user, &token] {
                let (status, _) = ask(who, method, path).await;
                assert_eq!(let_in(status), *needs <= reach, "{method} {path} as {role:?}: {status}");
            }
        }
    }
}

#[tokio::test]
async fn another_site_cannot_write_with_a_session() {
    let app = App::start().await;
    let user = app.signed_in(Role::Admin).await;
    let foreign = user.clone().at_origin("https://evil.example");
    let null = user.clone().at_origin("null");
    let unknown = user.clone().at_no_origin();
    for (method, path, needs) in ROUTES.iter().filter(|(method, ..)| *method != "GET") {
        for who in [&foreign, &null] {
            let expected = if *needs == AgentKey { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
            assert_eq!(ask(who, method, path).await.0, expected, "{method} {path}");
        }
        if !matches!(needs, Nothing | AgentKey) {
            assert_eq!(
                ask(&unknown, method, path).await.0,
                StatusCode::FORBIDDEN,
                "{method} {path} from an unknown origin"
            );
        }
    }
    assert!(let_in(ask(&user, "POST", "/api/v1/experiments").await.0), "its own pages may write");
    // Browsers do not send tokens by themselves.
    let token = app.admin().await.at_origin("https://elsewhere.example");
    assert!(let_in(ask(&token, "POST", "/api/v1/experiments").await.0));
}

#[tokio::test]
async fn ended_or_foreign_secrets_grant_no_access() {
    let app = App::start().await;
    let admin = app.admin().await;
    let expired = app.anonymous().with_secret(&app.token_secret(Scope::Admin, Some(0)).await);
    let revoked = app.anonymous().with_secret(&admin_token(&admin, "revoked").await);
    admin.delete("/api/v1/tokens/revoked").await.ok();
    let key = app.anonymous().with_secret(&app.key("rack").await);
    let gone = app.signed_in_until(Role::Admin, now_ms() - 1).await;
    let garbage = app.anonymous().with_secret("bbt_0");
    let half = app.anonymous().with_secret(&admin.secret()[..20]);
    let idle = app.signed_in_as("Idle", Role::Admin, now_ms() + 86_400_000).await;
    let sql = "update session set last_used_at = 0 where user_id = (select id from user where name = 'Idle')";
    sqlx::query(sql).execute(&app.state.db.write).await.expect("a session");
    let removed = app.signed_in_as("Removed", Role::Admin, now_ms() + 86_400_000).await;
    let orphan = app.anonymous().with_secret(&admin_token(&removed, "orphan").await);
    let left = app.signed_in_as("Left", Role::Admin, now_ms() + 86_400_000).await;
    left.post("/logout", &()).await;
    app.signed_in_as("Kept", Role::Admin, now_ms() + 86_400_000).await;
    admin.delete("/api/v1/users/Removed").await.ok();
    for who in [&expired, &revoked, &key, &gone, &garbage, &half, &idle, &removed, &orphan, &left] {
        for (method, path, needs) in ROUTES {
            let key_fits = *needs == AgentKey && who.is_same(&key);
            if *needs != Nothing && !key_fits {
                assert_eq!(ask(who, method, path).await.0, StatusCode::UNAUTHORIZED, "{method} {path}");
            }
        }
    }
    assert!(let_in(ask(&key, "PUT", "/api/v1/agent/runs/{id}/result").await.0));
    assert!(let_in(ask(&key, "GET", "/api/v1/agent/channel").await.0));
    admin.delete("/api/v1/agent-keys/rack").await.ok();
    assert_eq!(ask(&key, "PUT", "/api/v1/agent/runs/{id}/result").await.0, StatusCode::UNAUTHORIZED);
}

async fn admin_token(admin: &Actor, name: &str) -> String {
    let created = admin.post("/api/v1/tokens", &serde_json::json!({"name": name, "scope": "admin"})).await.ok().json();
    created["secret"].as_str().expect("a secret").to_owned()
}
