//! Decides whether a target has warmed up: whether the last windows of a series are level.
//!
//! Three adjacent windows are level if their means differ by at most two standard errors, estimated from the scatter
//! within the windows, or by at most the minimum effect, for a target that scatters less. A rise also adds scatter
//! within the windows, but three times as much between the first and the last.

/// Windows to compare.
const WINDOWS: usize = 3;

/// Points per window: enough to estimate the scatter, and few enough to end soon.
const POINTS: usize = 3;

/// Standard errors by which the means of level windows may differ.
const ERRORS: f64 = 2.0;

/// Relative difference that never matters.
const MIN_EFFECT: f64 = 0.01;

/// Whether the last windows of a series are level; false if it is too short.
pub fn is_level(points: &[f64]) -> bool {
    let Some(from) = points.len().checked_sub(WINDOWS * POINTS) else { return false };
    let windows: Vec<&[f64]> = points[from..].chunks_exact(POINTS).collect();
    let means: Vec<f64> = windows.iter().map(|window| mean(window)).collect();
    let squares = |(window, mean): (&&[f64], &f64)| window.iter().map(|point| (point - mean).powi(2)).sum::<f64>();
    let variance = windows.iter().zip(&means).map(squares).sum::<f64>() / (WINDOWS * (POINTS - 1)) as f64;
    let error = (2.0 * variance / POINTS as f64).sqrt();
    let (least, most) =
        means.iter().fold((f64::MAX, f64::MIN), |(least, most), &mean| (least.min(mean), most.max(mean)));
    most > 0.0 && most - least <= (ERRORS * error).max(MIN_EFFECT * most)
}

fn mean(points: &[f64]) -> f64 {
    points.iter().sum::<f64>() / points.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_not_level_but_the_plateau_after_it_is() {
        let rising: Vec<f64> = (0..12).map(|at| 1_000.0 + 30.0 * f64::from(at)).collect();
        assert!(!is_level(&rising));
        let settled: Vec<f64> = rising.into_iter().chain([1_340.0, 1_330.0, 1_350.0].repeat(3)).collect();
        assert!(is_level(&settled));
        assert!(!is_level(&settled[..settled.len() - 5]));
    }

    #[test]
    fn noise_is_level_but_a_step_is_not() {
        let noisy = [1_000.0, 1_050.0, 960.0, 1_020.0, 970.0, 1_010.0, 1_040.0, 980.0, 1_000.0];
        assert!(is_level(&noisy));
        let mut stepped = noisy;
        stepped[..3].iter_mut().for_each(|point| *point *= 0.8);
        assert!(!is_level(&stepped));
    }

    #[test]
    fn a_short_or_zero_series_is_not_level() {
        assert!(!is_level(&[1.0; 8]) && is_level(&[1.0; 9]) && !is_level(&[0.0; 9]) && !is_level(&[]));
    }
}
