//! Packages: versions, updates, and the repositories they come from.

use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, flag, get, int, no, post, put, text};
use crate::endpoints::index::listing;
use crate::task::{Step, work};
use crate::world::made_up::sha1_hex;
use crate::world::node::Repository;

pub fn routes() -> Vec<Route> {
    let audit = || on("/nodes/{node}", &["Sys.Audit"]);
    let modify = || on("/nodes/{node}", &["Sys.Modify"]);
    let with = |extra: Vec<Param>| [vec![usual::node()], extra].concat();
    let digest = || text("digest").max_len(80).opt();
    let package = vec![text("name").pattern("[a-z0-9][-+.a-z0-9:]+"), text("version").opt()];
    let repositories = "/nodes/{node}/apt/repositories";
    vec![
        get("/nodes/{node}/apt", Perm::Anyone, with(vec![]), |_| {
            listing("id", &["changelog", "repositories", "update", "versions"])
        })
        .anywhere(),
        get("/nodes/{node}/apt/versions", audit(), with(vec![]), versions),
        get("/nodes/{node}/apt/update", modify(), with(vec![]), updates),
        post(
            "/nodes/{node}/apt/update",
            modify(),
            with(vec![flag("notify").opt(), flag("quiet").opt()]),
            refresh,
        ),
        get("/nodes/{node}/apt/changelog", modify(), with(package), |call| {
            let name = call.args.must("name");
            if PACKAGES.iter().any(|(own, _)| *own == name) {
                return Ok(json!(format!("{name}: no changes are recorded\n")).into());
            }
            Ok(json!(format!("E: Unable to locate package {name}\nE: No packages found\nRC: 100")).into())
        }),
        get(repositories, audit(), with(vec![]), list),
        post(
            repositories,
            modify(),
            with(vec![digest(), flag("enabled").opt(), int("index"), text("path")]),
            change,
        ),
        put(repositories, modify(), with(vec![digest(), text("handle")]), add),
    ]
}

const PACKAGES: [(&str, &str); 5] = [
    ("pve-manager", "9.1.7"),
    ("qemu-server", "9.1.6"),
    ("libpve-storage-perl", "9.1.1"),
    ("pve-container", "6.1.2"),
    ("pve-qemu-kvm", "10.2.1-1"),
];

fn versions(_: &mut Call<'_>) -> Reply {
    let rows = PACKAGES.iter().map(|(name, version)| {
        json!({
            "Package": name, "Version": version, "OldVersion": version, "CurrentState": "Installed",
            "Origin": "Proxmox", "Arch": "amd64", "Section": "admin", "Priority": "optional", "Title": name,
        })
    });
    Ok(Value::Array(rows.collect()).into())
}

/// What could be upgraded.
fn updates(call: &mut Call<'_>) -> Reply {
    let node = &call.world.nodes[call.args.must("node")];
    let rows = node.updates.iter().map(|(name, version)| {
        let old = PACKAGES.iter().find(|(own, _)| own == name).map_or("1.0", |(_, version)| version);
        json!({
            "Package": name, "Version": version, "OldVersion": old, "Title": name, "Description": name,
            "Origin": "Proxmox", "Arch": "amd64", "Section": "admin", "Priority": "optional",
        })
    });
    Ok(Value::Array(rows.collect()).into())
}

fn refresh(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let work = work(|world, job| {
        job.log(world, "starting apt-get update");
        Ok(Step::wait(2.0, |_, _| Ok(Step::Done)))
    });
    Ok(call.spawn(&node, "aptupdate", "", work).into())
}

/// The repositories that can be asked for by a short name, with where they are.
const STANDARD: [(&str, &str, &str, &str); 6] = [
    ("enterprise", "Enterprise", "https://enterprise.proxmox.com/debian/pve", "pve-enterprise"),
    ("no-subscription", "No-Subscription", "http://download.proxmox.com/debian/pve", "pve-no-subscription"),
    ("test", "Test", "http://download.proxmox.com/debian/pve", "pve-test"),
    (
        "ceph-squid-enterprise",
        "Ceph Squid Enterprise",
        "https://enterprise.proxmox.com/debian/ceph-squid",
        "enterprise",
    ),
    (
        "ceph-squid-no-subscription",
        "Ceph Squid No-Subscription",
        "http://download.proxmox.com/debian/ceph-squid",
        "no-subscription",
    ),
    ("ceph-squid-test", "Ceph Squid Test", "http://download.proxmox.com/debian/ceph-squid", "test"),
];

fn file_of(handle: &str) -> &'static str {
    match handle {
        "enterprise" => "/etc/apt/sources.list.d/pve-enterprise.sources",
        "no-subscription" | "test" => "/etc/apt/sources.list.d/proxmox.sources",
        _ => "/etc/apt/sources.list.d/ceph.sources",
    }
}

/// The files in the order in which they are read.
fn files(repositories: &[Repository]) -> Vec<&str> {
    let mut paths: Vec<&str> = repositories.iter().map(|r| r.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn digest(repositories: &[Repository]) -> String {
    let text = json!(repositories).to_string();
    // Two halves of a text that is longer than a digest of one kind.
    format!("{}{}", sha1_hex(&text), &sha1_hex(&format!("{text}\n"))[..24])
}

fn list(call: &mut Call<'_>) -> Reply {
    let own = &call.world.nodes[call.args.must("node")].repositories;
    let rows = files(own).into_iter().map(|path| {
        let entries = own.iter().filter(|r| r.path == path).map(|r| {
            json!({
                "Types": ["deb"], "URIs": [r.uri], "Suites": [r.suite], "Components": [r.component],
                "Enabled": u8::from(r.enabled), "FileType": "sources",
            })
        });
        json!({ "path": path, "file-type": "sources", "digest": [], "repositories": entries.collect::<Vec<_>>() })
    });
    let standard = STANDARD.iter().map(|(handle, name, uri, component)| {
        let found = own.iter().find(|r| r.uri == *uri && r.component == *component);
        let mut row = json!({ "handle": handle, "name": name });
        if let Some(found) = found {
            row["status"] = json!(u8::from(found.enabled));
        }
        row
    });
    Ok(json!({
        "files": rows.collect::<Vec<_>>(), "errors": [], "infos": [], "digest": digest(own),
        "standard-repos": standard.collect::<Vec<_>>(),
    })
    .into())
}

fn check_digest(call: &Call<'_>) -> Result<(), Refusal> {
    let own = digest(&call.world.nodes[call.args.must("node")].repositories);
    match call.args.text("digest") {
        Some(given) if given != own => {
            Err(no("detected modified configuration - file changed by other user? Try again."))
        }
        _ => Ok(()),
    }
}

fn repositories<'c>(call: &'c mut Call<'_>) -> Result<&'c mut Vec<Repository>, Refusal> {
    let name = call.node();
    let node = call.world.nodes.get_mut(&name);
    node.map(|node| &mut node.repositories).ok_or_else(|| no(format!("no such cluster node '{name}'")))
}

fn change(call: &mut Call<'_>) -> Reply {
    check_digest(call)?;
    let (path, index) = (call.args.must("path").to_owned(), call.args.int("index").unwrap_or_default());
    let enabled = call.args.flag("enabled");
    let all = repositories(call)?;
    if !all.iter().any(|r| r.path == path) {
        return Err(no(format!("invalid path - {path}")));
    }
    let mut of_file = all.iter_mut().filter(|r| r.path == path);
    match usize::try_from(index).ok().and_then(|index| of_file.nth(index)) {
        Some(found) => found.enabled = enabled.unwrap_or(found.enabled),
        None => return Err(no(format!("invalid index - {index}"))),
    }
    Ok(().into())
}

fn add(call: &mut Call<'_>) -> Reply {
    let handle = call.args.must("handle").to_owned();
    let Some((_, _, uri, component)) = STANDARD.iter().find(|(own, ..)| *own == handle) else {
        let all: Vec<String> = STANDARD.iter().map(|(own, ..)| format!("`{own}`")).collect();
        return Err(no(format!("error: unknown variant `{handle}`, expected one of {}", all.join(", "))));
    };
    check_digest(call)?;
    let all = repositories(call)?;
    match all.iter_mut().find(|r| r.uri == *uri && r.component == *component) {
        Some(found) => found.enabled = true,
        None => all.push(Repository {
            path: file_of(&handle).to_owned(),
            uri: (*uri).to_owned(),
            suite: "trixie".to_owned(),
            component: (*component).to_owned(),
            enabled: true,
        }),
    }
    Ok(().into())
}
