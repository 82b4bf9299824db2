//! What a page weighs on the wire, and that nothing comes from elsewhere.

use axum::{Router, body::Body, http::Request, routing::get};
use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::network::{ClearBrowserCacheParams, EnableParams};
use serde::Deserialize;
use tower::ServiceExt;
use tower_http::{CompressionLevel, compression::CompressionLayer};

use super::{
    Tab,
    world::{World, somebody},
};
use crate::harness::BROWSER;

/// First view of a page without charts, everything included, bytes.
const PLAIN: u64 = 60_000;

/// First view of a page with charts, bytes.
const CHARTS: u64 = 500_000;

/// Every view after that, bytes.
const AGAIN: u64 = 30_000;

/// What the browser notes of something that it fetched.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fetched {
    name: String,
    /// Body as it came.
    encoded_body_size: u64,
    /// Body and headers as they came; 0 from the cache.
    transfer_size: u64,
}

const FETCHED: &str = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .map((entry) => entry.toJSON())";

const DRAWN: &str =
    "[...document.querySelectorAll('figure[data-chart]')].every((figure) => figure.querySelector('.main-svg'))";

#[tokio::test]
async fn pages_are_light_at_first_sight_and_lighter_after_it_and_ask_nobody_else() {
    let world = World::full().await;
    let site = world.app.state.public_url.as_str();
    let plotly = Plotly::of(&world).await;
    let tab = Tab::with(&world.app, &somebody(&world.app, Role::Admin).await).await;
    tab.ask(EnableParams::default()).await;
    let mut faults = Vec::new();
    for place in world.places.iter().filter(|place| place.who == Some(Role::Admin)) {
        let mut views = Vec::new();
        tab.ask(ClearBrowserCacheParams::default()).await;
        for _ in 0..2 {
            tab.go(&place.path).await;
            tab.until(DRAWN).await;
            let fetched: Vec<Fetched> = tab.eval(FETCHED).await;
            let foreign = fetched.iter().filter(|one| !one.name.starts_with(site));
            faults.extend(foreign.map(|one| format!("{}: asks for {}", place.path, one.name)));
            views.push(fetched.iter().map(|one| plotly.as_released(one)).sum::<u64>());
        }
        let has_charts = tab.eval::<bool>("!!document.querySelector('figure[data-chart]')").await;
        let first = views[0] + plotly.icon;
        let limit = if has_charts { CHARTS } else { PLAIN };
        println!("{first:>7} {:>6} {}", views[1], place.name);
        if first > limit || views[1] > AGAIN || views[0] < 10_000 {
            faults.push(format!("{}: {first} bytes at first sight, {} after it", place.path, views[1]));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// A build for tests sends static files gzipped only, because brotli takes long; what is released has both. All but
/// Plotly is light enough to count as it is.
struct Plotly {
    /// Its size, brotli of middling effort: more than what is released.
    brotli: u64,
    /// The favicon, which the browser notes nowhere.
    icon: u64,
}

impl Plotly {
    async fn of(world: &World) -> Self {
        let person = somebody(&world.app, Role::Viewer).await.at_pages();
        let page = person.get("/compare?runs=none").await.text();
        let icon = page.split("rel=\"icon\"").nth(1).and_then(|rest| rest.split("href=\"").nth(1));
        let icon = icon.and_then(|rest| rest.split('"').next()).expect("a favicon");
        let icon = world.app.nobody().get(icon).await.ok().body.len() as u64;
        let script = world.app.nobody().get(brewbench::web::assets::asset("plotly.js")).await.ok().text();
        let layer = CompressionLayer::new().quality(CompressionLevel::Precise(5));
        let app: Router = Router::new().route("/", get(async || script)).layer(layer);
        let asked = Request::get("/").header("accept", BROWSER).header("accept-encoding", "br").body(Body::empty());
        let answer = app.oneshot(asked.expect("a request")).await.expect("infallible");
        assert_eq!(answer.headers()["content-encoding"], "br");
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        Self { brotli: body.len() as u64, icon }
    }

    /// What something weighs on the wire in what is released, at most.
    fn as_released(&self, fetched: &Fetched) -> u64 {
        let Fetched { name, encoded_body_size, transfer_size } = fetched;
        let is_plotly = *transfer_size > 0 && name.contains("/static/plotly.");
        if is_plotly { transfer_size - encoded_body_size + self.brotli } else { *transfer_size }
    }
}
