//! What a datacenter has besides guests: access, storages, backup jobs, devices, settings of hosts, the firewall.

mod access;
mod backup;
mod firewall;
mod host;
mod metrics;
mod notifications;
mod options;
mod sdn;
mod storage;

use std::collections::BTreeSet;

use strata_diagnostics::{Diagnostic, Span};
use strata_resource::{Address, CommentMark, Kind, Resource, RestartPolicy, Spec, Stage};
use strata_source::hypervisor::Hypervisor;

use crate::fields::Fields;
use crate::kinds;
use crate::site::{Blueprint, Draft, Site};

/// Draws a file of `hypervisors/`. All mistakes are gathered; with one of them there is no blueprint.
pub fn draw_hypervisor(site: &Site<'_>, hypervisor: &Hypervisor) -> Result<Blueprint, Vec<Diagnostic>> {
    let named = hypervisor.proxmox.as_ref().and_then(|proxmox| proxmox.target.as_ref());
    let Some(target) = named.map(|target| target.value.as_str()).or(site.default_target) else {
        let message = format!("the hypervisors `{}` name no target", site.stack);
        let hint = "set `proxmox: {target: …}`; with one target in strata.yaml it can be left out";
        return Err(vec![Diagnostic::error("no-target", message).hint(hint)]);
    };
    let mut draft = Draft::new(site, target.to_owned());
    // Before the access to them: Proxmox drops the entries of a storage together with it.
    draft.storages_and_mappings(hypervisor);
    draft.access(hypervisor);
    draft.backup_jobs(hypervisor);
    draft.datacenter_options(hypervisor);
    draft.metric_servers(hypervisor);
    draft.notifications(hypervisor);
    draft.hosts(hypervisor);
    draft.sdn(hypervisor);
    draft.datacenter_firewall(hypervisor);
    if let Err(error) = draft.blueprint.graph.check()
        && draft.found.is_empty()
    {
        draft.found.push(Diagnostic::error("dependencies", error.to_string()));
    }
    if draft.found.iter().any(Diagnostic::is_error) { Err(draft.found) } else { Ok(draft.blueprint) }
}

/// One object of the datacenter before it is put into the graph.
struct Part {
    kind: Kind,
    /// Its identity as part of an address.
    name: String,
    spec: Spec,
    needs: BTreeSet<Address>,
    adopt: bool,
    protect: bool,
    span: Span,
}

impl Part {
    fn new(kind: Kind, name: &str, span: Span) -> Self {
        // A slash would end the name within an address.
        let name = name.replace('/', "~");
        Self { kind, name, spec: Spec::new(), needs: BTreeSet::new(), adopt: false, protect: false, span }
    }

    fn flags(mut self, adopt: bool, protect: bool) -> Self {
        (self.adopt, self.protect) = (adopt, protect);
        self
    }
}

impl Draft<'_> {
    fn part(&mut self, part: Part) -> Address {
        let Part { kind, name, mut spec, needs, adopt, protect, span } = part;
        let address = self.address(kind, &name);
        if adopt {
            spec.put("adopt", true);
        }
        let origin = self.origin(span);
        if self.blueprint.graph.get(&address).is_some() {
            self.refuse("twice", format!("`{address}` is there twice"), span);
            return address;
        }
        self.insert(Resource {
            address: address.clone(),
            target: self.target.clone(),
            spec,
            depends_on: needs,
            stage: if kind == kinds::STORAGE { Stage::Storage } else { Stage::Prereqs },
            protect,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin,
        });
        address
    }

    /// The resource of this file with an identity, if there is one.
    fn known(&self, kind: Kind, name: Option<&str>) -> BTreeSet<Address> {
        let address = name.map(|name| self.address(kind, &name.replace('/', "~")));
        address.into_iter().filter(|address| self.blueprint.graph.get(address).is_some()).collect()
    }

    /// What a person wrote, and the mark that says whose the object is. One line: the firewall keeps comments in lines.
    fn comment(&self, spec: &mut Spec, kind: Kind, name: &str, comment: Option<&String>) {
        let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        spec.put_some("comment", comment.map(one_line).filter(|text| !text.is_empty()));
        let address = self.address(kind, &name.replace('/', "~"));
        spec.put("mark", CommentMark::new(self.site.lineage, &address).to_string());
    }
}
