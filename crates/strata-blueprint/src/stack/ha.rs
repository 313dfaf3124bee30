//! High availability of guests, and the rules of where they may be.

use std::collections::{BTreeMap, BTreeSet};

use strata_diagnostics::Diagnostic;
use strata_resource::{Address, CommentMark, Kind, Resource, RestartPolicy, Spec, Stage};
use strata_source::machine::guest::{Guest, HaState, HighAvailability};
use strata_source::stack::{HaRule, Stack};
use strata_yaml::Spanned;

use crate::fields::{Fields, int, list};
use crate::kinds;
use crate::site::Draft;

/// A guest as high availability knows it.
struct Service<'g> {
    guest: Address,
    /// `vm` or `ct`.
    prefix: &'static str,
    vm_id: u32,
    key: &'g Spanned<String>,
}

/// What becomes a resource of its own.
struct HaPart<'p> {
    kind: Kind,
    name: &'p str,
    comment: Option<&'p String>,
    protect: bool,
    key: &'p Spanned<String>,
}

impl Service<'_> {
    fn sid(&self) -> String {
        format!("{}:{}", self.prefix, self.vm_id)
    }

    /// By its VMID: the guest may get another name.
    fn name(&self) -> String {
        format!("{}-{}", self.prefix, self.vm_id)
    }
}

impl Draft<'_> {
    pub(super) fn high_availability(&mut self, stack: &Stack) {
        for instance in stack.vm_instances() {
            let guest = self.address(kinds::VM, &instance.name);
            let service = Service { guest, prefix: "vm", vm_id: instance.vm_id, key: instance.key };
            self.ha_of(&service, &instance.spec.guest);
        }
        for instance in stack.container_instances() {
            let guest = self.address(kinds::CONTAINER, &instance.name);
            let service = Service { guest, prefix: "ct", vm_id: instance.vm_id, key: instance.key };
            self.ha_of(&service, &instance.spec.guest);
        }
        for (id, rule) in stack.ha_rules.iter() {
            self.ha_rule(stack, id, rule);
        }
    }

    fn ha_rule(&mut self, stack: &Stack, id: &Spanned<String>, rule: &HaRule) {
        if rule.nodes.is_empty() && rule.affinity.is_none() {
            let message = format!("the rule `{id}` says nothing: set `nodes` or `affinity`");
            self.refuse("no-rule", message, id.span);
        }
        if rule.strict.is_some() && rule.nodes.is_empty() {
            self.refuse("no-nodes", format!("`strict` of the rule `{id}` goes with `nodes`"), id.span);
        }
        let mut members = BTreeMap::new();
        for guest in self.dependencies(stack, &rule.guests) {
            let Some(sid) = self.sid_of(&guest) else { continue };
            let needs = self.address(kinds::HA, &sid.replace(':', "-"));
            if self.blueprint.graph.get(&needs).is_none() {
                let message =
                    format!("`{guest}` is in the rule `{id}`, and high availability does not manage it");
                let problem = Diagnostic::error("no-ha", message).at(id.span);
                self.found.push(problem.hint("give the guest `ha: {}`, or take it out of the rule"));
            }
            members.insert(sid, needs);
        }
        let least = if rule.affinity.is_some() { 2 } else { 1 };
        if members.len() < least && self.found.is_empty() {
            let message =
                format!("the rule `{id}` is about {} guests, and {least} are needed", members.len());
            self.refuse("too-few", message, id.span);
        }
        let mut spec = Spec::new();
        spec.put("ha_rule", id.as_str());
        spec.put("type", if rule.affinity.is_some() { "resource-affinity" } else { "node-affinity" });
        spec.put("members", list(members.keys()));
        spec.put_full("nodes", list(rule.nodes.iter().map(|node| node.as_str()).collect::<BTreeSet<_>>()));
        spec.put_some("strict", rule.strict);
        spec.put_some("affinity", rule.affinity.map(|affinity| affinity.to_string()));
        spec.put("enabled", rule.enabled);
        if rule.adopt {
            spec.put("adopt", true);
        }
        let part = HaPart {
            kind: kinds::HA_RULE,
            name: id,
            comment: rule.comment.as_ref(),
            protect: rule.protect,
            key: id,
        };
        self.ha_part(part, spec, members.into_values());
    }

    /// A guest as high availability calls it.
    fn sid_of(&self, guest: &Address) -> Option<String> {
        let prefix = if guest.kind() == kinds::CONTAINER { "ct" } else { "vm" };
        let vm_id = self.blueprint.graph.get(guest)?.spec.get("vmid")?.as_int()?;
        Some(format!("{prefix}:{vm_id}"))
    }

    fn ha_of(&mut self, service: &Service<'_>, guest: &Guest) {
        let Some(ha) = &guest.ha else { return };
        let usual = if guest.started { HaState::Started } else { HaState::Stopped };
        let state = ha.state.unwrap_or(usual);
        let runs = match state {
            HaState::Started => Some(true),
            HaState::Stopped | HaState::Disabled => Some(false),
            HaState::Ignored => None,
        };
        if runs.is_some_and(|runs| runs != guest.started) {
            let message = format!(
                "`{}` has `started: {}`, and high availability would keep it {state}",
                service.key, guest.started
            );
            self.refuse("ha-state", message, service.key.span);
        }
        let spec = resource_spec(service, state, ha);
        let name = service.name();
        let part = HaPart {
            kind: kinds::HA,
            name: &name,
            comment: ha.comment.as_ref(),
            protect: false,
            key: service.key,
        };
        self.ha_part(part, spec, [service.guest.clone()]);
    }

    fn ha_part(&mut self, part: HaPart<'_>, mut spec: Spec, needs: impl IntoIterator<Item = Address>) {
        let HaPart { kind, name, comment, protect, key } = part;
        let address = self.address(kind, name);
        let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        spec.put_some("comment", comment.map(one_line).filter(|text| !text.is_empty()));
        spec.put("mark", CommentMark::new(self.site.lineage, &address).to_string());
        self.insert(Resource {
            address,
            target: self.target.clone(),
            spec,
            depends_on: needs.into_iter().collect(),
            stage: Stage::Compute,
            protect,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin: self.origin(key.span),
        });
    }
}

fn resource_spec(service: &Service<'_>, state: HaState, ha: &HighAvailability) -> Spec {
    let mut spec = Spec::new();
    spec.put("ha", service.sid());
    spec.put("kept", state.to_string());
    spec.put_some("max_restart", ha.max_restart.map(int));
    spec.put_some("max_relocate", ha.max_relocate.map(int));
    spec.put_some("failback", ha.failback);
    spec
}
