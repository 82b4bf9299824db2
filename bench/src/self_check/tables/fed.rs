//! Pages and gates of sides that never met, of zeros and of rounded values.

use super::table::{Table, few, percent};
use crate::self_check::fed::{self, Fed};

/// Returns the table.
pub fn worlds(rounds: usize) -> String {
    let mut table = Table::new(
        "What comparisons are fed",
        "Pages that name a difference, and gates that fail and pass, %",
        &["world", "pages", "gates fail", "gates pass"],
    );
    let mut line = |name: &str, Fed { named, fails, passes }: Fed| table.line(name, &percent(&[named, fails, passes]));
    line("equal: a new version with repetitions added next night, no past", fed::new_version(0, rounds, 1));
    line("equal: the same with 5 past nights", fed::new_version(5, rounds, 2));
    line("equal: valid runs in different halves, 10 % slower half way", fed::halves(rounds, 3));
    line("equal: one CPU time of 16 is 0", fed::zeros(1.0, rounds, 4));
    line("23 % less CPU time, one of 16 is 0", fed::zeros(0.77, few(rounds), 5));
    line("equal: 2.4 ms, printed as whole ms, limit 20 %", fed::whole_milliseconds(2.4, 1.0, rounds, 6));
    line("2.4 and 2.6 ms, printed as whole ms, limit 20 %", fed::whole_milliseconds(2.4, 1.08, rounds, 7));
    line("24 and 36 ms, printed as whole ms, limit 20 %", fed::whole_milliseconds(24.0, 1.5, few(rounds), 8));
    table.into_text()
}
