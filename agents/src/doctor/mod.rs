//! Checks whether this machine is fit for an agent: finds what would prevent a run or invalidate its result, and
//! suggests remedies. Leaves nothing behind but the state folder.

mod certificate;
mod cluster;
mod connections;
mod finding;
mod host;
mod profiler;
mod server;
mod target;

pub use certificate::certificate;
pub use finding::{Finding, Rank};
pub use server::clock_of;
pub use target::check_target;

use crate::connection::daemon::Options;

/// Runs all checks for an agent with these options.
pub async fn examine(options: &Options) -> Vec<Finding> {
    let mut findings = examine_machine(options).await;
    findings.extend(server::server(options).await);
    findings
}

/// Runs the checks that need no server.
pub async fn examine_machine(options: &Options) -> Vec<Finding> {
    let mut findings = host::engines(options).await;
    findings.push(host::targets(options));
    findings.extend(host::closed_targets(options));
    findings.push(host::container_engine(options).await);
    findings.push(host::kvm().await);
    findings.extend(cluster::check(options).await);
    findings.extend(host::profilers(options));
    findings.extend(host::machine(options));
    findings.extend(host::load_address(options));
    findings.push(server::disk(&options.state));
    findings
}

/// Returns the worst severity.
pub fn worst(findings: &[Finding]) -> Rank {
    findings.iter().map(|finding| finding.rank).max().unwrap_or(Rank::Good)
}
