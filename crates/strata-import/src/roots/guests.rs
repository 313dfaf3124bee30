//! The machines and containers of a root, as a stack.

use crate::output::Put as _;
use crate::output::only;
use crate::records::{Disk, Guest, Hardware, Metadata, Stack, StackProxmox, Template};

use serde_json::{Value as Json, json};

use super::super::guest::{self, RootReferences, kind};
use super::super::module::{Expansion, Resource};
use super::super::output::Object;
use super::super::tree::{SourceLine, Tree};
use super::super::{Guests, Import, base, firewall, name, telmate};
use super::filing::Filing;
use super::{is_guest, is_template};

/// What the code says of a resource's life: Strata protects guests, and passes no changes over.
pub(super) fn life(import: &mut Import<'_>, resource: &Resource, guest: Option<&mut Object>) {
    let Some(life) = &resource.lifecycle else { return };
    let what = resource.address();
    match guest {
        Some(guest) if life.prevent_destroy => {
            guest.set(Guest::protect, json!(true));
        }
        None if life.prevent_destroy => import.note(
            Some(&life.place),
            format!("`{what}` has `prevent_destroy`, which Strata has for machines and containers alone: it was not carried over"),
        ),
        _ => {}
    }
    if !life.ignored.is_empty() {
        let list = life.ignored.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        import.note(
            Some(&life.place),
            format!("`{what}` ignores changes of {list} (`ignore_changes`): Strata brings these back to what the source says, unless `ignoreChanges` of the guest names them; check them in the first plan"),
        );
    }
}

/// A machine that was written down: the resource it came from, its document, and its key there.
pub(in super::super) struct Made {
    pub(in super::super) address: String,
    pub(in super::super) document: String,
    pub(in super::super) own: String,
}

pub(super) fn guests(
    import: &mut Import<'_>,
    expansion: &Expansion,
    filing: &Filing,
    target: &str,
    endpoint: &str,
    place: &SourceLine,
) -> Vec<Made> {
    let stack = import.stack_name(&filing.stack, place);
    let document = format!("stacks/{}{stack}/stack.yaml", filing.above);
    let mut guests = Guests::default();
    let mut made = Vec::new();
    let mut around = RootReferences {
        resources: &expansion.resources,
        templates: Vec::new(),
        key: None,
        endpoint: base(endpoint),
    };
    // Templates first: others are cloned from them.
    let mut machines: Vec<&Resource> =
        expansion.resources.iter().filter(|resource| is_guest(resource)).collect();
    machines.sort_by_key(|resource| !is_template(resource));
    for resource in machines {
        let body = &resource.body;
        around.key.clone_from(&resource.key);
        let telmate = telmate::is_guest(resource);
        let short = kind(&resource.kind);
        let container = short != "vm" && short != "vm_qemu";
        let called = match short {
            "container" => body.one("initialization").and_then(|found| found.get("hostname")?.peek()),
            "lxc" => body.get("hostname").and_then(Tree::peek),
            _ => body.text("name"),
        };
        let called = called.unwrap_or_else(|| own_key(resource));
        let what = format!("{stack}/{called}");
        let key = if telmate { telmate::number(resource) } else { "vm_id" };
        // Telmate's provider says with zero that Proxmox may choose.
        if is_template(resource) {
            import.needless(body, &["started", "on_boot", "startup"], "a template does not run");
        }
        let mut known = body.int(key).filter(|number| *number != 0 || !telmate);
        if let Some(vm_id) = known
            && is_template(resource)
            && let Some(there) = import.templates.get(&(base(endpoint), vm_id)).cloned()
        {
            let (mut again, _) = guest::machine(import, &around, body, &called);
            as_template(&mut again);
            let known = import.template_bodies.get(&(base(endpoint), vm_id));
            let differs: Vec<String> = again
                .iter()
                .filter(|(key, value)| known.is_some_and(|known| known.get(*key) != Some(value)))
                .map(|(key, _)| format!("`{key}`"))
                .collect();
            let differs = match differs.as_slice() {
                [] => String::new(),
                keys => format!(", although it has another {}", keys.join(", ")),
            };
            body.take_all();
            import.note(
                Some(&resource.place),
                format!("the template {vm_id} is `{there}` already: it was left out, and clones refer to that one{differs}"),
            );
            continue;
        }
        // A number of an example says nothing about the real machine: it takes none away.
        if let Some(vm_id) = known
            && body.get(key).is_some_and(Tree::is_example)
            && let Some(other) = import.taken.get(&(base(endpoint), vm_id)).cloned()
        {
            let message = format!(
                "the VMID {vm_id} of `{what}` comes from an example, and `{other}` has it: another stands in for it, write the real one"
            );
            import.note(Some(&resource.place), message);
            known = None;
        }
        if let Some(vm_id) = known
            && !import.claim(endpoint, vm_id, &what, &resource.place)
        {
            body.take_all();
            continue;
        }
        let (section, written) = if container {
            let made = if telmate {
                telmate::container::container(import, body, &called)
            } else {
                guest::container(import, &around, body, &called)
            };
            match made {
                Some(written) => ("containers", written),
                None => continue,
            }
        } else {
            let (mut vm, template) = if telmate {
                (telmate::machine(import, &around, body, &called), false)
            } else {
                guest::machine(import, &around, body, &called)
            };
            if template {
                match as_template(&mut vm) {
                    Some(()) => ("templates", vm),
                    None => {
                        import.note(Some(&resource.place), format!("the template `{called}` is made of no image that is known here and was left out"));
                        body.take_all();
                        continue;
                    }
                }
            } else {
                ("vms", vm)
            }
        };
        let vm_id = known.unwrap_or_else(|| {
            body.take_keys(&[key]);
            import.number(endpoint, &what, key, &resource.place)
        });
        if section == "templates" {
            around.templates.push((vm_id, name(&called)));
            let path = format!("{stack}/{}", name(&called));
            import.templates.entry((base(endpoint), vm_id)).or_insert(path);
            import.template_bodies.insert((base(endpoint), vm_id), written.clone());
        }
        let mut guest = Object::new();
        guest.set(Guest::vm_id, json!(vm_id));
        guest.extend(written);
        if section != "templates" {
            firewall::of_guest(import, &around, resource, vm_id, &mut guest);
        }
        life(import, resource, Some(&mut guest));
        if !guest.contains_key(Guest::node.name()) {
            body.take_keys(&["node_name", "target_node"]);
            import.note(
                Some(&resource.place),
                format!("which node `{called}` is on is in no file that was read: `pve` was written down"),
            );
            guest.set(Guest::node, json!("pve"));
        }
        import.drop_taken_addresses(endpoint, &mut guest, &what, &resource.place);
        let unique = import.unique(endpoint, &called, &stack, &resource.place);
        if called != unique && called.eq_ignore_ascii_case(&unique) {
            guest.set(Guest::name, json!(called));
        }
        import.origin(&document, section, &unique, &resource.place);
        made.push(Made { address: resource.full_address(), document: document.clone(), own: unique.clone() });
        let all = match section {
            "templates" => &mut guests.templates,
            "containers" => &mut guests.containers,
            _ => &mut guests.vms,
        };
        all.insert(unique, Json::Object(guest));
    }
    if guests.is_empty() {
        import.stacks.remove(&stack);
        return made;
    }
    let mut written = Object::new();
    let mut metadata = Object::new();
    metadata.set(Metadata::name, json!(stack));
    if let Some(environment) = &filing.environment {
        metadata.set(Metadata::environment, json!(name(environment)));
    }
    if let Some(layer) = filing.layer {
        metadata.set(Metadata::layer, json!(layer));
    }
    written.set(Stack::metadata, Json::Object(metadata));
    written.set(Stack::proxmox, only(StackProxmox::target, target));
    guests.put_into(&mut written);
    import.write(document, written, place);
    made
}

/// What a machine is called where its name is not known.
fn own_key(resource: &Resource) -> String {
    match &resource.key {
        Some(key) if key.parse::<u32>().is_ok() => format!("{}-{key}", resource.name),
        Some(key) => key.clone(),
        None => resource.name.clone(),
    }
}

/// A template names its image; a machine has it in its first disk.
fn as_template(vm: &mut Object) -> Option<()> {
    let disks = vm.get_mut(Hardware::disks.name())?.as_object_mut()?;
    let image = disks.values_mut().find_map(|disk| disk.as_object_mut()?.remove(Disk::import.name()))?;
    vm.set(Template::image, image);
    // These are for machines that run.
    for key in ["onboot", "started", "startup", "clone", "template"] {
        vm.remove(key);
    }
    Some(())
}
