//! A virtual machine: cloned from a template, copied from an image, or booted from a CD.

use std::collections::BTreeSet;

use strata_diagnostics::nearest;
use strata_resource::{Address, Resource, Spec, Stage, Value};
use strata_source::machine::guest::ANY_NODE;
use strata_source::machine::network::Nic;
use strata_source::machine::vm::Vm;
use strata_source::stack::Stack;
use strata_source::stack::expand::Instance;
use strata_yaml::Spanned;

use crate::fields::{Fields, int};
use crate::guest::{Equals, group, policy};
use crate::hardware::{BOOT_DISK, Cloned, Machine};
use crate::kinds;
use crate::site::Draft;
use crate::storage::Storages;

/// A template as its clones see it.
struct Source {
    vm_id: u32,
    node: Option<String>,
    resource: Option<Address>,
}

impl Draft<'_> {
    pub(crate) fn vm(&mut self, stack: &Stack, instance: &Instance<'_, Vm>) {
        let (vm, guest) = (instance.spec, &instance.spec.guest);
        let address = self.address(kinds::VM, &instance.name);
        let Some(written) = self.node(instance.node.as_ref(), instance.key) else { return };
        let node = self.home(&address, written);
        let cloned = vm.template.as_ref().map(|name| cloned(stack, name, vm));
        let machine = Machine {
            stack: Some(stack),
            address: &address,
            name: instance.key,
            node: &node,
            storage: Storages::of(stack, None),
            inherits: vm.template.is_some(),
            cloned: cloned.as_ref(),
            firewalled: guest.firewall.as_ref().is_some_and(|firewall| firewall.enabled),
            mac: &|nic: &Nic| instance.mac(nic.mac.as_ref().map(|mac| mac.value)).map(|mac| mac.to_string()),
        };
        let boot = vm.image.as_ref().or(vm.iso.as_ref());
        let mut built = self.hardware(&machine, &vm.hardware, boot);
        let interfaces =
            Self::interfaces(&built, vm.hardware.network.iter(), &|first| instance.addressing(first));
        self.cloud_init(&machine, instance.vm_id, vm.cloud_init.as_ref(), &interfaces, &mut built);
        let fixed = interfaces.iter().find_map(|interface| interface.ip?.address());
        self.blueprint.addresses.extend(fixed.map(|cidr| (address.clone(), cidr.address.to_string())));
        let mut spec = self.guest(&address, instance.vm_id, &node, &instance.name, guest);
        let pool = self.pool(stack, guest.pool.as_ref());
        let equals = Equals {
            address: &address,
            key: instance.key,
            counted: instance.index.is_some(),
            each: vm.each.keys().next().map(AsRef::as_ref),
            pool: pool.as_deref(),
            fixed: fixed.map(|cidr| cidr.address),
        };
        spec.put_some("rollout", self.rollout(guest, equals));
        spec.put_some("pool", pool);
        spec.extend(built.spec);
        let mut limits: Vec<String> =
            built.storages.iter().map(|storage| format!("storage:{node}/{storage}")).collect();
        let mut depends_on = built.needs;
        if let Some(name) = &vm.template {
            let Some(source) = self.template_of(stack, name, &node) else { return };
            spec.put("clone", clone_spec(&source, vm, &spec));
            limits.push(format!("template:{}", source.vm_id));
            if written == ANY_NODE
                && let Some(nodes) = self.nodes_of(stack, name, &source)
            {
                self.blueprint.templates_on.insert(address.clone(), nodes);
            }
            depends_on.extend(source.resource);
        }
        depends_on.extend(self.dependencies(stack, &guest.depends_on));
        let on_change =
            guest.on_change.or(vm.cloud_init.as_ref().and_then(|cloud_init| cloud_init.on_change));
        let ignore = self.ignored(kinds::VM, guest);
        let group = group(&spec);
        let mut resource = Resource {
            address,
            target: self.target.clone(),
            spec,
            depends_on,
            stage: Stage::Compute,
            protect: guest.protect,
            on_change: policy(on_change),
            ignore,
            limits,
            origin: self.origin(instance.key.span),
        };
        self.leave_open(written, group, &mut resource);
        self.insert(resource);
    }

    /// The nodes that a template can be cloned on; none where its disks are on storages that every node sees.
    fn nodes_of(&self, stack: &Stack, name: &Spanned<String>, source: &Source) -> Option<BTreeSet<String>> {
        let Some(own) = &source.resource else { return source.node.clone().map(|node| [node].into()) };
        let disks = self.blueprint.graph.get(own).and_then(|template| template.spec.get("disks")?.as_map());
        let storage = |disk: &Value| disk.as_map()?.get("storage")?.as_text().map(str::to_owned);
        let mut storages = disks.into_iter().flat_map(|disks| disks.values()).filter_map(storage);
        if storages.all(|storage| self.is_shared(&storage)) {
            return None;
        }
        let templates = stack.template_instances().into_iter().filter(|template| template.key == name);
        Some(templates.filter_map(|template| template.node.map(|node| node.value)).collect())
    }

    pub(crate) fn pool(&self, stack: &Stack, own: Option<&Spanned<String>>) -> Option<String> {
        let whole = stack.proxmox.as_ref().and_then(|proxmox| proxmox.pool.as_ref());
        own.or(whole).map(|pool| pool.value.clone())
    }

    /// The template on the machine's own node if there is one, otherwise the first.
    fn template_of(&mut self, stack: &Stack, name: &Spanned<String>, node: &str) -> Option<Source> {
        if let Some(foreign) = self.site.foreign_templates.get(name.as_str()) {
            return Some(Source { vm_id: foreign.vm_id, node: foreign.node.clone(), resource: None });
        }
        let own: Vec<_> =
            stack.template_instances().into_iter().filter(|template| template.key == name).collect();
        let here = own.iter().find(|template| template.node.as_ref().is_some_and(|on| on.value == node));
        let Some(template) = here.or(own.first()) else {
            let known = stack.templates.iter().map(|(key, _)| key.as_str());
            let hint = nearest(name, known).map(|meant| format!("did you mean `{meant}`?"));
            let message = format!("there is no template `{name}`");
            let found = strata_diagnostics::Diagnostic::error("unknown-template", message)
                .at(name.span)
                .maybe_hint(hint);
            self.found.push(found);
            return None;
        };
        Some(Source {
            vm_id: template.vm_id,
            node: template.node.as_ref().map(|node| node.value.clone()),
            resource: Some(self.address(kinds::TEMPLATE, &template.name)),
        })
    }

    /// `vms.db`, `containers.dns`: all machines of that entry.
    pub(crate) fn dependencies(&mut self, stack: &Stack, names: &[Spanned<String>]) -> BTreeSet<Address> {
        let mut found = BTreeSet::new();
        for name in names {
            let before = found.len();
            let named = match name.split_once('.') {
                Some(("vms", key)) => stack.vms_named(key),
                Some(("containers", key)) => stack.containers_named(key),
                _ => None,
            };
            let keys = named.map(|named| named.keys).unwrap_or_default();
            match name.split_once('.') {
                Some(("vms", _)) => found.extend(
                    stack
                        .vm_instances()
                        .iter()
                        .filter(|instance| keys.contains(&instance.key.as_str()))
                        .map(|instance| self.address(kinds::VM, &instance.name)),
                ),
                Some(("containers", _)) => found.extend(
                    stack
                        .container_instances()
                        .iter()
                        .filter(|instance| keys.contains(&instance.key.as_str()))
                        .map(|instance| self.address(kinds::CONTAINER, &instance.name)),
                ),
                _ => {}
            }
            if found.len() == before {
                self.refuse("unknown-dependency", format!("there is no `{name}` in this stack"), name.span);
            }
        }
        found
    }
}

/// What comes along with a clone. Of a template elsewhere only the disk that it boots from is known.
fn cloned(stack: &Stack, template: &Spanned<String>, vm: &Vm) -> Cloned {
    let own = stack.templates.get(template.as_str());
    let disks = own.map(|own| own.hardware.disks.iter().map(|(slot, _)| slot.value.clone()));
    let mut slots: BTreeSet<String> = disks.into_iter().flatten().collect();
    slots.insert(BOOT_DISK.to_owned());
    Cloned { full: vm.clone_mode.as_ref().is_none_or(|mode| mode.full), slots }
}

/// A full clone goes straight to the storage of its first disk.
fn clone_spec(source: &Source, vm: &Vm, spec: &Spec) -> Spec {
    let full = vm.clone_mode.as_ref().is_none_or(|mode| mode.full);
    let first = spec.get("disks").and_then(Value::as_map).and_then(|disks| disks.get(BOOT_DISK)?.as_map());
    let mut clone = Spec::new();
    clone.put("template", int(source.vm_id));
    clone.put_some("node", source.node.clone());
    clone.put("full", full);
    if full {
        clone.put_some("storage", first.and_then(|disk| disk.get("storage")).cloned());
    }
    clone
}
