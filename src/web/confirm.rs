//! A question before something that can't be undone, as a page: it works without a script. Template: `confirm.html`.

use askama::Template;
use askama_web::WebTemplate;

use super::shell::Shell;

/// The question. Its form posts to the address that it is shown at.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "confirm.html")]
pub struct Confirm {
    /// What surrounds it.
    pub shell: Shell,
    /// What would be done, e.g. `Delete this run`. Also the word on the button.
    pub deed: &'static str,
    /// To what, in one line.
    pub what: String,
    /// What comes of it, a sentence each.
    pub consequences: Vec<String>,
    /// The way back, where nothing is done.
    pub back: String,
}
