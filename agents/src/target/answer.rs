//! What a target answers before the load, and whether it still does after it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::manifest::{Manifest, Verify};
use super::ready::{self, Response};

/// A target that takes longer for one answer is asked only once before the load: nobody shall wait for that.
const SECOND_LOOK: Duration = Duration::from_millis(250);

/// How long the answer after the load may take, if the manifest gives it no less.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// An answer that was the same for less than this may still follow the clock.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// What a target answered before the load.
#[derive(Debug)]
pub struct Known {
    at: SocketAddr,
    question: Verify,
    limit: Duration,
    /// If it answered the same each time so far.
    constant: Option<Answer>,
    since: Instant,
    verified_at: Instant,
}

impl Known {
    /// Asks as the manifest says: what is verified, or else what shows that it is ready. It is asked twice, and a third
    /// time by [`Self::confirm`]: an answer that is not always the same can't be held against a later one. The error
    /// says in what an answer is not as the manifest says.
    pub async fn learn(at: SocketAddr, manifest: &Manifest) -> Result<Self, String> {
        let Manifest { ready, verify, .. } = manifest;
        let question =
            verify.clone().unwrap_or_else(|| Verify { path: ready.path.clone(), status: ready.status, contains: None });
        let limit = ready.timeout();
        let begun = Instant::now();
        let first = Answer::of(&ready::ask(at, &question, limit).await?);
        let verified_at = Instant::now();
        let constant = if begun.elapsed() <= SECOND_LOOK {
            let second = Answer::of(&ready::ask(at, &question, limit).await?);
            (first == second).then_some(second)
        } else {
            None
        };
        Ok(Self { at, question, limit: limit.min(AFTERWARDS), constant, since: begun, verified_at })
    }

    /// When the first answer was verified.
    pub fn verified_at(&self) -> Instant {
        self.verified_at
    }

    /// Asks once more, right before the measurement: only an answer that stayed the same for a while, warm-up included,
    /// can be held against one after it.
    pub async fn confirm(&mut self) {
        let Some(before) = self.constant.take().filter(|_| self.since.elapsed() >= LONG_ENOUGH) else { return };
        let now = ready::ask(self.at, &self.question, SECOND_LOOK).await;
        self.constant = now.ok().map(|response| Answer::of(&response)).filter(|now| *now == before);
    }

    /// In what the answer is another by now: the end of a sentence; empty if in nothing.
    pub async fn change(&self) -> String {
        let Self { at, question, limit, constant, .. } = self;
        match ready::ask(*at, question, *limit).await {
            Ok(response) => {
                let now = Answer::of(&response);
                constant.as_ref().and_then(|before| before.difference(&question.path, &now)).unwrap_or_default()
            }
            Err(fault) => fault,
        }
    }
}

/// What is compared of an answer. Its status is the manifest's, or it would not have been taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    content_type: String,
    digest: [u8; 32],
    bytes: usize,
    start: String,
}

impl Answer {
    fn of(response: &Response) -> Self {
        let Response { content_type, body } = response;
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).chars().take(60).collect();
        let digest = Sha256::digest(without_numbers(body)).into();
        Self { content_type: content_type.clone(), digest, bytes: body.len(), start }
    }

    fn difference(&self, path: &str, now: &Self) -> Option<String> {
        let Self { content_type, digest, bytes, start } = self;
        if *content_type != now.content_type {
            return Some(format!("GET {path} has the type {:?}, not {content_type:?}", now.content_type));
        }
        (*digest != now.digest).then(|| {
            let (length, beginning) = (now.bytes, &now.start);
            format!(
                "the body of GET {path} has {length} bytes and begins with {beginning:?}, \
                 not {bytes} bytes that begin with {start:?}"
            )
        })
    }
}

/// Every number becomes one digit: a time of day or a count of minutes may stay the same before the load.
fn without_numbers(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(body.len());
    for &byte in body {
        let byte = if byte.is_ascii_digit() { b'0' } else { byte };
        if byte != b'0' || plain.last() != Some(&b'0') {
            plain.push(byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(content_type: &str, body: &str) -> Answer {
        Answer::of(&Response { content_type: content_type.to_owned(), body: body.as_bytes().to_vec() })
    }

    #[test]
    fn a_difference_is_told_in_words_and_numbers_are_none() {
        let before = answer("text/plain", "served 9 times, up 10.5 s");
        assert_eq!(before.difference("/x", &answer("text/plain", "served 123456 times, up 40.25 s")), None);
        let told = before.difference("/x", &answer("text/plain", "overloaded")).expect("a difference");
        let words = "the body of GET /x has 10 bytes and begins with \"overloaded\", \
                     not 25 bytes that begin with \"served 9 times, up 10.5 s\"";
        assert_eq!(told, words);
        let told = before.difference("/x", &answer("text/html", "served 9 times, up 10.5 s")).expect("a difference");
        assert_eq!(told, "GET /x has the type \"text/html\", not \"text/plain\"");
    }
}
