//! The few files of a machine that people look at, and the directories around them.

use prost::Message as _;

use super::{Call, Outcome, Reply, machine};
use crate::grpc::Status;
use crate::wire::system::{FileInfo, ListRequest, Usage, UsageRequest};
use crate::wire::{Data, ReadRequest};
use crate::world::World;

const DIRECTORIES: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/etc/kubernetes",
    "/lib",
    "/opt",
    "/proc",
    "/proc/sys",
    "/proc/sys/kernel",
    "/proc/sys/kernel/random",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/system",
    "/system/state",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/local",
    "/var",
    "/var/lib",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/log",
    "/var/log/audit",
    "/var/log/containers",
    "/var/log/pods",
    "/var/run",
];
/// What etcd keeps below its directory, once it was started there.
const MEMBER: &[&str] = &["/var/lib/etcd/member", "/var/lib/etcd/member/snap", "/var/lib/etcd/member/wal"];
const DATABASE: &str = "/var/lib/etcd/member/snap/db";
const DIRECTORY: u32 = 1 << 31 | 0o755;
const FILE: u32 = 0o644;
/// A file travels in pieces of this size.
const PIECE: usize = 32 << 10;

/// Every file with its content.
fn files(world: &World, key: &str) -> Result<Vec<(&'static str, String)>, Status> {
    let (found, boot) = machine(world, key)?;
    let hostname = world.talos_hostname(key);
    let version = boot.version();
    let release = format!(
        "NAME=\"Talos\"\nID=talos\nVERSION_ID={version}\nPRETTY_NAME=\"Talos ({version})\"\nHOME_URL=\"https://www.talos.dev/\"\n"
    );
    let mut hosts = "127.0.0.1       localhost\n".to_owned();
    for address in boot.addresses() {
        hosts.push_str(&format!("{address}      {hostname}\n"));
    }
    let since = boot.running_since.map_or(0, |since| (world.now_ms() - since).max(0) / 1000);
    let memory = super::system::memory_of(world, key);
    let mut files = vec![
        ("/etc/hosts", hosts),
        ("/etc/os-release", release),
        ("/etc/resolv.conf", "nameserver 127.0.0.53\n".to_owned()),
        ("/proc/cmdline", "talos.platform=nocloud console=tty1\n".to_owned()),
        ("/proc/meminfo", format!("MemTotal: {memory:>15} kB\nMemFree: {:>16} kB\n", memory / 2)),
        ("/proc/sys/kernel/random/boot_id", format!("{}\n", boot.id)),
        ("/proc/uptime", format!("{since}.00 {since}.00\n")),
        ("/proc/version", "Linux version 6.12.0-talos (strata-sim)\n".to_owned()),
    ];
    if let Some(config) = boot.config.as_ref().filter(|_| found.is_running()) {
        files.push(("/system/state/config.yaml", config.text().to_owned()));
    }
    Ok(files)
}

/// The database of the member whose data are on this machine, whether it runs or not.
fn database(world: &World, key: &str) -> Option<Vec<u8>> {
    let data = world.talos_disk(key)?.etcd.as_ref()?;
    let cluster = world.talos.etcd.get(&data.cluster)?;
    Some(cluster.database(&world.kubernetes.contents(&cluster.id)))
}

/// etcd was started here, and has left something behind.
fn has_member(world: &World, key: &str) -> bool {
    world.talos_disk(key).is_some_and(|disk| disk.etcd.is_some())
}

fn missing(path: &str) -> Status {
    Status::unknown(format!("stat {path}: no such file or directory"))
}

/// Without a slash at its end; the root is one.
fn normal(path: &str) -> String {
    let path = format!("/{}", path.trim_matches('/'));
    path.replace("//", "/")
}

pub(super) fn read(call: &Call<'_>) -> Outcome {
    let asked: ReadRequest = call.request()?;
    let path = normal(&asked.path);
    if path == DATABASE {
        let bytes = database(&call.machines.world(), call.key).ok_or_else(|| missing(&asked.path))?;
        let pieces = bytes.chunks(PIECE).map(|piece| Data { bytes: piece.to_vec() }.encode_to_vec());
        return Ok(Reply::Messages(pieces.collect()));
    }
    let found = files(&call.machines.world(), call.key)?.into_iter().find(|(name, _)| *name == path);
    match found {
        Some((_, text)) => Ok(Reply::one(Data { bytes: text.into_bytes() }.encode_to_vec())),
        None if DIRECTORIES.contains(&path.as_str()) => Err(Status::unknown("path must be a regular file")),
        None => Err(missing(&asked.path)),
    }
}

/// How deep one path is below another, if it is.
fn depth(path: &str, root: &str) -> Option<usize> {
    if path == root {
        return Some(0);
    }
    let rest = path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/')?;
    Some(rest.split('/').count())
}

fn relative(path: &str, root: &str) -> String {
    let rest = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
    if rest.is_empty() { ".".to_owned() } else { rest.to_owned() }
}

pub(super) fn list(call: &Call<'_>) -> Outcome {
    let asked: ListRequest = call.request()?;
    let world = call.machines.world();
    let root = normal(&asked.root);
    let files = files(&world, call.key)?;
    let mut all: Vec<(String, i64, u32)> =
        DIRECTORIES.iter().map(|path| ((*path).to_owned(), 4096, DIRECTORY)).collect();
    all.extend(files.iter().map(|(path, text)| ((*path).to_owned(), text.len() as i64, FILE)));
    if has_member(&world, call.key) {
        all.extend(MEMBER.iter().map(|path| ((*path).to_owned(), 4096, DIRECTORY)));
        let size = database(&world, call.key).map_or(0, |bytes| bytes.len() as i64);
        all.push((DATABASE.to_owned(), size, FILE));
    }
    all.sort();
    if !all.iter().any(|(path, ..)| *path == root) {
        return Err(missing(&asked.root));
    }
    let most = match (asked.recurse, asked.depth) {
        (false, _) => 1,
        (true, 1..) => asked.depth as usize,
        (true, _) => usize::MAX,
    };
    let modified = machine(&world, call.key)?.1.running_since.unwrap_or_default() / 1000;
    let shown = all.into_iter().filter(|(path, ..)| depth(path, &root).is_some_and(|depth| depth <= most));
    let replies = shown.map(|(path, size, mode)| {
        let relative = relative(&path, &root);
        FileInfo { name: path, size, mode, modified, directory: mode & DIRECTORY == DIRECTORY, relative }
            .encode_to_vec()
    });
    Ok(Reply::Messages(replies.collect()))
}

pub(super) fn usage(call: &Call<'_>) -> Outcome {
    let asked: UsageRequest = call.request()?;
    let files = files(&call.machines.world(), call.key)?;
    let usage = |root: &String| {
        let root = normal(root);
        let size =
            files.iter().filter(|(path, _)| depth(path, &root).is_some()).map(|(_, text)| text.len() as i64);
        Usage { size: size.sum(), relative: ".".to_owned(), name: root }.encode_to_vec()
    };
    Ok(Reply::Messages(asked.paths.iter().map(usage).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_below_others() {
        assert_eq!(depth("/etc/hosts", "/"), Some(2));
        assert_eq!(depth("/etc", "/"), Some(1));
        assert_eq!(depth("/etc", "/etc"), Some(0));
        assert_eq!(depth("/etcd", "/etc"), None);
        assert_eq!(
            (normal("etc/"), normal("/"), relative("/etc/hosts", "/etc")),
            ("/etc".into(), "/".into(), "hosts".into())
        );
    }
}
