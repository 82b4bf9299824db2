//! What the pages of this module share.

use askama::Template;
use askama_web::WebTemplate;

use crate::{
    auth::{caller::Caller, model::Scope},
    web::shell::{Section, Shell},
};

/// The pages of this module beside the one that is shown. Template: `auth/_places.html`, variable `places`.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    here: &'static str,
    pub(crate) manages: bool,
}

impl Places {
    pub(crate) fn new(here: &'static str, caller: &Caller) -> Self {
        Self { here, manages: caller.scope == Scope::Admin }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = [("/account", "Account"), ("/tokens", "Tokens"), ("/people", "People"), ("/audit", "Audit log")];
        all.into_iter().take(if self.manages { 4 } else { 2 })
    }

    pub(crate) fn is_here(&self, path: &str) -> bool {
        self.here == path
    }
}

pub(crate) fn shell(title: &str, caller: &Caller) -> Shell {
    Shell::signed_in(title, Section::Other, &caller.name)
}

/// A secret that can be seen once. Template: `auth/once.html`.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/once.html")]
pub(crate) struct Once {
    pub(crate) shell: Shell,
    pub(crate) places: Places,
    /// What was made.
    pub(crate) title: String,
    /// What to do with it, a sentence each.
    pub(crate) told: Vec<String>,
    /// What the secret is, for who can't see it.
    pub(crate) label: &'static str,
    pub(crate) secret: String,
    pub(crate) back: &'static str,
}
