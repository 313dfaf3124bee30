//! A test's world: a simulator, a provider for it, and the part of the engine that turns a spec into an operation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value as Json, json};
use strata_engine::{
    Action, Observed, Operation, OperationContext, Outcome, Provider, ProviderError, Sighting, Wanted,
};
use strata_net::{Body, HttpClient, HttpOptions, Request, RetryPolicy, TlsTrust};
use strata_proxmox::{Login, ProxmoxOptions, ProxmoxProvider};
use strata_resource::{Address, FieldChange, Lineage, Mark, Spec, Stage, Value, diff_specs};
use strata_secret::{DigestKey, SecretString};
use strata_sim::{Pace, Sim, SimOptions};
use strata_state::{OpenEntry, StateResource};

pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) provider: ProxmoxProvider,
    pub(crate) lineage: Lineage,
    pub(crate) told: Told,
}

/// What the provider told while it worked.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) tasks: Mutex<Vec<String>>,
    pub(crate) progress: Mutex<Vec<String>>,
}

#[async_trait]
impl OperationContext for Told {
    fn before_write(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn task_started(&self, task: &str) -> Result<(), ProviderError> {
        self.tasks.lock().unwrap().push(task.to_owned());
        Ok(())
    }

    fn progress(&self, doing: &str) {
        self.progress.lock().unwrap().push(doing.to_owned());
    }
}

pub(crate) fn spec(json: Json) -> Spec {
    strata_proxmox::kinds::register();
    serde_json::from_value(json).unwrap()
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(Pace::INSTANT, None).await
    }

    pub(crate) async fn with(pace: Pace, login: Option<Login>) -> Self {
        strata_proxmox::kinds::register();
        let sim = Sim::start(SimOptions { pace, ..SimOptions::default() }).await.unwrap();
        let provider = connect(&sim, sim.token(), login);
        Self { sim, provider, lineage: Lineage::derive("r1", "dev/web"), told: Told::default() }
    }

    /// Looks at one object.
    pub(crate) async fn look(
        &self,
        address: &str,
        spec: &Spec,
        recorded: Option<&StateResource>,
    ) -> Sighting {
        let address: Address = address.parse().unwrap();
        let wanted = Wanted { address: &address, spec, recorded, begun: None, lineage: &self.lineage };
        self.provider.observe_all(&[wanted]).await.unwrap().remove(0)
    }

    pub(crate) async fn ours(
        &self,
        address: &str,
        spec: &Spec,
        recorded: Option<&StateResource>,
    ) -> Observed {
        match self.look(address, spec, recorded).await {
            Sighting::Ours(observed) => observed,
            other => panic!("{address}: {other:?}"),
        }
    }

    /// The spec as the engine has it: with the mark, and with digests of its secrets.
    pub(crate) fn complete(&self, address: &str, json: Json) -> Spec {
        let address: Address = address.parse().unwrap();
        let mut spec = spec(json);
        if strata_proxmox::kinds::is_guest(address.kind()) {
            let vmid = u32::try_from(spec["vmid"].as_int().unwrap()).unwrap();
            let mark = Mark::new(&self.lineage, &address, vmid).to_string();
            spec.insert("mark".to_owned(), Value::Text(mark));
        }
        let key = DigestKey::from_bytes(&[7; 32]).unwrap();
        Value::Map(spec).sealed(&key, &address).as_map().unwrap().clone()
    }

    pub(crate) fn operation(&self, action: Action, address: &str, spec: Spec) -> Operation {
        Operation {
            action,
            address: address.parse().unwrap(),
            target: "pve".to_owned(),
            lineage: self.lineage.clone(),
            spec,
            recorded: None,
            observed: None,
            changes: Vec::new(),
            restart: false,
            replacement: false,
            awaited: false,
            payload: None,
        }
    }

    pub(crate) async fn execute(&self, operation: &Operation) -> Result<Outcome, ProviderError> {
        self.provider.execute(operation, &self.told).await
    }

    /// Creates an object and makes sure that a look at it finds nothing left to do.
    pub(crate) async fn create(&self, address: &str, json: Json) -> StateResource {
        let spec = self.complete(address, json);
        let outcome = self.execute(&self.operation(Action::Create, address, spec.clone())).await;
        let recorded = recorded(spec, outcome.unwrap_or_else(|error| panic!("{address}: {error:?}")));
        self.settled(address, &recorded).await;
        recorded
    }

    /// Updates an object to a new spec and makes sure that nothing is left to do.
    pub(crate) async fn update(&self, address: &str, known: &StateResource, json: Json) -> StateResource {
        let operation = self.plan_update(address, known, json).await;
        let outcome = self.execute(&operation).await;
        let recorded =
            recorded(operation.spec, outcome.unwrap_or_else(|error| panic!("{address}: {error:?}")));
        self.settled(address, &recorded).await;
        recorded
    }

    pub(crate) async fn plan_update(&self, address: &str, known: &StateResource, json: Json) -> Operation {
        let spec = self.complete(address, json);
        let observed = self.ours(address, &spec, Some(known)).await;
        let changes = changes(address, &spec, &known.spec, &observed.spec);
        Operation {
            recorded: Some(known.clone()),
            observed: Some(observed),
            changes,
            ..self.operation(Action::Update, address, spec)
        }
    }

    pub(crate) async fn delete(
        &self,
        address: &str,
        known: &StateResource,
    ) -> Result<Outcome, ProviderError> {
        let operation = self.operation(Action::Delete, address, known.spec.clone());
        self.execute(&Operation { recorded: Some(known.clone()), ..operation }).await
    }

    pub(crate) async fn settled(&self, address: &str, known: &StateResource) -> Observed {
        let observed = self.ours(address, &known.spec, Some(known)).await;
        let left = changes(address, &known.spec, &known.spec, &observed.spec);
        assert!(left.is_empty(), "{address}: {left:#?}");
        observed
    }

    pub(crate) async fn control(&self, method: &str, path: &str, body: Json) -> Json {
        let client = HttpClient::new(HttpOptions::new(self.sim.control())).unwrap();
        let mut request = Request::new(method.parse().unwrap(), path);
        request.body =
            Body::Bytes { content_type: "application/json".to_owned(), bytes: body.to_string().into() };
        let response = client.send(&request).await.unwrap();
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        serde_json::from_slice(&response.body).unwrap()
    }

    pub(crate) async fn fault(&self, fault: Json) {
        self.control("POST", "/_sim/faults", fault).await;
    }

    /// Somebody else's call.
    pub(crate) async fn somebody(&self, method: &str, path: &str, params: Json) -> Json {
        let change = json!({"method": method, "path": path, "params": params, "as": "root@pam"});
        let done = self.control("POST", "/_sim/change", change).await;
        assert_eq!(done["status"], 200, "{done}");
        done
    }

    /// Puts the ISO into place that `life::iso_vm` boots from.
    pub(crate) async fn with_iso(&self) {
        let params = json!({"content": "iso", "filename": "boot.iso", "url": "https://example.com/boot.iso"});
        self.somebody("POST", "/nodes/pve1/storage/local/download-url", params).await;
    }

    /// Method, path and count of every kind of request since the last call of this.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let seen = self.control("GET", "/_sim/requests", json!(null)).await;
        self.control("DELETE", "/_sim/requests", json!(null)).await;
        let counts = seen["counts"].as_array().unwrap().iter();
        counts
            .map(|row| {
                format!(
                    "{} {} {}",
                    row["count"],
                    row["method"].as_str().unwrap(),
                    row["path"].as_str().unwrap()
                )
            })
            .collect()
    }
}

pub(crate) fn connect(sim: &Sim, token: &str, login: Option<Login>) -> ProxmoxProvider {
    let mut options = ProxmoxOptions::new(sim.endpoint(), Arc::new(|| 0));
    options.token = Some(SecretString::from(token));
    options.login = login;
    options.tls = TlsTrust::Fingerprint(sim.fingerprint().parse().unwrap());
    options.request_timeout = Duration::from_secs(10);
    options.retry = RetryPolicy { first: Duration::from_millis(5), ..RetryPolicy::default() };
    ProxmoxProvider::connect(options).unwrap()
}

pub(crate) fn recorded(spec: Spec, outcome: Outcome) -> StateResource {
    let known = json!({"target": "pve", "spec": {}, "stage": Stage::Compute});
    StateResource { spec, facts: outcome.facts, ..serde_json::from_value(known).unwrap() }
}

pub(crate) fn changes(address: &str, desired: &Spec, applied: &Spec, live: &Spec) -> Vec<FieldChange> {
    let address: Address = address.parse().unwrap();
    let diff = diff_specs(address.kind().rules(), desired, Some(applied), live);
    assert!(diff.refusals.is_empty(), "{:?}", diff.refusals);
    diff.changes
}

pub(crate) fn open_entry(action: Action, address: &str, identity: Spec, begun: i64) -> OpenEntry {
    let entry = json!({"id": 1, "action": action, "address": address, "target": "pve", "identity": identity,
        "spec_digest": "", "begun": begun});
    serde_json::from_value(entry).unwrap()
}

/// Compares two exports of the simulator, and shows only what differs.
#[track_caller]
pub(crate) fn assert_same_world(one: &Json, other: &Json, when: &str) {
    let (one, other) = (leaves(one), leaves(other));
    let gone: Vec<_> = one.iter().filter(|line| !other.contains(line)).collect();
    let new: Vec<_> = other.iter().filter(|line| !one.contains(line)).collect();
    assert!(gone.is_empty() && new.is_empty(), "{when}: only before {gone:#?}, only after {new:#?}");
    assert_eq!(one.len(), other.len(), "{when}");
}

fn leaves(json: &Json) -> Vec<String> {
    match json {
        Json::Object(map) => map
            .iter()
            .flat_map(|(key, value)| leaves(value).into_iter().map(move |leaf| format!("{key}.{leaf}")))
            .collect(),
        Json::Array(list) => {
            let name = |value: &Json| {
                ["vmid", "name", "volid", "id"].iter().find_map(|key| Some(value.get(key)?.to_string()))
            };
            let named = |(index, value): (usize, &Json)| {
                let name = name(value).unwrap_or_else(|| index.to_string());
                leaves(value).into_iter().map(move |leaf| format!("{name}.{leaf}")).collect::<Vec<_>>()
            };
            list.iter().enumerate().flat_map(named).collect()
        }
        leaf => vec![leaf.to_string()],
    }
}
