//! Copies of guests on other hosts.

use strata_resource::{Address, CommentMark, Resource, RestartPolicy, Spec, Stage};
use strata_source::machine::guest::{Guest, Replication};
use strata_source::stack::Stack;

use crate::fields::{Fields, int};
use crate::kinds;
use crate::site::Draft;

impl Draft<'_> {
    pub(super) fn replications(&mut self, stack: &Stack) {
        for instance in stack.vm_instances() {
            let address = self.address(kinds::VM, &instance.name);
            self.replications_of(&address, instance.vm_id, &instance.spec.guest);
        }
        for instance in stack.container_instances() {
            let address = self.address(kinds::CONTAINER, &instance.name);
            self.replications_of(&address, instance.vm_id, &instance.spec.guest);
        }
    }

    fn replications_of(&mut self, guest: &Address, vm_id: u32, of: &Guest) {
        let home = self.blueprint.graph.get(guest).and_then(|guest| guest.spec.get("node")?.as_text());
        let home = home.unwrap_or_default().to_owned();
        for (place, job) in (0..).zip(&of.replication) {
            let target = &job.target;
            if target.value == home {
                let message = format!("a copy of `{guest}` on `{target}`: the guest itself is there");
                self.refuse("same-node", message, target.span);
            }
            let id = format!("{vm_id}-{}", job.job.unwrap_or(place));
            let address = self.address(kinds::REPLICATION, &id);
            if self.blueprint.graph.get(&address).is_some() {
                self.refuse("twice", format!("the replication job `{id}` is there twice"), target.span);
                continue;
            }
            let mut spec = spec(&id, job);
            spec.put("mark", CommentMark::new(self.site.lineage, &address).to_string());
            self.insert(Resource {
                address,
                target: self.target.clone(),
                spec,
                depends_on: [guest.clone()].into(),
                stage: Stage::Compute,
                protect: false,
                on_change: RestartPolicy::default(),
                ignore: Vec::new(),
                limits: Vec::new(),
                origin: self.origin(target.span),
            });
        }
    }
}

fn spec(id: &str, job: &Replication) -> Spec {
    let mut spec = Spec::new();
    spec.put("replication", id);
    spec.put("type", "local");
    spec.put("copy_node", job.target.as_str());
    spec.put_some("schedule", job.schedule.clone());
    spec.put_some("rate", job.rate.map(int));
    spec.put("enabled", job.enabled);
    let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    spec.put_some("comment", job.comment.as_ref().map(one_line).filter(|text| !text.is_empty()));
    spec
}
