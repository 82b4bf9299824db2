//! Distributed runs: how parts are merged in any order, failures of one participant, and how the run is shown.

use brewbench::{auth::model::Scope, distributed::settle, live::feed::LiveFeed};
use brewbench_wire::{
    Phase,
    job::Job,
    messages::AgentMessage,
    outcome::{Cause, Ended, Outcome},
    series::{Packed, WindowKind},
};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    participants::{generator_outcome, host_outcome},
    program::as_user,
    series::delta,
    submit::{plan_with, reaches, retry_of, submit},
    summaries::{good, scaled},
};

/// The clock of bench-02 is an hour ahead.
const AHEAD_MS: i64 = 3_600_000;

/// A distributed run: the target on bench-01, load from bench-02 and bench-03.
struct Site {
    app: App,
    user: Actor,
    host: Agent,
    others: [Agent; 2],
    job: Job,
}

impl Site {
    async fn start(retries: u32) -> Self {
        Box::pin(Self::begin(retries)).await
    }

    async fn begin(retries: u32) -> Self {
        let app = App::start().await;
        let user = app.user().await;
        let mut host = Agent::start(&app, "bench-01").await;
        submit(&user, &plan_with(&json!({"retries": retries}))).await;
        let job = host.job().await;
        let others = [Agent::disconnected(&app, "bench-02").await, Agent::disconnected(&app, "bench-03").await];
        let site = Self { app, user, host, others, job };
        site.lease().await;
        site.host.enter(site.job.run, Phase::Measuring);
        reaches(&site.app, &site.user, &site.id(), "measuring").await;
        site
    }

    /// Does what the dispatch does when it assigns a distributed run.
    async fn lease(&self) {
        let db = &self.app.state.db.write;
        let generators = "update run set generators =
             (select json_group_array(id) from agent where name in ('bench-02', 'bench-03')) where id = ?";
        let run = sqlx::query(generators);
        run.bind(self.id()).execute(db).await.expect("a run");
        for (place, agent, offset) in [(0, "bench-01", 0), (1, "bench-02", AHEAD_MS), (2, "bench-03", 0)] {
            let part = "insert into run_part (run_id, place, agent_id, clock_offset_ms, clock_error_ms)
                        values (?, ?, (select id from agent where name = ?), ?, 1.5)";
            let part = sqlx::query(part).bind(self.id()).bind(place).bind(agent).bind(offset);
            part.execute(db).await.expect("a part");
            let lease = "insert or ignore into lease (run_id, agent_id, expires_at)
                         values (?, (select id from agent where name = ?), 9e15)";
            sqlx::query(lease).bind(self.id()).bind(agent).execute(db).await.expect("a lease");
        }
    }

    fn id(&self) -> String {
        self.job.run.to_string()
    }

    async fn run(&self) -> Value {
        self.user.run(&self.id()).await
    }

    /// The number of leases of the run.
    async fn leased(&self) -> i64 {
        let count = "select count(*) from lease where run_id = ?";
        sqlx::query_scalar(count).bind(self.id()).fetch_one(&self.app.state.db.read).await.expect("a number")
    }

    fn parts(&self) -> [Outcome; 3] {
        [
            host_outcome(&self.job),
            generator_outcome(&self.job, &good(), AHEAD_MS),
            generator_outcome(&self.job, &scaled(0.5), 0),
        ]
    }

    /// The agent of a place.
    fn agent(&self, place: usize) -> &Agent {
        if place == 0 { &self.host } else { &self.others[place - 1] }
    }

    /// Delivers all parts in this order; each counts.
    async fn deliver(&self, order: [usize; 3]) {
        let parts = self.parts();
        for (number, place) in order.into_iter().enumerate() {
            assert_ne!(self.run().await["phase"], "finished", "finished after {number} parts");
            assert!(self.agent(place).settle(&parts[place]).await.counts, "{place}");
        }
    }
}

#[tokio::test]
async fn parts_are_merged_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let site = Site::start(0).await;
        site.deliver(order).await;
        let run = site.run().await;
        assert_eq!(
            (&run["phase"], &run["verdict"], &run["reasons"]),
            (&json!("finished"), &json!("valid"), &json!([]))
        );
        // 51,230 of one generator, half of that of the other.
        assert_eq!((&run["requests"], &run["generators"]), (&json!(76_845), &json!(["bench-02", "bench-03"])));
        assert!(run["p99_ms"].is_number() && run["thresholds"] == 0, "{run}");
        assert_eq!(
            (&run["agent"], &run["version"], &run["engine"]),
            (&json!("bench-01"), &json!("1.0"), &json!({"name": "k6", "version": "1.8.1"}))
        );
        assert_eq!(run["enforced"]["cpu"], "cgroup2", "enforcement on the host");
        assert!(run["cpu_ms_per_request"].is_number(), "{run}");
        assert_eq!(site.leased().await, 0);
        let series = site.user.get(&format!("/api/v1/runs/{}/series", site.id())).await.ok().json();
        let seconds = series["measured"]["seconds"].as_array().expect("seconds");
        assert_eq!(seconds.iter().filter_map(|second| second["requests"].as_u64()).sum::<u64>(), 76_845);
        assert!(
            series["measured"]["usage"][1]["generator"]["cores"].is_null(),
            "there is no machine with target and generator"
        );
    }
}

#[tokio::test]
async fn the_share_of_each_generator_is_shown_on_the_page_in_json_and_by_commands() {
    let site = Site::start(0).await;
    let before = site.user.get(&format!("/api/v1/runs/{}/generators", site.id())).await.ok().json();
    assert_eq!(
        (&before["generators"][1]["agent"], &before["generators"][1]["delivered"]),
        (&json!("bench-03"), &json!(false))
    );
    site.deliver([0, 1, 2]).await;
    let list = site.user.get(&format!("/api/v1/runs/{}/generators", site.id())).await.ok().json();
    let share = &list["generators"][0];
    assert_eq!(
        (&share["agent"], &share["segment"], &share["requests"]),
        (&json!("bench-02"), &json!("0:1/2"), &json!(51_230))
    );
    assert_eq!(
        (&share["clock_offset_ms"], &share["clock_error_ms"], &share["cores"]),
        (&json!(3_600_000.0), &json!(1.5), &json!(2.0))
    );
    assert!(share["after_first_ms"].as_i64().is_some_and(|ms| ms < 10_000), "without the clock offset: {share}");
    assert!(list["percentiles_within"].as_f64().is_some_and(|width| (0.09..0.091).contains(&width)), "{list}");
    let pages = site.user.clone().in_browser();
    let page = pages.get(&format!("/runs/{}", site.id())).await.ok().text();
    for words in [
        "load from bench-02, bench-03",
        "merged histograms of 2 generators",
        "1/2:1",
        "51,230",
        "Load generator log on bench-03",
    ] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let csv = pages.get(&format!("/api/v1/runs/export?format=csv&runs={}", site.id())).await.ok().text();
    assert!(csv.contains(",generators,") && csv.contains("bench-02 · bench-03"), "{csv}");
    let token = site.app.token_secret(Scope::Read, None).await;
    let shown = as_user(&site.app, &token, &["run", "show", &site.id()]).await.ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("generator bench-02, segment 0:1/2, 51,230 requests"), "{shown}");
    let shown: Value =
        serde_json::from_str(&as_user(&site.app, &token, &["run", "show", "--json", &site.id()]).await.ok())
            .expect("JSON");
    assert_eq!((&shown["runs"][0]["phase"], &shown["generators"][1]["segment"]), (&json!("finished"), &json!("1/2:1")));
    let again = site
        .app
        .admin()
        .await
        .post("/api/v1/runs/rejudge", &json!({"ids": [site.id()], "dry_run": true}))
        .await
        .ok()
        .json();
    assert_eq!((&again["judged"], &again["changed"]), (&json!(1), &json!([])), "{again}");
}

/// Adds thresholds to a summary: metric, expression, and whether it was passed.
fn with_thresholds(summary: &str, all: &[(&str, &str, bool)]) -> String {
    let mut summary: Value = serde_json::from_str(summary).expect("JSON");
    for (metric, expression, ok) in all {
        summary["metrics"][metric]["thresholds"][expression] = json!({ "ok": ok });
    }
    summary.to_string()
}

#[tokio::test]
async fn thresholds_are_evaluated_for_the_merged_run_where_possible_and_for_each_part() {
    const COUNT: &str = "count>60000";
    const P99: &str = "p(99)<100000";
    const OTHER: &str = "p(95)<3";
    let finish = async |other: bool| {
        let site = Site::start(0).await;
        let of = |count, other| {
            [("http_reqs", COUNT, count), ("http_req_duration", P99, true), ("http_req_waiting", OTHER, other)]
        };
        let first = generator_outcome(&site.job, &with_thresholds(&good(), &of(false, true)), AHEAD_MS);
        let last = generator_outcome(&site.job, &with_thresholds(&scaled(0.5), &of(false, other)), 0);
        for (place, part) in [host_outcome(&site.job), first, last].iter().enumerate() {
            assert!(site.agent(place).settle(part).await.counts, "{place}");
        }
        site
    };
    let site = Box::pin(finish(true)).await;
    let run = site.run().await;
    // The sum passes although neither part does.
    assert_eq!((&run["thresholds"], &run["thresholds_failed"]), (&json!(3), &json!(0)), "{run}");

    let site = Box::pin(finish(false)).await;
    let run = site.run().await;
    assert_eq!((&run["thresholds"], &run["thresholds_failed"]), (&json!(3), &Value::Null), "one of them is unknown");
    let list = site.user.get(&format!("/api/v1/runs/{}/generators", site.id())).await.ok().json();
    let one = |metric: &str, expression: &str, passed: Option<bool>, basis: &str, own: [bool; 2]| json!({"metric": metric, "expression": expression, "passed": passed, "basis": basis, "own": own});
    let merged = json!([
        one("http_req_waiting", OTHER, None, "parts", [true, false]),
        one("http_req_duration", P99, Some(true), "histogram", [true, true]),
        one("http_reqs", COUNT, Some(true), "added", [false, false]),
    ]);
    assert_eq!(list["thresholds"], merged);
    assert_eq!(
        (&list["generators"][0]["thresholds"], &list["generators"][0]["thresholds_failed"]),
        (&json!(3), &json!(1))
    );
    let page = site.user.clone().in_browser().get(&format!("/runs/{}", site.id())).await.ok().text();
    for words in [">bench-03</th>", "from the merged histograms", "and the generators disagree", ">unknown</span>"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let token = site.app.token_secret(Scope::Read, None).await;
    let shown = as_user(&site.app, &token, &["run", "show", &site.id()]).await.ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "threshold http_reqs count>60000: passed (from the summed metrics), bench-02 crossed, bench-03 crossed",
        "http_req_waiting p(95)<3: unknown",
    ] {
        assert!(words.contains(line), "{line} is not in {shown}");
    }
}

#[tokio::test]
async fn duplicate_and_foreign_parts_change_nothing() {
    let site = Site::start(0).await;
    let stranger = Agent::disconnected(&site.app, "bench-09").await;
    let [_, first, _] = site.parts();
    assert!(site.others[0].settle(&first).await.counts);
    let duplicate = site.others[0].settle(&generator_outcome(&site.job, &scaled(9.0), 0)).await;
    assert_eq!(duplicate.reason.as_deref(), Some("the part of bench-02 was already delivered"));
    let foreign = stranger.settle(&first).await;
    assert!(foreign.reason.is_some_and(|why| why.ends_with("is not assigned to bench-09")));
    let [of_host, _, last] = site.parts();
    assert!(site.others[1].settle(&last).await.counts && site.host.settle(&of_host).await.counts);
    assert_eq!(site.run().await["requests"], 76_845);
    let late = site.others[0].settle(&first).await;
    assert_eq!(late.reason.as_deref(), Some("the run already has a result"));
}

#[tokio::test]
async fn a_failing_generator_fails_the_run_for_all() {
    let site = Site::start(1).await;
    let [of_host, first, last] = site.parts();
    assert!(site.others[0].settle(&first).await.counts);
    let ended = Ended::Failed { reason: "k6 could not open a file".to_owned(), cause: Cause::Generator };
    assert!(site.others[1].settle(&Outcome { ended, summary: None, ..last }).await.counts);
    let run = site.run().await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("failed"), &json!("invalid")));
    assert_eq!(
        (&run["error"], &run["reasons"][0]["code"]),
        (&json!("bench-03: k6 could not open a file"), &json!("generator_failed"))
    );
    assert!(run["enforced"].is_null(), "the host has not reported its enforcement: {run}");
    assert_eq!(site.leased().await, 0);
    let again = retry_of(&site.user, &site.id()).await.expect("a retry");
    assert_eq!(again["generators"], run["generators"]);
    assert_eq!(site.host.settle(&of_host).await.reason.as_deref(), Some(LATE_EVIDENCE));
}

/// The response to a host that delivers its part after a generator has failed the run.
const LATE_EVIDENCE: &str = "the run had already failed; the evidence about its target was stored";

#[tokio::test]
async fn evidence_of_the_target_is_stored_after_a_generator_failed_the_run() {
    for is_silent in [false, true] {
        let site = Site::start(0).await;
        let [of_host, first, _] = site.parts();
        let page = async || site.user.clone().in_browser().get(&format!("/runs/{}", site.id())).await.ok().text();
        let facts = async || {
            let path = format!("/api/v1/runs/{}/environment", site.id());
            site.user.get(&path).await.ok().json()["facts"].as_object().expect("facts").len()
        };
        if is_silent {
            assert!(settle::fail(&site.app.state.db, &site.id().into(), "bench-02 was lost").await.expect("settled"));
        } else {
            let ended = Ended::Failed { reason: "k6 broke".to_owned(), cause: Cause::Generator };
            let log = "k6 said something".to_owned();
            assert!(site.others[0].settle(&Outcome { ended, summary: None, generator_log: log, ..first }).await.counts);
            assert!(page().await.contains("waiting for the agent’s report"));
        }
        assert_eq!(facts().await, 0, "facts of a generator are not those of the target");
        let before = site.run().await;
        let ended =
            Ended::Failed { reason: "target hello died: killed by signal 9".to_owned(), cause: Cause::TargetDied };
        let late = Outcome { ended, target_log: "panic: out of ideas\n".to_owned(), ..of_host };
        assert_eq!(site.host.settle(&late).await.reason.as_deref(), Some(LATE_EVIDENCE));
        assert_eq!(site.run().await, before, "the run does not change");
        let page = page().await;
        for words in ["panic: out of ideas", "bench-01 also failed:", "killed by signal 9"] {
            assert!(page.contains(words), "{words} is not in {page}");
        }
        assert_eq!(page.contains("k6 said something"), !is_silent);
        assert!(facts().await > 0);
        let twice = Outcome { target_log: "second thoughts".to_owned(), ..late };
        assert_eq!(site.host.settle(&twice).await.reason.as_deref(), Some("the run already has a result"));
        assert!(
            !site
                .user
                .clone()
                .in_browser()
                .get(&format!("/runs/{}", site.id()))
                .await
                .ok()
                .text()
                .contains("second thoughts")
        );
    }
}

#[tokio::test]
async fn a_generator_that_stops_or_sends_no_summary_fails_the_run() {
    for (change, error) in [
        (
            (|part: Outcome| Outcome { ended: Ended::Cancelled, summary: None, ..part }) as fn(Outcome) -> Outcome,
            "bench-02 stopped",
        ),
        (|part| Outcome { summary: None, ..part }, "bench-02: the load generator left no summary"),
    ] {
        let site = Site::start(0).await;
        let [_, first, _] = site.parts();
        assert!(site.others[0].settle(&change(first)).await.counts);
        let run = site.run().await;
        assert_eq!(
            (&run["phase"], &run["verdict"], &run["error"]),
            (&json!("failed"), &json!("invalid"), &json!(error))
        );
    }
}

#[tokio::test]
async fn a_failure_of_the_host_is_judged_by_its_cause() {
    for (cause, verdict) in [(Cause::TargetDied, json!("invalid")), (Cause::Other, Value::Null)] {
        let site = Site::start(0).await;
        let ended = Ended::Failed { reason: "it broke".to_owned(), cause };
        assert!(site.host.settle(&Outcome { ended, ..host_outcome(&site.job) }).await.counts);
        let run = site.run().await;
        assert_eq!((&run["phase"], &run["verdict"], &run["error"]), (&json!("failed"), &verdict, &json!("it broke")));
        assert_eq!(run["enforced"]["cpu"], "cgroup2");
    }
}

#[tokio::test]
async fn a_lost_generator_fails_the_run_once_and_frees_the_others() {
    let site = Site::start(1).await;
    let sentence = "bench-03 was lost: no message for 5 s";
    assert!(settle::fail(&site.app.state.db, &site.id().into(), sentence).await.expect("settled"));
    assert!(!settle::fail(&site.app.state.db, &site.id().into(), "again").await.expect("settled"));
    let run = site.run().await;
    assert_eq!(
        (&run["phase"], &run["verdict"], &run["error"]),
        (&json!("failed"), &json!("invalid"), &json!(sentence))
    );
    assert_eq!((&run["reasons"][0]["code"], site.leased().await), (&json!("generator_lost"), 0));
    assert!(retry_of(&site.user, &site.id()).await.is_some());
    let [_, first, _] = site.parts();
    assert!(!site.others[0].settle(&first).await.counts);
}

#[tokio::test]
async fn a_cancelled_run_frees_all_agents_and_accepts_no_parts() {
    let site = Site::start(0).await;
    site.user.post(&format!("/api/v1/runs/{}/cancel", site.id()), &json!({})).await.ok();
    assert_eq!(site.leased().await, 0);
    let [_, first, _] = site.parts();
    assert_eq!(site.others[0].settle(&first).await.reason.as_deref(), Some("the run was cancelled"));
}

#[tokio::test]
async fn complete_parts_of_a_lost_run_still_count() {
    let site = Site::start(1).await;
    let [of_host, first, last] = site.parts();
    assert!(site.others[0].settle(&first).await.counts);
    let now = brewbench_wire::now_ms();
    // No agent may start the retry.
    sqlx::query("update agent set availability = 'drained'")
        .execute(&site.app.state.db.write)
        .await
        .expect("a availability");
    let lose = brewbench::dispatch::store::leases::lose;
    let (id, again) = (site.id().into(), "0-again".to_owned().into());
    assert!(lose(&site.app.state.db.write, &id, &again, "bench-01 was lost", now).await.expect("lost"));
    assert_eq!((site.leased().await, site.run().await["phase"].clone()), (0, json!("lost")));
    let stopped = Outcome { ended: Ended::Cancelled, summary: None, ..last.clone() };
    assert!(!site.others[1].settle(&stopped).await.counts, "a stopped part of a lost run does not count");
    assert!(site.others[1].settle(&last).await.counts && site.host.settle(&of_host).await.counts);
    assert_eq!(site.run().await["phase"], "finished");
    assert!(retry_of(&site.user, &site.id()).await.is_none(), "its retry has left the queue");
}

#[tokio::test]
async fn parts_that_arrive_at_once_are_merged() {
    let site = Site::start(0).await;
    let [of_host, first, last] = site.parts();
    let (a, b, c) =
        tokio::join!(site.host.settle(&of_host), site.others[0].settle(&first), site.others[1].settle(&last));
    assert!(a.counts && b.counts && c.counts);
    assert_eq!((&site.run().await["phase"], &site.run().await["requests"]), (&json!("finished"), &json!(76_845)));
}

#[tokio::test]
async fn renaming_an_agent_renames_it_in_its_parts() {
    let site = Site::start(0).await;
    site.deliver([0, 1, 2]).await;
    site.app.admin().await.put("/api/v1/agents/bench-02/name", &json!({"name": "rack-2"})).await.ok();
    let list = site.user.get(&format!("/api/v1/runs/{}/generators", site.id())).await.ok().json();
    assert_eq!(
        (&list["generators"][0]["agent"], &site.run().await["generators"]),
        (&json!("rack-2"), &json!(["rack-2", "bench-03"]))
    );
}

#[tokio::test]
async fn live_data_sums_the_seconds_that_all_generators_have_reported() {
    let mut site = Site::start(0).await;
    for agent in &mut site.others {
        agent.hello.running = Some(site.job.run);
        agent.hello.holds = vec![site.job.run];
        agent.connect(&site.app).await.expect("a welcome");
    }
    let say = |agent: &Agent, seconds| {
        let mut delta = delta(site.job.run, WindowKind::Measured, seconds);
        if agent.name == "bench-02" {
            let mut series = delta.points.unpack().expect("a series");
            series.measured.as_mut().expect("a window").start_ms += AHEAD_MS;
            delta.points = Packed::pack(&series);
        }
        agent.send_message(&AgentMessage::Series(Box::new(delta)));
    };
    let run = site.job.run;
    let known = || site.app.state.memory::<LiveFeed>().series(run).and_then(|series| series.measured);
    say(&site.others[0], 1..=3);
    say(&site.host, 1..=2);
    say(&site.others[1], 1..=2);
    let shown = site
        .app
        .until("two seconds of both generators", async || known().filter(|window| window.seconds.len() == 2))
        .await;
    assert!(shown.seconds.iter().all(|second| second.requests() == 2_000), "1,000 of each generator: {shown:?}");
    say(&site.others[1], 3..=3);
    site.app.until("the third", async || known().filter(|window| window.seconds.len() == 3)).await;
    let usage = site
        .app
        .until("the host's samples", async || known().map(|window| window.usage).filter(|usage| !usage.is_empty()))
        .await;
    assert!(usage.iter().all(|usage| usage.target.cpu_us.is_some() && usage.generator.cpu_us.is_none()), "{usage:?}");
}
