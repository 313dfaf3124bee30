//! Making disks into pools, volume groups and directories, as tasks; and taking these apart again.

use std::sync::LazyLock;

use super::unused;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Properties, Refusal, Reply, Route, delete, flag, format, int, no, post, text};
use crate::task::{Job, Step, work};
use crate::world::disks::Made;
use crate::world::{Storage, World};

const LEVELS: &[&str] =
    &["single", "mirror", "raid10", "raidz", "raidz2", "raidz3", "draid", "draid2", "draid3"];

pub fn routes() -> Vec<Route> {
    let modify = || on("/", &["Sys.Modify"]);
    let with = |extra: Vec<Param>| {
        let own = vec![usual::node(), text("name").format(format::storage_id)];
        [own, extra].concat()
    };
    let add = || flag("add_storage").opt();
    let device = || vec![text("device"), add()];
    let clean = || vec![flag("cleanup-config").opt(), flag("cleanup-disks").opt()];
    let zfs = vec![
        text("devices"),
        text("raidlevel").one_of(LEVELS),
        add(),
        int("ashift").min(9.0).max(16.0).opt(),
        text("compression").one_of(&["on", "off", "gzip", "lz4", "lzjb", "zle", "zstd"]).opt(),
        text("draid-config").properties(|| &DRAID).opt(),
    ];
    let file_system = text("filesystem").one_of(&["ext4", "xfs"]).opt();
    vec![
        post("/nodes/{node}/disks/lvm", modify(), with(device()), |call| make(call, "lvm")),
        post("/nodes/{node}/disks/lvmthin", modify(), with(device()), |call| make(call, "lvmthin")),
        post(
            "/nodes/{node}/disks/directory",
            modify(),
            with([device(), vec![file_system]].concat()),
            |call| make(call, "directory"),
        ),
        post("/nodes/{node}/disks/zfs", modify(), with(zfs), make_pool),
        delete("/nodes/{node}/disks/lvm/{name}", modify(), with(clean()), |call| unmake(call, "lvm")),
        delete(
            "/nodes/{node}/disks/lvmthin/{name}",
            modify(),
            with([clean(), vec![text("volume-group").format(format::storage_id)]].concat()),
            |call| unmake(call, "lvmthin"),
        ),
        delete("/nodes/{node}/disks/directory/{name}", modify(), with(clean()), |call| {
            unmake(call, "directory")
        }),
        delete("/nodes/{node}/disks/zfs/{name}", modify(), with(clean()), |call| unmake(call, "zfs")),
    ]
}

static DRAID: LazyLock<Properties> =
    LazyLock::new(|| Properties::new([int("data").min(1.0), int("spares").min(0.0)]));

/// The unit that mounts a directory.
pub fn mount_unit(name: &str) -> String {
    format!("mnt-pve-{}.mount", name.replace('-', "\\x2d"))
}

/// The word for tasks of a kind.
fn verb(kind: &str) -> &str {
    if kind == "directory" { "dir" } else { kind }
}

/// What the list of disks calls them afterwards.
fn use_of(kind: &str) -> &'static str {
    match kind {
        "zfs" => "ZFS",
        "directory" => "mounted",
        _ => "LVM",
    }
}

/// The storage that is added for what was made.
fn storage_of(made: &Made, node: &str) -> Storage {
    let name = made.name.as_str();
    let path = format!("/mnt/pve/{name}");
    let own: Vec<(&str, &str)> = match made.kind.as_str() {
        "zfs" => vec![("pool", name), ("content", "rootdir,images")],
        "lvm" => vec![("vgname", name), ("content", "rootdir,images"), ("shared", "0")],
        "lvmthin" => vec![("thinpool", name), ("vgname", name), ("content", "rootdir,images")],
        _ => vec![
            ("path", &path),
            ("content", "rootdir,images,iso,backup,vztmpl,snippets"),
            ("is_mountpoint", "1"),
        ],
    };
    let props = own.into_iter().chain([("nodes", node)]);
    Storage {
        id: name.to_owned(),
        kind: match made.kind.as_str() {
            "zfs" => "zfspool",
            "directory" => "dir",
            other => other,
        }
        .to_owned(),
        props: props.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        capacity: made.size,
        taken: 0,
    }
}

/// A storage of that name must be the same thing on other nodes.
fn check_storage(world: &World, new: &Storage, node: &str) -> Result<(), Refusal> {
    let Some(old) = world.storages.get(&new.id) else { return Ok(()) };
    let id = &new.id;
    if old.is_on(node) {
        return Err(no(format!("Storage ID '{id}' already exists on node {node}")));
    }
    let differs = |key: &str, new: &str, old: &str| {
        no(format!("Option '{key}' ({new}) does not match existing storage configuration '{old}'"))
    };
    if old.kind != new.kind {
        return Err(differs("type", &new.kind, &old.kind));
    }
    for key in ["pool", "vgname", "thinpool", "path"] {
        let (Some(own), Some(other)) = (new.prop(key), old.prop(key)) else { continue };
        if own != other {
            return Err(differs(key, own, other));
        }
    }
    Ok(())
}

fn add_storage(world: &mut World, job: &Job, new: Storage, node: &str) {
    match world.storages.get_mut(&new.id) {
        Some(old) => {
            let mut nodes: Vec<&str> = old.props.get("nodes").map_or("", String::as_str).split(',').collect();
            nodes.push(node);
            nodes.sort_unstable();
            let nodes = nodes.join(",");
            old.props.insert("nodes".to_owned(), nodes);
            job.log(world, format!("Added '{node}' to nodes for storage '{}'", new.id));
        }
        None => drop(world.storages.insert(new.id.clone(), new)),
    }
}

/// Everything is in order: makes it, in a task.
fn spawn(call: &mut Call<'_>, made: Made) -> Reply {
    let node = call.node();
    let storage = call.args.is_set("add_storage").then(|| storage_of(&made, &node));
    if let Some(storage) = &storage {
        call.check("/storage", &["Datastore.Allocate"])?;
        check_storage(call.world, storage, &node)?;
    }
    let (task, id, at) = (format!("{}create", verb(&made.kind)), made.name.clone(), node.clone());
    let work = work(move |world, job| {
        let disks = &world.nodes[&at].disks;
        for path in &made.disks {
            unused(disks, path)?;
        }
        if matches!(made.kind.as_str(), "lvm" | "lvmthin")
            && ["lvm", "lvmthin"].iter().any(|kind| disks.made(kind, &made.name).is_some())
        {
            return Err(format!("volume group with name '{}' already exists on node '{at}'", made.name));
        }
        let _ = job;
        Ok(Step::wait(2.0, move |world, job| {
            if let Some(node) = world.nodes.get_mut(&at) {
                for path in &made.disks {
                    if let Some(disk) = node.disks.find_mut(path) {
                        disk.used = Some(use_of(&made.kind).to_owned());
                        disk.gpt = matches!(made.kind.as_str(), "zfs" | "directory");
                    }
                }
                node.disks.made.push(made);
            }
            if let Some(storage) = storage {
                add_storage(world, job, storage, &at);
            }
            Ok(Step::Done)
        }))
    });
    Ok(call.spawn(&node, &task, id, work).into())
}

fn make(call: &mut Call<'_>, kind: &str) -> Reply {
    let disks = &call.world.nodes[call.args.must("node")].disks;
    let disk = unused(disks, call.args.must("device"))?;
    let name = call.args.must("name").to_owned();
    let made = Made {
        kind: kind.to_owned(),
        disks: vec![disk.path.clone()],
        layout: call.args.text("filesystem").unwrap_or("ext4").to_owned(),
        size: disk.size,
        name,
    };
    if kind == "directory" && disks.made("directory", &made.name).is_some() {
        let (name, unit) = (&made.name, mount_unit(&made.name));
        let text = format!("the path for '{name}' is already mounted: /mnt/pve/{name} ({unit})");
        return Err(no(text));
    }
    spawn(call, made)
}

fn make_pool(call: &mut Call<'_>) -> Reply {
    let level = call.args.must("raidlevel").to_owned();
    let draid = level.starts_with("draid");
    if call.args.has("draid-config") && !draid {
        return Err(no("draid-config set without using dRAID level"));
    }
    let disks = &call.world.nodes[call.args.must("node")].disks;
    let mut paths = Vec::new();
    for device in call.args.list("devices") {
        paths.push(unused(disks, &device)?.path.clone());
    }
    let name = call.args.must("name").to_owned();
    let size = disks.capacity(&level, &paths);
    let made = Made { kind: "zfs".to_owned(), name, disks: paths, layout: level.clone(), size };
    if call.args.is_set("add_storage") {
        call.check("/storage", &["Datastore.Allocate"])?;
        check_storage(call.world, &storage_of(&made, call.args.must("node")), call.args.must("node"))?;
    }
    if disks.made("zfs", &made.name).is_some() {
        let (name, node) = (&made.name, call.args.must("node"));
        return Err(no(format!("pool '{name}' already exists on node '{node}'")));
    }
    check_count(call, &level, made.disks.len())?;
    spawn(call, made)
}

/// Every level needs so many disks.
fn check_count(call: &Call<'_>, level: &str, count: usize) -> Result<(), Refusal> {
    let least = match level {
        "single" => 1,
        "mirror" => 2,
        "raidz" | "draid" => 3,
        "raidz3" | "draid3" => 5,
        _ => 4,
    };
    if level == "raid10" && !count.is_multiple_of(2) {
        return Err(no("raid10 needs an even number of disks"));
    }
    if level == "single" && count > 1 {
        return Err(no("please give only one disk for single disk mode"));
    }
    if count < least {
        return Err(no(format!("{level} needs at least {least} disks")));
    }
    if level.starts_with("draid") {
        let config = DRAID.read(call.args.text("draid-config").unwrap_or_default());
        let part = |key: &str| config.get(key).and_then(|n| n.parse::<usize>().ok()).unwrap_or_default();
        let needed = least - 2 + part("data") + part("spares");
        if count < needed {
            return Err(no(format!("At least {needed} disks needed for current dRAID config")));
        }
    }
    Ok(())
}

/// What a command says that does not find what it is to take apart.
fn nothing_there(kind: &str, name: &str, call: &Call<'_>) -> (Option<String>, String) {
    match kind {
        "lvm" => (None, format!("no such volume group '{name}'")),
        "lvmthin" => (None, format!("no such thin pool {}/{name}", call.args.must("volume-group"))),
        "zfs" => {
            let said = format!("cannot open '{name}': no such pool");
            (Some(said), format!("command 'zpool destroy {name}' failed: exit code 1"))
        }
        _ => {
            let unit = mount_unit(name);
            let said = format!("Failed to stop {unit}: Unit {unit} not loaded.");
            (Some(said), format!("command 'systemctl stop {unit}' failed: exit code 5"))
        }
    }
}

fn unmake(call: &mut Call<'_>, kind: &'static str) -> Reply {
    let (clean_config, clean_disks) = (call.args.is_set("cleanup-config"), call.args.is_set("cleanup-disks"));
    if clean_config {
        call.check("/storage", &["Datastore.Allocate"])?;
    }
    let (node, name) = (call.node(), call.args.must("name").to_owned());
    let (said, failed) = nothing_there(kind, &name, call);
    let (id, at) = (name.clone(), node.clone());
    let work = work(move |world, job| {
        let Some(made) = world.nodes[&at].disks.made(kind, &name).cloned() else {
            said.into_iter().for_each(|line| job.log(world, line));
            return Err(failed);
        };
        Ok(Step::wait(1.0, move |world, _| {
            if let Some(node) = world.nodes.get_mut(&at) {
                node.disks.made.retain(|other| *other != made);
                for path in &made.disks {
                    // What was on a disk stays there unless it is wiped.
                    let left = if made.kind == "directory" { "partitions" } else { use_of(&made.kind) };
                    if let Some(disk) = node.disks.find_mut(path) {
                        disk.used = (!clean_disks).then(|| left.to_owned());
                        disk.gpt &= !clean_disks;
                    }
                }
            }
            if clean_config {
                remove_storages(world, &storage_of(&made, &at), &at);
            }
            Ok(Step::Done)
        }))
    });
    Ok(call.spawn(&node, &format!("{}remove", verb(kind)), id, work).into())
}

/// Storages that are this thing are on this node no more, and gone if they were on no other.
fn remove_storages(world: &mut World, like: &Storage, node: &str) {
    let nodes: Vec<String> = world.nodes.keys().cloned().collect();
    world.storages.retain(|_, storage| {
        let same = |key: &str| storage.prop(key) == like.prop(key);
        let is_it =
            storage.kind == like.kind && ["pool", "vgname", "thinpool", "path"].iter().all(|key| same(key));
        if !is_it || !storage.is_on(node) {
            return true;
        }
        let left: Vec<String> =
            nodes.iter().filter(|other| *other != node && storage.is_on(other)).cloned().collect();
        storage.props.insert("nodes".to_owned(), left.join(","));
        !left.is_empty()
    });
}
