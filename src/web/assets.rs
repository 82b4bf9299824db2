//! Static files, embedded at build time and served under names with a hash of their content.

use std::{
    io::Write,
    sync::{LazyLock, OnceLock},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY},
    },
    response::Response,
    routing::get,
};
use brewbench_wire::hex;
use brotli::CompressorWriter;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

use super::etag::{self, header_list};
use crate::app::{
    error::{Error, Result},
    state::AppState,
};

/// Name below `/static/`, and content.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| FILES.iter().map(Asset::new).collect());

/// An embedded file.
struct Asset {
    name: &'static str,
    content: &'static [u8],
    /// Its address with the hash of its content.
    address: String,
    etag: String,
    /// Its content, compressed for the first caller that accepts it.
    brotli: OnceLock<Bytes>,
    gzip: OnceLock<Bytes>,
}

/// Routes of the files, under plain and hashed names.
/// Merge them outside any compression layer: the files are stored compressed.
pub fn router() -> Router<AppState> {
    ASSETS.iter().fold(Router::new(), route)
}

fn route<S: Clone + Send + Sync + 'static>(router: Router<S>, asset: &'static Asset) -> Router<S> {
    let plain = get(async |headers: HeaderMap| asset.respond(&headers, "no-cache"));
    let hashed = get(async |headers: HeaderMap| asset.respond(&headers, "max-age=31536000, immutable"));
    router.route(&format!("/static/{}", asset.name), plain).route(&asset.address, hashed)
}

/// The address of a file in `static/` with the hash of its content, so that browsers may cache it for a year.
///
/// # Panics
/// If the file is not embedded. Only templates name files, and a test checks all of them.
pub fn asset(name: &str) -> &'static str {
    &find(name).address
}

/// The text of a file in `static/`, for pages that must work without this server.
///
/// # Panics
/// Like [`asset`].
pub fn text(name: &str) -> Result<&'static str> {
    str::from_utf8(find(name).content).map_err(Error::internal)
}

fn find(name: &str) -> &'static Asset {
    ASSETS.iter().find(|asset| asset.name == name).unwrap_or_else(|| panic!("static/{name} is not embedded"))
}

impl Asset {
    fn new((name, content): &(&'static str, &'static [u8])) -> Self {
        let hash = hex(&Sha256::digest(content));
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        Self {
            name,
            content,
            address: format!("/static/{stem}.{}.{ending}", &hash[..16]),
            etag: format!("\"{hash}\""),
            brotli: OnceLock::new(),
            gzip: OnceLock::new(),
        }
    }

    /// Responds with the file, compressed if the caller accepts that; without it if the caller has it.
    fn respond(&self, request: &HeaderMap, caching: &str) -> Result<Response> {
        let head = Response::builder()
            .header(CACHE_CONTROL, caching)
            .header(CONTENT_TYPE, self.content_type())
            .header(ETAG, &self.etag)
            .header(VARY, ACCEPT_ENCODING.as_str());
        let response = if etag::has(request, &self.etag) {
            head.status(StatusCode::NOT_MODIFIED).body(Body::empty())
        } else if !self.is_image() && accepts(request, "br") {
            let body = self.brotli.get_or_init(|| brotli(self.content)).clone();
            head.header(CONTENT_ENCODING, "br").body(body.into())
        } else if !self.is_image() && accepts(request, "gzip") {
            let body = self.gzip.get_or_init(|| gzip(self.content)).clone();
            head.header(CONTENT_ENCODING, "gzip").body(body.into())
        } else {
            head.body(self.content.into())
        };
        response.map_err(Error::internal)
    }

    fn content_type(&self) -> &'static str {
        match self.name.rsplit_once('.') {
            Some((_, "css")) => "text/css",
            Some((_, "js")) => "text/javascript",
            Some((_, "png")) => "image/png",
            Some((_, "svg")) => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }

    /// Whether its format is compressed already.
    fn is_image(&self) -> bool {
        self.content_type() == "image/png"
    }
}

/// Whether the caller accepts an encoding.
fn accepts(request: &HeaderMap, encoding: &str) -> bool {
    header_list(request, &ACCEPT_ENCODING).any(|value| {
        let (name, quality) = value.split_once(';').unwrap_or((value, ""));
        let quality = quality.trim().strip_prefix("q=").and_then(|quality| quality.parse::<f32>().ok());
        name.trim() == encoding && quality.is_none_or(|quality| quality > 0.0)
    })
}

/// Compresses with a medium quality: the best takes seconds for Plotly, and saves a tenth.
fn brotli(content: &[u8]) -> Bytes {
    let mut encoder = CompressorWriter::new(Vec::new(), 4_096, 5, 22);
    encoder.write_all(content).expect("memory takes every byte");
    encoder.into_inner().into()
}

fn gzip(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory takes every byte");
    encoder.finish().expect("memory takes every byte").into()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use axum::http::{
        HeaderName,
        header::{CONTENT_LENGTH, IF_NONE_MATCH},
    };
    use tower::ServiceExt;

    use super::*;

    /// Requests a file with a header.
    async fn request(address: &str, (name, value): (HeaderName, &str)) -> Response {
        let files = ASSETS.iter().fold(Router::new(), route);
        let request = axum::http::Request::get(address).header(name, value).body(Body::empty());
        files.oneshot(request.expect("a request")).await.expect("infallible")
    }

    #[test]
    fn a_file_is_served_under_a_name_with_its_hash() {
        let path = asset("app.css");
        let hash = path.strip_prefix("/static/app.").and_then(|rest| rest.strip_suffix(".css"));
        assert!(hash.is_some_and(|hash| hash.len() >= 8), "{path}");
    }

    #[tokio::test]
    async fn a_file_is_served_compressed_and_cacheable_for_a_year() {
        for (accepted, encoding) in [("gzip", "gzip"), ("gzip, deflate, br", "br"), ("br;q=0, gzip;q=0.5", "gzip")] {
            let response = request(asset("app.css"), (ACCEPT_ENCODING, accepted)).await;
            assert_eq!(response.headers()[CONTENT_ENCODING], encoding, "{accepted}");
            assert_eq!(response.headers()[CACHE_CONTROL], "max-age=31536000, immutable");
            assert_eq!(response.headers()[VARY], "accept-encoding");
        }
        let response = request(asset("app.css"), (ACCEPT_ENCODING, "identity")).await;
        assert_eq!(response.headers().get(CONTENT_ENCODING), None);
        let image = request(asset("images/compare-dark.png"), (ACCEPT_ENCODING, "br")).await;
        assert_eq!(image.headers().get(CONTENT_ENCODING), None, "a compressed format");
        assert_eq!(image.headers()[CONTENT_TYPE], "image/png");
    }

    #[tokio::test]
    async fn a_file_under_its_plain_name_is_sent_again_only_if_it_has_changed() {
        let response = request("/static/app.css", (ACCEPT_ENCODING, "br")).await;
        assert_eq!(response.headers()[CACHE_CONTROL], "no-cache");
        let tag = response.headers()[ETAG].to_str().expect("text").to_owned();
        for known in [&tag, &format!("\"another\", W/{tag}")] {
            let response = request("/static/app.css", (IF_NONE_MATCH, known)).await;
            assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        let response = request("/static/app.css", (IF_NONE_MATCH, "\"another\"")).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/css");
        assert_eq!(response.headers()[CONTENT_LENGTH].to_str().ok(), Some(&*find("app.css").content.len().to_string()));
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
