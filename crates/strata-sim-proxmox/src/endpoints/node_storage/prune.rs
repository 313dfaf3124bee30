//! Which backups a retention keeps, and removing the others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{audit, one};
use crate::api::param::usual;
use crate::api::{Call, Param, Perm, PropertyString, Refusal, Reply, Route, delete, get, no, text};
use crate::endpoints::storage::params::{keeps_some, prune_backups, retention};
use crate::task::{Step, work};
use crate::world::World;

const PATH: &str = "/nodes/{node}/storage/{storage}/prunebackups";

pub fn routes() -> Vec<Route> {
    vec![get(PATH, audit(), selection(), preview), delete(PATH, Perm::Anyone, selection(), prune)]
}

fn selection() -> Vec<Param> {
    let mut params = one();
    params.extend([prune_backups().opt(), text("type").one_of(&["qemu", "lxc"]).opt(), usual::vmid().opt()]);
    params
}

/// One backup and what becomes of it.
#[derive(Debug, Clone)]
struct Entry {
    volid: String,
    kind: String,
    vmid: Option<u32>,
    ctime: i64,
    mark: Option<&'static str>,
}

struct Choice {
    storage: String,
    keep: PropertyString,
    vmid: Option<u32>,
    kind: Option<String>,
}

fn choice(call: &Call<'_>) -> Result<Choice, Refusal> {
    let id = call.args.must("storage").to_owned();
    let storage = call.world.storage(&id)?;
    if !storage.holds("backup") {
        return Err(no(format!("storage '{id}' does not support backups")));
    }
    let keep = call.args.text("prune-backups").or_else(|| storage.prop("prune-backups"));
    let Some(keep) = keep else {
        return Err(no(format!("no prune-backups options configured for storage '{id}'")));
    };
    Ok(Choice {
        keep: retention().read(keep),
        storage: id,
        vmid: call.args.int("vmid").and_then(|id| u32::try_from(id).ok()),
        kind: call.args.owned("type"),
    })
}

impl Choice {
    /// Every backup that is considered, with its mark.
    fn mark(&self, world: &World, node: &str) -> Result<Vec<Entry>, Refusal> {
        let storage = world.storage_on(&self.storage, node)?;
        let mut entries: Vec<Entry> = world
            .volumes
            .on(&storage.id, &storage.scope(node))
            .filter(|(_, v)| v.content == "backup" && self.vmid.is_none_or(|vmid| v.vmid == Some(vmid)))
            .map(|(name, v)| {
                let file = name.rsplit('/').next().unwrap_or(name);
                let kind = file.split('-').nth(1).unwrap_or("unknown").to_owned();
                let standard = file.starts_with("vzdump-") && v.vmid.is_some();
                Entry {
                    volid: format!("{}:{name}", storage.id),
                    kind,
                    vmid: v.vmid,
                    ctime: v.ctime,
                    mark: if v.protected {
                        Some("protected")
                    } else if standard {
                        None
                    } else {
                        Some("renamed")
                    },
                }
            })
            .filter(|entry| self.kind.as_ref().is_none_or(|kind| entry.kind == *kind))
            .collect();
        let mut groups: BTreeMap<(String, Option<u32>), Vec<usize>> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            if entry.mark != Some("renamed") {
                groups.entry((entry.kind.clone(), entry.vmid)).or_default().push(at);
            }
        }
        for mut group in groups.into_values() {
            // Of two of the same second, the one that is listed later is the newer one.
            group.sort_by_key(|at| std::cmp::Reverse((entries[*at].ctime, *at)));
            mark_group(&mut entries, &group, &self.keep);
        }
        Ok(entries)
    }
}

/// The period a time belongs to; backups of one period count once.
fn period(option: &str, ctime: i64) -> String {
    let at = Timestamp::from_second(ctime).unwrap_or_default().to_zoned(TimeZone::UTC);
    let week = at.date().iso_week_date();
    match option {
        "keep-hourly" => at.strftime("%Y-%m-%d %H").to_string(),
        "keep-daily" => at.strftime("%Y-%m-%d").to_string(),
        "keep-weekly" => format!("{}-{}", week.year(), week.week()),
        "keep-monthly" => at.strftime("%Y-%m").to_string(),
        "keep-yearly" => at.strftime("%Y").to_string(),
        _ => ctime.to_string(),
    }
}

/// `group` is newest first.
fn mark_group(entries: &mut [Entry], group: &[usize], keep: &PropertyString) {
    if keep.is_set("keep-all") || !keeps_some(keep) {
        for at in group {
            entries[*at].mark.get_or_insert("keep");
        }
        return;
    }
    for option in ["keep-last", "keep-hourly", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly"] {
        let count = keep.get(option).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
        if count == 0 {
            continue;
        }
        let kept: BTreeSet<String> = group
            .iter()
            .filter(|at| entries[**at].mark == Some("keep"))
            .map(|at| period(option, entries[*at].ctime))
            .collect();
        let mut new = BTreeSet::new();
        for at in group {
            let entry = &mut entries[*at];
            let period = period(option, entry.ctime);
            if entry.mark.is_some() || kept.contains(&period) {
                continue;
            }
            if new.contains(&period) {
                entry.mark = Some("remove");
            } else if new.len() < count {
                new.insert(period);
                entry.mark = Some("keep");
            } else {
                break;
            }
        }
    }
    for at in group {
        entries[*at].mark.get_or_insert("remove");
    }
}

fn preview(call: &mut Call<'_>) -> Reply {
    let entries = choice(call)?.mark(call.world, &call.node())?;
    let rows: Vec<Value> = entries
        .into_iter()
        .map(|e| {
            let mut row = json!({ "volid": e.volid, "type": e.kind, "ctime": e.ctime, "mark": e.mark });
            if let Some(vmid) = e.vmid {
                row["vmid"] = json!(vmid);
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn prune(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let id = call.args.must("storage").to_owned();
    let at = format!("/storage/{id}");
    let worker = match call.args.text("vmid") {
        Some(vmid) => {
            call.check(&at, &["Datastore.AllocateSpace"])?;
            call.check(&format!("/vms/{vmid}"), &["VM.Backup"])?;
            format!("{vmid}@{id}")
        }
        None => {
            call.check(&at, &["Datastore.Allocate"])?;
            id
        }
    };
    let chosen = choice(call);
    let task = work(move |world, job| {
        for entry in chosen?.mark(world, &job.node)? {
            if entry.mark == Some("remove") {
                job.log(world, format!("removing backup '{}'", entry.volid));
                world.free(&entry.volid, &job.node);
            }
        }
        Ok(Step::Done)
    });
    Ok(call.spawn(&node, "prunebackups", worker, task).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_period_stays() {
        let day = 86_400;
        let at = |ctime| Entry { volid: String::new(), kind: "lxc".into(), vmid: Some(1), ctime, mark: None };
        let mut entries = vec![at(10 * day + 20), at(10 * day + 10), at(9 * day), at(8 * day), at(7 * day)];
        let keep = retention().read("keep-last=1,keep-daily=2");
        mark_group(&mut entries, &[0, 1, 2, 3, 4], &keep);
        let marks: Vec<_> = entries.iter().filter_map(|e| e.mark).collect();
        assert_eq!(marks, ["keep", "remove", "keep", "keep", "remove"]);
    }
}
