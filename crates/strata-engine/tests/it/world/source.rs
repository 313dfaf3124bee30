//! A small source: resources written down in a line each.

use serde_json::{Value as Json, json};
use strata_engine::{Sealing, StackView};
use strata_resource::{
    Address, Kind, Lineage, Mark, Resource, ResourceGraph, RestartPolicy, Secret, Spec, Stage, Value,
};
use strata_secret::{DigestKey, SecretString};

pub(crate) const KEY: &str = "dev/web";

pub(crate) fn lineage() -> Lineage {
    Lineage::derive("test", KEY)
}

/// The name of a volume of ours: it holds the lineage.
pub(crate) fn volid(name: &str) -> String {
    format!("local:iso/{}-{name}.iso", lineage().short())
}

#[derive(Clone, Default)]
pub(crate) struct Source {
    resources: Vec<Resource>,
}

impl Source {
    pub(crate) fn image(self, name: &str, content: &str) -> Self {
        self.volume(Kind::named("image"), name, content)
    }

    pub(crate) fn cidata(self, name: &str, content: &str) -> Self {
        self.volume(Kind::named("cidata"), name, content)
    }

    fn volume(self, kind: Kind, name: &str, content: &str) -> Self {
        let spec = json!({"volume": volid(content), "storage": "local", "node": "pve1"});
        self.add(kind, name, spec, Stage::Prereqs)
    }

    /// A guest with two cores that runs, on hypervisor `pve1`; `more` is laid over that.
    pub(crate) fn vm(self, name: &str, vmid: u32, more: Json) -> Self {
        self.guest(Kind::named("vm"), name, vmid, json!({"cpu": {"cores": 2}, "power": "running"}), more)
    }

    pub(crate) fn container(self, name: &str, vmid: u32, more: Json) -> Self {
        self.guest(
            Kind::named("container"),
            name,
            vmid,
            json!({"memory": {"size": 1024}, "power": "running"}),
            more,
        )
    }

    pub(crate) fn template(self, name: &str, vmid: u32) -> Self {
        self.guest(
            Kind::named("template"),
            name,
            vmid,
            json!({"cpu": {"cores": 8}, "template": true}),
            json!({}),
        )
    }

    fn guest(self, kind: Kind, name: &str, vmid: u32, base: Json, more: Json) -> Self {
        let mut spec = json!({"vmid": vmid, "node": "pve1", "name": name});
        for (key, value) in base.as_object().unwrap().iter().chain(more.as_object().unwrap()) {
            spec[key] = value.clone();
        }
        let address = Address::new(None, "s", kind, name);
        spec["mark"] = json!(Mark::new(&lineage(), &address, vmid).to_string());
        let template = spec.pointer("/clone/template").map(|template| format!("template:{template}"));
        let mut source = self.add(kind, name, spec, Stage::Compute);
        let last = source.last();
        last.limits = std::iter::once("storage:pve1/lvm".to_owned()).chain(template).collect();
        source
    }

    fn add(mut self, kind: Kind, name: &str, spec: Json, stage: Stage) -> Self {
        self.resources.push(Resource {
            address: Address::new(None, "s", kind, name),
            target: "pve".into(),
            spec: serde_json::from_value(spec).unwrap(),
            depends_on: Default::default(),
            stage,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: vec![],
            origin: None,
        });
        self
    }

    fn last(&mut self) -> &mut Resource {
        self.resources.last_mut().expect("there is a resource")
    }

    /// The last resource needs these, written `kind/name`.
    pub(crate) fn needs(mut self, names: &[&str]) -> Self {
        let addresses = names.iter().map(|name| super::address(name));
        self.last().depends_on.extend(addresses);
        self
    }

    pub(crate) fn protect(mut self) -> Self {
        self.last().protect = true;
        self
    }

    pub(crate) fn on_change(mut self, policy: RestartPolicy) -> Self {
        self.last().on_change = policy;
        self
    }

    pub(crate) fn on_target(mut self, target: &str) -> Self {
        self.last().target = target.to_owned();
        self
    }

    /// Lays fields over the last resource.
    pub(crate) fn with(mut self, fields: Json) -> Self {
        let fields: Spec = serde_json::from_value(fields).unwrap();
        self.last().spec.extend(fields);
        self
    }

    /// The last resource's cloud-init data has a password.
    pub(crate) fn password(mut self, password: &str) -> Self {
        let secret = Value::Secret(Secret::new(SecretString::from(password)));
        self.last().spec.insert("cloudinit".into(), Value::Map([("password".into(), secret)].into()));
        self
    }

    /// Another field of one resource, written `kind/name`.
    pub(crate) fn change(mut self, name: &str, field: &str, value: Json) -> Self {
        let value: Value = serde_json::from_value(value).unwrap();
        let address: Address = super::address(name);
        let resource = self.resources.iter_mut().find(|resource| resource.address == address).unwrap();
        let mut keys: Vec<&str> = field.split('.').collect();
        let last = keys.pop().unwrap();
        let mut map = &mut resource.spec;
        for key in keys {
            let inner = map.entry(key.to_owned()).or_insert_with(|| Value::Map(Spec::new()));
            let Value::Map(inner) = inner else { panic!("`{key}` is no map") };
            map = inner;
        }
        map.insert(last.to_owned(), value);
        self
    }

    pub(crate) fn without(mut self, names: &[&str]) -> Self {
        self.resources.retain(|resource| {
            let name = format!("{}/{}", resource.kind(), resource.address.name());
            !names.contains(&name.as_str())
        });
        self
    }

    pub(crate) fn addresses(&self) -> Vec<Address> {
        let mut addresses: Vec<Address> =
            self.resources.iter().map(|resource| resource.address.clone()).collect();
        addresses.sort();
        addresses
    }

    pub(crate) fn stack(&self) -> StackView {
        let mut graph = ResourceGraph::default();
        for resource in &self.resources {
            graph.insert(resource.clone()).unwrap();
        }
        let mut stack = StackView { graph, ..StackView::empty(KEY.to_owned(), lineage()) };
        stack.seal(&Sealing::new(DigestKey::from_bytes(&[7; 32])));
        stack
    }
}
