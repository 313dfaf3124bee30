//! What a stack lets others ask of it.

use strata_diagnostics::Diagnostic;
use strata_resource::{Address, Spec, Value};
use strata_source::cluster::Cluster;
use strata_source::stack::Stack;
use strata_source::stack::output::{OutputField, OutputKind, OutputPath, Which};
use strata_yaml::Spanned;

use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(crate) fn outputs(&mut self, stack: &Stack) {
        for (name, path) in stack.outputs.iter() {
            let machines = self.machines(stack, path);
            if let Some(value) = self.output(&machines, path) {
                self.blueprint.outputs.insert(name.value.clone(), value);
            }
        }
    }

    /// A cluster is asked by the names of its machines.
    pub(crate) fn cluster_outputs(&mut self, cluster: &Cluster) {
        for (name, path) in cluster.outputs.iter() {
            let machine = self.address(kinds::VM, &path.name);
            if let Some(value) = self.output(&[machine], path) {
                self.blueprint.outputs.insert(name.value.clone(), value);
            }
        }
    }

    fn output(&mut self, addresses: &[Address], path: &Spanned<OutputPath>) -> Option<Value> {
        let values: Vec<Option<Value>> = addresses
            .iter()
            .map(|address| match path.field {
                OutputField::Address => {
                    let written = self.blueprint.addresses.get(address).map(|ip| Value::text(ip.as_str()));
                    written.or_else(|| self.reported(address))
                }
                named => self.blueprint.graph.get(address).and_then(|resource| field(&resource.spec, named)),
            })
            .collect();
        match path.which {
            Which::All => Some(Value::List(values.into_iter().flatten().collect())),
            Which::One => self.single(path, values.into_iter().next()),
            Which::Index(index) => self.single(path, values.into_iter().nth(index as usize)),
        }
    }

    /// What the guest reports once it runs: where a VM has an agent, and of every container.
    fn reported(&self, address: &Address) -> Option<Value> {
        let spec = &self.blueprint.graph.get(address)?.spec;
        let agent = || spec.get("agent")?.as_map()?.get("enabled")?.as_bool();
        let reports = address.kind() == kinds::CONTAINER || agent() == Some(true);
        let has_device =
            spec.get("networks").and_then(Value::as_map).is_some_and(|networks| !networks.is_empty());
        let output = || Value::Input { address: Box::new(address.clone()), output: "address".to_owned() };
        (reports && has_device).then(output)
    }

    fn single(&mut self, path: &Spanned<OutputPath>, value: Option<Option<Value>>) -> Option<Value> {
        match value {
            Some(Some(value)) => return Some(value),
            Some(None) => {
                let message = format!("`{path}` is written nowhere, and nothing reports it");
                let found = Diagnostic::error("unknown-output", message).at(path.span);
                self.found
                    .push(found.hint("write the `ip`, or have its guest agent asked for it: `agent: true`"));
            }
            None => self.refuse("unknown-output", format!("there is nothing at `{path}`"), path.span),
        }
        None
    }

    fn machines(&self, stack: &Stack, path: &OutputPath) -> Vec<Address> {
        let found = match path.kind {
            OutputKind::Vms => stack.vms_named(&path.name),
            OutputKind::Containers => stack.containers_named(&path.name),
            OutputKind::Templates | OutputKind::Nodes => None,
        };
        let keys = found.map_or_else(|| vec![path.name.as_str()], |found| found.keys);
        let named = |key: &str| keys.contains(&key);
        match path.kind {
            OutputKind::Vms => stack
                .vm_instances()
                .iter()
                .filter(|instance| named(instance.key))
                .map(|instance| self.address(kinds::VM, &instance.name))
                .collect(),
            OutputKind::Containers => stack
                .container_instances()
                .iter()
                .filter(|instance| named(instance.key))
                .map(|instance| self.address(kinds::CONTAINER, &instance.name))
                .collect(),
            OutputKind::Templates => stack
                .template_instances()
                .iter()
                .filter(|instance| named(instance.key))
                .map(|instance| self.address(kinds::TEMPLATE, &instance.name))
                .collect(),
            OutputKind::Nodes => Vec::new(),
        }
    }
}

fn field(spec: &Spec, field: OutputField) -> Option<Value> {
    match field {
        OutputField::Name => spec.get("name").cloned(),
        OutputField::VmId => spec.get("vmid").cloned(),
        OutputField::Node => spec.get("node").cloned(),
        OutputField::Mac => spec.get("networks")?.as_map()?.values().next()?.as_map()?.get("mac").cloned(),
        // Not every machine's spec says its address: an ISO may carry it.
        OutputField::Address => None,
    }
}
