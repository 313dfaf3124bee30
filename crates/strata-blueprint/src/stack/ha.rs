//! High availability of guests.

use strata_resource::{Address, CommentMark, Kind, Resource, RestartPolicy, Spec, Stage};
use strata_source::machine::guest::{Guest, HaState, HighAvailability};
use strata_source::stack::Stack;
use strata_yaml::Spanned;

use crate::fields::{Fields, int};
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
        let needs = service.guest.clone();
        self.ha_part(kinds::HA, &service.name(), spec, vec![needs], ha.comment.as_ref(), service.key);
    }

    fn ha_part(
        &mut self,
        kind: Kind,
        name: &str,
        mut spec: Spec,
        needs: Vec<Address>,
        comment: Option<&String>,
        key: &Spanned<String>,
    ) {
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
            protect: false,
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
    spec.put("state", state.to_string());
    spec.put_some("max_restart", ha.max_restart.map(int));
    spec.put_some("max_relocate", ha.max_relocate.map(int));
    spec.put_some("failback", ha.failback);
    spec
}
