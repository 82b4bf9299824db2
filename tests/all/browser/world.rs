//! The site as people meet it: with nothing in it, with a team's work, and with names and figures that fit nowhere.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_agent::wire::{
    Phase,
    messages::{AgentMessage, Hello},
    now_ms,
    outcome::{Cause, Ended, Mechanism, Observed, Outcome},
    series::{Packed, Part},
};
use serde_json::json;

use super::bring;
use crate::harness::{
    Actor, Agent, App,
    agent::outcome,
    crew::{of_generator, of_host},
    series::{fitting, portion},
    submit::{plan_with, submit, text},
    summaries::{fixture, good_checking, scaled},
};

/// A server with something on it, and the pages that there are to see.
pub struct World {
    /// What it is called in the names of pictures.
    pub name: &'static str,
    /// The server.
    pub app: App,
    /// Its pages.
    pub places: Vec<Place>,
    /// They stay connected, and work on what they were given last.
    _agents: Vec<Agent>,
}

/// A page.
pub struct Place {
    /// What it is called in the names of pictures.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Who looks at it; nobody is not logged in.
    pub who: Option<Role>,
}

/// Gathers places.
#[derive(Default)]
struct Map(Vec<Place>);

impl Map {
    fn add(&mut self, who: impl Into<Option<Role>>, places: &[(&str, &str)]) {
        let who = who.into();
        self.0.extend(places.iter().map(|(name, path)| Place {
            name: (*name).to_owned(),
            path: (*path).to_owned(),
            who,
        }));
    }
}

/// The pages that need nothing to be there.
const PLAIN: [(&str, &str); 22] = [
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
    ("scenarios", "/scenarios"),
    ("sizes", "/sizes"),
    ("agents", "/agents"),
    ("queue", "/queue"),
    ("settings", "/settings"),
    ("webhooks", "/settings/webhooks"),
    ("account", "/account"),
    ("tokens", "/tokens"),
    ("people", "/people"),
    ("audit", "/audit"),
    ("missing", "/nowhere/to/be/found"),
];

/// Where comparisons are kept, judged and passed on.
const PASSED_ON: [(&str, &str); 5] = [
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

/// What a name may be at most.
fn long(start: &str) -> String {
    format!("{start}-{}", "and-what-else-somebody-wrote-into-the-name-".repeat(2))[..80].to_owned()
}

async fn app() -> App {
    // What an agent was given stays given, however long the looking takes.
    App::with(|config| config.lease = Duration::from_hours(1)).await
}

/// What an administrator is asked before something ends.
const ENDS: [(&str, &str); 9] = [
    ("sessions-end", "/account/sessions/end-others"),
    ("token-revoke", "/tokens/ci/revoke"),
    ("person-mend", "/people/Eve/mend"),
    ("person-remove", "/people/Eve/remove"),
    ("invite-withdraw", "/people/invites/1/withdraw"),
    ("webhook", "/settings/webhooks/1"),
    ("webhook-remove", "/settings/webhooks/1/remove"),
    ("differences", "/differences"),
    ("confirm", "/confirm?next=/tokens"),
];

/// What looks another way to who may only read.
const OF_A_VIEWER: [(&str, &str); 5] = [
    ("forbidden", "/people"),
    ("agents-viewer", "/agents"),
    ("sizes-viewer", "/sizes"),
    ("queue-viewer", "/queue"),
    ("agent-viewer", "/agents/attic"),
];

impl World {
    /// The day after the installation.
    pub async fn empty() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let link = app.invite(Role::Admin).await;
        map.add(None, &[("login", "/login"), ("register", &link)]);
        map.add(Role::Admin, &PLAIN);
        map.add(Role::Viewer, &[("forbidden", "/people"), ("agents-viewer", "/agents")]);
        Self { name: "empty", app, places: map.0, _agents: Vec::new() }
    }

    /// A team's work: all that can be there, and a run that goes on.
    pub async fn full() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let user = app.user().await;
        people(&app).await;
        let imports = four_of_two(&user).await;
        let (changed, published) = (history(&user).await, publish(&user).await);
        let [newest, first] = revisions(&user).await;
        let open = |hello: &mut Hello| hello.load_address = Some([10, 0, 0, 5].into());
        let mut agent = Agent::start_with(&app, "rack", open).await;
        let mut away = Agent::start(&app, "attic").await;
        away.hang_up();
        let admin = app.admin().await;
        admin.put("/api/v1/agents/attic/standing", &json!({"standing": "drained"})).await.ok();
        admin.put("/api/v1/agents/attic/labels", &json!({"labels": ["arm", "old"]})).await.ok();
        alarmed(&app, &admin).await;
        let (together, generators) = together(&app, &user, &mut agent).await;
        let plan = plan_with(&json!({"targets": ["fast", "slow"], "sizes": ["1/256MiB", "2/4GiB"], "repetitions": 4}));
        let (done, runs) = submit(&user, &plan).await;
        for _ in &runs {
            work(&mut agent, Some(1.0)).await;
        }
        let (doubted, doubtful) = doubts(&user, &mut agent).await;
        let deciding = deciding(&user, &mut agent).await;
        let plan = plan_with(&json!({"targets": ["slow", "fast"], "sizes": ["4/8GiB"], "repetitions": 4,
            "name": "after the new parser", "seed": 1}));
        let (going, others) = submit(&user, &plan).await;
        work(&mut agent, Some(0.8)).await;
        work(&mut agent, None).await;
        let running = measuring(&app, &user, &mut agent).await;

        remark(&user, &format!("/api/v1/runs/{}", runs[0]), "nightly", NOTE).await;
        remark(&user, &format!("/api/v1/experiments/{done}"), "nightly", NOTE).await;
        user.put("/api/v1/views/nightly", &json!({"query": "label=nightly"})).await.ok();
        user.put("/api/v1/views/slow%20ones", &json!({"query": "sort=-p99&columns=rps,p99,p999,submitted"})).await.ok();
        let deleted = bring(&user, "servy", 9, scaled(1.0)).await;
        let shared = pass_on(&user, &imports, &deleted).await;
        user.delete(&format!("/api/v1/runs/{deleted}")).await.ok();

        let link = app.invite(Role::Viewer).await;
        map.add(None, &[("login", "/login"), ("register", &link), ("register-used", "/register?token=bbi_gone")]);
        map.add(None, &[("shared", &shared), ("shared-gone", "/shared/bbc_gone")]);
        map.add(Role::Admin, &PASSED_ON);
        map.add(Role::Admin, &PLAIN);
        map.add(
            Role::Admin,
            &[
                ("runs-older", &format!("/runs?before={}", imports[4])),
                ("runs-view", "/runs?label=nightly"),
                ("runs-columns", "/runs?sort=-p99&columns=rps,p99,p999,submitted"),
                ("runs-found", "/runs?target=fast&verdict=valid&from=2026-01-01&q=fa&sort=rps"),
                ("runs-nothing", "/runs?target=fast&phase=lost"),
                ("runs-label", &format!("/runs/label?runs={},{}", runs[0], runs[1])),
                ("runs-delete", &format!("/runs/delete?runs={},{}", runs[0], runs[1])),
                ("view-remove", "/runs/views/remove?name=nightly"),
                ("experiments-label", "/experiments?label=nightly"),
                ("experiments-nothing", "/experiments?label=weekly"),
                ("run", &format!("/runs/{}", runs[0])),
                ("run-together", &format!("/runs/{together}")),
                ("run-suspect", &format!("/runs/{}", doubtful[0])),
                ("run-invalid", &format!("/runs/{}", doubtful[1])),
                ("experiment-doubted", &format!("/experiments/{doubted}")),
                ("experiment-until", &format!("/experiments/{}", deciding[0])),
                ("experiment-knee", &format!("/experiments/{}", deciding[1])),
                ("experiment-add", &format!("/experiments/{done}/repetitions")),
                ("new-run-knee", "/experiments/new?target=fast&size=1%2F256MiB&load=knee&until=2%25"),
                ("run-environment", &format!("/runs/{}/environment", runs[0])),
                ("run-environments", &format!("/runs/{}/environment?with={}", runs[0], runs[2])),
                ("run-environment-unknown", &format!("/runs/{}/environment?with={}", imports[0], runs[0])),
                ("run-imported", &format!("/runs/{}", imports[0])),
                ("run-failed", &format!("/runs/{}", others[1])),
                ("run-running", &format!("/runs/{running}")),
                ("run-queued", &format!("/runs/{}", others[7])),
                ("run-cancel", &format!("/runs/{}/cancel", others[7])),
                ("run-delete", &format!("/runs/{}/delete", runs[0])),
                ("new-run-again", &format!("/experiments/new?experiment={done}")),
                ("experiment", &format!("/experiments/{done}")),
                ("experiment-running", &format!("/experiments/{going}")),
                ("experiment-cancel", &format!("/experiments/{going}/cancel")),
                ("compare-two", &format!("/compare?runs={},{}", imports[0], imports[1])),
                ("compare-eight", &format!("/compare?runs={}", imports.join(","))),
                ("compare-sizes", &format!("/compare?runs={}", runs.join(","))),
                ("trends-target", "/trends?target=servy"),
                ("trend", &changed),
                ("imported", &format!("/runs/imported?runs={},{}", imports[0], published)),
                ("run-published", &format!("/runs/{published}")),
                ("target", "/targets/fast"),
                ("target-imported", "/targets/servy"),
                ("scenario", "/scenarios/site-mix"),
                ("scenario-mine", "/scenarios/mine"),
                ("scenario-differences", &format!("/scenarios/mine/differences?from={first}&to={newest}")),
                ("agent", "/agents/rack"),
                ("agent-away", "/agents/attic"),
                ("agent-revoke", "/agents/rack/revoke"),
                ("agent-disable", "/agents/rack/disable"),
                ("agent-forget", "/agents/attic/forget"),
                ("size-remove", "/sizes/16%20vCPU%20%2F%2016%20GiB/remove"),
            ],
        );
        map.add(Role::Admin, &ENDS);
        map.add(Role::Viewer, &OF_A_VIEWER);
        Self { name: "full", app, places: map.0, _agents: generators.into_iter().chain([agent]).collect() }
    }

    /// Names of 80 letters, figures of ten digits, forty targets side by side.
    pub async fn ugly() -> Self {
        let (app, mut map) = (app().await, Map::default());
        let user = app.user().await;
        let [name, other] = ["first", "second"].map(long);
        let person = app.named(&"W".repeat(64), Role::Admin, now_ms() + 86_400_000).await;
        person.post("/api/v1/tokens", &json!({"name": long("token"), "scope": "read"})).await.ok();
        person.post("/api/v1/sizes", &json!({"name": long("size"), "vcpus": 0.1, "memory": "1099511627775"})).await;
        let scenario = json!({"name": long("scenario"), "script": format!("// {}\n{SCRIPT}", "long ".repeat(60)),
            "files": {"x.json": "[]"}, "defaults": {"A_PARAMETER_WITH_A_LONG_NAME": "v".repeat(300)}});
        user.post("/api/v1/scenarios", &scenario).await.ok();
        let mut many = Vec::new();
        for number in 0..40 {
            let target = if number % 8 == 0 { long(&format!("t{number}")) } else { format!("target-{number}") };
            let faster = 1.0 + f64::from(number * number % 37) / 20.0;
            many.push(bring(&user, &target, 1, scaled(faster)).await);
        }
        let mut huge = Vec::new();
        for (target, faster) in [(&name, 99_000.0), (&other, 0.000_02)] {
            for repetition in 1..=3 {
                huge.push(bring(&user, target, repetition, scaled(faster * f64::from(repetition))).await);
            }
        }
        let checking = bring(&user, &name, 9, good_checking(&"y".repeat(300))).await;
        let odd = bring(&user, "odd", 1, fixture("handle-summary-odd-v1.8.1")).await;
        let down = bring(&user, "down", 1, fixture("summary-export-target-down-v1.8.1")).await;
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
            remark(&user, &path, &label, &note).await;
        }
        user.put(&format!("/api/v1/views/{}", long("view")), &json!({"query": format!("target={name}")})).await.ok();
        user.put(&format!("/api/v1/baselines/{}", long("baseline")), &json!({"runs": huge})).await.ok();
        let shared = share(&user, &huge).await;

        map.add(None, &[("shared", &shared)]);
        map.add(Role::Admin, &PLAIN[..20]);
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
                ("target-imported", &format!("/targets/{name}")),
                ("scenario", &format!("/scenarios/{}", long("scenario"))),
                ("agent", &agent_path),
                ("agent-revoke", &format!("{agent_path}/revoke")),
                ("token-revoke", &format!("/tokens/{}/revoke", long("token"))),
                ("person-remove", &format!("/people/{}/remove", "W".repeat(64))),
                ("missing", &format!("/{}", "nowhere".repeat(30))),
            ],
        );
        Self { name: "ugly", app, places: map.0, _agents: vec![agent] }
    }
}

const NOTE: &str = "# After the upgrade\n\nThe *first* with `6.12`, see [the ticket](https://example.org/7).\n\n- same switch\n\n\
    | kernel | p99 |\n|---|---|\n| 6.1 | 4 ms |\n";

/// A run whose load comes from two others, who have no targets; gives it and them.
async fn together(app: &App, user: &Actor, host: &mut Agent) -> (String, Vec<Agent>) {
    let mut generators = Vec::new();
    for name in ["load-1", "load-2"] {
        generators.push(Agent::start_with(app, name, |hello| hello.targets.clear()).await);
    }
    let (_, runs) = submit(user, &plan_with(&json!({"generators": ["load-1", "load-2"], "retries": 0}))).await;
    let job = host.job().await;
    host.end(of_host(&job)).await;
    for (generator, faster) in generators.iter_mut().zip([1.0, 0.5]) {
        let job = generator.job().await;
        generator.end(of_generator(&job, &scaled(faster), 0)).await;
    }
    assert_eq!(user.run(&runs[0]).await["phase"], "finished");
    (runs[0].clone(), generators)
}

/// Somebody is missed, and a webhook that goes nowhere was tried.
async fn alarmed(app: &App, admin: &Actor) {
    admin.put("/api/v1/alert-rule", &json!({"agent_away_s": 1, "queue_standstill_s": 2_000_000})).await.ok();
    admin.post("/api/v1/webhooks", &json!({"url": "https://localhost:9/hooks/brewbench"})).await.ok();
    admin.post("/api/v1/webhooks/1/test", &()).await.ok();
    let raised = async || {
        let alerts = admin.get("/api/v1/alerts").await.ok().json();
        alerts["alerts"].as_array().is_some_and(|alerts| !alerts.is_empty()).then_some(())
    };
    app.until("an alert", raised).await;
}

/// Two baselines, one of them with a run that was deleted since, and a link; gives its path.
async fn pass_on(user: &Actor, imports: &[String], deleted: &str) -> String {
    let kept: Vec<&str> = imports.iter().map(String::as_str).chain([deleted]).collect();
    user.put("/api/v1/baselines/main", &json!({"runs": kept})).await.ok();
    user.put("/api/v1/baselines/both", &json!({"runs": imports})).await.ok();
    share(user, imports).await
}

/// The path of a new link to the comparison of some runs.
async fn share(user: &Actor, runs: &[String]) -> String {
    let asked = json!({"query": format!("runs={}", runs.join(",")), "expires_in_days": 30});
    let url = text(&user.post("/api/v1/shares", &asked).await.ok().json()["url"]);
    url[url.find("/shared/").expect("a link")..].to_owned()
}

/// Four repetitions of two targets that were measured somewhere else.
async fn four_of_two(user: &Actor) -> Vec<String> {
    let mut imports = Vec::new();
    for repetition in 1..=4 {
        let wobble = 1.0 + 0.004 * f64::from(repetition);
        for (target, faster) in [("gosherve", 0.71), ("servy", 0.93)] {
            imports.push(bring(user, target, repetition, scaled(faster * wobble)).await);
        }
    }
    imports
}

/// A scenario of somebody's own in two revisions; gives the newer one and the first.
async fn revisions(user: &Actor) -> [String; 2] {
    for script in ["// asks for one file\n", "// asks for two\n"] {
        let script = format!("import http from 'k6/http';\n{script}{SCRIPT}");
        let scenario = json!({"name": "mine", "script": script, "files": {"paths.json": "[\"/\", \"/a\"]"},
            "defaults": {"PAYLOAD": "1k"}});
        user.post("/api/v1/scenarios", &scenario).await.ok();
    }
    let kept = user.get("/api/v1/scenarios/mine/revisions").await.ok().json()["revisions"].clone();
    [0, 1].map(|place| text(&kept[place]["sha256"]))
}

/// A cell that changed twice, once for the worse and confirmed; gives its page.
async fn history(user: &Actor) -> String {
    for (count, faster) in [(12, 1.0), (12, 0.9), (8, 1.04)] {
        for place in 0..count {
            let wobble = 1.0 + 0.004 * (f64::from(place * 7919 % 13) - 6.0) / 6.0;
            bring(user, "old-timer", 1, scaled(faster * wobble)).await;
        }
    }
    let list = user.get("/api/v1/trends?target=old-timer").await.ok().json();
    let path = format!("/trends/old-timer/{}", text(&list["trends"][0]["cell"]["id"]));
    let trend = user.get(&format!("/api/v1{path}")).await.ok().json();
    let at = format!("/api/v1{path}/changes/{}", text(&trend["changes"][0]["run"]));
    user.put(&at, &json!({"ruling": "confirmed", "note": "the new parser"})).await.ok();
    path
}

/// A run that wrk made somewhere else, and that went badly.
async fn publish(user: &Actor) -> String {
    let path = format!("{}/samples/published/wrk-kcup-go-fasthttp-1M.txt", env!("CARGO_MANIFEST_DIR"));
    let output = std::fs::read_to_string(path).expect("a sample");
    bring(user, "kcup", 1, output).await
}

/// Says something of a run or an experiment.
async fn remark(user: &Actor, path: &str, label: &str, note: &str) {
    user.put(&format!("{path}/labels/{label}"), &()).await.ok();
    user.put(&format!("{path}/note"), &json!({"note": note})).await.ok();
}

const SCRIPT: &str = "export const options = { vus: 10, duration: '30s' };\n
export default function () {\n  http.get(`${__ENV.BASE_URL}/?n=${__ENV.PAYLOAD}`);\n}\n";

/// Accounts, tokens, keys and invitations, and what the audit log says of them.
async fn people(app: &App) {
    let admin = app.admin().await;
    let eve = app.named("Eve", Role::Member, now_ms() + 86_400_000).await;
    app.named("Grace", Role::Viewer, now_ms() + 86_400_000).await;
    eve.post("/api/v1/tokens", &json!({"name": "ci", "scope": "submit", "expires_in_days": 30})).await.ok();
    eve.post("/api/v1/tokens", &json!({"name": "laptop", "scope": "read"})).await.ok();
    admin.delete("/api/v1/tokens/laptop").await.ok();
    admin.post("/api/v1/invites", &json!({"person": "Eve", "ends_passkeys": true})).await.ok();
    app.invite(Role::Member).await;
}

/// Does the next job: with figures so many times those of the fixture, or else it fails.
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
    let own = if job.target.starts_with("fast") { 1.3 } else { 1.0 };
    let wobble = 1.0 + (now_ms() % 100) as f64 / 20_000.0;
    let summary = scaled(faster * own * wobble * job.size.vcpus.sqrt());
    let observed = Observed {
        cpu_us: Some(2_940_000),
        throttled_us: Some(61_000),
        peak_memory_bytes: Some(154 << 20),
        oom_kills: Some(0),
    };
    agent.end(Outcome { observed: Some(observed), ..outcome(&job, &summary) }).await;
}

/// An experiment of a suspect and of an invalid run: its id and theirs. Their scenario has limits of its own.
async fn doubts(user: &Actor, agent: &mut Agent) -> (String, Vec<String>) {
    let (experiment, runs) = submit(user, &plan_with(&json!({"repetitions": 2, "retries": 0}))).await;
    for change in [doubt, ruin] {
        let job = agent.job().await;
        let mut outcome = outcome(&job, &scaled(1.0));
        change(&mut outcome);
        agent.end(outcome).await;
    }
    let limits = json!({"limits": {"too_short": 5, "generator_busy": 0.95}});
    user.put("/api/v1/scenarios/mine/limits", &limits).await.ok();
    (experiment, runs)
}

/// Experiments that decide by themselves how long they go on, both at their end: until the difference is known, and
/// until the knee is found.
async fn deciding(user: &Actor, agent: &mut Agent) -> [String; 2] {
    let until = json!({"targets": ["fast", "slow"], "repetitions": 4, "name": "until it is known",
        "until": {"narrower_than": 0.5, "at_most": 6}});
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

/// k6 had no room, and a neighbour worked.
fn doubt(outcome: &mut Outcome) {
    let mut series = fitting(&scaled(1.0)).unpack().expect("a series");
    for usage in series.measured.iter_mut().flat_map(|stretch| stretch.usage.iter_mut().skip(1)) {
        (usage.generator.cpu_us, usage.target.cpu_us) = (Some(970_000), Some(330_000));
        (usage.host.user_us, usage.host.steal_us) = (1_900_000, 140_000);
    }
    outcome.series = Some(Packed::pack(&series));
}

/// The target was restarted and answers something else since; nobody knows what happened meanwhile.
fn ruin(outcome: &mut Outcome) {
    outcome.series = None;
    outcome.conditions.processes = Some(4);
    outcome.conditions.processes_gone = Some(4);
    outcome.conditions.response_change = Some("status 500 instead of 200".to_owned());
}

/// The next run of an agent, twenty seconds into its measurement.
async fn measuring(app: &App, user: &Actor, agent: &mut Agent) -> String {
    let job = agent.job().await;
    agent.enter(job.run, Phase::Preparing);
    agent.enter(job.run, Phase::Measuring);
    agent.say(&AgentMessage::Series(Box::new(portion(job.run, Part::WarmUp, 1..=3))));
    agent.say(&AgentMessage::Series(Box::new(portion(job.run, Part::Measured, 1..=20))));
    let id = job.run.to_string();
    app.until("a run that is measured", async || (user.run(&id).await["phase"] == "measuring").then_some(())).await;
    id
}

/// Somebody of a role, as people are called.
pub async fn somebody(app: &App, role: Role) -> Actor {
    let name = match role {
        Role::Admin => "Ada",
        Role::Member => "Mary",
        Role::Viewer => "Hedy",
    };
    app.named(name, role, now_ms() + 86_400_000).await
}
