//! The confirmation page before an irreversible action; works without JavaScript. Template: `confirm.html`.

use askama::Template;
use askama_web::WebTemplate;

use super::shell::Shell;

/// The page. Its form posts to the page's own address.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "confirm.html")]
pub struct Confirm {
    /// The layout.
    pub shell: Shell,
    /// The action, e.g. `Delete this run`; also the label of the button.
    pub action: &'static str,
    /// The object of the action, in one line.
    pub what: String,
    /// The consequences, one sentence each.
    pub consequences: Vec<String>,
    /// The address for cancelling.
    pub back: String,
}
