//! Checks what k6 can connect to.

use super::finding::Finding;
use crate::sandbox::ProgramRole;
use crate::sandbox::cage::user::{User, Users};
use crate::sandbox::firewall;

const CHECK: &str = "connections";

/// What applies where the kernel does not confine k6.
const BY_ITSELF: &str = "k6 refuses addresses that it may not load, and loads no modules from the network";

pub(super) fn check() -> Finding {
    match (Users::find(), firewall::check()) {
        (Err(why), _) => Finding::good(CHECK, format!("{BY_ITSELF}; {why}, so the kernel does not confine it")),
        (Ok(_), Err(why)) => {
            let remedy = "install nftables, and give the agent CAP_NET_ADMIN";
            Finding::doubtful(CHECK, format!("{BY_ITSELF}; the kernel does not confine it: {why}"), remedy)
        }
        (Ok(_), Ok(())) => {
            let user = User::for_role(ProgramRole::Generator).map(User::uid);
            let user = user.map_or_else(String::new, |user| format!(" (user {user})"));
            Finding::good(CHECK, format!("nftables: k6{user} reaches its target only"))
        }
    }
}
