//! What could have been seen: "no difference" is worth as much as the difference that would have shown.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{ALPHA, Noise, noise::squares, spread::sorted};

/// How often a difference of the size that [`detectable`] gives would be seen.
const POWER: f64 = 0.8;

/// The rank test needs so many more repetitions than Student's on normal noise (Lehmann 1975, section 2.4): 3/π.
const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// The least difference, as a share, that would be seen in four of five comparisons with so many repetitions that
/// scatter so, when the page asks so many questions. The usual formula for two means, on logarithms, because noise and
/// differences of throughput and latency are factors. How they scatter is taken from them and from the past of both
/// cells, as far as that is known: together that is worth more than five figures. None where the scatter is not known or
/// a value is not greater than zero.
pub fn detectable(one: &[f64], other: &[f64], past: [Option<Noise>; 2], questions: usize) -> Option<f64> {
    let (one, other) = (logarithms(one)?, logarithms(other)?);
    let (n, m) = (one.len() as f64, other.len() as f64);
    let past = past.into_iter().flatten();
    let known = past.map(|noise| (noise.freedom() as f64, noise.freedom() as f64 * noise.scatter.powi(2)));
    let own = (n + m - 2.0, squares(&one) + squares(&other));
    let (freedom, all) = known.fold(own, |(freedom, all), (more, squares)| (freedom + more, all + squares));
    if freedom < 2.0 {
        return None;
    }
    let pooled = (all / freedom).sqrt();
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let quantiles = t.inverse_cdf(1.0 - ALPHA / (2.0 * questions.max(1) as f64)) + t.inverse_cdf(POWER);
    Some((quantiles * pooled * ((1.0 / n + 1.0 / m) / EFFICIENCY).sqrt()).exp() - 1.0)
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let values = sorted(values.iter().copied());
    (values.first().is_some_and(|least| *least > 0.0)).then(|| values.into_iter().map(f64::ln).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_noise_and_more_repetitions_show_smaller_differences() {
        let noisy = [90.0, 100.0, 110.0, 95.0, 105.0];
        let calm = [99.0, 100.0, 101.0, 99.5, 100.5];
        let of = |values: &[f64], questions| detectable(values, values, [None; 2], questions).expect("a figure");
        assert!(of(&calm, 1) < of(&noisy, 1));
        assert!(of(&noisy, 1) < of(&noisy, 20));
        assert!(of(&[noisy, noisy].concat(), 1) < of(&noisy, 1));
        // By hand: s = 0.00791, t(0.975; 8) + t(0.8; 8) = 2.306 + 0.889, √(0.4 ÷ 0.955) = 0.647.
        assert!((of(&calm, 1) - 0.0165).abs() < 5e-4, "{}", of(&calm, 1));
    }

    #[test]
    fn the_past_tells_how_one_repetition_scatters() {
        let past = Noise { experiments: 4, runs: 44, scatter: 0.00791, moves: None };
        let of = |values: &[f64], past| detectable(values, values, [past; 2], 1);
        assert_eq!(of(&[100.0], None), None);
        // t(0.975; 80) + t(0.8; 80) = 1.990 + 0.846, √(2 ÷ 0.955) = 1.447.
        assert!((of(&[100.0], Some(past)).expect("a figure") - 0.033).abs() < 5e-4);
        let calm = [99.0, 100.0, 101.0, 99.5, 100.5];
        assert!(of(&calm, Some(past)) < of(&calm, None), "what is known for longer shows smaller differences");
    }

    #[test]
    fn what_does_not_scatter_or_is_zero_shows_nothing() {
        assert_eq!(detectable(&[1.0], &[1.0, 2.0], [None; 2], 1), None);
        assert_eq!(detectable(&[0.0, 1.0], &[1.0, 2.0], [None; 2], 1), None);
        assert_eq!(detectable(&[], &[1.0, 2.0], [None; 2], 1), None);
    }
}
