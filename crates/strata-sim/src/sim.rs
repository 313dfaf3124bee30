//! A running simulator.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::options::SimOptions;
use crate::shared::Shared;
use crate::world::{World, begin, persist};
use crate::{cert, factory, gateway, kubernetes, talos, truenas, wire};

/// How long changes may wait before they are saved.
const SAVE_EVERY: Duration = Duration::from_millis(100);

/// A simulated datacenter that answers on the loopback until it is shut down or dropped.
pub struct Sim {
    shared: Arc<Shared>,
    port: u16,
    control_port: u16,
    gateway_port: u16,
    token: String,
    data_dir: Option<PathBuf>,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<()>>,
}

impl Sim {
    /// Starts both servers; they answer when this returns.
    pub async fn start(options: SimOptions) -> io::Result<Self> {
        let kept = match &options.data_dir {
            Some(dir) => World::load(dir)?,
            None => None,
        };
        let mut world = kept.unwrap_or_else(|| World::begin(&options));
        world.open_doors(&options);
        world.second = options.pace.scale(1.0).as_secs_f64();
        let api = wire::listen(options.port).await?;
        let control = wire::listen(options.control_port).await?;
        let gateway = wire::listen(options.gateway_port).await?;
        let gateway_port = gateway.local_addr()?.port();
        let (port, control_port) = (api.local_addr()?.port(), control.local_addr()?.port());
        let shared = Arc::new(Shared::new(world, options.pace, options.auth_delay()));
        shared.set_api_port(port);
        factory::open(&shared.network);
        truenas::open(&shared.network);
        kubernetes::open(&shared);
        let (stop, stopped) = watch::channel(false);
        let mut servers = vec![
            tokio::spawn(wire::serve(Arc::clone(&shared), api, control, stopped.clone())),
            tokio::spawn(gateway::serve(Arc::clone(&shared), gateway, stopped.clone())),
            tokio::spawn(talos::drive::run(Arc::clone(&shared), stopped.clone())),
        ];
        if let Some(dir) = options.data_dir.clone() {
            servers.push(tokio::spawn(keep(Arc::clone(&shared), dir, stopped)));
        }
        let token = options.token.clone().unwrap_or_else(|| match options.world {
            crate::WorldKind::Default => begin::DEMO_TOKEN.to_owned(),
            crate::WorldKind::Single => begin::ROOT_TOKEN.to_owned(),
        });
        Ok(Self {
            shared,
            port,
            control_port,
            gateway_port,
            token,
            data_dir: options.data_dir,
            stop,
            servers,
        })
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
        gateway::web::authority_pem()
    }

    /// `127.0.0.1:PORT` of the gateway to the simulated network, which understands HTTP CONNECT.
    pub fn gateway(&self) -> String {
        format!("127.0.0.1:{}", self.gateway_port)
    }

    /// Every live object; the same as `GET /_sim/export`.
    pub fn export(&self) -> Value {
        self.shared.settle();
        self.shared.world().export()
    }

    /// Machines with Talos, their etcd clusters, reboots and counters; the same as `GET /_sim/talos`.
    pub fn talos(&self) -> Value {
        self.shared.settle();
        self.shared.world().talos_report()
    }

    /// Someone else's change; the same as `POST /_sim/change`.
    pub async fn change(&self, change: &Value) -> Result<Value, String> {
        crate::control::change::apply(&self.shared, change).await
    }

    /// How many requests arrived since the start or the last reset.
    pub fn requests(&self) -> u64 {
        self.shared.count().total()
    }

    /// What tools wait for and read: where everything is, and where the addresses of the nodes really lead.
    pub fn ready_line(&self) -> String {
        let mut dial: serde_json::Map<String, Value> = self
            .shared
            .world()
            .nodes
            .values()
            .map(|node| (format!("{}:8006", node.ip), json!(format!("127.0.0.1:{}", self.port))))
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
            Some(dir) => save(&self.shared, dir),
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

fn save(shared: &Shared, dir: &std::path::Path) -> io::Result<()> {
    let bytes = shared.world().to_bytes()?;
    persist::save(dir, &bytes)
}

/// Saves whenever something changed.
async fn keep(shared: Arc<Shared>, dir: PathBuf, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SAVE_EVERY) => {}
            _ = stop.changed() => return,
        }
        if shared.dirty.swap(false, Ordering::AcqRel) && save(&shared, &dir).is_err() {
            // Tried again at the next change and at the end, where the error is reported.
            shared.dirty.store(true, Ordering::Release);
        }
    }
}
