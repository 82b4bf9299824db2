//! Static files, embedded at build time and served under names with a hash of their content.

use std::sync::LazyLock;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
};
use memory_serve::{CacheControl, Manifest, MemoryServe};
use tower::ServiceExt;

use crate::app::{
    error::{Error, Result},
    state::AppState,
};

static MANIFEST: LazyLock<Manifest> = LazyLock::new(|| embedded().manifest());

/// Unpacking is slow and leaks its result, so it happens once per process.
static ROUTER: LazyLock<Router<AppState>> = LazyLock::new(|| embedded().into_router());

/// Routes of the files, under plain and hashed names.
/// Merge them outside any compression layer: the files are stored compressed.
pub fn router() -> Router<AppState> {
    ROUTER.clone()
}

/// The address of a file in `static/` with the hash of its content, so that browsers may cache it for a year.
///
/// # Panics
/// If the file is not embedded. Only templates name files, and a test checks all of them.
pub fn asset(name: &str) -> &'static str {
    MANIFEST.get(&format!("/static/{name}")).unwrap_or_else(|| panic!("static/{name} is not embedded"))
}

/// The text of a file in `static/`, for pages that must work without this server.
pub async fn text(state: &AppState, name: &str) -> Result<String> {
    let request = Request::get(asset(name)).body(Body::empty()).map_err(Error::internal)?;
    let router: Router = router().with_state(state.clone());
    let response = router.oneshot(request).await.map_err(Error::internal)?;
    let bytes = to_bytes(response.into_body(), usize::MAX).await.map_err(Error::internal)?;
    String::from_utf8(bytes.to_vec()).map_err(Error::internal)
}

/// Loads the embedded files. A debug build would spend half a minute on Brotli at every start.
fn embedded() -> MemoryServe {
    memory_serve::load!()
        .index_file(None)
        .enable_brotli(!cfg!(debug_assertions))
        .enable_gzip(true)
        .enable_hashed_routes(true)
        .cache_control(CacheControl::NoCache)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use axum::http::header;

    use super::*;

    #[test]
    fn a_file_is_served_under_a_name_with_its_hash() {
        let path = asset("app.css");
        let hash = path.strip_prefix("/static/app.").and_then(|rest| rest.strip_suffix(".css"));
        assert!(hash.is_some_and(|hash| hash.len() >= 8), "{path}");
    }

    #[tokio::test]
    async fn a_file_is_served_compressed_and_cacheable_for_a_year() {
        let router: Router = embedded().into_router();
        let request = Request::get(asset("app.css")).header(header::ACCEPT_ENCODING, "gzip").body(Body::empty());
        let response = router.oneshot(request.expect("a request")).await.expect("infallible");
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "max-age=31536000, immutable");
    }

    #[test]
    fn every_file_named_by_a_template_is_embedded() {
        let mut named = 0;
        visit(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/templates")), &mut |text| {
            for part in text.split("asset(\"").skip(1) {
                asset(part.split('"').next().expect("split yields at least one part"));
                named += 1;
            }
        });
        assert!(named >= 5, "only {named} found: do templates name files differently now?");
    }

    fn visit(folder: &Path, check: &mut impl FnMut(&str)) {
        for entry in fs::read_dir(folder).expect("templates can be listed") {
            let path = entry.expect("templates can be listed").path();
            if path.is_dir() {
                visit(&path, check);
            } else {
                check(&fs::read_to_string(&path).expect("templates are text"));
            }
        }
    }
}
