//! The world as machines see it, and the handle that their servers share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use strata_sim_core::network::{Nobody, ReachedListener, listener};
use strata_sim_core::{Clock, Seed, Shared};
use strata_sim_kubernetes::{Clusters, Kubernetes, Moment};

use super::certificate::Certificates;
use super::hypervisor::{Host, Hypervisor, Vm, vmid};
use super::place::Presence;
use super::{Talos, control, factory, server};

const PORT: u16 = 50_000;

/// Everything that a machine can see and touch: machines, the hypervisor under them, the clusters that they make. All locks are held
/// for as long as it lives, in the order of its fields.
pub struct World<'w> {
    pub talos: MutexGuard<'w, Talos>,
    pub hypervisor: Box<dyn Hypervisor + 'w>,
    pub kubernetes: MutexGuard<'w, Kubernetes>,
    seed: Seed,
    clock: Clock,
}

impl World<'_> {
    /// Seconds since 1970.
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// So many seconds at this simulator's pace, in milliseconds.
    pub fn scaled_ms(&self, seconds: f64) -> i64 {
        self.clock.scaled_ms(seconds)
    }

    /// 32 bytes that belong to these words.
    pub fn derive(&self, words: &[&str]) -> [u8; 32] {
        self.seed.derive(words)
    }

    /// An identifier that belongs to these words.
    pub fn uuid(&self, words: &[&str]) -> String {
        self.seed.uuid(words)
    }

    /// The virtual machine that a machine is, if it is one.
    pub fn vm(&self, key: &str) -> Option<Vm> {
        self.hypervisor.vm(vmid(key)?)
    }

    /// Lets the clusters know what their machines are, and do what is due. Gives the time of what comes next.
    pub fn advance_kubernetes(&mut self) -> Option<i64> {
        let told = self.told();
        self.kubernetes.tell(told);
        let moment = Moment { ms: self.now_ms(), second: self.clock.second, seed: self.seed.0 };
        self.kubernetes.advance(&moment)
    }
}

/// The machines behind their lock, and what they share with the rest of the simulator.
pub struct Machines {
    pub shared: Arc<Shared>,
    talos: Mutex<Talos>,
    clusters: Arc<Clusters>,
    host: Box<dyn Host>,
    pub certificates: Certificates,
}

impl Machines {
    /// From now on machines that run on this host are alive, and the image factory answers.
    pub fn open(
        shared: &Arc<Shared>,
        kept: Talos,
        clusters: &Arc<Clusters>,
        host: Box<dyn Host>,
    ) -> Arc<Self> {
        let machines = Arc::new(Self {
            shared: Arc::clone(shared),
            talos: Mutex::new(kept),
            clusters: Arc::clone(clusters),
            host,
            certificates: Certificates::default(),
        });
        factory::open(&machines);
        let here = Arc::downgrade(&machines);
        shared.network.ask(move |host, port| here.upgrade().ok_or(Nobody::Unreachable)?.find(host, port));
        machines
    }

    /// What is not on a disk, for as long as the guard lives. It comes before the lock of the host and that of the clusters.
    pub fn talos(&self) -> MutexGuard<'_, Talos> {
        self.talos.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world as machines see it.
    pub fn world(&self) -> World<'_> {
        let talos = self.talos();
        self.world_of(talos, self.host.enter())
    }

    /// The same, for someone who holds the locks already.
    pub fn world_of<'w>(
        &'w self,
        talos: MutexGuard<'w, Talos>,
        hypervisor: Box<dyn Hypervisor + 'w>,
    ) -> World<'w> {
        let kubernetes = self.clusters.state();
        World { talos, hypervisor, kubernetes, seed: self.shared.seed, clock: self.shared.clock() }
    }

    /// Brings machines and clusters up to the present. Gives the time of the next event, in milliseconds since 1970.
    pub fn advance(&self) -> Option<i64> {
        let mut world = self.world();
        let before = (world.talos.mark(), world.kubernetes.mark());
        let next = world.advance();
        let moved = before != (world.talos.mark(), world.kubernetes.mark());
        drop(world);
        if moved {
            self.shared.changed();
        }
        next
    }

    /// Every machine, every etcd cluster, reboots and counters.
    pub fn report(&self) -> Value {
        self.world().talos_report()
    }

    /// Carries out `{"talos": …}` of a change.
    pub fn change(&self, change: &Value) -> Result<Value, String> {
        let done = control::apply(&mut self.world(), change);
        self.shared.changed();
        done
    }

    /// Who answers at an address that a machine has.
    fn find(self: Arc<Self>, host: &str, port: u16) -> Result<ReachedListener, Nobody> {
        let world = self.world();
        if world.talos_at(host).is_none() {
            return Err(Nobody::Unreachable);
        }
        let presence = world.talos_presence(host);
        match port {
            PORT => {
                let presence = presence.ok_or(Nobody::Refused)?;
                let answer = move |machines, visit| server::answer(machines, visit, presence.clone());
                // It watches its machine itself, so that the answer to a reboot still gets through.
                Ok(ReachedListener { listener: listener(&self, answer), gone: None })
            }
            strata_sim_kubernetes::PORT if world.has_api_server(host) => {
                let machines = Arc::clone(&self);
                let gone = presence.map(|presence| -> strata_sim_core::network::Ending {
                    Box::pin(async move { gone(&machines, &presence).await })
                });
                Ok(ReachedListener { listener: self.clusters.listener(), gone })
            }
            _ => Err(Nobody::Refused),
        }
    }
}

/// Waits until the machine is off, rebooting or out of reach.
pub async fn gone(machines: &Machines, presence: &Presence) {
    loop {
        let changed = machines.shared.until_changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if !machines.world().is_present(presence) {
            return;
        }
        changed.await;
    }
}
