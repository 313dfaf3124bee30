//! `use`: profiles laid beneath what guests and pools say themselves.

use std::collections::{BTreeMap, HashSet};

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::{Entry, Kind, Mapping, Node, Record, Spanned, overlay};

use super::StackKind;
use super::defaults::beneath;
use crate::check::suggestion;
use crate::cluster::topology::{ClusterNode, NamedPool, Pool};
use crate::machine::container::Container;
use crate::machine::template::Template;
use crate::machine::vm::Vm;

/// Which profiles were written, and which of them something uses.
#[derive(Default)]
pub(super) struct ProfileUses {
    written: BTreeMap<Span, String>,
    used: HashSet<Span>,
}

impl ProfileUses {
    /// Takes note of the profiles of a file.
    pub(super) fn write(&mut self, profiles: Option<&Node>) {
        for entry in profiles.and_then(Node::as_mapping).into_iter().flat_map(|mapping| &mapping.entries) {
            self.written.insert(entry.key.span, entry.key.value.clone());
        }
    }

    /// Profiles that nothing uses, in any environment.
    pub(super) fn unused(&self) -> impl Iterator<Item = Diagnostic> {
        let idle = self.written.iter().filter(|(span, _)| !self.used.contains(span));
        idle.map(|(span, name)| {
            Diagnostic::warning("unused", format!("nothing uses the profile `{name}`")).at(*span)
        })
    }
}

/// Lays profiles beneath everything in a stack that uses some.
pub(super) fn with_profiles(
    tree: &mut Node,
    settings: Option<&Node>,
    kind: StackKind,
    uses: &mut ProfileUses,
    diagnostics: &mut Diagnostics,
) {
    let own = tree.get("profiles").cloned();
    uses.write(own.as_ref());
    let mut known = Known { own: own.as_ref(), settings, uses, diagnostics };
    match kind {
        StackKind::Machines => {
            known.each::<Vm>(below(tree, &["vms"]));
            known.each::<Container>(below(tree, &["containers"]));
            known.each::<Template>(below(tree, &["templates"]));
        }
        StackKind::Cluster => {
            for pool in ["controlPlane", "workers"] {
                known.one::<Pool>(below(tree, &["cluster", "topology", pool]));
            }
            if let Some(Kind::List(pools)) =
                below(tree, &["cluster", "topology", "pools"]).map(|node| &mut node.kind)
            {
                pools.iter_mut().for_each(|pool| known.one::<NamedPool>(Some(pool)));
            }
            known.each::<ClusterNode>(below(tree, &["cluster", "nodes"]));
        }
        StackKind::Hypervisor | StackKind::Tofu => {}
    }
}

fn below<'n>(node: &'n mut Node, path: &[&str]) -> Option<&'n mut Node> {
    path.iter().try_fold(node, |node, key| {
        let Kind::Mapping(mapping) = &mut node.kind else { return None };
        mapping.entries.iter_mut().find(|entry| entry.key.value == *key).map(|entry| &mut entry.value)
    })
}

/// The profiles that a stack can use.
struct Known<'a> {
    own: Option<&'a Node>,
    settings: Option<&'a Node>,
    uses: &'a mut ProfileUses,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Known<'a> {
    fn each<T: Record>(&mut self, section: Option<&mut Node>) {
        if let Some(Kind::Mapping(guests)) = section.map(|node| &mut node.kind) {
            guests.entries.iter_mut().for_each(|guest| self.one::<T>(Some(&mut guest.value)));
        }
    }

    fn one<T: Record>(&mut self, guest: Option<&mut Node>) {
        let Some(guest) = guest else { return };
        let names: Vec<Spanned<String>> = guest
            .get("use")
            .and_then(Node::as_list)
            .into_iter()
            .flatten()
            .filter_map(|node| Some(Spanned::new(node.as_scalar()?.text.clone(), node.span)))
            .collect();
        if names.is_empty() {
            return;
        }
        let mut all = Node::mapping(Vec::new(), guest.span);
        for name in &names {
            if let Some(profile) = self.find(name) {
                all = beneath::<T>(&all, &fields_of::<T>(profile));
            }
        }
        *guest = beneath::<T>(&all, guest);
    }

    fn find(&mut self, name: &Spanned<String>) -> Option<&'a Node> {
        let named = |profiles: Option<&'_ Node>| -> Option<Span> {
            profiles?.as_mapping()?.entry(name).map(|entry| entry.key.span)
        };
        if let Some(span) = named(self.own).or_else(|| named(self.settings)) {
            self.uses.used.insert(span);
            return self.own.and_then(|own| own.get(name)).or_else(|| self.settings?.get(name));
        }
        let all = [self.own, self.settings].into_iter().flatten().filter_map(Node::as_mapping);
        let known: Vec<&str> = all.flat_map(Mapping::keys).collect();
        let hint =
            suggestion(name, &known).unwrap_or_else(|| "add it under `profiles` in strata.yaml".to_owned());
        let problem = Diagnostic::error("unknown-profile", format!("there is no profile `{name}`"));
        self.diagnostics.push(problem.at(name.span).hint(hint));
        None
    }
}

/// What only a guest of its own can say: defaults are of all of them.
pub(super) fn refuse_in_defaults(settings: &Node, diagnostics: &mut Diagnostics) {
    for kind in ["vm", "container", "template"] {
        let fields = settings.at(&["defaults", kind]).and_then(Node::as_mapping);
        for entry in fields.into_iter().flat_map(|fields| &fields.entries) {
            let hint = match entry.key.value.as_str() {
                "use" => "write the fields themselves under `defaults`",
                "each" => "write it on a guest",
                _ => continue,
            };
            let message = format!("defaults have no `{}`", entry.key);
            diagnostics.push(Diagnostic::error("not-a-default", message).at(entry.key.span).hint(hint));
        }
    }
}

/// The fields of a profile that a kind of machine has.
fn fields_of<T: Record>(profile: &Node) -> Node {
    let entries = profile.as_mapping().map(|mapping| mapping.entries.as_slice()).unwrap_or_default();
    let has = |entry: &&Entry| {
        T::spec().field_or_alias(&entry.key).is_some() && !matches!(entry.key.value.as_str(), "use" | "each")
    };
    let nothing = Node::mapping(Vec::new(), profile.span);
    overlay(&nothing, &Node::mapping(entries.iter().filter(has).cloned().collect(), profile.span))
}
