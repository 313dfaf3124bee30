//! What a stack says for all of its guests.

use std::collections::BTreeMap;

use strata_resource::{Spec, Value};

/// The storage that the blueprint chooses.
const DISK_STORAGE: &str = "local-lvm";

/// What a stack says for all its guests: a guest need not say it again.
#[derive(Debug, Clone, Default)]
pub struct StackDefaults {
    /// The host that guests are on.
    pub node: Option<String>,
    /// The pool that guests are in.
    pub pool: Option<String>,
    /// Where disks go unless something says otherwise.
    pub disk_storage: Option<String>,
}

impl StackDefaults {
    /// What a new stack would best say for these guests: their most usual node and storage, and the pool that all of them are in. A
    /// guest cannot say that it is in none.
    pub fn of(guests: &[&Spec]) -> Self {
        let text = |spec: &Spec, field: &str| spec.get(field).and_then(Value::as_text).map(str::to_owned);
        let pools: Vec<Option<String>> = guests.iter().map(|spec| text(spec, "pool")).collect();
        let same = pools.windows(2).all(|two| two[0] == two[1]);
        let storages =
            guests.iter().flat_map(|spec| volumes(spec)).filter_map(|volume| text(volume, "storage"));
        Self {
            node: most(guests.iter().filter_map(|spec| text(spec, "node")), None),
            pool: pools.into_iter().next().flatten().filter(|_| same),
            disk_storage: most(storages, Some(DISK_STORAGE)).filter(|storage| storage != DISK_STORAGE),
        }
    }

    /// The storage that the blueprint chooses for disks.
    pub(crate) fn disks(&self) -> &str {
        self.disk_storage.as_deref().unwrap_or(DISK_STORAGE)
    }
}

fn volumes(spec: &Spec) -> Vec<&Spec> {
    let slots = ["disks", "mounts"].iter().filter_map(|field| spec.get(*field)?.as_map());
    let root = spec.get("rootfs").and_then(Value::as_map);
    slots.flat_map(|slots| slots.values().filter_map(Value::as_map)).chain(root).collect()
}

/// The most frequent one; of several, the preferred or else the first of the alphabet.
fn most(values: impl Iterator<Item = String>, preferred: Option<&str>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let highest = counts.values().max().copied()?;
    let mut often = counts.into_iter().filter(|(_, count)| *count == highest).map(|(value, _)| value);
    let first = often.next()?;
    let is_preferred = preferred == Some(first.as_str());
    let other = if is_preferred { None } else { often.find(|value| preferred == Some(value.as_str())) };
    Some(other.unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(node: &str, pool: Option<&str>, storages: &[&str]) -> Spec {
        let disk = |(slot, storage): (usize, &&str)| {
            let disk = Spec::from([("storage".to_owned(), Value::text(*storage))]);
            (format!("scsi{slot}"), Value::Map(disk))
        };
        let disks: Spec = storages.iter().enumerate().map(disk).collect();
        let mut spec =
            Spec::from([("node".to_owned(), Value::text(node)), ("disks".to_owned(), Value::Map(disks))]);
        spec.extend(pool.map(|pool| ("pool".to_owned(), Value::text(pool))));
        spec
    }

    #[test]
    fn a_new_stack_says_what_most_of_its_guests_have() {
        let guests = [
            guest("b", Some("web"), &["tank"]),
            guest("a", Some("web"), &["tank", "nas"]),
            guest("b", Some("web"), &[]),
        ];
        let defaults = StackDefaults::of(&guests.iter().collect::<Vec<_>>());
        assert_eq!((defaults.node.as_deref(), defaults.pool.as_deref()), (Some("b"), Some("web")));
        assert_eq!(defaults.disk_storage.as_deref(), Some("tank"));

        let guests = [guest("b", Some("web"), &["tank", "local-lvm"]), guest("a", None, &[])];
        let defaults = StackDefaults::of(&guests.iter().collect::<Vec<_>>());
        assert_eq!((defaults.node.as_deref(), defaults.pool.as_deref()), (Some("a"), None));
        assert_eq!(defaults.disk_storage, None);
    }
}
