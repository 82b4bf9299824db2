//! A Plotly chart as the server describes it: roles in place of colours, so that `charts.js` can paint both schemes.
//! Template: `partials/chart.html`, variable `chart`; the page's head needs `partials/chart_scripts.html`.

use std::fmt;

use askama::filters::HtmlSafe;
use serde_json::{Value, json};

/// One chart in its card.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Unique on its page.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// The unit, and which way is better.
    pub unit: String,
    /// What somebody hears who can't see it.
    pub label: String,
    /// How high it is drawn, px.
    pub height: usize,
    /// Below this width it scrolls in its card, px.
    pub min_width: usize,
    /// `data` and `layout` for Plotly.
    pub figure: ScriptJson,
    /// Its curves, for switching them off; empty where nothing has to be told apart.
    pub legend: Vec<Key>,
    /// Whose horizontal axis it has: what is pointed at in one chart is marked in all that share it.
    pub shares: Option<&'static str>,
}

/// A curve in a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The place of its trace in the figure.
    pub trace: usize,
    /// What people call it.
    pub name: String,
    /// Its colour, as a role.
    pub role: String,
    /// Its dashes, by Plotly's names.
    pub dash: &'static str,
}

impl Key {
    /// The property of `app.css` that has the colour.
    pub fn property(&self) -> String {
        match self.role.as_str() {
            "soft ink" => "--soft".to_owned(),
            "doubtful" => "--warn".to_owned(),
            role => match role.strip_prefix("target ") {
                Some(number) => format!("--t{number}"),
                None => format!("--{role}"),
            },
        }
    }

    /// Its dashes for SVG.
    pub fn dashes(&self) -> &'static str {
        match self.dash {
            "dash" => "7 4",
            "dot" => "2 3",
            "dashdot" => "7 3 2 3",
            _ => "none",
        }
    }
}

/// JSON that may stand in a `<script>` element: nothing in it can end the element.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptJson(pub Value);

impl fmt::Display for ScriptJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let escaped = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        f.write_str(&escaped)
    }
}

impl HtmlSafe for ScriptJson {}

impl Chart {
    /// Whether half a page is too narrow for it.
    pub fn is_wide(&self) -> bool {
        self.min_width > 560
    }
}

/// The layout that all charts share. Each axis says what is its own; the rest is filled in.
pub fn layout(x: Value, y: Value) -> Value {
    json!({
        "margin": {"l": 56, "r": 12, "t": 12, "b": 36},
        "paper_bgcolor": "transparent",
        "plot_bgcolor": "transparent",
        "font": {"size": 12, "color": "soft ink"},
        "showlegend": false,
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "card", "bordercolor": "grid", "font": {"color": "ink", "size": 12}, "align": "left"},
        "dragmode": false,
        "xaxis": axis(x),
        "yaxis": axis(y),
    })
}

fn axis(own: Value) -> Value {
    let mut all = json!({
        "gridcolor": "grid",
        "linecolor": "grid",
        "zerolinecolor": "grid",
        "rangemode": "tozero",
        "fixedrange": true,
        "tickformat": ",.9~f",
        "automargin": true,
        "ticks": "",
    });
    if let (Value::Object(all), Value::Object(own)) = (&mut all, own) {
        all.extend(own);
    }
    all
}

/// Text for a chart. Plotly reads a little HTML in labels; names of ours are never meant as that.
pub fn text(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A name that fits an axis: its beginning and its end, where names usually differ.
pub fn elided(name: &str, room: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= room {
        return text(name);
    }
    let tail = room / 2;
    let head = room - tail - 1;
    let start: String = letters[..head].iter().collect();
    let end: String = letters[letters.len() - tail..].iter().collect();
    text(&format!("{start}…{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_page_can_not_end_its_element() {
        let json = ScriptJson(json!({"name": "</script><script>alert(1)</script>&amp;"}));
        let html = json.to_string();
        assert!(!html.contains('<') && !html.contains('&'), "{html}");
        let back: Value = serde_json::from_str(&html).expect("it is still JSON");
        assert_eq!(back, json.0);
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_its_end() {
        assert_eq!(elided("short", 12), "short");
        assert_eq!(elided("abcdefghijklmnopqrstuvwxyz", 9), "abcd…wxyz");
        assert_eq!(elided("<b>", 9), "&lt;b&gt;");
    }
}
