//! Compares a response with what was expected of it. Pure.

use memchr::memmem::Finder;
use sha2::{Digest, Sha256};

use crate::plan::{Expect, digest};
use crate::tally::Failure;

/// The content of every n-th response of a thread is compared, beginning with the first.
pub const SAMPLE: u64 = 16;

/// What a response must be, prepared for comparing.
#[derive(Debug)]
pub struct Expected {
    status: Option<u16>,
    length: Option<u64>,
    sha256: Option<[u8; 32]>,
    contains: Option<Finder<'static>>,
}

impl Expected {
    /// Prepares an expectation that was checked.
    pub fn new(expect: &Expect) -> Self {
        let Expect { status, length, sha256, contains } = expect;
        let contains = contains.as_deref().map(|text| Finder::new(text.as_bytes()).into_owned());
        Self { status: *status, length: *length, sha256: sha256.as_deref().and_then(digest), contains }
    }

    /// Whether it is about the content of a body.
    pub fn is_about_content(&self) -> bool {
        self.sha256.is_some() || self.contains.is_some()
    }

    /// Returns why a response is not as expected.
    pub fn failure(&self, status: u16, body: &mut BodyCheck) -> Option<(Failure, String)> {
        let is_expected = self.status.map_or(status < 400, |expected| expected == status);
        if !is_expected {
            return Some((Failure::Status, format!("status {status}")));
        }
        let length = body.length;
        if let Some(expected) = self.length.filter(|&expected| expected != length) {
            return Some((Failure::Length, format!("{length} bytes instead of {expected}")));
        }
        if !body.compares_content {
            return None;
        }
        let content = &mut body.content;
        if self.contains.is_some() && !content.is_found {
            return Some((Failure::Body, "the body does not contain the text".to_owned()));
        }
        if self.sha256.is_some_and(|expected| content.hash.finalize_reset()[..] != expected) {
            return Some((Failure::Body, "the SHA-256 of the body differs".to_owned()));
        }
        None
    }
}

/// What is known of a body while it arrives.
#[derive(Debug, Default)]
pub struct BodyCheck {
    length: u64,
    compares_content: bool,
    content: Content,
}

#[derive(Debug, Default)]
struct Content {
    hash: Sha256,
    is_found: bool,
    /// The last bytes, shorter than the text.
    tail: Vec<u8>,
}

impl BodyCheck {
    /// Prepares for a body. `compares_content` is whether it belongs to the sample.
    pub fn begin(&mut self, compares_content: bool) {
        self.length = 0;
        self.compares_content = compares_content;
        if compares_content {
            self.content.hash.reset();
            self.content.is_found = false;
            self.content.tail.clear();
        }
    }

    /// Whether its content is compared.
    pub fn compares_content(&self) -> bool {
        self.compares_content
    }

    /// Takes the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8], expected: &Expected) {
        self.length += bytes.len() as u64;
        if !self.compares_content {
            return;
        }
        if expected.sha256.is_some() {
            self.content.hash.update(bytes);
        }
        if let Some(finder) = &expected.contains {
            self.content.find(bytes, finder);
        }
    }
}

impl Content {
    fn find(&mut self, bytes: &[u8], finder: &Finder<'_>) {
        if self.is_found {
            return;
        }
        let most = finder.needle().len() - 1;
        self.tail.extend_from_slice(&bytes[..bytes.len().min(most)]);
        self.is_found = finder.find(bytes).is_some() || finder.find(&self.tail).is_some();
        if bytes.len() >= most {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - most..]);
        } else {
            let excess = self.tail.len().saturating_sub(most);
            self.tail.drain(..excess);
        }
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::hex;
    use proptest::prelude::*;

    use super::*;

    fn failure(expect: &Expect, status: u16, pieces: &[&[u8]]) -> Option<Failure> {
        let expected = Expected::new(expect);
        let mut body = BodyCheck::default();
        body.begin(expected.is_about_content());
        for piece in pieces {
            body.update(piece, &expected);
        }
        expected.failure(status, &mut body).map(|(failure, _)| failure)
    }

    #[test]
    fn status_and_length_are_compared() {
        let any = Expect::default();
        assert_eq!(failure(&any, 399, &[b"x"]), None);
        assert_eq!(failure(&any, 400, &[b"x"]), Some(Failure::Status));
        let exact = Expect { status: Some(404), length: Some(3), ..Expect::default() };
        assert_eq!(failure(&exact, 404, &[b"a", b"bc"]), None);
        assert_eq!(failure(&exact, 200, &[b"abc"]), Some(Failure::Status));
        assert_eq!(failure(&exact, 404, &[b"ab"]), Some(Failure::Length));
    }

    proptest! {
        #[test]
        fn a_text_and_a_hash_are_found_in_any_pieces(
            body in "[ab]{0,30}", text in "[ab]{1,5}", lengths in proptest::collection::vec(0..6_usize, 0..20),
        ) {
            let (mut pieces, mut rest) = (Vec::new(), body.as_bytes());
            for length in lengths {
                let (piece, after) = rest.split_at(length.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            let contains = body.contains(&text);
            let expect = Expect { contains: Some(text), ..Expect::default() };
            prop_assert_eq!(failure(&expect, 200, &pieces).is_none(), contains);
            let expect = Expect { sha256: Some(hex(&Sha256::digest(&body))), ..Expect::default() };
            prop_assert_eq!(failure(&expect, 200, &pieces), None);
            pieces.push(b"c");
            prop_assert_eq!(failure(&expect, 200, &pieces), Some(Failure::Body));
        }
    }
}
