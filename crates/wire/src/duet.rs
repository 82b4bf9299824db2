//! A duet: two targets that run at the same time and are loaded in turns.

use std::time::Duration;

/// The length of a turn with its pause. Shorter ones lose more to pauses; longer ones share less of the machine's noise.
pub const TURN: Duration = Duration::from_millis(100);

/// The pause at the end of a turn, in which no request starts and those in flight end.
pub const PAUSE: Duration = Duration::from_millis(5);
