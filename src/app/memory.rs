//! The global allocator. One thread allocates rows and pages and another frees them, which is slow in glibc.

use libmimalloc_sys::{mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, which the crate does not name.
const PURGE_DELAY: mi_option_t = 15;

/// Returns freed memory to the system at once. Under load this saves a third of the memory for no more CPU time.
#[expect(
    unsafe_code,
    reason = "calls a C function with two integers; otherwise only an environment variable sets the option"
)]
pub fn return_at_once() {
    // SAFETY: sets an integer of the allocator, which it reads atomically.
    unsafe { mi_option_set(PURGE_DELAY, 0) }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "calls a C function that reads an option")]
    fn the_option_is_the_purge_delay() {
        // The default of mimalloc 3, ms; its neighbours are flags.
        // SAFETY: reads an integer of the allocator.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 1_000);
        return_at_once();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 0);
    }
}
