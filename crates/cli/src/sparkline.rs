//! Sparklines for terminals: values over time as one line of blocks. Pure.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the last `width` values from zero to their maximum. Unknown values are spaces.
pub fn sparkline(values: &[Option<f64>], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let most = values.iter().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let block = |value: &Option<f64>| {
        let Some(value) = value.filter(|value| value.is_finite()) else { return ' ' };
        let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
        let step = (share * (BLOCKS.len() - 1) as f64).round() as usize;
        BLOCKS[step]
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_drawn_from_zero_to_their_maximum() {
        let values: Vec<_> = (0..8).map(|value| Some(f64::from(value))).collect();
        assert_eq!(sparkline(&values, 80), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&values, 3), "▆▇█", "the last ones");
        assert_eq!(sparkline(&[Some(100.0), None, Some(98.0), Some(f64::NAN)], 9), "█ █ ");
        assert_eq!(sparkline(&[Some(0.0), Some(0.0)], 9), "▁▁", "nothing but zeros");
        assert_eq!(sparkline(&[], 9), "");
    }
}
