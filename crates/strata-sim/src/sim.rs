//! A running simulator.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use strata_sim_core::network::{self, listen, web};
use strata_sim_core::{Shared, cert, control};
use strata_sim_kubernetes::Clusters;
use strata_sim_proxmox::{DEMO_TOKEN, Datacenter, ROOT_TOKEN, World, WorldKind};
use strata_sim_talos::Machines;
use strata_sim_truenas::StorageServer;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::host::Nodes;
use crate::kept::{self, Kept};
use crate::options::SimOptions;
use crate::passing;
use crate::whole::Parts;

/// How long changes may wait before they are saved.
const SAVE_EVERY: Duration = Duration::from_millis(100);

/// A simulated datacenter that answers on the loopback until it is shut down or dropped.
pub struct Sim {
    parts: Arc<Parts>,
    port: u16,
    control_port: u16,
    gateway_port: u16,
    token: String,
    data_dir: Option<PathBuf>,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<()>>,
}

/// Opens every part, with what it kept.
fn open(options: &SimOptions, kept: Kept) -> Parts {
    let beginning = options.beginning();
    let mut world = kept.world.unwrap_or_else(|| World::begin(&beginning));
    world.open_doors(&beginning);
    let shared = Arc::new(Shared::new(world.seed, options.pace));
    let datacenter = Datacenter::open(&shared, world, options.auth_delay());
    let clusters = Clusters::open(&shared, kept.kubernetes);
    let host = Box::new(Nodes(Arc::clone(&datacenter)));
    let machines = Machines::open(&shared, kept.talos, &clusters, host);
    let nas = StorageServer::open(&shared, kept.truenas);
    let settled = Arc::downgrade(&machines);
    shared.on_advance(move || {
        if let Some(machines) = settled.upgrade() {
            machines.advance();
        }
    });
    Parts { shared, datacenter, machines, clusters, nas }
}

impl Sim {
    /// Starts every server; they answer when this returns.
    pub async fn start(options: SimOptions) -> io::Result<Self> {
        let parts = Arc::new(open(&options, Kept::load(options.data_dir.as_deref())?));
        let api = listen(options.port).await?;
        let control = listen(options.control_port).await?;
        let gateway = listen(options.gateway_port).await?;
        let gateway_port = gateway.local_addr()?.port();
        let (port, control_port) = (api.local_addr()?.port(), control.local_addr()?.port());
        parts.datacenter.set_api_port(port);
        let shared = &parts.shared;
        let (stop, stopped) = watch::channel(false);
        let mut servers = vec![
            tokio::spawn(strata_sim_proxmox::serve(Arc::clone(&parts.datacenter), api, stopped.clone())),
            tokio::spawn(control::serve(Arc::clone(&parts), Arc::clone(shared), control, stopped.clone())),
            tokio::spawn(network::serve(Arc::clone(shared), gateway, stopped.clone())),
            tokio::spawn(passing::run(Arc::clone(&parts), stopped.clone())),
        ];
        if let Some(dir) = options.data_dir.clone() {
            servers.push(tokio::spawn(keep(Arc::clone(&parts), dir, stopped)));
        }
        let token = options.token.clone().unwrap_or_else(|| match options.world {
            WorldKind::Default => DEMO_TOKEN.to_owned(),
            WorldKind::Single | WorldKind::LivedIn => ROOT_TOKEN.to_owned(),
        });
        Ok(Self { parts, port, control_port, gateway_port, token, data_dir: options.data_dir, stop, servers })
    }

    /// `https://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// `user@realm!name=secret`.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The SHA-256 of the server's certificate, as `AA:BB:…`.
    pub fn fingerprint(&self) -> String {
        cert::fingerprint()
    }

    /// The authority that signed the certificate.
    pub fn ca_pem(&self) -> &'static str {
        cert::CA_PEM
    }

    /// `http://127.0.0.1:PORT` of the control interface.
    pub fn control(&self) -> String {
        format!("http://127.0.0.1:{}", self.control_port)
    }

    /// The authority behind names of the simulated network, such as the image factory's.
    pub fn network_ca_pem(&self) -> &'static str {
        web::authority_pem()
    }

    /// `127.0.0.1:PORT` of the gateway to the simulated network, which understands HTTP CONNECT.
    pub fn gateway(&self) -> String {
        format!("127.0.0.1:{}", self.gateway_port)
    }

    /// Every live object; the same as `GET /_sim/export`.
    pub fn export(&self) -> Value {
        self.parts.export()
    }

    /// Machines with Talos, their etcd clusters, reboots and counters; the same as `GET /_sim/talos`.
    pub fn talos(&self) -> Value {
        self.parts.talos()
    }

    /// Someone else's change; the same as `POST /_sim/change`.
    pub async fn change(&self, change: &Value) -> Result<Value, String> {
        self.parts.apply(change).await
    }

    /// How many requests arrived since the start or the last reset.
    pub fn requests(&self) -> u64 {
        self.parts.shared.count().total()
    }

    /// What tools wait for and read: where everything is, and where the addresses of the nodes really lead.
    pub fn ready_line(&self) -> String {
        let mut dial: serde_json::Map<String, Value> = self
            .parts
            .datacenter
            .world()
            .addresses()
            .map(|address| (format!("{address}:8006"), json!(format!("127.0.0.1:{}", self.port))))
            .collect();
        dial.insert("*".to_owned(), json!(self.gateway()));
        json!({
            "proxmox": {
                "endpoint": self.endpoint(), "token": self.token, "fingerprint": self.fingerprint(),
            },
            "control": self.control(),
            "network-ca": self.network_ca_pem(),
            "dial": dial,
        })
        .to_string()
    }

    /// Stops answering and saves what is to be kept.
    pub async fn shutdown(mut self) -> io::Result<()> {
        let _ = self.stop.send(true);
        for server in self.servers.drain(..) {
            let _ = server.await;
        }
        match &self.data_dir {
            Some(dir) => kept::save(&self.parts, dir),
            None => Ok(()),
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
        let _ = self.stop.send(true);
    }
}

/// Saves whenever something changed.
async fn keep(parts: Arc<Parts>, dir: PathBuf, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SAVE_EVERY) => {}
            _ = stop.changed() => return,
        }
        if parts.shared.take_dirty() && kept::save(&parts, &dir).is_err() {
            // Tried again at the next change and at the end, where the error is reported.
            parts.shared.changed();
        }
    }
}
