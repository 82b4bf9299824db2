//! A Kubernetes control plane and a small kubelet for tests.
//!
//! [`Cluster`] runs the real etcd, API server, controller manager and scheduler. [`Kubelet`] registers a node and runs
//! Pods as processes of this machine, in network, mount and pid namespaces and control groups of their own: nothing is
//! pulled, and an image is a name for a program of this machine.

mod cgroup;
mod cluster;
mod control_plane;
mod credentials;
pub mod k6_operator;
mod kubelet;
mod network;
mod process;
mod quantity;
mod services;

pub use cluster::Cluster;
pub use kubelet::{Image, Kubelet, NodeOptions};
pub use services::ServiceProxy;
