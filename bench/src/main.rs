//! Measures what brewbench itself costs, against doing the same bare: ratios of figures made in one run, because the
//! machine under them is never the same twice. Prints the rows of the README's table.
//!
//! usage: brewbench-bench FOLDER-OF-MANIFESTS | brewbench-bench history [RUNS] | brewbench-bench overload |
//! brewbench-bench instructions [--write] | brewbench-bench live FOLDER-OF-MANIFESTS |
//! brewbench-bench aa FOLDER-OF-MANIFESTS | brewbench-bench chaos FOLDER-OF-MANIFESTS | brewbench-bench fleet |
//! brewbench-bench connections | brewbench-bench soak FOLDER-OF-MANIFESTS | brewbench-bench self-check

mod aa;
mod agent;
mod apart;
mod chaos;
mod connections;
mod fleet;
mod history;
mod ingest;
mod instructions;
mod live;
mod observer;
mod overload;
mod recorded;
mod self_check;
mod site;

use std::path::PathBuf;

use anyhow::Context;
use observer::Room;

/// As the program that is measured has it: the server may be this very program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let manifests = std::env::args_os().nth(1).map(PathBuf::from).context("name the folder of the manifests")?;
    if manifests.as_os_str() == "history" {
        let runs = std::env::args().nth(2).map_or(Ok(history::RUNS), |runs| runs.parse())?;
        return tell_history(runs).await;
    }
    if manifests.as_os_str() == "fleet" {
        return tell_fleet().await;
    }
    if manifests.as_os_str() == instructions::ASKED {
        return instructions::asked(std::env::args().nth(2).is_some_and(|word| word == "--write")).await;
    }
    if manifests.as_os_str() == instructions::COUNTED {
        return instructions::counted(std::env::args_os().skip(2)).await;
    }
    if manifests.as_os_str() == overload::ASKED {
        return tell_overload().await;
    }
    if manifests.as_os_str() == "connections" {
        return tell_connections().await;
    }
    if manifests.as_os_str() == self_check::ASKED {
        return self_check::asked(std::env::args().nth(2).as_deref());
    }
    if manifests.as_os_str() == "live" {
        let manifests = std::env::args_os().nth(2).map(PathBuf::from).context("name the folder of the manifests")?;
        println!("| what | goal | median | least … greatest |\n|---|---|---|---|");
        return tell_live(&manifests).await;
    }
    if manifests.as_os_str() == site::APART {
        let data = std::env::args_os().nth(2).map(PathBuf::from).context("name the data folder")?;
        let port = std::env::args().nth(3).map_or(Ok(0), |port| port.parse())?;
        return site::serve_apart(&data, port).await;
    }
    if manifests.as_os_str() == agent::APART {
        return agent::work_apart(std::env::args_os().skip(2)).await;
    }
    if manifests.as_os_str() == chaos::ASKED {
        return chaos::asked(std::env::args_os().skip(2)).await;
    }
    if manifests.as_os_str() == chaos::CUTS {
        return chaos::cuts_apart(std::env::args_os().skip(2)).await;
    }
    if manifests.as_os_str() == chaos::soak::ASKED {
        return chaos::soak::asked(std::env::args_os().skip(2)).await;
    }
    if manifests.as_os_str() == aa::ASKED {
        return aa::asked(std::env::args_os().skip(2)).await;
    }
    eprintln!("observer effect: twice {} pairs of a brewbench run and a bare k6 run", observer::PAIRS);
    let roomy = observer::measure(manifests.clone(), Room::Roomy).await?;
    let tight = observer::measure(manifests.clone(), Room::Tight).await?;
    eprintln!("ingest: {} rounds of {} summaries and raw inserts", ingest::ROUNDS, ingest::SUMMARIES);
    let ingested = ingest::measure().await?;
    println!("| what | goal | median | least … greatest |");
    println!("|---|---|---|---|");
    let ratio = "requests/s of a brewbench run, watched live ÷ bare `k6 run`";
    println!("| {ratio} | ≥ 0.99 | {} |", spread(&roomy.ratios, 3));
    println!("| the same where k6 is the bottleneck | – | {} |", spread(&tight.ratios, 3));
    println!("| time that a run adds to warm-up and measurement, s | ≤ 0.6 | {} |", spread(&roomy.added_s, 2));
    let percent: Vec<f64> = tight.agent_cores.iter().map(|cores| cores * 100.0).collect();
    println!("| CPU of the agent at the most requests that k6 makes, % of a core | ≤ 2 | {} |", spread(&percent, 2));
    println!("| the most memory that the agent held then, MiB | ≤ 30 | {:.1} | – |", tight.agent_mib);
    println!("| requests/s then | ≥ 10,000 | {} |", spread(&tight.rps, 0));
    println!("| summaries ingested/s ÷ raw SQLite inserts/s | ≥ 0.3 | {} |", spread(&ingested.ratios, 2));
    tell_live(&manifests).await?;
    eprintln!("(ingest alone: {:.0} summaries/s of {} bytes)", ingested.per_second, ingested.bytes);
    println!();
    tell_fleet().await?;
    println!();
    tell_connections().await?;
    println!();
    tell_history(history::RUNS).await
}

/// What many agents cost.
async fn tell_fleet() -> anyhow::Result<()> {
    let (agents, submissions) = (fleet::AGENTS, fleet::SUBMISSIONS);
    eprintln!(
        "fleet: {agents} agents, {} s of nothing, {submissions} submissions, a killed server",
        fleet::IDLE.as_secs()
    );
    let fleet::Fleet { idle_cores, idle_mib, dispatch_ms, dispatch_cpu_ms, first_s, back_s, peak_mib } =
        fleet::measure().await?;
    let at = |percent: usize| dispatch_ms[(dispatch_ms.len() - 1) * percent / 100];
    println!("| {agents} agents on one server | goal | figure |\n|---|---|---|");
    println!("| CPU of the server while nothing happens, % of a core | ≤ 10 | {:.1} |", idle_cores * 100.0);
    println!("| memory of the server then, MiB | ≤ 80 | {idle_mib:.0} |");
    println!(
        "| from a submission to the agent's answer, ms: p50, p99 of {submissions} at {} a second | p99 ≤ 100 | {:.1}, {:.1} |",
        fleet::RATE,
        at(50),
        at(99)
    );
    println!("| CPU of the server for a submission and its result, ms | – | {dispatch_cpu_ms:.1} |");
    println!("| until all are connected that dial at once, s | – | {first_s:.1} |");
    println!(
        "| the same after {} s without a server, which was killed, s | ≤ 10 | {back_s:.1} |",
        fleet::AWAY.as_secs()
    );
    println!("| the most memory that the server held, MiB | – | {peak_mib:.0} |");
    Ok(())
}

/// Prints response times while slow connections are open.
async fn tell_connections() -> anyhow::Result<()> {
    // Each connection takes a file descriptor here and one in the server.
    brewbench::app::listener::descriptors::raise();
    let count = connections::COUNT;
    eprintln!("connections: {count} that send almost nothing, of each kind");
    println!(
        "| {count} connections of one address (goal: ≤ 100 ms) | `/healthz`: p50, most, ms | `/runs`: p50, most, ms | all closed after, s |"
    );
    println!("|---|---|---|---|");
    for connections::Crowd { kind, health_ms, page_ms, closed_s } in connections::measure().await? {
        let at = |sorted: &[f64]| format!("{:.1}, {:.1}", sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
        println!("| {kind} | {} | {} | {closed_s:.0} |", at(&health_ms), at(&page_ms));
    }
    Ok(())
}

/// The rows about runs that are watched.
async fn tell_live(manifests: &std::path::Path) -> anyhow::Result<()> {
    let (pages, looks) = (live::PAGES, live::LOOKS);
    eprintln!("live: {} pairs of a run with {pages} open pages and one without, and {looks} looks", live::PAIRS);
    let live::Watched { ratios, server_cores, mut to_screen_s } = live::measure(manifests).await?;
    to_screen_s.sort_by(f64::total_cmp);
    let at = |percent: usize| to_screen_s[(to_screen_s.len() - 1) * percent / 100];
    println!("| requests/s of a run with {pages} open pages ÷ with none | ≥ 0.99 | {} |", spread(&ratios, 3));
    println!("| CPU of the server meanwhile, cores | – | {} |", spread(&server_cores, 2));
    println!(
        "| from the end of a second to the screen, s: p50, p95 of {} | p95 ≤ 1.5 | {:.3}, {:.3} | {:.3} … {:.3} |",
        to_screen_s.len(),
        at(50),
        at(95),
        at(0),
        at(100)
    );
    Ok(())
}

/// A table of its own: these are times, not ratios.
async fn tell_history(runs: u32) -> anyhow::Result<()> {
    eprintln!("history: {runs} runs, each page {} times", history::TIMES);
    let history::History { pages, busy } = history::measure(runs).await?;
    let bare = pages.first().context("a page without a query")?.p99_ms;
    println!("| page, with {runs} stored runs (goal: p99 ≤ 6 ms) | p50, ms | p99, ms | p99 ÷ `/login` |");
    println!("|---|---|---|---|");
    for history::Page { what, p50_ms, p99_ms } in pages {
        println!("| {what} | {p50_ms:.1} | {p99_ms:.1} | {:.1} |", p99_ms / bare);
    }
    let [first, again] = busy;
    println!(
        "\n| all of these, {} a second for {} s | goal | comparisons never seen before | seen before |",
        history::RATE,
        history::BUSY.as_secs()
    );
    println!("|---|---|---|---|");
    println!("| errors | 0 | {} | {} |", first.errors, again.errors);
    println!("| p50, ms | – | {:.1} | {:.1} |", first.p50_ms, again.p50_ms);
    println!("| p99, ms | ≤ 20 | {:.1} | {:.1} |", first.p99_ms, again.p99_ms);
    println!("| CPU time of the server for a page, ms | ≤ 2 | {:.1} | {:.1} |", first.cpu_ms, again.cpu_ms);
    println!(
        "| the most anonymous memory that the server held, MiB | ≤ 64 | {:.0} | {:.0} |",
        first.peak_mib, again.peak_mib
    );
    Ok(())
}

/// What is left of a server that is asked for too much.
async fn tell_overload() -> anyhow::Result<()> {
    eprintln!("overload: three times as many pages as the server can do");
    let overload::Overload {
        capacity,
        answered,
        refused,
        errors,
        answered_p99_ms,
        refused_p99_ms,
        health_p99_ms,
        memory_mib: [idle, peak],
        recovered_s,
    } = overload::measure().await?;
    println!("| three times as many pages as the server can do | goal | figure |\n|---|---|---|");
    println!("| pages/s that it can do | – | {capacity:.0} |");
    println!("| pages/s answered ÷ that | ≥ 0.9 | {:.2} |", answered / capacity);
    println!("| refused with 503, per second | – | {refused:.0} |");
    println!("| errors | 0 | {errors} |");
    println!("| answered pages, p99, ms | ≤ 2,000 | {answered_p99_ms:.0} |");
    println!("| refusals, p99, ms | ≤ 1,000 | {refused_p99_ms:.0} |");
    println!("| `/healthz`, p99, ms | – | {health_p99_ms:.0} |");
    println!("| anonymous memory ÷ before | ≤ 1.5 | {:.2} ({idle:.0} → {peak:.0} MiB) |", peak / idle);
    println!("| until a page comes within 50 ms again, s | ≤ 5 | {recovered_s:.1} |");
    Ok(())
}

/// Median, least and greatest.
fn spread(values: &[f64], digits: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(least), Some(greatest)) = (sorted.first(), sorted.last()) else { return "–".to_owned() };
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    format!("{median:.digits$} | {least:.digits$} … {greatest:.digits$}")
}
