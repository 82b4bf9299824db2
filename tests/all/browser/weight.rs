//! The transfer size of pages, and that they load nothing from other sites.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::network::{ClearBrowserCacheParams, EnableParams};
use serde::Deserialize;

use super::{
    Tab,
    world::{World, sign_in},
};

/// Limit of the first view of a page without charts and all its files, bytes.
const PLAIN: u64 = 60_000;

/// Limit of the first view of a page with charts, bytes; most of them are Plotly.
const CHARTS: u64 = 510_000;

/// Limit of each later view, bytes.
const AGAIN: u64 = 30_000;

/// A file loaded by the browser.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fetched {
    name: String,
    /// Body and headers; 0 from the cache.
    transfer_size: u64,
}

const FETCHED: &str = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .map((entry) => entry.toJSON())";

const DRAWN: &str = "[...document.querySelectorAll('figure[data-chart]')].every((figure) => !figure.checkVisibility() || figure.querySelector('.main-svg'))";

#[tokio::test]
async fn pages_are_small_and_load_nothing_from_other_sites() {
    let world = World::full().await;
    let site = world.app.state.public_url.as_str();
    let icon = icon_size(&world).await;
    let tab = Tab::with_session(&world.app, &sign_in(&world.app, Role::Admin).await).await;
    tab.execute(EnableParams::default()).await;
    let mut faults = Vec::new();
    for place in world.places.iter().filter(|place| place.role == Some(Role::Admin)) {
        let mut views = Vec::new();
        tab.execute(ClearBrowserCacheParams::default()).await;
        for _ in 0..2 {
            tab.go(&place.path).await;
            tab.until(DRAWN).await;
            let fetched: Vec<Fetched> = tab.eval(FETCHED).await;
            let foreign = fetched.iter().filter(|one| !one.name.starts_with(site));
            faults.extend(foreign.map(|one| format!("{}: loads {}", place.path, one.name)));
            views.push(fetched.iter().map(|one| one.transfer_size).sum::<u64>());
        }
        let has_charts = tab.eval::<bool>("!!document.querySelector('figure[data-chart]')").await;
        let first = views[0] + icon;
        let limit = if has_charts { CHARTS } else { PLAIN };
        println!("{first:>7} {:>6} {}", views[1], place.name);
        if first > limit || views[1] > AGAIN || views[0] < 10_000 {
            faults.push(format!("{}: {first} bytes in the first view, {} in the second", place.path, views[1]));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Returns the size of the favicon, which the browser does not report.
async fn icon_size(world: &World) -> u64 {
    let viewer = sign_in(&world.app, Role::Viewer).await.in_browser();
    let page = viewer.get("/compare?runs=none").await.text();
    let icon = page.split("rel=\"icon\"").nth(1).and_then(|rest| rest.split("href=\"").nth(1));
    let icon = icon.and_then(|rest| rest.split('"').next()).expect("a favicon");
    world.app.anonymous().get(icon).await.ok().body.len() as u64
}
