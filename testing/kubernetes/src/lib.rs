//! Kubernetes for tests: a control plane and nodes.
//!
//! [`Cluster`] runs the real etcd, API server, controller manager and scheduler, [`Node`] the real containerd and
//! kubelet. Only images are made on the spot, of programs of this machine: nothing is pulled.

mod cgroup;
mod cluster;
mod control_plane;
mod credentials;
pub mod k6_operator;
mod network;
mod node;
mod process;
mod services;

pub use cluster::Cluster;
pub use node::{Image, Node, NodeOptions};
pub use services::ServiceProxy;
