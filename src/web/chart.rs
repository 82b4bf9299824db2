//! Plotly charts with colour roles instead of colours, so that `charts.js` can draw them in both themes.
//! Template: `partials/chart.html`, variable `chart`; the page's head needs `partials/chart_scripts.html`.

use std::fmt;

use askama::filters::HtmlSafe;
use serde_json::{Value, json};

use crate::metrics::Metric;

/// One chart in its card.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Unique on its page.
    pub id: &'static str,
    /// The title.
    pub title: String,
    /// The unit, and whether higher or lower is better.
    pub unit: String,
    /// The text alternative for screen readers.
    pub label: String,
    /// Height, px.
    pub height: usize,
    /// The chart scrolls in its card below this width, px.
    pub min_width: usize,
    /// `data` and `layout` for Plotly.
    pub figure: ScriptJson,
    /// The curves, which can be hidden; empty if there is only one.
    pub legend: Vec<Key>,
    /// The shared horizontal axis: hovering over one chart marks the position in all charts with this axis.
    pub shares: Option<&'static str>,
    /// The metric that the title names; none if the chart shows several.
    pub metric: Option<Metric>,
}

/// A curve in a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The index of its trace in the figure.
    pub trace: usize,
    /// The label.
    pub name: String,
    /// The colour role.
    pub role: String,
    /// The dashes, by Plotly's names.
    pub dash: &'static str,
}

impl Key {
    /// The property of the colour in `app.css`.
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

    /// The dashes for SVG.
    pub fn dashes(&self) -> &'static str {
        match self.dash {
            "dash" => "7 4",
            "dot" => "2 3",
            "dashdot" => "7 3 2 3",
            _ => "none",
        }
    }
}

/// JSON that is escaped for a `<script>` element: nothing in it can end the element.
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
    /// Whether the chart needs more than half of the page's width.
    pub fn is_wide(&self) -> bool {
        self.min_width > 560
    }
}

/// The layout shared by all charts. Each axis lists only its own settings; defaults are filled in.
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

/// Escapes text for a chart, because Plotly interprets some HTML in labels.
pub fn text(name: &str) -> String {
    name.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Shortens a name for an axis; keeps its beginning and end, where names usually differ.
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
    fn json_cannot_end_its_script_element() {
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
