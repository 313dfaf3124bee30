//! A simulator inside the test, on free ports.

use strata_sim::{Pace, Sim, SimOptions};
use tokio::runtime::Runtime;

use crate::Control;

pub struct TestSim {
    // Before the runtime: it stops its servers when it is dropped.
    sim: Sim,
    runtime: Runtime,
}

impl TestSim {
    /// The default world, whose tasks end at once.
    pub fn start() -> Self {
        Self::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() })
    }

    pub fn with(options: SimOptions) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let sim = runtime.block_on(Sim::start(options)).unwrap();
        Self { sim, runtime }
    }

    pub fn endpoint(&self) -> String {
        self.sim.endpoint()
    }

    /// Where machines of the simulated network are reached through.
    pub fn gateway(&self) -> String {
        self.sim.gateway()
    }

    /// Who signs the certificates of servers in the simulated network that have names.
    pub fn network_ca_pem(&self) -> &'static str {
        self.sim.network_ca_pem()
    }

    pub fn token(&self) -> &str {
        self.sim.token()
    }

    pub fn fingerprint(&self) -> String {
        self.sim.fingerprint()
    }

    pub fn control(&self) -> Control {
        Control::new(&self.sim.control())
    }

    /// Every live object.
    pub fn export(&self) -> serde_json::Value {
        self.sim.export()
    }

    pub fn requests(&self) -> u64 {
        self.sim.requests()
    }

    pub fn ready_line(&self) -> String {
        self.sim.ready_line()
    }

    pub fn shutdown(self) {
        let Self { sim, runtime } = self;
        runtime.block_on(sim.shutdown()).unwrap();
    }
}
