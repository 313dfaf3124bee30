//! Uploading a file: it replaces whatever has that name.

use super::file::{self, Bytes};
use super::one;
use crate::api::permission::on;
use crate::api::{Call, Param, Reply, Route, no, post, text};
use crate::task::{Step, work};

pub const ALGORITHMS: &[&str] = &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

pub fn routes() -> Vec<Route> {
    let mut params = named_file();
    params.push(text("tmpfilename").pattern("/var/tmp/pveupload-[0-9a-f]+").opt());
    let allowed = on("/storage/{storage}", &["Datastore.AllocateTemplate"]);
    vec![post("/nodes/{node}/storage/{storage}/upload", allowed, params, upload)]
}

/// The parameters of everything that brings in a file.
pub fn named_file() -> Vec<Param> {
    let mut params = one();
    params.extend([
        text("content")
            .format(crate::endpoints::storage::params::content)
            .one_of(&["iso", "vztmpl", "import"]),
        text("filename").max_len(255),
        text("checksum").needs("checksum-algorithm").opt(),
        text("checksum-algorithm").one_of(ALGORITHMS).needs("checksum").opt(),
    ]);
    params
}

fn upload(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let storage = call.world.storage_on(call.args.must("storage"), &node)?.clone();
    if !storage.is_file_based() {
        return Err(no(format!("can't upload to storage type '{}'", storage.kind)));
    }
    let Some(upload) = call.effects.upload.clone() else { return Err(no("missing temporary file name")) };
    let content = call.args.must("content");
    let target = file::target(&storage, content, call.args.must("filename"))?;
    if !storage.holds(content) {
        return Err(no(format!("storage '{}' does not support '{content}' content", storage.id)));
    }
    let checksum = call.args.owned("checksum");
    let data = call.spawn(
        &node.clone(),
        "imgcopy",
        "",
        work(move |world, job| {
            job.log(world, format!("starting file import from: {}", upload.temporary));
            if let (Some(expected), Some((_, got))) = (&checksum, &upload.checksum) {
                if !got.eq_ignore_ascii_case(expected) {
                    job.log(world, "calculating checksum...");
                    return Err(format!("checksum mismatch: got '{got}' != expect '{expected}'"));
                }
                job.log(world, "calculating checksum...OK, checksum verified");
            }
            let bytes = Bytes {
                size: upload.size,
                sha256: upload.sha256.clone(),
                head: upload.head.clone(),
                synthetic: false,
            };
            let volume = bytes.volume(&target, world.now())?;
            job.log(world, format!("target node: {node}"));
            job.log(world, format!("target file: {}", target.path));
            job.log(world, format!("file size is: {}", upload.size));
            job.log(world, format!("command: cp -- {} {}", upload.temporary, target.path));
            Ok(Step::wait(seconds_to_copy(upload.size), move |world, job| {
                if upload.size > world.storage_free(&storage, &node) {
                    let path = &target.path;
                    return Err(format!(
                        "import failed: cp: error writing '{path}': No space left on device"
                    ));
                }
                let place = (storage.id.clone(), storage.scope(&node), target.volume.clone());
                world.volumes.insert(place, volume);
                job.log(world, "finished file import successfully");
                Ok(Step::Done)
            }))
        }),
    );
    Ok(data.into())
}

/// Half a GiB a second, and a moment to begin.
pub fn seconds_to_copy(bytes: u64) -> f64 {
    0.2 + bytes as f64 / f64::from(1 << 29)
}
