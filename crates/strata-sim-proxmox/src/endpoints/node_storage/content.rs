//! The volumes of a storage: listing, looking at one, allocating, notes and protection, deleting.

use serde_json::{Map, Value, json};

use super::{audit, one};
use crate::api::format::{only, parse_volume_id};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, get, int, no, post, put, text, wrong,
};
use crate::endpoints::guest::{Named, check_volume, parse_name};
use crate::endpoints::storage::{kinds, params};
use crate::task::{Job, Step, work};
use crate::world::volume::VolumeKey;
use crate::world::{GuestKind, Storage, Volume, World};

const CONTENT: &str = "/nodes/{node}/storage/{storage}/content";
const VOLUME: &str = "/nodes/{node}/storage/{storage}/content/{volume*}";

pub fn routes() -> Vec<Route> {
    let mut list_params = one();
    list_params.extend([text("content").format(params::content).opt(), usual::vmid().opt()]);
    let mut alloc_params = one();
    alloc_params.extend([
        usual::vmid(),
        text("filename"),
        text("size").pattern(r"\d+[MG]?"),
        text("format").one_of(&["raw", "qcow2", "subvol", "vmdk"]).needs("size").opt(),
    ]);
    vec![
        get(CONTENT, audit(), list_params, list),
        post(CONTENT, on("/storage/{storage}", &["Datastore.AllocateSpace"]), alloc_params, allocate),
        get(VOLUME, Perm::Anyone, volume_params([]), show),
        put(VOLUME, Perm::Anyone, volume_params([text("notes").opt(), flag("protected").opt()]), update),
        delete(VOLUME, Perm::Anyone, volume_params([int("delay").min(1.0).max(30.0).opt()]), remove),
    ]
}

fn volume_params(more: impl IntoIterator<Item = Param>) -> Vec<Param> {
    let mut params = vec![usual::node(), usual::storage().opt(), text("volume")];
    params.extend(more);
    params
}

/// What a volume counts as in lists: images of containers are their root directories.
fn content_of<'v>(world: &World, volume: &'v Volume) -> &'v str {
    if !matches!(volume.content.as_str(), "images" | "rootdir") {
        return &volume.content;
    }
    let owner = volume.vmid.and_then(|vmid| world.guests.get(&vmid));
    if owner.is_some_and(|guest| guest.kind == GuestKind::Lxc) { "rootdir" } else { "images" }
}

fn list(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    call.world.storage(call.args.must("storage"))?;
    let storage = call.world.storage_on(call.args.must("storage"), &node)?;
    let vmid = call.args.int("vmid").and_then(|id| u32::try_from(id).ok());
    let wanted = call.args.text("content");
    let mut rows: Vec<(String, Value)> = Vec::new();
    for (name, volume) in call.world.volumes.on(&storage.id, &storage.scope(&node)) {
        let content = content_of(call.world, volume);
        let place = (storage.id.clone(), storage.scope(&node), name.to_owned());
        let volid = call.world.volid(&place);
        let by_vmid = vmid.is_none_or(|vmid| match content {
            "iso" | "vztmpl" => false,
            "snippets" | "import" => true,
            _ => volume.vmid == Some(vmid),
        });
        let fits = storage.holds(content) && wanted.is_none_or(|w| w == content) && by_vmid;
        if fits && check_volume(call, None, &volid).is_ok() {
            rows.push((volid.to_lowercase(), Value::Object(row(storage, content, &volid, volume))));
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Value::Array(rows.into_iter().map(|(_, row)| row).collect()).into())
}

fn row(storage: &Storage, content: &str, volid: &str, volume: &Volume) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("volid".into(), json!(volid));
    row.insert("content".into(), json!(content));
    row.insert("format".into(), json!(volume.format));
    row.insert("size".into(), json!(volume.size));
    row.insert("ctime".into(), json!(volume.ctime));
    if let Some(vmid) = volume.vmid {
        row.insert("vmid".into(), json!(vmid));
    }
    match content {
        "images" | "rootdir" if storage.is_file_based() => {
            row.insert("used".into(), json!(volume.allocated(volid)));
            let parent = volume.parent.as_ref().map(|base| format!("../{base}"));
            row.insert("parent".into(), json!(parent));
        }
        "backup" => {
            let kind = volid.split('-').nth(1).filter(|kind| matches!(*kind, "qemu" | "lxc" | "openvz"));
            row.insert("subtype".into(), json!(kind.unwrap_or("unknown")));
            if let Some(notes) = &volume.notes {
                row.insert("notes".into(), json!(notes.lines().next().unwrap_or_default()));
            }
            if volume.protected {
                row.insert("protected".into(), json!(1));
            }
        }
        _ => {}
    }
    row
}

fn allocate(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let file = call.args.must("filename").to_owned();
    let size = call.args.must("size");
    let digits = size.trim_end_matches(['M', 'G']).parse::<u64>().unwrap_or(u64::MAX);
    let shift = if size.ends_with('G') {
        30
    } else if size.ends_with('M') {
        20
    } else {
        10
    };
    let size = digits.saturating_mul(1 << shift);
    let mut format = call.args.owned("format");
    if let Some(by_name) = ["raw", "qcow2", "vmdk"].into_iter().find(|f| file.ends_with(&format!(".{f}"))) {
        if let Some(given) = format.as_deref().filter(|given| *given != by_name) {
            return Err(wrong("format", format!("different storage formats ({given} != {by_name})")));
        }
        format = Some(by_name.to_owned());
    }
    let vmid = call.vmid();
    let storage = call.world.storage_on(call.args.must("storage"), &node)?.clone();
    let format = format.unwrap_or_else(|| default_format(&storage).to_owned());
    check_image_name(&storage, vmid, &file, &format)?;
    let stem = match storage.is_file_based() {
        true => file.rsplit_once('.').map_or(file.as_str(), |(stem, _)| stem),
        false => file.as_str(),
    };
    let volume = Volume {
        content: "images".into(),
        format,
        size,
        vmid: Some(vmid),
        ctime: call.world.now(),
        ..Volume::default()
    };
    Ok(call.world.allocate(&storage.id, &node, volume, stem)?.into())
}

/// The format of an image for which none was asked.
pub fn default_format(storage: &Storage) -> &str {
    let own = kinds::kind(&storage.kind).map_or("raw", |kind| kind.default_format);
    storage.prop("format").unwrap_or(own)
}

fn check_image_name(storage: &Storage, vmid: u32, file: &str, format: &str) -> Result<(), Refusal> {
    if !storage.is_file_based() {
        if !file.starts_with(&format!("vm-{vmid}-")) {
            return Err(no(format!("illegal name '{file}' - should be 'vm-{vmid}-*'")));
        }
        if !storage.takes_format(format) {
            return Err(no(format!("unsupported format '{format}'")));
        }
        return Ok(());
    }
    let extension = file.rsplit_once('.').map(|(_, e)| e).filter(|_| only(file, "-_.+=")).unwrap_or_default();
    if !matches!(extension, "raw" | "qcow2" | "vmdk" | "subvol") {
        return Err(no(format!("unable to parse volume filename '{file}'")));
    }
    if extension != format {
        return Err(no(format!(
            "illegal name '{file}' - wrong extension for format ('{extension} != '{format}')"
        )));
    }
    Ok(())
}

/// A volume as a path names it: with its storage, or without.
struct Asked {
    volid: String,
    storage: String,
    name: String,
}

fn asked(call: &Call<'_>) -> Result<Asked, Refusal> {
    let (given, storage) = (call.args.must("volume"), call.args.must("storage"));
    if !given.contains(':') {
        return Ok(Asked {
            volid: format!("{storage}:{given}"),
            storage: storage.to_owned(),
            name: given.to_owned(),
        });
    }
    let (own, name) = parse_volume_id(given)
        .ok_or_else(|| wrong("volume", format!("unable to parse volume ID '{given}'\n")))?;
    if own != storage {
        return Err(wrong("volume", format!("storage ID mismatch ({own} != {storage})\n")));
    }
    Ok(Asked { volid: given.to_owned(), storage: own.to_owned(), name: name.to_owned() })
}

fn show(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let asked = asked(call)?;
    check_volume(call, None, &asked.volid)?;
    let named = parse_name(call.world, &asked.storage, &asked.name)?;
    let storage = call.world.storage(&asked.storage)?;
    let Some(volume) = call.world.volume(&asked.volid, &node) else {
        return Err(no(format!("volume_size_info on '{}' failed - no format", asked.volid)));
    };
    let size = match named.content {
        "images" => volume.size,
        "import" => volume.virtual_size.unwrap_or(volume.size),
        // Whatever a file holds, it is looked at as a disk, and those have whole sectors.
        _ => volume.size.next_multiple_of(512),
    };
    if size == 0 && named.format != "subvol" {
        return Err(no(format!("volume '{}' has size zero", asked.volid)));
    }
    let mut data = json!({
        "path": storage.path(&asked.name), "size": size, "format": named.format,
        "used": volume.size.next_multiple_of(4096),
    });
    if named.content == "backup" {
        data["notes"] = json!(volume.notes.as_deref().unwrap_or_default());
        data["protected"] = json!(u8::from(volume.protected));
    }
    Ok(data.into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let asked = asked(call)?;
    check_volume(call, None, &asked.volid)?;
    let named = parse_name(call.world, &asked.storage, &asked.name)?;
    if call.args.sent("notes") && named.content != "backup" {
        return Err(no("only backups can have notes"));
    }
    if call.args.sent("protected") && named.content != "backup" {
        return Err(no("only backups support attribute 'protected'"));
    }
    let place = call.world.place(&asked.volid, &node).ok_or_else(|| no("no such volume"))?;
    let notes = call.args.sent("notes").then(|| call.args.owned("notes").filter(|n| !n.is_empty()));
    let protected = call.args.flag("protected");
    call.world.volumes.edit(&place, |volume| {
        if let Some(notes) = notes {
            volume.notes = notes;
        }
        if let Some(protected) = protected {
            volume.protected = protected;
        }
    });
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let asked = asked(call)?;
    let named = parse_name(call.world, &asked.storage, &asked.name)?;
    let at = format!("/storage/{}", asked.storage);
    match named {
        Named { content: "backup", vmid: Some(owner), .. } => {
            call.check(&at, &["Datastore.AllocateSpace"])?;
            call.check(&format!("/vms/{owner}"), &["VM.Backup"])?;
        }
        _ => call.check(&at, &["Datastore.Allocate"])?,
    }
    let id = match named.vmid {
        Some(owner) => format!("{owner}@{}", asked.storage),
        None => asked.storage.clone(),
    };
    if call.args.has("delay") {
        // Deleting is quick: it has always ended within the delay, and its outcome is the answer.
        let outcome = free(call.world, &node, &asked.volid);
        let said = outcome.clone();
        call.spawn(&node, "imgdel", id, work(move |world, job| report(world, job, said)));
        return match outcome {
            Ok(_) => Ok(().into()),
            Err(text) => Err(no(text)),
        };
    }
    let volid = asked.volid;
    let task = work(move |world: &mut World, job: &Job| {
        let outcome = free(world, &job.node.clone(), &volid);
        report(world, job, outcome)
    });
    Ok(call.spawn(&node, "imgdel", id, task).into())
}

fn report(world: &mut World, job: &Job, outcome: Result<Vec<String>, String>) -> Result<Step, String> {
    for line in outcome? {
        job.log(world, line);
    }
    Ok(Step::Done)
}

/// Deletes a volume and says what happened. One that is not there is as good as deleted.
fn free(world: &mut World, node: &str, volid: &str) -> Result<Vec<String>, String> {
    let Some((id, name)) = parse_volume_id(volid) else { return Err("no such volume".to_owned()) };
    let storage = world.storage_on(id, node)?.clone();
    let place: VolumeKey = world.place(volid, node).ok_or("no such volume")?;
    if world.clones_of(&place).next().is_some() {
        return Err(format!("base volume '{name}' is still in use by linked clones"));
    }
    let mut lines = Vec::new();
    match world.volumes.get(&place) {
        Some(volume) if volume.protected => {
            return Err(format!("cannot remove protected volume '{name}' on '{id}'"));
        }
        Some(_) => {
            world.volumes.remove(&place);
        }
        None => lines.push(format!("disk image '{}' does not exist", storage.path(name))),
    }
    lines.push(format!("Removed volume '{volid}'"));
    Ok(lines)
}
