//! Collects the hits of a search.

use tokio::task::spawn_blocking;

use crate::{
    app::{
        error::{Error, Result},
        ids::ExperimentId,
        state::AppState,
    },
    auth::{caller::Caller, model::Scope},
    docs,
    experiments::describe::describe_plan,
    runs::progress,
    search::{
        model::{Hit, HitKind, SearchResults},
        rank::{Query, Rank},
        site,
    },
    web::address::segment,
};

/// Hits of one kind, the best first.
type Group = Vec<(Rank, Hit)>;

/// Searches what a caller may see, with at most `limit` hits of each kind; none is an anonymous visitor. An empty text
/// finds all pages.
pub async fn search(state: &AppState, caller: Option<&Caller>, text: &str, limit: usize) -> Result<SearchResults> {
    let query = Query::new(text);
    let mut groups = vec![pages(state, caller, &query)?];
    if !query.is_empty() {
        if caller.is_some_and(|caller| caller.scope >= Scope::Read) {
            let most = i64::try_from(limit).unwrap_or(i64::MAX);
            groups.push(targets(state, &query, most).await?);
            groups.push(experiments(state, &query, most).await?);
            groups.push(runs(state, &query, most).await?);
        }
        groups.push(documentation(state, &query).await?);
        for group in &mut groups {
            group.sort_by_key(|(rank, _)| *rank);
            group.truncate(limit);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups.sort_by_key(|group| group.first().map(|(rank, hit)| (*rank, hit.kind)));
    let hits = groups.into_iter().flatten().map(|(_, hit)| hit).collect();
    Ok(SearchResults { query: query.text().as_str().to_owned(), hits })
}

fn url(state: &AppState, path: &str) -> Result<String> {
    Ok(state.public_url.join(path).map_err(Error::internal)?.into())
}

fn pages(state: &AppState, caller: Option<&Caller>, query: &Query) -> Result<Group> {
    let ranked = site::pages(caller).filter_map(|page| {
        let by_other_words = || query.rank(&format!("{} {}", page.title, page.also)).map(|_| Rank::Part);
        let rank = if query.is_empty() { Some(Rank::Part) } else { query.rank(page.title).or_else(by_other_words) };
        Some((rank?, page))
    });
    let hit = |(rank, page): (Rank, &site::SitePage)| {
        let url = url(state, page.path)?;
        Ok((rank, Hit { kind: HitKind::Page, title: page.title.to_owned(), detail: None, url, mark: None }))
    };
    ranked.map(hit).collect()
}

async fn targets(state: &AppState, query: &Query, limit: i64) -> Result<Group> {
    let pool = &state.db.read;
    let names = crate::search::store::targets(pool, query, limit).await?;
    let marks = crate::catalog::store::marks(pool, &names.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    let hit = |name: String| {
        let (rank, mark) = (query.rank(&name).unwrap_or(Rank::Part), marks.of(&name));
        let url = url(state, &format!("targets/{}", segment(&name)))?;
        Ok((rank, Hit { kind: HitKind::Target, title: name, detail: None, url, mark: Some(mark) }))
    };
    names.into_iter().map(hit).collect()
}

async fn experiments(state: &AppState, query: &Query, limit: i64) -> Result<Group> {
    let pool = &state.db.read;
    let mut found = crate::search::store::experiments(pool, query, limit).await?;
    if let Some(prefix) = query.as_id() {
        let by_id = crate::search::store::experiments_by_id(pool, prefix, limit).await?;
        let is_new = |id: &ExperimentId| !found.contains(id);
        let by_id: Vec<_> = by_id.into_iter().filter(is_new).collect();
        found.extend(by_id);
    }
    let mut group = Vec::new();
    for id in found {
        // It may have been removed in between.
        let Some(experiment) = crate::experiments::store::find(pool, &id).await? else { continue };
        let rank = [experiment.name.as_str(), id.as_str()].iter().filter_map(|text| query.rank(text)).min();
        let (url, detail) = (url(state, &format!("experiments/{id}"))?, Some(describe_plan(&experiment.plan)));
        let hit = Hit { kind: HitKind::Experiment, title: experiment.name, detail, url, mark: None };
        group.push((rank.unwrap_or(Rank::Part), hit));
    }
    Ok(group)
}

async fn runs(state: &AppState, query: &Query, limit: i64) -> Result<Group> {
    let Some(prefix) = query.as_id() else { return Ok(Vec::new()) };
    let ids = crate::search::store::runs(&state.db.read, prefix, limit).await?;
    let found = crate::runs::store::by_ids(&state.db.rows, &ids).await?;
    let targets: Vec<&str> = found.iter().map(|run| run.spec.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let hit = |run: &crate::runs::model::Run| {
        let title = run.id.to_string();
        let rank = query.rank(&title).unwrap_or(Rank::Part);
        let url = url(state, &format!("runs/{title}"))?;
        let (detail, mark) = (Some(progress::describe(run)), Some(marks.of(&run.spec.target)));
        Ok((rank, Hit { kind: HitKind::Run, title, detail, url, mark }))
    };
    found.iter().rev().map(hit).collect()
}

async fn documentation(state: &AppState, query: &Query) -> Result<Group> {
    let text = query.text().clone();
    let found = spawn_blocking(move || docs::store::search(&text)).await.map_err(Error::internal)?;
    let hit = |section: docs::store::Hit| {
        let docs::store::Hit { chapter, heading, href, snippet } = section;
        let title = if heading == chapter { chapter } else { format!("{chapter}: {heading}") };
        let text: String = snippet.into_iter().map(|part| part.text).collect();
        let detail = Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty());
        let hit = Hit { kind: HitKind::Documentation, title, detail, url: url(state, &href)?, mark: None };
        Ok((Rank::Text, hit))
    };
    found.map_err(sqlx::Error::Decode)?.into_iter().map(hit).collect()
}
