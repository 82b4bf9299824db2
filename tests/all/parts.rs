//! Runs that several agents do: what becomes of their parts, in whatever order they come, and how the whole is shown.

use brewbench::{auth::model::Scope, distributed::settle};
use brewbench_agent::wire::{
    Phase,
    job::Job,
    messages::AgentMessage,
    outcome::{Cause, Ended, Outcome},
    series::{Packed, Part},
};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    participants::{generator_outcome, host_outcome},
    program::as_user,
    series::portion,
    submit::{plan_with, reaches, retry_of, submit},
    summaries::{good, scaled},
};

/// The clock of bench-02 is an hour ahead.
const AHEAD_MS: i64 = 3_600_000;

/// A run that three do: the target on bench-01, load from bench-02 and bench-03.
struct Crew {
    app: App,
    user: Actor,
    host: Agent,
    others: [Agent; 2],
    job: Job,
}

impl Crew {
    async fn begun(retries: u32) -> Self {
        let app = App::start().await;
        let user = app.user().await;
        let mut host = Agent::start(&app, "bench-01").await;
        submit(&user, &plan_with(&json!({"retries": retries}))).await;
        let job = host.job().await;
        let others = [Agent::disconnected(&app, "bench-02").await, Agent::disconnected(&app, "bench-03").await];
        let crew = Self { app, user, host, others, job };
        crew.lease().await;
        crew.host.enter(crew.job.run, Phase::Measuring);
        reaches(&crew.app, &crew.user, &crew.id(), "measuring").await;
        crew
    }

    /// What the dispatch does when it hands such a run out.
    async fn lease(&self) {
        let db = &self.app.state.db.write;
        let run = sqlx::query("update run set generators = '[\"bench-02\",\"bench-03\"]' where id = ?");
        run.bind(self.id()).execute(db).await.expect("a run");
        for (place, agent, offset) in [(0, "bench-01", 0), (1, "bench-02", AHEAD_MS), (2, "bench-03", 0)] {
            let part = "insert into run_part (run_id, place, agent, clock_offset_ms, clock_error_ms)
                        values (?, ?, ?, ?, 1.5)";
            let part = sqlx::query(part).bind(self.id()).bind(place).bind(agent).bind(offset);
            part.execute(db).await.expect("a part");
            let lease = "insert or ignore into lease (run_id, agent, expires_at) values (?, ?, 9e15)";
            sqlx::query(lease).bind(self.id()).bind(agent).execute(db).await.expect("a lease");
        }
    }

    fn id(&self) -> String {
        self.job.run.to_string()
    }

    async fn run(&self) -> Value {
        self.user.run(&self.id()).await
    }

    /// How many still count as at work on a part.
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

    /// Who brings the part of a place.
    fn who(&self, place: usize) -> &Agent {
        if place == 0 { &self.host } else { &self.others[place - 1] }
    }

    /// Brings all parts in this order; each counts.
    async fn bring(&self, order: [usize; 3]) {
        let parts = self.parts();
        for (number, place) in order.into_iter().enumerate() {
            assert_ne!(self.run().await["phase"], "finished", "{number} parts are not all");
            assert!(self.who(place).settle(&parts[place]).await.kept, "{place}");
        }
    }
}

#[tokio::test]
async fn parts_become_one_run_in_whatever_order_they_come() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let crew = Crew::begun(0).await;
        crew.bring(order).await;
        let run = crew.run().await;
        assert_eq!(
            (&run["phase"], &run["verdict"], &run["reasons"]),
            (&json!("finished"), &json!("valid"), &json!([]))
        );
        // 51,230 of one, half of that of the other.
        assert_eq!((&run["requests"], &run["generators"]), (&json!(76_845), &json!(["bench-02", "bench-03"])));
        assert!(run["p99_ms"].is_number() && run["thresholds"] == 0, "{run}");
        assert_eq!(
            (&run["agent"], &run["version"], &run["engine"]),
            (&json!("bench-01"), &json!("1.0"), &json!({"name": "k6", "version": "1.8.1"}))
        );
        assert_eq!(run["enforced"]["cpu"], "cgroup2", "what held the target, not what held nothing on the others");
        assert!(run["cpu_ms_per_request"].is_number(), "{run}");
        assert_eq!(crew.leased().await, 0);
        let series = crew.user.get(&format!("/api/v1/runs/{}/series", crew.id())).await.ok().json();
        let seconds = series["measured"]["seconds"].as_array().expect("seconds");
        assert_eq!(seconds.iter().filter_map(|second| second["requests"].as_u64()).sum::<u64>(), 76_845);
        assert!(series["measured"]["usage"][1]["generator"]["cores"].is_null(), "it is no one's machine");
    }
}

#[tokio::test]
async fn each_one_s_share_is_told_on_the_page_in_json_and_by_commands() {
    let crew = Crew::begun(0).await;
    let before = crew.user.get(&format!("/api/v1/runs/{}/generators", crew.id())).await.ok().json();
    assert_eq!(
        (&before["generators"][1]["agent"], &before["generators"][1]["delivered"]),
        (&json!("bench-03"), &json!(false))
    );
    crew.bring([0, 1, 2]).await;
    let list = crew.user.get(&format!("/api/v1/runs/{}/generators", crew.id())).await.ok().json();
    let of = &list["generators"][0];
    assert_eq!((&of["agent"], &of["segment"], &of["requests"]), (&json!("bench-02"), &json!("0:1/2"), &json!(51_230)));
    assert_eq!(
        (&of["clock_offset_ms"], &of["clock_error_ms"], &of["cores"]),
        (&json!(3_600_000.0), &json!(1.5), &json!(2.0))
    );
    assert!(of["after_first_ms"].as_i64().is_some_and(|ms| ms < 10_000), "the hour is out of it: {of}");
    assert!(list["percentiles_within"].as_f64().is_some_and(|width| (0.09..0.091).contains(&width)), "{list}");
    let pages = crew.user.clone().in_browser();
    let page = pages.get(&format!("/runs/{}", crew.id())).await.ok().text();
    for words in
        ["load from bench-02, bench-03", "merged histograms of 2 generators", "1/2:1", "51,230", "k6 log on bench-03"]
    {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let csv = pages.get(&format!("/api/v1/runs/export?format=csv&runs={}", crew.id())).await.ok().text();
    assert!(csv.contains(",generators,") && csv.contains("bench-02 · bench-03"), "{csv}");
    let token = crew.app.token_secret(Scope::Read, None).await;
    let shown = as_user(&crew.app, &token, &["run", "show", &crew.id()]).await.ok();
    // Long lines wrap, also at hyphens.
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    assert!(dense(&shown).contains(&dense("generator bench-02, segment 0:1/2, 51,230 requests")), "{shown}");
    let shown: Value =
        serde_json::from_str(&as_user(&crew.app, &token, &["run", "show", "--json", &crew.id()]).await.ok())
            .expect("JSON");
    assert_eq!((&shown["runs"][0]["phase"], &shown["generators"][1]["segment"]), (&json!("finished"), &json!("1/2:1")));
    let again = crew
        .app
        .admin()
        .await
        .post("/api/v1/runs/rejudge", &json!({"ids": [crew.id()], "dry_run": true}))
        .await
        .ok()
        .json();
    assert_eq!((&again["judged"], &again["changed"]), (&json!(1), &json!([])), "{again}");
}

/// A summary with thresholds, and what that k6 says of them: of which metric, the condition, whether it was kept to.
fn with_thresholds(summary: &str, all: &[(&str, &str, bool)]) -> String {
    let mut summary: Value = serde_json::from_str(summary).expect("JSON");
    for (metric, expression, ok) in all {
        summary["metrics"][metric]["thresholds"][expression] = json!({ "ok": ok });
    }
    summary.to_string()
}

#[tokio::test]
async fn the_scripts_thresholds_are_judged_for_the_whole_where_that_can_be_told_and_for_each_part() {
    const COUNT: &str = "count>60000";
    const P99: &str = "p(99)<100000";
    const OTHER: &str = "p(95)<3";
    let bring = async |other: bool| {
        let crew = Crew::begun(0).await;
        let of = |count, other| {
            [("http_reqs", COUNT, count), ("http_req_duration", P99, true), ("http_req_waiting", OTHER, other)]
        };
        let first = generator_outcome(&crew.job, &with_thresholds(&good(), &of(false, true)), AHEAD_MS);
        let last = generator_outcome(&crew.job, &with_thresholds(&scaled(0.5), &of(false, other)), 0);
        for (place, part) in [host_outcome(&crew.job), first, last].iter().enumerate() {
            assert!(crew.who(place).settle(part).await.kept, "{place}");
        }
        crew
    };
    let crew = Box::pin(bring(true)).await;
    let run = crew.run().await;
    // Together they made more than either.
    assert_eq!((&run["thresholds"], &run["thresholds_failed"]), (&json!(3), &json!(0)), "{run}");

    let crew = Box::pin(bring(false)).await;
    let run = crew.run().await;
    assert_eq!((&run["thresholds"], &run["thresholds_failed"]), (&json!(3), &Value::Null), "one of them is not known");
    let list = crew.user.get(&format!("/api/v1/runs/{}/generators", crew.id())).await.ok().json();
    let one = |metric: &str, expression: &str, passed: Option<bool>, basis: &str, own: [bool; 2]| json!({"metric": metric, "expression": expression, "passed": passed, "basis": basis, "own": own});
    let told = json!([
        one("http_req_waiting", OTHER, None, "parts", [true, false]),
        one("http_req_duration", P99, Some(true), "histogram", [true, true]),
        one("http_reqs", COUNT, Some(true), "added", [false, false]),
    ]);
    assert_eq!(list["thresholds"], told);
    assert_eq!(
        (&list["generators"][0]["thresholds"], &list["generators"][0]["thresholds_failed"]),
        (&json!(3), &json!(1))
    );
    let page = crew.user.clone().in_browser().get(&format!("/runs/{}", crew.id())).await.ok().text();
    for words in [">bench-03</th>", "from the merged histograms", "and the generators disagree", ">unknown</span>"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let token = crew.app.token_secret(Scope::Read, None).await;
    let shown = as_user(&crew.app, &token, &["run", "show", &crew.id()]).await.ok();
    // Long lines wrap, also at hyphens.
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    for told in [
        "threshold http_reqs count>60000: passed (from the summed metrics), bench-02 crossed, bench-03 crossed",
        "http_req_waiting p(95)<3: unknown",
    ] {
        assert!(dense(&shown).contains(&dense(told)), "{told} is not in {shown}");
    }
}

#[tokio::test]
async fn what_comes_twice_or_from_somebody_else_changes_nothing() {
    let crew = Crew::begun(0).await;
    let stranger = Agent::disconnected(&crew.app, "bench-09").await;
    let [_, first, _] = crew.parts();
    assert!(crew.others[0].settle(&first).await.kept);
    let doubled = crew.others[0].settle(&generator_outcome(&crew.job, &scaled(9.0), 0)).await;
    assert_eq!(doubled.why.as_deref(), Some("the part of bench-02 was already delivered"));
    let foreign = stranger.settle(&first).await;
    assert!(foreign.why.is_some_and(|why| why.ends_with("is not assigned to bench-09")));
    let [of_host, _, last] = crew.parts();
    assert!(crew.others[1].settle(&last).await.kept && crew.host.settle(&of_host).await.kept);
    assert_eq!(crew.run().await["requests"], 76_845);
    let late = crew.others[0].settle(&first).await;
    assert_eq!(late.why.as_deref(), Some("the run already has a result"));
}

#[tokio::test]
async fn a_generator_that_fails_ends_the_run_for_all() {
    let crew = Crew::begun(1).await;
    let [of_host, first, last] = crew.parts();
    assert!(crew.others[0].settle(&first).await.kept);
    let ended = Ended::Failed { reason: "k6 could not open a file".to_owned(), cause: Cause::Generator };
    assert!(crew.others[1].settle(&Outcome { ended, summary: None, ..last }).await.kept);
    let run = crew.run().await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("failed"), &json!("invalid")));
    assert_eq!(
        (&run["error"], &run["reasons"][0]["code"]),
        (&json!("bench-03: k6 could not open a file"), &json!("generator_failed"))
    );
    assert!(run["enforced"].is_null(), "nobody said what held the target: {run}");
    assert_eq!(crew.leased().await, 0);
    let again = retry_of(&crew.user, &crew.id()).await.expect("it is done again");
    assert_eq!(again["generators"], run["generators"]);
    assert_eq!(crew.host.settle(&of_host).await.why.as_deref(), Some(LAST_WORDS));
}

/// The response to a host that delivers its part after a generator has failed the run.
const LAST_WORDS: &str = "the run had already failed; the evidence about its target was stored";

#[tokio::test]
async fn the_targets_last_words_are_kept_where_a_generator_ended_the_run_first() {
    for is_silent in [false, true] {
        let crew = Crew::begun(0).await;
        let [of_host, first, _] = crew.parts();
        let page = async || crew.user.clone().in_browser().get(&format!("/runs/{}", crew.id())).await.ok().text();
        let facts = async || {
            let path = format!("/api/v1/runs/{}/environment", crew.id());
            crew.user.get(&path).await.ok().json()["facts"].as_object().expect("facts").len()
        };
        if is_silent {
            assert!(
                settle::fail(&crew.app.state.db, &crew.id().into(), "bench-02 fell silent").await.expect("settled")
            );
        } else {
            let ended = Ended::Failed { reason: "k6 broke".to_owned(), cause: Cause::Generator };
            let log = "k6 said something".to_owned();
            assert!(crew.others[0].settle(&Outcome { ended, summary: None, generator_log: log, ..first }).await.kept);
            assert!(page().await.contains("waiting for the agent’s report"));
        }
        assert_eq!(facts().await, 0, "those of a generator are not the target's");
        let before = crew.run().await;
        let ended =
            Ended::Failed { reason: "target hello died: killed by signal 9".to_owned(), cause: Cause::TargetDied };
        let late = Outcome { ended, target_log: "panic: out of ideas\n".to_owned(), ..of_host };
        assert_eq!(crew.host.settle(&late).await.why.as_deref(), Some(LAST_WORDS));
        assert_eq!(crew.run().await, before, "it is the same run still");
        let page = page().await;
        for words in ["panic: out of ideas", "bench-01 also failed:", "killed by signal 9"] {
            assert!(page.contains(words), "{words} is not in {page}");
        }
        assert_eq!(page.contains("k6 said something"), !is_silent);
        assert!(facts().await > 0);
        let twice = Outcome { target_log: "second thoughts".to_owned(), ..late };
        assert_eq!(crew.host.settle(&twice).await.why.as_deref(), Some("the run already has a result"));
        assert!(
            !crew
                .user
                .clone()
                .in_browser()
                .get(&format!("/runs/{}", crew.id()))
                .await
                .ok()
                .text()
                .contains("second thoughts")
        );
    }
}

#[tokio::test]
async fn a_generator_that_stops_or_brings_nonsense_ends_the_run_too() {
    for (change, error) in [
        (
            (|part: Outcome| Outcome { ended: Ended::Cancelled, summary: None, ..part }) as fn(Outcome) -> Outcome,
            "bench-02 stopped",
        ),
        (|part| Outcome { summary: None, ..part }, "bench-02: k6 left no summary"),
    ] {
        let crew = Crew::begun(0).await;
        let [_, first, _] = crew.parts();
        assert!(crew.others[0].settle(&change(first)).await.kept);
        let run = crew.run().await;
        assert_eq!(
            (&run["phase"], &run["verdict"], &run["error"]),
            (&json!("failed"), &json!("invalid"), &json!(error))
        );
    }
}

#[tokio::test]
async fn a_failure_of_the_target_s_agent_is_judged_by_its_own_cause() {
    for (cause, verdict) in [(Cause::TargetDied, json!("invalid")), (Cause::Other, Value::Null)] {
        let crew = Crew::begun(0).await;
        let ended = Ended::Failed { reason: "it broke".to_owned(), cause };
        assert!(crew.host.settle(&Outcome { ended, ..host_outcome(&crew.job) }).await.kept);
        let run = crew.run().await;
        assert_eq!((&run["phase"], &run["verdict"], &run["error"]), (&json!("failed"), &verdict, &json!("it broke")));
        assert_eq!(run["enforced"]["cpu"], "cgroup2");
    }
}

#[tokio::test]
async fn a_run_that_one_has_left_is_failed_once_and_frees_the_others() {
    let crew = Crew::begun(1).await;
    let sentence = "bench-03 fell silent: nothing was heard of it for 5 s";
    assert!(settle::fail(&crew.app.state.db, &crew.id().into(), sentence).await.expect("settled"));
    assert!(!settle::fail(&crew.app.state.db, &crew.id().into(), "again").await.expect("settled"));
    let run = crew.run().await;
    assert_eq!(
        (&run["phase"], &run["verdict"], &run["error"]),
        (&json!("failed"), &json!("invalid"), &json!(sentence))
    );
    assert_eq!((&run["reasons"][0]["code"], crew.leased().await), (&json!("generator_lost"), 0));
    assert!(retry_of(&crew.user, &crew.id()).await.is_some());
    let [_, first, _] = crew.parts();
    assert!(!crew.others[0].settle(&first).await.kept);
}

#[tokio::test]
async fn a_cancelled_run_frees_all_and_takes_no_parts() {
    let crew = Crew::begun(0).await;
    crew.user.post(&format!("/api/v1/runs/{}/cancel", crew.id()), &json!({})).await.ok();
    assert_eq!(crew.leased().await, 0);
    let [_, first, _] = crew.parts();
    assert_eq!(crew.others[0].settle(&first).await.why.as_deref(), Some("the run was cancelled"));
}

#[tokio::test]
async fn parts_of_a_run_that_was_given_up_still_count_when_they_are_whole() {
    let crew = Crew::begun(1).await;
    let [of_host, first, last] = crew.parts();
    assert!(crew.others[0].settle(&first).await.kept);
    let now = brewbench_agent::wire::now_ms();
    // Nobody may do it again meanwhile.
    sqlx::query("update agent set standing = 'drained'").execute(&crew.app.state.db.write).await.expect("a standing");
    let lose = brewbench::dispatch::store::leases::lose;
    let (id, again) = (crew.id().into(), "0-again".to_owned().into());
    assert!(lose(&crew.app.state.db.write, &id, &again, "bench-01 fell silent", now).await.expect("given up"));
    assert_eq!((crew.leased().await, crew.run().await["phase"].clone()), (0, json!("lost")));
    let stopped = Outcome { ended: Ended::Cancelled, summary: None, ..last.clone() };
    assert!(!crew.others[1].settle(&stopped).await.kept, "it is lost already");
    assert!(crew.others[1].settle(&last).await.kept && crew.host.settle(&of_host).await.kept);
    assert_eq!(crew.run().await["phase"], "finished");
    assert!(retry_of(&crew.user, &crew.id()).await.is_none(), "its place-holder has left the queue");
}

#[tokio::test]
async fn two_parts_that_arrive_at_once_do_not_miss_each_other() {
    let crew = Crew::begun(0).await;
    let [of_host, first, last] = crew.parts();
    let (a, b, c) =
        tokio::join!(crew.host.settle(&of_host), crew.others[0].settle(&first), crew.others[1].settle(&last));
    assert!(a.kept && b.kept && c.kept);
    assert_eq!((&crew.run().await["phase"], &crew.run().await["requests"]), (&json!("finished"), &json!(76_845)));
}

#[tokio::test]
async fn an_agent_s_new_name_is_that_of_its_parts() {
    let crew = Crew::begun(0).await;
    crew.bring([0, 1, 2]).await;
    crew.app.admin().await.put("/api/v1/agents/bench-02/name", &json!({"name": "rack-2"})).await.ok();
    let list = crew.user.get(&format!("/api/v1/runs/{}/generators", crew.id())).await.ok().json();
    assert_eq!(
        (&list["generators"][0]["agent"], &crew.run().await["generators"]),
        (&json!("rack-2"), &json!(["rack-2", "bench-03"]))
    );
}

#[tokio::test]
async fn live_figures_are_the_sum_of_what_every_generator_has_told() {
    let mut crew = Crew::begun(0).await;
    for agent in &mut crew.others {
        agent.hello.running = Some(crew.job.run);
        agent.hello.holds = vec![crew.job.run];
        agent.connect(&crew.app).await.expect("a welcome");
    }
    let say = |agent: &Agent, seconds| {
        let mut portion = portion(crew.job.run, Part::Measured, seconds);
        if agent.name == "bench-02" {
            let mut series = portion.points.unpack().expect("a series");
            series.measured.as_mut().expect("a stretch").start_ms += AHEAD_MS;
            portion.points = Packed::pack(&series);
        }
        agent.send_message(&AgentMessage::Series(Box::new(portion)));
    };
    let run = crew.job.run;
    let known = || crew.app.state.live_feed.series(run).and_then(|series| series.measured);
    say(&crew.others[0], 1..=3);
    say(&crew.host, 1..=2);
    say(&crew.others[1], 1..=2);
    let shown =
        crew.app.until("two seconds of both", async || known().filter(|stretch| stretch.seconds.len() == 2)).await;
    assert!(shown.seconds.iter().all(|second| second.requests() == 2_000), "1,000 of each: {shown:?}");
    say(&crew.others[1], 3..=3);
    crew.app.until("the third", async || known().filter(|stretch| stretch.seconds.len() == 3)).await;
    let usage = crew
        .app
        .until("the host's samples", async || known().map(|stretch| stretch.usage).filter(|usage| !usage.is_empty()))
        .await;
    assert!(usage.iter().all(|usage| usage.target.cpu_us.is_some() && usage.generator.cpu_us.is_none()), "{usage:?}");
}
