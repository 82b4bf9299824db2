//! Sites for tests of all pages: an empty one, a busy one, and one with oversized names and values.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_wire::{
    Phase,
    messages::{AgentMessage, Hello},
    now_ms,
    outcome::{Cause, Ended, Mechanism, Observed, Outcome},
    series::{Packed, WindowKind},
};
use serde_json::json;

use super::import;
use crate::{
    cluster_load,
    harness::{
        Actor, Agent, App,
        agent::outcome,
        participants::{generator_outcome, host_outcome},
        root,
        series::{delta, matching_series},
        submit::{plan_with, submit, text},
        summaries::{fixture, good_checking, scaled},
    },
    profiles,
};

/// A server with data, and its pages.
pub struct World {
    /// Prefix of its screenshots.
    pub name: &'static str,
    /// The server.
    pub app: App,
    /// Its pages.
    pub places: Vec<Place>,
    /// Connected agents, which keep their last job.
    _agents: Vec<Agent>,
}

/// A page.
pub struct Place {
    /// Name of its screenshots.
    pub name: String,
    /// Path and query.
    pub path: String,
    /// Role of the user; `None` if not logged in.
    pub role: Option<Role>,
}

/// Collects pages.
#[derive(Default)]
struct Map(Vec<Place>);

impl Map {
    fn add(&mut self, role: impl Into<Option<Role>>, places: &[(&str, &str)]) {
        let role = role.into();
        self.0.extend(places.iter().map(|(name, path)| Place {
            name: (*name).to_owned(),
            path: (*path).to_owned(),
            role,
        }));
    }
}

/// Pages of things that the full site names itself.
const NAMED: [(&str, &str); 21] = [
    ("runs-view", "/runs?label=nightly"),
    ("runs-columns", "/runs?sort=-p99&columns=rps,p99,p999,submitted"),
    ("runs-found", "/runs?target=fast&verdict=valid&from=2026-01-01&q=fa&sort=rps"),
    ("runs-nothing", "/runs?target=fast&phase=lost"),
    ("experiments-label", "/experiments?label=nightly"),
    ("experiments-nothing", "/experiments?label=weekly"),
    ("new-run-knee", "/experiments/new?target=fast&size=1%2F256MiB&load=knee&until=2%25"),
    ("new-run-preset", "/experiments/new?target=fast&target=slow&size=1%2F256MiB&preset=decide"),
    ("trends-target", "/trends?target=servy"),
    ("target", "/targets/fast"),
    ("target-new-vm", "/targets/new?kind=vm"),
    (
        "target-new-faults",
        "/targets/new?toml=name+%3D+%22a+b%22%0Aversion+%3D+%22%22%0Acommand+%3D+%5B%22x%22%5D%0A%5Bready%5D%0Apath+%3D+%22x%22",
    ),
    ("target-imported", "/targets/servy"),
    ("scenario", "/scenarios/site-mix"),
    ("scenario-mine", "/scenarios/mine"),
    ("agent", "/agents/rack"),
    ("agent-away", "/agents/attic"),
    ("agent-revoke", "/agents/rack/revoke"),
    ("agent-disable", "/agents/rack/disable"),
    ("agent-remove", "/agents/attic/remove"),
    ("size-remove", "/sizes/16%20vCPU%20%2F%2016%20GiB/remove"),
];

/// Pages that need no data.
const PLAIN: [(&str, &str); 26] = [
    ("dashboard", "/"),
    ("runs", "/runs"),
    ("new-run", "/experiments/new"),
    ("experiments", "/experiments"),
    ("compare", "/compare"),
    ("baselines", "/baselines"),
    ("shares", "/shares"),
    ("gate", "/gate"),
    ("trends", "/trends"),
    ("import", "/runs/import"),
    ("targets", "/targets"),
    ("target-new", "/targets/new"),
    ("scenarios", "/scenarios"),
    ("sizes", "/sizes"),
    ("agents", "/agents"),
    ("queue", "/queue"),
    ("settings", "/settings"),
    ("webhooks", "/settings/webhooks"),
    ("account", "/account"),
    ("tokens", "/tokens"),
    ("users", "/users"),
    ("audit", "/audit"),
    ("missing", "/nowhere/to/be/found"),
    ("docs", "/docs/guide/verdict"),
    ("docs-search", "/docs/search?q=knee"),
    ("search", "/search?q=a"),
];

/// Pages of baselines, share links and gates.
const STORED_COMPARISONS: [(&str, &str); 5] = [
    ("baseline", "/baselines/main"),
    ("baseline-remove", "/baselines/main/remove"),
    ("share-revoke", "/shares/1/revoke"),
    (
        "gate-answer",
        "/gate?baseline=both&candidate=both&baseline_target=servy&candidate_target=gosherve&accept=engines\
         &fail_on=rps%3C-5%25%2C+p99%3E10%25%2C+error_rate%3E0.1%25",
    ),
    ("gate-fault", "/gate?baseline=nobody&candidate=both&fail_on=rps%3C-5%25"),
];

/// Returns a name of the maximum length.
fn long(start: &str) -> String {
    format!("{start}-{}", "and-what-else-somebody-wrote-into-the-name-".repeat(2))[..80].to_owned()
}

async fn app() -> App {
    // Leases do not expire during slow tests.
    App::with(|config| config.lease = Duration::from_hours(1)).await
}

/// Confirmation pages of an administrator.
const CONFIRMATIONS: [(&str, &str); 9] = [
    ("sessions-end", "/account/sessions/end-others"),
    ("token-revoke", "/tokens/ci/revoke"),
    ("user-reset-passkeys", "/users/Eve/reset-passkeys"),
    ("user-remove", "/users/Eve/remove"),
    ("invite-withdraw", "/users/invites/1/withdraw"),
    ("webhook", "/settings/webhooks/1"),
    ("webhook-remove", "/settings/webhooks/1/remove"),
    ("differences", "/differences"),
    ("confirm", "/confirm?next=/tokens"),
];

/// Pages that differ for a viewer.
const VIEWER: [(&str, &str); 6] = [
    ("new-run-viewer", "/experiments/new?target=fast&size=1%2F256MiB"),
    ("forbidden", "/users"),
    ("agents-viewer", "/agents"),
    ("sizes-viewer", "/sizes"),
    ("queue-viewer", "/queue"),
    ("agent-viewer", "/agents/attic"),
];

impl World {
    /// A new installation.
    pub async fn empty() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let link = app.invite(Role::Admin).await;
        map.add(None, &[("login", "/login"), ("register", &link)]);
        map.add(Role::Admin, &PLAIN);
        map.add(Role::Viewer, &[("forbidden", "/users"), ("agents-viewer", "/agents")]);
        Self { name: "empty", app, places: map.0, _agents: Vec::new() }
    }

    /// A site with all kinds of data and an active run.
    pub async fn full() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let user = app.user().await;
        users(&app).await;
        let imports = four_of_two(&user).await;
        let (changed, published) = (trend(&user).await, import_wrk(&user).await);
        let [newest, first] = revisions(&user).await;
        let open = |hello: &mut Hello| hello.load_address = Some([10, 0, 0, 5].into());
        let mut agent = Agent::start_with(&app, "rack", open).await;
        let mut away = Agent::start(&app, "attic").await;
        away.disconnect();
        let admin = app.admin().await;
        admin.put("/api/v1/agents/attic/availability", &json!({"availability": "drained"})).await.ok();
        admin.put("/api/v1/agents/attic/labels", &json!({"labels": ["arm", "old"]})).await.ok();
        raise_alert(&app, &admin).await;
        let (distributed, generators) = distributed(&app, &user, &mut agent).await;
        let plan = plan_with(&json!({"targets": ["fast", "slow"], "sizes": ["1/256MiB", "2/4GiB"], "repetitions": 4}));
        let (finished, runs) = submit(&user, &plan).await;
        for _ in &runs {
            work(&mut agent, Some(1.0)).await;
        }
        let (flawed, flawed_runs) = flawed(&user, &mut agent).await;
        let adaptive = adaptive(&user, &mut agent).await;
        let (with_profiles, runs_of_it) = profiles::experiment(&user, &mut agent, 4, 4).await;
        let [of_fast, of_slow] = ["fast", "slow"].map(|target| profiles::ids(&runs_of_it, target));
        let plan = plan_with(&json!({"targets": ["slow", "fast"], "sizes": ["4/8GiB"], "repetitions": 4,
            "name": "after the new parser", "seed": 1}));
        let (active, active_runs) = submit(&user, &plan).await;
        work(&mut agent, Some(0.8)).await;
        work(&mut agent, None).await;
        let running = measuring(&app, &user, &mut agent).await;

        annotate(&user, &format!("/api/v1/runs/{}", runs[0]), "nightly", NOTE).await;
        annotate(&user, &format!("/api/v1/experiments/{finished}"), "nightly", NOTE).await;
        let deleted = import(&user, "servy", 9, scaled(1.0)).await;
        let shared = store_and_share(&user, &imports, &deleted).await;
        user.delete(&format!("/api/v1/runs/{deleted}")).await.ok();

        let link = app.invite(Role::Viewer).await;
        map.add(None, &[("login", "/login"), ("register", &link), ("register-used", "/register?token=bbi_gone")]);
        map.add(
            None,
            &[("shared", &shared), ("shared-gone", "/shared/bbc_gone"), ("search-anonymous", "/search?q=knee")],
        );
        map.add(Role::Admin, &STORED_COMPARISONS);
        map.add(Role::Admin, &PLAIN);
        map.add(
            Role::Admin,
            &[
                ("runs-older", &format!("/runs?after={}", imports[4])),
                ("runs-label", &format!("/runs/label?runs={},{}", runs[0], runs[1])),
                ("runs-delete", &format!("/runs/delete?runs={},{}", runs[0], runs[1])),
                ("run", &format!("/runs/{}", runs[0])),
                ("run-distributed", &format!("/runs/{distributed}")),
                ("run-suspect", &format!("/runs/{}", flawed_runs[0])),
                ("run-invalid", &format!("/runs/{}", flawed_runs[1])),
                ("experiment-flawed", &format!("/experiments/{flawed}")),
                ("experiment-until", &format!("/experiments/{}", adaptive[0])),
                ("experiment-knee", &format!("/experiments/{}", adaptive[1])),
                ("experiment-profiled", &format!("/experiments/{with_profiles}")),
                ("run-profiled", &format!("/runs/{}", &of_fast[..36])),
                ("profile", &format!("/profiles?runs={of_slow}")),
                ("profile-compare", &format!("/profiles/compare?baseline={of_fast}&candidate={of_slow}")),
                ("profile-error", "/profiles?runs="),
                ("experiment-add", &format!("/experiments/{finished}/repetitions")),
                ("run-environment", &format!("/runs/{}/environment", runs[0])),
                ("run-environments", &format!("/runs/{}/environment?with={}", runs[0], runs[2])),
                ("run-environment-unknown", &format!("/runs/{}/environment?with={}", imports[0], runs[0])),
                ("run-imported", &format!("/runs/{}", imports[0])),
                ("run-failed", &format!("/runs/{}", active_runs[1])),
                ("run-running", &format!("/runs/{running}")),
                ("run-queued", &format!("/runs/{}", active_runs[7])),
                ("run-cancel", &format!("/runs/{}/cancel", active_runs[7])),
                ("run-delete", &format!("/runs/{}/delete", runs[0])),
                ("new-run-again", &format!("/experiments/new?experiment={finished}")),
                ("experiment", &format!("/experiments/{finished}")),
                ("experiment-running", &format!("/experiments/{active}")),
                ("experiment-cancel", &format!("/experiments/{active}/cancel")),
                ("compare-two", &format!("/compare?runs={},{}", imports[0], imports[1])),
                ("compare-eight", &format!("/compare?runs={}", imports.join(","))),
                ("compare-sizes", &format!("/compare?runs={}", runs.join(","))),
                ("trend", &changed),
                ("imported", &format!("/runs/imported?runs={},{}", imports[0], published)),
                ("run-published", &format!("/runs/{published}")),
                ("scenario-differences", &format!("/scenarios/mine/differences?from={first}&to={newest}")),
            ],
        );
        map.add(Role::Admin, &NAMED);
        map.add(Role::Admin, &CONFIRMATIONS);
        map.add(Role::Viewer, &VIEWER);
        Self { name: "full", app, places: map.0, _agents: generators.into_iter().chain([agent]).collect() }
    }

    /// A site whose agent generates load in a cluster: a run by twelve Pods, one by the agent's own k6, and one that
    /// lost a Pod.
    pub async fn cluster() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let user = app.user().await;
        let mut agent = cluster_load::in_cluster(&app, "bench").await;
        let mut runs = Vec::new();
        for generators in [12, 0] {
            let plan = plan_with(
                &json!({"cluster_generators": generators, "load": {"kind": "vus", "vus": 48, "duration_s": 20}}),
            );
            runs.extend(submit(&user, &plan).await.1);
            cluster_load::finish(&mut agent).await;
        }
        let replicated = submit(&user, &plan_with(&json!({"sizes": ["3x1/1GiB"]}))).await.1.remove(0);
        cluster_load::finish(&mut agent).await;
        let plan = json!({"cluster_generators": 2, "retries": 0, "load": {"kind": "vus", "vus": 8, "duration_s": 20}});
        let failed = submit(&user, &plan_with(&plan)).await.1.remove(0);
        cluster_load::lose(&mut agent).await;
        map.add(
            Role::Admin,
            &[
                ("new-run-pods", "/experiments/new?target=fast&size=2%2F4GiB&generators=12"),
                ("new-run-pods-fault", "/experiments/new?target=fast&size=2%2F4GiB&generators=many"),
                ("agent-pods", "/agents/bench"),
                ("sizes-replicas", "/sizes"),
                ("run-replicas", &format!("/runs/{replicated}")),
                ("run-pods", &format!("/runs/{}", runs[0])),
                ("run-pods-environment", &format!("/runs/{}/environment", runs[0])),
                ("run-pods-failed", &format!("/runs/{failed}")),
                ("runs-pods", "/runs"),
                ("compare-pods", &format!("/compare?runs={},{}", runs[0], runs[1])),
            ],
        );
        Self { name: "cluster", app, places: map.0, _agents: vec![agent] }
    }

    /// A site with names of 80 characters, values of ten digits and a comparison of forty targets.
    pub async fn oversized() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let user = app.user().await;
        let [name, other] = ["first", "second"].map(long);
        let admin = app.signed_in_as(&"W".repeat(64), Role::Admin, now_ms() + 86_400_000).await;
        admin.post("/api/v1/tokens", &json!({"name": long("token"), "scope": "read"})).await.ok();
        admin.post("/api/v1/sizes", &json!({"name": long("size"), "vcpus": 0.1, "memory": "1099511627775"})).await;
        let scenario = json!({"name": long("scenario"), "script": format!("// {}\n{SCRIPT}", "long ".repeat(60)),
            "files": {"x.json": "[]"}, "defaults": {"A_PARAMETER_WITH_A_LONG_NAME": "v".repeat(300)}});
        user.post("/api/v1/scenarios", &scenario).await.ok();
        let mut many = Vec::new();
        for number in 0..40 {
            let target = if number % 8 == 0 { long(&format!("t{number}")) } else { format!("target-{number}") };
            let faster = 1.0 + f64::from(number * number % 37) / 20.0;
            many.push(import(&user, &target, 1, scaled(faster)).await);
        }
        let mut huge = Vec::new();
        for (target, faster) in [(&name, 99_000.0), (&other, 0.000_02)] {
            for repetition in 1..=3 {
                huge.push(import(&user, target, repetition, scaled(faster * f64::from(repetition))).await);
            }
        }
        let checking = import(&user, &name, 9, good_checking(&"y".repeat(300))).await;
        let odd = import(&user, "odd", 1, fixture("handle-summary-odd-v1.8.1")).await;
        let down = import(&user, "down", 1, fixture("summary-export-target-down-v1.8.1")).await;
        let mut agent = Agent::start_with(&app, &long("agent"), |hello| {
            hello.machine.kernel = format!("Linux {}", "6.12-".repeat(20));
            hello.machine.hostname = long("host");
            hello.machine.cores = 1024;
            hello.machine.memory_bytes = u64::MAX >> 12;
            hello.machine.cpu = Mechanism::None;
            for target in &mut hello.targets {
                (target.name, target.version) = (long(&target.name), "1.2.3-".repeat(12));
                target.description = "described at length, ".repeat(12);
            }
        })
        .await;
        let plan = plan_with(&json!({"targets": [long("fast"), long("slow")], "sizes": ["1/256MiB", "16/16GiB"],
            "repetitions": 10, "name": "n".repeat(80)}));
        let (experiment, runs) = submit(&user, &plan).await;
        work(&mut agent, Some(50_000.0)).await;
        work(&mut agent, None).await;
        work(&mut agent, Some(1.0)).await;
        let _job = agent.job().await;
        let (label, note) = ("l".repeat(40), format!("{}\n\n| a | b |\n|---|---|\n| {0} | 1 |", "word".repeat(90)));
        for path in [format!("/api/v1/runs/{}", huge[0]), format!("/api/v1/experiments/{experiment}")] {
            annotate(&user, &path, &label, &note).await;
        }
        user.put(&format!("/api/v1/baselines/{}", long("baseline")), &json!({"runs": huge})).await.ok();
        let shared = share(&user, &huge).await;

        map.add(None, &[("shared", &shared)]);
        map.add(Role::Admin, &PLAIN[..21]);
        let agent_path = format!("/agents/{}", agent.name);
        map.add(
            Role::Admin,
            &[
                ("runs-found", &format!("/runs?target={name}&label={label}&q={name}")),
                ("runs-label", &format!("/runs/label?runs={}", huge[0])),
                ("run", &format!("/runs/{}", runs[0])),
                ("run-failed", &format!("/runs/{}", runs[1])),
                ("run-environments", &format!("/runs/{}/environment?with={}", runs[0], runs[2])),
                ("run-huge", &format!("/runs/{}", huge[0])),
                ("run-slow", &format!("/runs/{}", huge[3])),
                ("run-checking", &format!("/runs/{checking}")),
                ("run-odd", &format!("/runs/{odd}")),
                ("run-down", &format!("/runs/{down}")),
                ("new-run-again", &format!("/experiments/new?experiment={experiment}")),
                ("experiment", &format!("/experiments/{experiment}")),
                ("compare-two", &format!("/compare?runs={},{}", huge[0], huge[3])),
                ("compare-six", &format!("/compare?runs={}", huge.join(","))),
                ("compare-forty", &format!("/compare?runs={}", many.join(","))),
                ("baseline", &format!("/baselines/{}", long("baseline"))),
                ("target", &format!("/targets/{}", long("fast"))),
                (
                    "target-new-too-long",
                    &format!("/targets/new?toml=name+%3D+%22{0}%22%0Aversion+%3D+%22{0}%22", "n".repeat(2_000)),
                ),
                ("target-imported", &format!("/targets/{name}")),
                ("scenario", &format!("/scenarios/{}", long("scenario"))),
                ("agent", &agent_path),
                ("agent-revoke", &format!("{agent_path}/revoke")),
                ("token-revoke", &format!("/tokens/{}/revoke", long("token"))),
                ("user-remove", &format!("/users/{}/remove", "W".repeat(64))),
                ("missing", &format!("/{}", "nowhere".repeat(30))),
            ],
        );
        Self { name: "oversized", app, places: map.0, _agents: vec![agent] }
    }
}

const NOTE: &str = "# After the upgrade\n\nThe *first* with `6.12`, see [the ticket](https://example.org/7).\n\n- same switch\n\n\
    | kernel | p99 |\n|---|---|\n| 6.1 | 4 ms |\n";

/// Finishes a distributed run with two generators. Returns its id and the generators.
async fn distributed(app: &App, user: &Actor, host: &mut Agent) -> (String, Vec<Agent>) {
    let mut generators = Vec::new();
    for name in ["load-1", "load-2"] {
        generators.push(Agent::start_with(app, name, |hello| hello.targets.clear()).await);
    }
    let (_, runs) = submit(user, &plan_with(&json!({"generators": ["load-1", "load-2"], "retries": 0}))).await;
    let job = host.job().await;
    host.end(host_outcome(&job)).await;
    for (generator, faster) in generators.iter_mut().zip([1.0, 0.5]) {
        let job = generator.job().await;
        generator.end(generator_outcome(&job, &scaled(faster), 0)).await;
    }
    assert_eq!(user.run(&runs[0]).await["phase"], "finished");
    (runs[0].clone(), generators)
}

/// Raises an alert about an absent agent, and tests a webhook that cannot be delivered.
async fn raise_alert(app: &App, admin: &Actor) {
    admin.put("/api/v1/alert-rule", &json!({"agent_away_s": 1, "queue_standstill_s": 2_000_000})).await.ok();
    admin.post("/api/v1/webhooks", &json!({"url": "https://localhost:9/hooks/brewbench"})).await.ok();
    admin.post("/api/v1/webhooks/1/test", &()).await.ok();
    let raised = async || {
        let alerts = admin.get("/api/v1/alerts").await.ok().json();
        alerts["alerts"].as_array().is_some_and(|alerts| !alerts.is_empty()).then_some(())
    };
    app.until("an alert", raised).await;
}

/// Saves two baselines, one with a run that is deleted later, and creates a share link. Returns its path.
async fn store_and_share(user: &Actor, imports: &[String], deleted: &str) -> String {
    let with_deleted: Vec<&str> = imports.iter().map(String::as_str).chain([deleted]).collect();
    user.put("/api/v1/baselines/main", &json!({"runs": with_deleted})).await.ok();
    user.put("/api/v1/baselines/both", &json!({"runs": imports})).await.ok();
    share(user, imports).await
}

/// Creates a share link to a comparison of runs. Returns its path.
async fn share(user: &Actor, runs: &[String]) -> String {
    let link = json!({"query": format!("runs={}", runs.join(",")), "expires_in_days": 30});
    let url = text(&user.post("/api/v1/shares", &link).await.ok().json()["url"]);
    url[url.find("/shared/").expect("a share link")..].to_owned()
}

/// Imports four repetitions of two targets.
async fn four_of_two(user: &Actor) -> Vec<String> {
    let mut imports = Vec::new();
    for repetition in 1..=4 {
        let wobble = 1.0 + 0.004 * f64::from(repetition);
        for (target, faster) in [("gosherve", 0.71), ("servy", 0.93)] {
            imports.push(import(user, target, repetition, scaled(faster * wobble)).await);
        }
    }
    imports
}

/// Uploads a scenario in two revisions. Returns the newer one and the older one.
async fn revisions(user: &Actor) -> [String; 2] {
    for script in ["// asks for one file\n", "// asks for two\n"] {
        let script = format!("import http from 'k6/http';\n{script}{SCRIPT}");
        let scenario = json!({"name": "mine", "script": script, "files": {"paths.json": "[\"/\", \"/a\"]"},
            "defaults": {"PAYLOAD": "1k"}});
        user.post("/api/v1/scenarios", &scenario).await.ok();
    }
    let stored = user.get("/api/v1/scenarios/mine/revisions").await.ok().json()["revisions"].clone();
    [0, 1].map(|place| text(&stored[place]["sha256"]))
}

/// Imports the runs of a cell with two change points, and confirms the first. Returns the path of its trend.
async fn trend(user: &Actor) -> String {
    for (count, faster) in [(12, 1.0), (12, 0.9), (8, 1.04)] {
        for place in 0..count {
            let wobble = 1.0 + 0.004 * (f64::from(place * 7919 % 13) - 6.0) / 6.0;
            import(user, "old-timer", 1, scaled(faster * wobble)).await;
        }
    }
    let list = user.get("/api/v1/trends?target=old-timer").await.ok().json();
    let path = format!("/trends/old-timer/{}", text(&list["trends"][0]["cell"]["id"]));
    let changes = user.get(&format!("/api/v1{path}")).await.ok().json()["changes"].take();
    let at = format!("/api/v1{path}/changes/{}", text(&changes[0]["run"]));
    user.put(&at, &json!({"status": "confirmed", "note": "the new parser"})).await.ok();
    path
}

/// Imports a run of wrk in which most requests failed.
async fn import_wrk(user: &Actor) -> String {
    let path = root().join("samples/published/wrk-kcup-go-fasthttp-1M.txt");
    let output = std::fs::read_to_string(path).expect("a sample");
    import(user, "kcup", 1, output).await
}

/// Adds a label and a note to a run or an experiment.
async fn annotate(user: &Actor, path: &str, label: &str, note: &str) {
    user.put(&format!("{path}/labels/{label}"), &()).await.ok();
    user.put(&format!("{path}/note"), &json!({"note": note})).await.ok();
}

const SCRIPT: &str = "export const options = { vus: 10, duration: '30s' };\n
export default function () {\n  http.get(`${__ENV.BASE_URL}/?n=${__ENV.PAYLOAD}`);\n}\n";

/// Creates users, tokens and invitations, and their entries in the audit log.
async fn users(app: &App) {
    let admin = app.admin().await;
    let eve = app.signed_in_as("Eve", Role::Member, now_ms() + 86_400_000).await;
    app.signed_in_as("Grace", Role::Viewer, now_ms() + 86_400_000).await;
    eve.post("/api/v1/tokens", &json!({"name": "ci", "scope": "submit", "expires_in_days": 30})).await.ok();
    eve.post("/api/v1/tokens", &json!({"name": "laptop", "scope": "read"})).await.ok();
    admin.delete("/api/v1/tokens/laptop").await.ok();
    admin.post("/api/v1/invites", &json!({"user": "Eve", "resets_passkeys": true})).await.ok();
    app.invite(Role::Member).await;
}

/// Finishes the next job with a result `faster` times as fast as the fixture, or fails it.
async fn work(agent: &mut Agent, faster: Option<f64>) {
    let job = agent.job().await;
    let Some(faster) = faster else {
        let reason = "target died during the measurement: exit status 101\nthread 'main' panicked at src/main.rs:7";
        return agent
            .end(Outcome {
                ended: Ended::Failed { reason: reason.to_owned(), cause: Cause::Other },
                summary: None,
                ..outcome(&job, "")
            })
            .await;
    };
    let own = if job.spec.target.starts_with("fast") { 1.3 } else { 1.0 };
    let wobble = 1.0 + (now_ms() % 100) as f64 / 20_000.0;
    let summary = scaled(faster * own * wobble * job.spec.size.as_ref().expect("a size").vcpus.sqrt());
    let observed = Observed {
        cpu_us: Some(2_940_000),
        throttled_us: Some(61_000),
        peak_memory_bytes: Some(154 << 20),
        oom_kills: Some(0),
    };
    agent.end(Outcome { observed: Some(observed), ..outcome(&job, &summary) }).await;
}

/// Finishes an experiment with a suspect and an invalid run. Returns its id and theirs. Its scenario has limits.
async fn flawed(user: &Actor, agent: &mut Agent) -> (String, Vec<String>) {
    let (experiment, runs) = submit(user, &plan_with(&json!({"repetitions": 2, "retries": 0}))).await;
    for change in [make_suspect, make_invalid] {
        let job = agent.job().await;
        let mut outcome = outcome(&job, &scaled(1.0));
        change(&mut outcome);
        agent.end(outcome).await;
    }
    let limits = json!({"limits": {"too_short": 5, "generator_busy": 0.95}});
    user.put("/api/v1/scenarios/mine/limits", &limits).await.ok();
    (experiment, runs)
}

/// Finishes two experiments: one with adaptive repetitions, and a knee search. Returns their ids.
async fn adaptive(user: &Actor, agent: &mut Agent) -> [String; 2] {
    let until = json!({"targets": ["fast", "slow"], "repetitions": 4, "name": "until it is known",
        "stopping_rule": {"narrower_than": 0.5, "at_most": 6}});
    let (until, runs) = submit(user, &plan_with(&until)).await;
    for _ in &runs {
        work(agent, Some(1.0)).await;
    }
    let knee = json!({"objective": "p99<1s, failures<0.1%", "from": 10_000, "to": 40_000, "duration_s": 1.0,
        "precision": 0.5});
    let mut plan = plan_with(&json!({"knee": knee, "name": "the knee of fast"}));
    plan.as_object_mut().expect("fields").remove("load");
    let (knee, runs) = submit(user, &plan).await;
    for _ in &runs {
        work(agent, Some(1.0)).await;
    }
    [until, knee]
}

/// k6 used all its CPU, and another process was busy.
fn make_suspect(outcome: &mut Outcome) {
    let mut series = matching_series(&scaled(1.0)).unpack().expect("a series");
    for usage in series.measured.iter_mut().flat_map(|window| window.usage.iter_mut().skip(1)) {
        (usage.generator.cpu_us, usage.target.cpu_us) = (Some(970_000), Some(330_000));
        (usage.host.user_us, usage.host.steal_us) = (1_900_000, 140_000);
    }
    outcome.series = Some(Packed::pack(&series));
}

/// The target was restarted and then responded differently; the time series is missing.
fn make_invalid(outcome: &mut Outcome) {
    outcome.series = None;
    outcome.conditions.processes = Some(4);
    outcome.conditions.processes_gone = Some(4);
    outcome.conditions.response_change = Some("status 500 instead of 200".to_owned());
}

/// Brings the agent's next run twenty seconds into its measurement. Returns its id.
async fn measuring(app: &App, user: &Actor, agent: &mut Agent) -> String {
    let job = agent.job().await;
    agent.enter(job.run, Phase::Preparing);
    agent.enter(job.run, Phase::Measuring);
    agent.send_message(&AgentMessage::Series(Box::new(delta(job.run, WindowKind::WarmUp, 1..=3))));
    agent.send_message(&AgentMessage::Series(Box::new(delta(job.run, WindowKind::Measured, 1..=20))));
    let id = job.run.to_string();
    app.until("a run in phase measuring", async || (user.run(&id).await["phase"] == "measuring").then_some(())).await;
    id
}

/// Creates a user with a role, a realistic name, and pinned trends if that user may pin by API. Returns a client with a
/// session.
pub async fn sign_in(app: &App, role: Role) -> Actor {
    let user = new_user(app, role).await;
    if role != Role::Viewer {
        let list = user.get("/api/v1/trends").await.ok().json();
        for trend in list["trends"].as_array().expect("trends").iter().rev().take(4) {
            let cell = &trend["cell"];
            let target = brewbench::web::address::segment(&text(&cell["target"]));
            user.put(&format!("/api/v1/trends/{target}/{}/pin", text(&cell["id"])), &()).await.ok();
        }
    }
    user
}

async fn new_user(app: &App, role: Role) -> Actor {
    let name = match role {
        Role::Admin => "Ada",
        Role::Member => "Mary",
        Role::Viewer => "Hedy",
    };
    app.signed_in_as(name, role, now_ms() + 86_400_000).await
}
