//! Checks the Kubernetes cluster: that it answers, and what the agent may do there.

use super::finding::Finding;
use crate::connection::daemon::Options;
use crate::target::Cluster;

const NAME: &str = "cluster";

/// Checks the cluster, if the agent uses one.
pub(super) async fn check(options: &Options) -> Vec<Finding> {
    if !options.kubernetes {
        return Vec::new();
    }
    let unreachable = |fault| vec![Finding::bad(NAME, fault, "set KUBECONFIG, or run the agent in a Pod")];
    let cluster = match Cluster::connect("doctor", options.namespace.as_deref()).await {
        Ok(cluster) => cluster,
        Err(fault) => return unreachable(fault),
    };
    match missing_permissions(&cluster, options).await {
        Err(fault) => unreachable(fault),
        Ok(missing) if missing.is_empty() => {
            vec![Finding::good(NAME, format!("namespace {}, everything needed is permitted", cluster.namespace))]
        }
        Ok(missing) => {
            let remedy = "bind the Role and the ClusterRole of deploy/kubernetes to its service account";
            missing.into_iter().map(|fault| Finding::doubtful(NAME, fault, remedy)).collect()
        }
    }
}

/// Returns what is not permitted, as sentences. Fails with one if that can't be asked.
async fn missing_permissions(cluster: &Cluster, options: &Options) -> Result<Vec<String>, String> {
    let mut missing = cluster.missing_permissions().await?;
    if options.generators.is_some() {
        missing.extend(cluster.missing_generator_permissions().await?);
    }
    Ok(missing)
}
