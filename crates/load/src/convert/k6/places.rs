//! Where in a script a request is: what decides whether and how often it is sent. Pure.

use super::tokens::{Kind, one_of};
use super::values::Script;

/// Maximum number of tokens of a statement before a request, and of brackets around it.
const MAX_TOKENS: usize = 200;

/// Why a request may be sent otherwise than once an iteration.
#[derive(Default)]
pub(super) struct Reasons {
    pub(super) is_repeated: bool,
    pub(super) is_conditional: bool,
    /// It is in a function that k6 calls once.
    pub(super) is_once: bool,
}

impl Script<'_> {
    /// Returns the bracket around a place, and those around it.
    pub(super) fn around(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.tokens[at].parent, |open| self.tokens[*open].parent).take(MAX_TOKENS)
    }

    /// Looks at what is around a place.
    pub(super) fn reasons(&self, at: usize) -> Reasons {
        let mut reasons = Reasons::default();
        for child in std::iter::once(at).chain(self.around(at)) {
            self.look_before(child, &mut reasons);
        }
        reasons
    }

    /// Looks at the statement, or the argument, before a place.
    fn look_before(&self, child: usize, reasons: &mut Reasons) {
        let parent = self.tokens[child].parent;
        let callee = parent.filter(|parent| self.is(*parent, "(")).and_then(|parent| self.word_before(parent));
        // A block after a list is the body of a function, if nothing else is found.
        let (mut is_body, mut is_usual) = (child > 0 && self.is(child - 1, "){"), callee == Some("group"));
        let mut at = child;
        for _ in 0..MAX_TOKENS {
            let Some(before) = at.checked_sub(1).filter(|before| Some(*before) != parent) else { break };
            match self.tokens[before].kind {
                Kind::Mark(';' | ',' | '}') => break,
                _ if self.ends_line(before, at) => break,
                Kind::Mark('>') if self.is(before - 1, "=>") => is_body = true,
                Kind::Mark('?' | '&' | '|') => reasons.is_conditional = true,
                Kind::Word(word) => {
                    let (repeats, decides) = (one_of("for while do", word), one_of("if else switch case catch", word));
                    is_body &= !(repeats || decides);
                    is_usual |= word == "default";
                    reasons.is_repeated |= repeats;
                    reasons.is_conditional |= decides;
                    reasons.is_once |= one_of("setup teardown handleSummary", word);
                }
                _ => {}
            }
            at = self.tokens[before].partner.min(before);
        }
        reasons.is_repeated |= is_body && !is_usual;
    }

    /// Whether a statement without a semicolon ends between two tokens.
    fn ends_line(&self, before: usize, next: usize) -> bool {
        let is_on_next_line = self.tokens[before].line < self.tokens[next].line && self.word(next).is_some();
        is_on_next_line
            && match self.tokens[before].kind {
                Kind::Mark(')') => {
                    !one_of("if for while", self.word_before(self.tokens[before].partner).unwrap_or_default())
                }
                Kind::Mark(mark) => mark == '`' || mark == ']',
                Kind::Word(word) => !one_of("async await case do else return", word),
                _ => true,
            }
    }
}
