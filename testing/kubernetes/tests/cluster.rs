//! The fixture itself: a control plane, and Pods on a test node.

use brewbench_kubernetes_testing::Cluster;

#[tokio::test]
async fn control_plane_starts() {
    let Some(cluster) = Cluster::start().await else { return };
    println!("{}", cluster.url());
}
