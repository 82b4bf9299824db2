//! A stand-in for kube-proxy: this machine answers at the addresses of Services, and gives each connection to the next of
//! their ready Pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointSlice},
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use crate::{Cluster, network::Network, process::ip};

const PAUSE: Duration = Duration::from_millis(100);

/// The Pods that got connections.
type Loaded = Arc<Mutex<BTreeSet<SocketAddr>>>;

/// The proxy, until dropped.
#[derive(Debug)]
pub struct ServiceProxy {
    serving: JoinHandle<()>,
    loaded: Loaded,
}

impl ServiceProxy {
    /// Starts to serve the Services of all namespaces.
    pub fn start(cluster: &Cluster) -> Self {
        let (client, network, loaded) = (cluster.client(), Arc::clone(cluster.network()), Loaded::default());
        let gets_load = Arc::clone(&loaded);
        let serving = tokio::spawn(async move {
            let mut served = BTreeMap::new();
            loop {
                // The next round tries again.
                let _ = reconcile(&client, &network, &gets_load, &mut served).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { serving, loaded }
    }

    /// Returns the number of Pods that got connections so far.
    pub fn loaded(&self) -> usize {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for ServiceProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A Service that is served, until dropped.
#[derive(Debug)]
struct Served {
    pods: Arc<Mutex<Vec<SocketAddr>>>,
    _serving: JoinSet<()>,
    _address: OnBridge,
}

/// An address at which this machine answers, until dropped.
#[derive(Debug)]
struct OnBridge(String);

impl OnBridge {
    fn add(address: Ipv4Addr, network: &Network) -> io::Result<Self> {
        let words = format!("{address}/32 dev {}", network.bridge());
        ip(&format!("address add {words}"))?;
        Ok(Self(words))
    }
}

impl Drop for OnBridge {
    fn drop(&mut self) {
        let _ = ip(&format!("address delete {}", self.0));
    }
}

async fn reconcile(
    client: &Client,
    network: &Network,
    loaded: &Loaded,
    served: &mut BTreeMap<SocketAddr, Served>,
) -> Result<(), Box<dyn std::error::Error>> {
    let services: Api<Service> = Api::all(client.clone());
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let mut found = BTreeMap::new();
    for service in services.list(&ListParams::default()).await? {
        let spec = service.spec.clone().unwrap_or_default();
        let Some(port) = spec.ports.unwrap_or_default().into_iter().next() else { continue };
        // Without a selector, it is that of the API server.
        let (Some(address), Some(_)) = (spec.cluster_ip, spec.selector) else { continue };
        let own = ListParams::default().labels(&format!("kubernetes.io/service-name={}", service.name_any()));
        let pods = slices.list(&own).await?.items.iter().flat_map(ready).collect();
        found.insert(SocketAddr::new(address.parse()?, u16::try_from(port.port)?), pods);
    }
    served.retain(|at, _| found.contains_key(at));
    for (at, pods) in found {
        match served.get(&at) {
            Some(known) => *known.pods.lock().unwrap_or_else(PoisonError::into_inner) = pods,
            None => drop(served.insert(at, serve(at, pods, network, Arc::clone(loaded)).await?)),
        }
    }
    Ok(())
}

/// Returns the addresses of the ready Pods.
fn ready(slice: &EndpointSlice) -> Vec<SocketAddr> {
    let port = slice.ports.iter().flatten().find_map(|port| u16::try_from(port.port?).ok());
    let is_ready = |endpoint: &&Endpoint| endpoint.conditions.as_ref().is_some_and(|now| now.ready == Some(true));
    let ready = slice.endpoints.iter().flatten().filter(is_ready);
    let addresses = ready.flat_map(|endpoint| &endpoint.addresses);
    addresses.filter_map(|address| Some(SocketAddr::new(address.parse().ok()?, port?))).collect()
}

async fn serve(
    at: SocketAddr,
    pods: Vec<SocketAddr>,
    network: &Network,
    loaded: Loaded,
) -> Result<Served, Box<dyn std::error::Error>> {
    let SocketAddr::V4(v4) = at else { return Err("not an IPv4 address".into()) };
    let address = OnBridge::add(*v4.ip(), network)?;
    let listener = TcpListener::bind(at).await?;
    let pods = Arc::new(Mutex::new(pods));
    let mut serving = JoinSet::new();
    serving.spawn(accept(listener, Arc::clone(&pods), loaded));
    Ok(Served { pods, _serving: serving, _address: address })
}

async fn accept(listener: TcpListener, pods: Arc<Mutex<Vec<SocketAddr>>>, loaded: Loaded) {
    let (mut connections, next) = (JoinSet::new(), AtomicUsize::new(0));
    while let Ok((mut client, _)) = listener.accept().await {
        let pods = pods.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Refused, as with a Service without ready Pods.
        let Some(pod) = pods.get(next.fetch_add(1, Ordering::Relaxed) % pods.len().max(1)).copied() else { continue };
        loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(pod);
        connections.spawn(async move {
            if let Ok(mut server) = TcpStream::connect(pod).await {
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}
