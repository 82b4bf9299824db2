//! Static files, embedded at build and served under names that carry a hash of their content.

use std::sync::LazyLock;

use axum::Router;
use memory_serve::{CacheControl, Manifest, MemoryServe};

use crate::state::AppState;

static MANIFEST: LazyLock<Manifest> = LazyLock::new(|| embedded().manifest());

/// Unpacking takes a while and leaks what it unpacks, so it happens once in a process.
static ROUTER: LazyLock<Router<AppState>> = LazyLock::new(|| embedded().into_router());

/// The files under their plain and their hashed names. To be merged outside of any compression layer: they are stored
/// compressed.
pub fn router() -> Router<AppState> {
    ROUTER.clone()
}

/// The address of a file in `static/`, with the hash of its content: a browser may keep it for a year.
///
/// # Panics
/// For a name that is not embedded. Only templates name files, and a test goes through all of them.
pub fn asset(name: &str) -> &'static str {
    MANIFEST.get(&format!("/static/{name}")).unwrap_or_else(|| panic!("static/{name} is not embedded"))
}

/// Compression stays as it is by default: on in release builds, where it was done at build; off in debug builds, where
/// it would take half a minute at each start.
fn embedded() -> MemoryServe {
    memory_serve::load!().index_file(None).enable_hashed_routes(true).cache_control(CacheControl::NoCache)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn a_file_is_served_under_a_name_with_its_hash() {
        let path = asset("app.css");
        assert!(path.starts_with("/static/app.") && path.ends_with(".css") && path.len() > 24, "{path}");
    }

    #[test]
    fn every_file_that_a_template_names_is_embedded() {
        let mut named = 0;
        visit(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/templates")), &mut |text| {
            for part in text.split("asset(\"").skip(1) {
                asset(part.split('"').next().expect("split yields at least one part"));
                named += 1;
            }
        });
        assert!(named >= 5, "only {named} found: has the way of naming them changed?");
    }

    fn visit(folder: &Path, look: &mut impl FnMut(&str)) {
        for entry in fs::read_dir(folder).expect("templates can be listed") {
            let path = entry.expect("templates can be listed").path();
            if path.is_dir() {
                visit(&path, look);
            } else {
                look(&fs::read_to_string(&path).expect("templates are text"));
            }
        }
    }
}
