//! Parts that the pages of this module share.

use askama::Template;
use askama_web::WebTemplate;

use crate::{
    auth::{caller::Caller, model::Scope},
    web::shell::{Section, Shell},
};

/// Navigation between the pages of this module. Template: `auth/_places.html`, variable `places`.
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
        let all = [("/account", "Account"), ("/tokens", "Tokens"), ("/users", "Users"), ("/audit", "Audit log")];
        all.into_iter().take(if self.manages { 4 } else { 2 })
    }

    pub(crate) fn is_here(&self, path: &str) -> bool {
        self.here == path
    }
}

pub(crate) fn shell(title: &str, caller: &Caller) -> Shell {
    Shell::signed_in(title, Section::Other, &caller.name).explained_in("guide/operations#users")
}

/// A page that shows a secret once. Template: `auth/once.html`.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/secret.html")]
pub(crate) struct ShownSecret {
    pub(crate) shell: Shell,
    pub(crate) places: Places,
    /// What was created.
    pub(crate) title: String,
    /// Instructions, one sentence each.
    pub(crate) instructions: Vec<String>,
    /// Accessible label of the secret.
    pub(crate) label: &'static str,
    pub(crate) secret: String,
    pub(crate) back: &'static str,
}
