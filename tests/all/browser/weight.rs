//! The transfer size of pages, and that they load nothing from other sites.

use axum::{Router, body::Body, http::Request, routing::get};
use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::network::{ClearBrowserCacheParams, EnableParams};
use serde::Deserialize;
use tower::ServiceExt;
use tower_http::{CompressionLevel, compression::CompressionLayer};

use super::{
    Tab,
    world::{World, sign_in},
};
use crate::harness::BROWSER;

/// Limit of the first view of a page without charts and all its files, bytes.
const PLAIN: u64 = 60_000;

/// Limit of the first view of a page with charts, bytes.
const CHARTS: u64 = 500_000;

/// Limit of each later view, bytes.
const AGAIN: u64 = 30_000;

/// A file loaded by the browser.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fetched {
    name: String,
    /// Compressed body.
    encoded_body_size: u64,
    /// Body and headers; 0 from the cache.
    transfer_size: u64,
}

const FETCHED: &str = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .map((entry) => entry.toJSON())";

const DRAWN: &str =
    "[...document.querySelectorAll('figure[data-chart]')].every((figure) => figure.querySelector('.main-svg'))";

#[tokio::test]
async fn pages_are_small_and_load_nothing_from_other_sites() {
    let world = World::full().await;
    let site = world.app.state.public_url.as_str();
    let plotly = Plotly::measure(&world).await;
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
            views.push(fetched.iter().map(|one| plotly.as_released(one)).sum::<u64>());
        }
        let has_charts = tab.eval::<bool>("!!document.querySelector('figure[data-chart]')").await;
        let first = views[0] + plotly.icon;
        let limit = if has_charts { CHARTS } else { PLAIN };
        println!("{first:>7} {:>6} {}", views[1], place.name);
        if first > limit || views[1] > AGAIN || views[0] < 10_000 {
            faults.push(format!("{}: {first} bytes in the first view, {} in the second", place.path, views[1]));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Test builds compress static files with gzip only, because brotli is slow; releases have both. Only Plotly is large
/// enough to make a difference.
struct Plotly {
    /// Its size with brotli of medium quality, which is larger than in releases.
    brotli: u64,
    /// Size of the favicon, which the browser does not report.
    icon: u64,
}

impl Plotly {
    async fn measure(world: &World) -> Self {
        let viewer = sign_in(&world.app, Role::Viewer).await.in_browser();
        let page = viewer.get("/compare?runs=none").await.text();
        let icon = page.split("rel=\"icon\"").nth(1).and_then(|rest| rest.split("href=\"").nth(1));
        let icon = icon.and_then(|rest| rest.split('"').next()).expect("a favicon");
        let icon = world.app.anonymous().get(icon).await.ok().body.len() as u64;
        let script = world.app.anonymous().get(brewbench::web::assets::asset("plotly.js")).await.ok().text();
        let layer = CompressionLayer::new().quality(CompressionLevel::Precise(5));
        let app: Router = Router::new().route("/", get(async || script)).layer(layer);
        let request = Request::get("/").header("accept", BROWSER).header("accept-encoding", "br").body(Body::empty());
        let response = app.oneshot(request.expect("a request")).await.expect("infallible");
        assert_eq!(response.headers()["content-encoding"], "br");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        Self { brotli: body.len() as u64, icon }
    }

    /// Returns the maximum transfer size of a file in releases.
    fn as_released(&self, fetched: &Fetched) -> u64 {
        let Fetched { name, encoded_body_size, transfer_size } = fetched;
        let is_plotly = *transfer_size > 0 && name.contains("/static/plotly.");
        if is_plotly { transfer_size - encoded_body_size + self.brotli } else { *transfer_size }
    }
}
