//! What a stack lets others ask of it.

use strata_resource::{Address, Kind, Spec, Value};
use strata_source::stack::Stack;
use strata_source::stack::output::{OutputField, OutputKind, OutputPath, Which};
use strata_yaml::Spanned;

use crate::site::Draft;

impl Draft<'_> {
    pub(crate) fn outputs(&mut self, stack: &Stack) {
        for (name, path) in stack.outputs.iter() {
            if let Some(value) = self.output(stack, path) {
                self.blueprint.outputs.insert(name.value.clone(), value);
            }
        }
    }

    fn output(&mut self, stack: &Stack, path: &Spanned<OutputPath>) -> Option<Value> {
        let addresses = self.machines(stack, path);
        let values: Vec<Option<Value>> = addresses
            .iter()
            .map(|address| {
                self.blueprint.graph.get(address).and_then(|resource| field(&resource.spec, path.field))
            })
            .collect();
        match path.which {
            Which::All => Some(Value::List(values.into_iter().flatten().collect())),
            Which::One => self.single(path, values.into_iter().next()),
            Which::Index(index) => self.single(path, values.into_iter().nth(index as usize)),
        }
    }

    fn single(&mut self, path: &Spanned<OutputPath>, value: Option<Option<Value>>) -> Option<Value> {
        match value {
            Some(Some(value)) => return Some(value),
            Some(None) => {
                self.refuse("unknown-output", format!("`{path}` is not known before it runs"), path.span)
            }
            None => self.refuse("unknown-output", format!("there is nothing at `{path}`"), path.span),
        }
        None
    }

    fn machines(&self, stack: &Stack, path: &OutputPath) -> Vec<Address> {
        let named = |key: &str| key == path.name;
        match path.kind {
            OutputKind::Vms => stack
                .vm_instances()
                .iter()
                .filter(|instance| named(instance.key))
                .map(|instance| self.address(Kind::Vm, &instance.name))
                .collect(),
            OutputKind::Containers => stack
                .container_instances()
                .iter()
                .filter(|instance| named(instance.key))
                .map(|instance| self.address(Kind::Container, &instance.name))
                .collect(),
            OutputKind::Templates => stack
                .template_instances()
                .iter()
                .filter(|instance| named(instance.key))
                .map(|instance| self.address(Kind::Template, &instance.name))
                .collect(),
            OutputKind::Nodes => Vec::new(),
        }
    }
}

fn field(spec: &Spec, field: OutputField) -> Option<Value> {
    let networks = spec.get("networks").and_then(Value::as_map);
    match field {
        OutputField::Name => spec.get("name").cloned(),
        OutputField::VmId => spec.get("vmid").cloned(),
        OutputField::Node => spec.get("node").cloned(),
        OutputField::Mac => networks?.values().next()?.as_map()?.get("mac").cloned(),
        OutputField::Address => {
            let configs =
                spec.get("cloudinit").and_then(Value::as_map).and_then(|it| it.get("ipconfig")?.as_map());
            let mut candidates = configs.into_iter().chain(networks).flat_map(|map| map.values());
            candidates.find_map(|candidate| {
                let ip = candidate.as_map()?.get("ip")?.as_text()?;
                let (address, _) = ip.split_once('/')?;
                Some(Value::text(address))
            })
        }
    }
}
