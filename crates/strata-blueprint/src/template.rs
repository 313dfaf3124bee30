//! A template: a VM made from a cloud image, and only cloned.

use strata_diagnostics::Diagnostic;
use strata_resource::{Resource, RestartPolicy, Spec, Stage};
use strata_source::machine::guest::ANY_NODE;
use strata_source::machine::template::Template;
use strata_source::stack::Stack;
use strata_source::stack::expand::Instance;

use crate::fields::{Fields, int};
use crate::guest::{raw, tags, timeouts};
use crate::hardware::Machine;
use crate::kinds;
use crate::site::Draft;
use crate::storage::Storages;

impl Draft<'_> {
    pub(crate) fn template(&mut self, stack: &Stack, instance: &Instance<'_, Template>) {
        let template = instance.spec;
        let address = self.address(kinds::TEMPLATE, &instance.name);
        let Some(node) = self.node(instance.node.as_ref(), instance.key).map(str::to_owned) else { return };
        if node == ANY_NODE {
            let message =
                format!("`{}` is a template: it stays on a node that the source names", instance.key);
            let problem = Diagnostic::error("no-node", message).at(instance.key.span);
            self.found.push(problem.hint("set `node` here, or `nodes` for one on each of them"));
            return;
        }
        let machine = Machine {
            stack: Some(stack),
            address: &address,
            name: instance.key,
            node: &node,
            storage: Storages::of(stack, template.storage.as_ref()),
            inherits: false,
            cloned: None,
            firewalled: false,
            mac: &|nic| nic.mac.as_ref().map(|mac| mac.value.to_string()),
        };
        let mut built = self.hardware(&machine, &template.hardware, template.image.as_ref());
        let interfaces = Self::interfaces(&built, template.hardware.network.iter(), &Some);
        self.cloud_init(&machine, instance.vm_id, template.cloud_init.as_ref(), &interfaces, &mut built);
        let mut spec = Spec::new();
        spec.put("vmid", int(instance.vm_id));
        spec.put("node", node.as_str());
        spec.put("name", instance.name.as_str());
        spec.put("mark", self.mark(&address, instance.vm_id));
        spec.put("template", true);
        spec.put_some("notes", template.notes.as_ref().map(|notes| notes.trim_end().to_owned()));
        spec.put_full("tags", tags(&template.tags));
        spec.put_some("protection", template.protection);
        spec.put_some("pool", self.pool(stack, template.pool.as_ref()));
        spec.put_some("timeouts", template.timeouts.as_ref().map(timeouts));
        let more = template.proxmox.as_ref().map(|proxmox| proxmox.options.iter()).into_iter().flatten();
        let options = template.options.iter().chain(more);
        spec.put_full("options", raw(options.map(|(key, value)| (key.as_str(), value))));
        spec.extend(built.spec);
        self.insert(Resource {
            address,
            target: self.target.clone(),
            spec,
            depends_on: built.needs,
            stage: Stage::Compute,
            protect: template.protect,
            on_change: RestartPolicy::Ignore,
            ignore: Vec::new(),
            limits: built.storages.iter().map(|storage| format!("storage:{node}/{storage}")).collect(),
            origin: self.origin(instance.key.span),
        });
    }
}
