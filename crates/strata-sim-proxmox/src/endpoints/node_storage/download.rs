//! Downloading a file to a storage. The loopback is really asked; any other URL has made-up content, the same every
//! time, so that nothing here needs a network.

use std::sync::LazyLock;

use jiff::Timestamp;
use strata_sim_core::synthetic;

use super::file::{self, Bytes, Target};
use super::upload::{named_file, seconds_to_copy};
use super::url_metadata::may_reach_out;
use crate::api::permission::Check;
use crate::api::{Call, Perm, Reply, Route, flag, no, post, text};
use crate::fetch;
use crate::task::{Job, Step, work};
use crate::upload::checksum;
use crate::world::{Storage, Volume, World};

pub fn routes() -> Vec<Route> {
    let mut params = named_file();
    params.extend([
        text("url").pattern("https?://.*"),
        text("compression").opt(),
        flag("verify-certificates").opt(),
    ]);
    let allowed =
        Check::And(vec![Check::All("/storage/{storage}", &["Datastore.AllocateTemplate"]), may_reach_out()]);
    vec![post("/nodes/{node}/storage/{storage}/download-url", Perm::Check(allowed), params, download)]
}

/// The checksum that a download of this URL has in every simulator: `md5`, `sha1`, `sha224`, `sha256`, `sha384` or
/// `sha512`. None for another algorithm, and for a URL under which nothing is found.
pub fn synthetic_checksum(url: &str, algorithm: &str) -> Option<String> {
    checksum(algorithm, &synthetic(url)?)
}

/// What a web server gave.
enum Served {
    File { content: Vec<u8>, kind: String, synthetic: bool },
    Refused(u16, String),
    Unreachable(String),
}

fn serve(call: &Call<'_>, url: &str) -> Result<Served, crate::api::Refusal> {
    if fetch::loopback(url).is_none() {
        return Ok(match synthetic(url) {
            Some(content) => {
                Served::File { content, kind: "application/octet-stream".to_owned(), synthetic: true }
            }
            None => Served::Refused(404, "Not Found".to_owned()),
        });
    }
    let found = call.fetch(url, false)?;
    Ok(match (&found.failed, found.status) {
        (Some(why), _) => Served::Unreachable(why.clone()),
        (None, 200) => Served::File {
            content: found.body.clone(),
            kind: found.header("content-type").unwrap_or_default().to_owned(),
            synthetic: false,
        },
        (None, status) => Served::Refused(status, found.reason.clone()),
    })
}

fn download(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let storage = call.world.storage_on(call.args.must("storage"), &node)?.clone();
    if !storage.is_file_based() {
        return Err(no(format!(
            "can't upload to storage type '{}', not a file based storage!",
            storage.kind
        )));
    }
    let content = call.args.must("content");
    if !storage.holds(content) {
        return Err(no(format!("storage '{}' is not configured for content-type '{content}'", storage.id)));
    }
    let target = file::target(&storage, content, call.args.must("filename"))?;
    let url = call.args.must("url").to_owned();
    let served = serve(call, &url)?;
    let wanted = call.args.owned("checksum").zip(call.args.owned("checksum-algorithm"));
    let compressed = call.args.has("compression");
    let id = target.volume.split('/').next_back().unwrap_or_default().to_owned();
    let order = DownloadRequest { node: node.clone(), storage, target, url, served, wanted, compressed };
    Ok(call.spawn(&node, "download", id, work(move |world, job| order.begin(world, job))).into())
}

/// One download, as its task carries it out.
struct DownloadRequest {
    node: String,
    storage: Storage,
    target: Target,
    url: String,
    served: Served,
    /// Checksum and algorithm.
    wanted: Option<(String, String)>,
    compressed: bool,
}

impl DownloadRequest {
    fn begin(self, world: &mut World, job: &Job) -> Result<Step, String> {
        if self.compressed && self.target.content != "iso" {
            return Err(format!("decompression not supported for {}", self.target.content));
        }
        let path = self.target.path.clone();
        job.log(world, format!("downloading {} to {path}", self.url));
        let place = (self.storage.id.clone(), self.storage.scope(&self.node), self.target.volume.clone());
        if let Some(existing) = world.volumes.get(&place).cloned() {
            let Some((expected, algorithm)) = &self.wanted else {
                return Err(format!("refusing to override existing file '{path}'"));
            };
            let got = self.checksum_of_existing(existing.sha256.as_deref(), algorithm);
            if got.eq_ignore_ascii_case(expected) {
                let text = "calculating checksum of existing file...OK, got correct file already, no need to download";
                job.log(world, text);
                return Ok(Step::Done);
            }
            job.log(world, "calculating checksum of existing file...");
            return Err(format!("checksum mismatch: got '{got}' != expect '{expected}', aborting"));
        }
        let size = self.announce(world, job)?;
        Ok(Step::wait(0.3 + seconds_to_copy(size), move |world, job| self.finish(world, job, place)))
    }

    /// Only the SHA-256 of a stored file is known, and everything about the one that the URL gives.
    fn checksum_of_existing(&self, sha256: Option<&str>, algorithm: &str) -> String {
        let stored = sha256.unwrap_or_default();
        if algorithm == "sha256" {
            return stored.to_owned();
        }
        match &self.served {
            Served::File { content, .. } if checksum("sha256", content).as_deref() == Some(stored) => {
                checksum(algorithm, content).unwrap_or_default()
            }
            _ => checksum(algorithm, stored.as_bytes()).unwrap_or_default(),
        }
    }

    /// What the downloader says up to the point where the data flows.
    fn announce(&self, world: &mut World, job: &Job) -> Result<u64, String> {
        job.log(world, format!("--{}--  {}", stamp(world.now()), self.url));
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let port = if self.url.starts_with("https") { 443 } else { 80 };
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
        match &self.served {
            Served::Unreachable(why) => {
                let why = if why.contains("refused") { "Connection refused" } else { why.as_str() };
                Err(format!("download failed: Connecting to {address}... failed: {why}."))
            }
            Served::Refused(status, reason) => {
                job.log(world, format!("Connecting to {address}... connected."));
                job.log(world, format!("HTTP request sent, awaiting response... {status} {reason}"));
                job.log(world, format!("{} ERROR {status}: {reason}.", stamp(world.now())));
                Err("download failed: exit code 8".to_owned())
            }
            Served::File { content, kind, .. } => {
                job.log(world, format!("Connecting to {address}... connected."));
                job.log(world, "HTTP request sent, awaiting response... 200 OK");
                let length = content.len();
                let kind = if kind.is_empty() { String::new() } else { format!(" [{kind}]") };
                job.log(world, format!("Length: {length}{}{kind}", human(length)));
                job.log(world, format!("Saving to: '{}'", self.temporary(job)));
                Ok(length as u64)
            }
        }
    }

    fn temporary(&self, job: &Job) -> String {
        format!("{}.tmp_dwnl.{}", self.target.path, 1000 + job.id)
    }

    fn finish(
        self,
        world: &mut World,
        job: &Job,
        place: crate::world::volume::VolumeKey,
    ) -> Result<Step, String> {
        let temporary = self.temporary(job);
        let Served::File { content, synthetic, .. } = &self.served else { return Ok(Step::Done) };
        let length = content.len();
        if length as u64 > world.storage_free(&self.storage, &self.node) {
            return Err(format!("download failed: Cannot write to '{temporary}' (No space left on device)."));
        }
        let saved = format!("{} (275 MB/s) - '{temporary}' saved [{length}/{length}]", stamp(world.now()));
        job.log(world, saved);
        if let Some((expected, algorithm)) = &self.wanted {
            let got = checksum(algorithm, content).unwrap_or_default();
            if !got.eq_ignore_ascii_case(expected) {
                job.log(world, "calculating checksum...");
                return Err(format!("checksum mismatch: got '{got}' != expect '{expected}'"));
            }
            job.log(world, "calculating checksum...OK, checksum verified");
        }
        if self.compressed {
            let unpacked = temporary.replace("tmp_dwnl", "tmp_dcom");
            job.log(world, format!("decompressing {temporary} to {unpacked}"));
        }
        let bytes = Bytes {
            size: length as u64,
            sha256: checksum("sha256", content).unwrap_or_default(),
            head: content[..length.min(crate::upload::KEPT)].to_vec(),
            synthetic: *synthetic,
        };
        let volume = bytes
            .volume(&self.target, world.now())
            .map_err(|refusal| format!("failed to verify file: {}", refusal.text()))?;
        world.volumes.insert(place, Volume { url: Some(self.url.clone()), ..volume });
        job.log(world, format!("download of '{}' to '{}' finished", self.url, self.target.path));
        Ok(Step::Done)
    }
}

/// The time as the downloader writes it.
fn stamp(now: i64) -> String {
    static ZERO: LazyLock<Timestamp> = LazyLock::new(Timestamp::default);
    Timestamp::from_second(now).unwrap_or(*ZERO).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// ` (1.5M)`, or nothing for small numbers.
fn human(length: usize) -> String {
    let mut value = length as f64;
    let mut unit = None;
    for next in ["K", "M", "G"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(next);
    }
    match unit {
        None => String::new(),
        Some(unit) if value < 10.0 => format!(" ({value:.1}{unit})"),
        Some(unit) => format!(" ({value:.0}{unit})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_the_same_content_every_time() {
        let url = "https://images.example.test/debian.qcow2";
        assert_eq!(synthetic(url), synthetic(url));
        assert_ne!(synthetic(url), synthetic("https://images.example.test/other.qcow2"));
        let length = synthetic(url).unwrap().len();
        assert!((64 << 10..=256 << 10).contains(&length), "{length}");
        assert_eq!(synthetic("https://images.example.test/missing/x.iso"), None);
        let sum = synthetic_checksum(url, "sha512").unwrap();
        assert_eq!((sum.len(), synthetic_checksum(url, "crc32")), (128, None));
    }

    #[test]
    fn lengths_read_like_the_downloaders() {
        assert_eq!(human(1 << 20), " (1.0M)");
        assert_eq!(human(196_616), " (192K)");
        assert_eq!(human(12), "");
    }
}
