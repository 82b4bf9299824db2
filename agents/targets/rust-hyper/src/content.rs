//! Content served from memory: files, generated at start, and redirects. The same in every bundled target.

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};

/// Names and lengths in bytes, the longest last.
const FILES: [(&str, usize); 4] = [("1k", 1 << 10), ("10k", 10 << 10), ("100k", 100 << 10), ("1m", 1 << 20)];

/// Targets of `/r/{name}`.
const REDIRECTS: [(&str, &str); 5] =
    [("blog", "/file/10k"), ("docs", "/file/100k"), ("github", "/file/1k"), ("latest", "/hash"), ("status", "/health")];

/// One file with everything that its responses need.
pub struct File {
    name: &'static str,
    /// Shared by all responses without copying.
    pub bytes: Bytes,
    /// Strong, quoted: the first 16 bytes of the content's SHA-256 in hex.
    pub etag: HeaderValue,
}

/// All files. The shorter ones are prefixes of the longest.
pub struct Files([File; FILES.len()]);

impl Files {
    /// Generates the files.
    pub fn generate() -> Self {
        let longest = noise(FILES[FILES.len() - 1].1);
        Self(FILES.map(|(name, length)| {
            let bytes = longest.slice(..length);
            let digest = format!("{:x}", Sha256::digest(&bytes));
            let etag = HeaderValue::try_from(format!("\"{}\"", &digest[..32])).expect("quoted hex is a header value");
            File { name, bytes, etag }
        }))
    }

    /// Returns the file with this name.
    pub fn get(&self, name: &str) -> Option<&File> {
        self.0.iter().find(|file| file.name == name)
    }
}

/// Returns the target of `/r/{name}`.
pub fn redirect(name: &str) -> Option<&'static str> {
    REDIRECTS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

/// Returns incompressible bytes that are the same at every start: the top bytes of Knuth's MMIX generator, seeded with
/// 0.
fn noise(length: usize) -> Bytes {
    let mut state = 0_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}
