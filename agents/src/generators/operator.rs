//! k6-operator, if the cluster has it.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};

use crate::target::Cluster;
use crate::target::kubernetes::cluster::describe_error;

/// Group and version of a `TestRun`.
pub const API_VERSION: &str = "k6.io/v1alpha1";
const GROUP: &str = "k6.io";
const VERSION: &str = "v1alpha1";
const KIND: &str = "TestRun";

/// Returns the API of `TestRun`s.
pub fn test_runs(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, KIND));
    Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &kind)
}

/// Whether k6-operator is installed in the version that this program knows. Fails with a sentence if that is unknown.
pub async fn is_installed(cluster: &Cluster) -> Result<bool, String> {
    let groups = cluster.client.list_api_groups().await.map_err(|error| describe_error(&error))?;
    let Some(group) = groups.groups.iter().find(|group| group.name == GROUP) else { return Ok(false) };
    if !group.versions.iter().any(|version| version.version == VERSION) {
        let versions: Vec<&str> = group.versions.iter().map(|version| version.version.as_str()).collect();
        tracing::warn!(
            versions = versions.join(", "),
            "k6-operator has no {API_VERSION}; its own Jobs generate the load"
        );
        return Ok(false);
    }
    let resources =
        cluster.client.list_api_group_resources(API_VERSION).await.map_err(|error| describe_error(&error))?;
    Ok(resources.resources.iter().any(|resource| resource.kind == KIND))
}
