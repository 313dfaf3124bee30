//! A cluster at which nobody answers, and operations on it: for decisions that ask no machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use strata_engine::{Evidence, Observed, Operation, Review, Sighting};
use strata_resource::{FieldChange, FieldPath, Lineage, Spec, Stage, Value};
use strata_secret::SecretString;
use strata_secrets::OsRandom;
use strata_state::{Action, StateResource};
use strata_talos::{MachineConfig, SecretsBundle, ServiceAccountKey};

use crate::cluster::{Cluster, ClusterOptions, NodePlace};
use crate::evidence::{ClusterReview, MachineEvidence};
use crate::wait::Deadlines;

/// Three control planes `cp-1` to `cp-3` at 192.0.2.1 to .3 and the worker `w-1` at .11, which the source asks for and the state knows.
pub(crate) fn cluster(edit: impl FnOnce(&mut ClusterOptions)) -> Cluster {
    let now = Timestamp::UNIX_EPOCH;
    let nodes = vec![
        node("cp-1", "192.0.2.1", true),
        node("cp-2", "192.0.2.2", true),
        node("cp-3", "192.0.2.3", true),
        node("w-1", "192.0.2.11", false),
    ];
    let mut options = ClusterOptions {
        stack: "lab".to_owned(),
        name: "lab".to_owned(),
        endpoint: "https://192.0.2.10:6443".to_owned(),
        vip: None,
        talos_version: "v1.12.4".to_owned(),
        known: nodes.clone(),
        nodes,
        protected: BTreeSet::new(),
        configs: BTreeMap::new(),
        secrets: SecretsBundle::generate(now, ServiceAccountKey::Ecdsa, &mut OsRandom)
            .unwrap_or_else(|error| panic!("{error}")),
        bootstrapped: true,
        bootstrapped_as: BTreeSet::from(["lab".to_owned()]),
        ending: false,
        waits_for_cni: false,
        allow_even: false,
        new_cluster: false,
        restoring: None,
        deadlines: Deadlines::default(),
        dial: Default::default(),
        trace: None,
        random: Arc::new(|| 0),
        redactor: Default::default(),
        digest_key: None,
        media: None,
        snapshots: None,
        mirror: Box::new(str::to_owned),
        outside_tls: Default::default(),
        root: Default::default(),
    };
    edit(&mut options);
    Cluster::new(options, now).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn node(name: &str, address: &str, control_plane: bool) -> NodePlace {
    NodePlace { name: name.to_owned(), address: address.to_owned(), control_plane, lease: None, pin: None }
}

pub(crate) fn config(text: &str) -> MachineConfig {
    MachineConfig::from_yaml(&SecretString::from(text)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn spec(fields: &[(&str, &str)]) -> Spec {
    fields.iter().map(|(field, value)| ((*field).to_owned(), Value::text(*value))).collect()
}

/// `at` is an address such as `lab/machine/cp-1`.
pub(crate) fn operation(action: Action, at: &str, fields: &[(&str, &str)]) -> Operation {
    Operation {
        action,
        address: address(at),
        target: "lab".to_owned(),
        lineage: Lineage::derive("repository", "lab"),
        spec: spec(fields),
        recorded: None,
        observed: None,
        changes: Vec::new(),
        restart: false,
        replacement: false,
        awaited: false,
        payload: None,
    }
}

/// An update that changes a field.
pub(crate) fn change(at: &str, path: &str) -> Operation {
    let change = FieldChange { path: FieldPath::dotted(path), before: None, after: None, drift: false };
    Operation { changes: vec![change], ..operation(Action::Update, at, &[]) }
}

pub(crate) fn observed(fields: &[(&str, &str)]) -> Observed {
    let digest = "digest".to_owned();
    Observed {
        spec: spec(fields),
        facts: Spec::new(),
        digest,
        pending: Vec::new(),
        running: None,
        evidence: Default::default(),
    }
}

pub(crate) fn recorded(spec: Spec, partial: bool) -> StateResource {
    StateResource {
        target: "lab".to_owned(),
        spec,
        facts: Spec::new(),
        depends_on: BTreeSet::new(),
        stage: Stage::Cluster,
        protect: false,
        partial,
        deposed: Vec::new(),
        made_as: None,
    }
}

fn address(at: &str) -> strata_resource::Address {
    crate::kinds::register();
    strata_proxmox::kinds::register();
    at.parse().unwrap_or_else(|error| panic!("{at}: {error}"))
}

/// What a look showed: nodes that run, with their configurations.
pub(crate) struct Nodes(BTreeMap<strata_resource::Address, Sighting>);

impl Nodes {
    pub(crate) fn none() -> Self {
        Self(BTreeMap::new())
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, config: MachineConfig, reboot_due: bool) -> Self {
        let evidence = Evidence::new(MachineEvidence { config, reboot_due });
        let observed = Observed { evidence, ..observed(&[]) };
        self.0.insert(address(&format!("lab/machine/{name}")), Sighting::Ours(observed));
        self
    }

    pub(crate) fn review<'a>(
        &'a self,
        cluster: &'a Cluster,
        operations: &'a [Operation],
    ) -> ClusterReview<'a> {
        ClusterReview::new(cluster, Review { operations, live: &self.0 })
    }
}
