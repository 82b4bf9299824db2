//! Curves over the time of a run. Live pages use `meta` to find the source of a curve's next points.

use serde_json::{Value, json};

use crate::{
    results::series::model::SeriesBody,
    web::chart::{Chart, Key, ScriptJson, layout},
};

/// The name of the horizontal axis shared by all charts over time.
pub const TIME: &str = "time";

/// The points of a run in the form of the API, in order.
#[derive(Debug)]
pub struct Points {
    seconds: Vec<Value>,
    usage: Vec<Value>,
    warm_up: Option<(f64, f64)>,
}

/// The source of a curve's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Load and latency.
    Seconds,
    /// Resource usage.
    Usage,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Name in legend and tooltips.
    pub name: &'static str,
    /// Colour role.
    pub role: String,
    /// Dashes, by Plotly's names.
    pub dash: &'static str,
    /// Width, px.
    pub width: f64,
    /// Source of its points.
    pub from: From,
    /// Path of the value in a point: `succeeded.p99_ms`.
    pub figure: &'static str,
    /// Number of the value's units per unit of the chart.
    pub unit: f64,
}

impl Points {
    /// Creates the points of a run.
    pub fn new(series: &SeriesBody) -> Self {
        let mut points = Self { seconds: Vec::new(), usage: Vec::new(), warm_up: None };
        for window in series.windows() {
            // A gap separates the warm-up from the measurement.
            let gap = (!points.seconds.is_empty()).then(|| json!({"at_s": window.from_s}));
            points.seconds.extend(gap.clone());
            points.usage.extend(gap);
            points.seconds.extend(window.seconds.iter().map(|second| json!(second)));
            points.usage.extend(window.usage.iter().map(|usage| json!(usage)));
        }
        points.warm_up = series.warm_up.as_ref().map(|warm_up| {
            let last = warm_up.seconds.last().map_or(warm_up.from_s, |second| second.at_s);
            (warm_up.from_s, series.measured.as_ref().map_or(last, |measured| measured.from_s))
        });
        points
    }

    fn points(&self, from: From) -> &[Value] {
        match from {
            From::Seconds => &self.seconds,
            From::Usage => &self.usage,
        }
    }

    /// One value of all points.
    pub fn figures(&self, from: From, figure: &str) -> impl Iterator<Item = Option<f64>> {
        let path = format!("/{}", figure.replace('.', "/"));
        self.points(from).iter().map(move |point| point.pointer(&path).and_then(Value::as_f64))
    }

    /// The times of the points.
    pub fn times(&self, from: From) -> Vec<f64> {
        self.figures(from, "at_s").map(Option::unwrap_or_default).collect()
    }

    /// Whether a value is above zero in any point.
    pub fn has(&self, from: From, figure: &str) -> bool {
        self.figures(from, figure).flatten().any(|value| value > 0.0)
    }

    /// The layout of a chart over time, with the warm-up marked.
    pub fn layout(&self, y: Value) -> Value {
        let title = json!({"text": "seconds", "standoff": 6});
        let mut layout = layout(
            json!({
                "showgrid": false, "title": title, "nticks": 8, "autorangeoptions": {"minallowed": 0},
            "showspikes": false, "unifiedhovertitle": {"text": "%{x:.1f} s"},
            }),
            y,
        );
        layout["margin"]["b"] = json!(44);
        layout["margin"]["t"] = json!(18);
        layout["hovermode"] = json!("x unified");
        // The nearest second, however far: a short run has few points.
        layout["hoverdistance"] = json!(-1);
        if let Some((from, until)) = self.warm_up {
            layout["shapes"] = json!([{
                "type": "rect", "layer": "below", "yref": "paper", "x0": from, "x1": until, "y0": 0, "y1": 1,
                "fillcolor": "faint", "line": {"width": 0},
            }]);
            layout["annotations"] = json!([{
                "text": "warm-up", "x": from, "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "bottom",
                "showarrow": false, "font": {"size": 11, "color": "soft ink"},
            }]);
        }
        layout
    }
}

impl Curve {
    /// Creates a curve of default width.
    pub fn new(
        name: &'static str,
        role: impl Into<String>,
        dash: &'static str,
        from: From,
        figure: &'static str,
    ) -> Self {
        Self { name, role: role.into(), dash, width: 2.0, from, figure, unit: 1.0 }
    }

    /// The curve as a Plotly trace.
    pub fn trace(&self, points: &Points) -> Value {
        let Self { name, role, dash, width, from, figure, unit } = self;
        let y: Vec<Option<f64>> = points.figures(*from, figure).map(|value| value.map(|value| value / unit)).collect();
        let list = match from {
            From::Seconds => "seconds",
            From::Usage => "usage",
        };
        json!({
            "type": "scatter", "mode": "lines", "name": name, "x": points.times(*from), "y": y,
            "line": {"color": role, "width": width, "dash": dash},
            "hovertemplate": "%{y:,.4~g}",
            "meta": {"from": list, "y": figure, "unit": unit},
        })
    }

    /// Its entry in a legend; `trace` is its place in the chart.
    pub fn key(&self, trace: usize) -> Key {
        Key { trace, name: self.name.to_owned(), role: self.role.clone(), dash: self.dash }
    }
}

/// Title, unit and label of a chart over time.
#[derive(Debug)]
pub struct Head {
    /// Unique on the page.
    pub id: &'static str,
    /// The title.
    pub title: &'static str,
    /// Unit of the vertical axis.
    pub unit: String,
    /// Text alternative for screen readers.
    pub label: String,
}

/// Creates a chart of curves over time, with a legend if there are several.
pub fn chart(head: Head, points: &Points, curves: &[Curve], y: Value) -> Chart {
    let data: Vec<Value> = curves.iter().map(|curve| curve.trace(points)).collect();
    let legend = curves.iter().enumerate().map(|(trace, curve)| curve.key(trace)).filter(|_| curves.len() > 1);
    Chart {
        id: head.id,
        title: head.title.to_owned(),
        unit: head.unit,
        label: head.label,
        height: 260,
        min_width: 280,
        figure: ScriptJson(json!({"data": data, "layout": points.layout(y)})),
        legend: legend.collect(),
        shares: Some(TIME),
        metric: None,
    }
}
