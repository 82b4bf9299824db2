//! The pages of the site that a search finds. Pure.

use crate::auth::{caller::Caller, model::Scope};

/// Who may open a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Anyone,
    /// Callers with this scope.
    Scope(Scope),
    /// Users with a session.
    User,
}

/// A page that needs no name or id.
#[derive(Clone, Copy, Debug)]
pub struct SitePage {
    /// Its title.
    pub title: &'static str,
    /// Other words that find it.
    pub also: &'static str,
    /// Its path.
    pub path: &'static str,
    access: Access,
}

const READ: Access = Access::Scope(Scope::Read);
const SUBMIT: Access = Access::Scope(Scope::Submit);
const ADMIN: Access = Access::Scope(Scope::Admin);

const fn page(title: &'static str, path: &'static str, access: Access, also: &'static str) -> SitePage {
    SitePage { title, also, path, access }
}

/// All of them, in the order of the navigation.
const PAGES: [SitePage; 28] = [
    page("Dashboard", "/", READ, "home start"),
    page("New run", "/experiments/new", READ, "measure benchmark new experiment"),
    page("Runs", "/runs", READ, "history results"),
    page("Experiments", "/experiments", READ, ""),
    page("Compare", "/compare", READ, "comparison"),
    page("Trends", "/trends", READ, "change points versions"),
    page("Targets", "/targets", READ, "servers"),
    page("Scenarios", "/scenarios", READ, "k6 scripts"),
    page("Machine sizes", "/sizes", READ, "cpu memory"),
    page("Agents", "/agents", READ, "machines fleet"),
    page("Queue", "/queue", READ, "waiting runs"),
    page("Gate", "/gate", READ, "ci pass fail"),
    page("Baselines", "/baselines", READ, ""),
    page("Accepted differences", "/differences", READ, "work"),
    page("Share links", "/shares", READ, "shared"),
    page("Import results", "/runs/import", SUBMIT, "upload summary"),
    page("Settings", "/settings", READ, "theme retention alerts"),
    page("Webhooks", "/settings/webhooks", ADMIN, "alerts"),
    page("Account", "/account", Access::User, "passkeys sessions"),
    page("API tokens", "/tokens", Access::User, "programs ci"),
    page("Users", "/users", ADMIN, "roles invitations people"),
    page("Invite a user", "/users#invitations", ADMIN, "invitation add colleague"),
    page("Add agent", "/agents", ADMIN, "new machine"),
    page("Add target", "/targets/new", READ, "new server manifest"),
    page("Audit log", "/audit", ADMIN, "actions"),
    page("Documentation", "/docs", Access::Anyone, "help manual"),
    page("HTTP API", "/docs/reference/api", Access::Anyone, "openapi json"),
    page("Command line", "/docs/reference/cli", Access::Anyone, "cli commands"),
];

/// Returns the pages that a caller may open; none is an anonymous visitor.
pub fn pages(caller: Option<&Caller>) -> impl Iterator<Item = &'static SitePage> {
    let may_open = move |access: Access| match (access, caller) {
        (Access::Anyone, _) => true,
        (_, None) => false,
        (Access::Scope(scope), Some(caller)) => caller.scope >= scope,
        // Only sessions have a time at which their user was identified.
        (Access::User, Some(caller)) => caller.session.is_some(),
    };
    PAGES.iter().filter(move |page| may_open(page.access))
}
