//! The allocator of the program. Rows and pages are made by one thread and freed by another, at which glibc's is slow.

use libmimalloc_sys::{mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, which the crate does not name.
const PURGE_DELAY: mi_option_t = 15;

/// Returns freed memory to the system at once, not after a delay: under load that is a third less memory for no more CPU time.
#[expect(unsafe_code, reason = "a call of C with two numbers; without it only an environment variable sets the option")]
pub fn return_at_once() {
    // SAFETY: sets an integer of the allocator, which it reads atomically.
    unsafe { mi_option_set(PURGE_DELAY, 0) }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "reads an option of C")]
    fn the_option_is_the_purge_delay() {
        // Its default is 10 ms; no option beside it has that value.
        // SAFETY: reads an integer of the allocator.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 10);
        return_at_once();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 0);
    }
}
