//! What a client learns before it asks for objects: version, health, groups, versions and types.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::failure::{Outcome, not_allowed, unknown_path};
use super::handle::Reply;
use super::openapi;
use super::request::Request;
use super::resource::{Resource, api_version};

/// None if the path is none of these.
pub fn answer(cluster: &Cluster, request: &Request) -> Option<Outcome<Reply>> {
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let json = |value: Value| Ok(Reply::Object(200, value));
    let reply = match parts.as_slice() {
        [""] => json(
            json!({ "paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/readyz", "/version"] }),
        ),
        ["version"] => json(version(cluster)),
        ["healthz" | "livez" | "readyz", check @ ..] => Ok(health(cluster, parts[0], check)),
        ["api"] => json(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address(cluster) }],
        })),
        ["apis"] => json(json!({ "kind": "APIGroupList", "apiVersion": "v1",
            "groups": groups(cluster).iter().map(|(name, versions)| group(name, versions)).collect::<Vec<_>>() })),
        ["apis", name] => match groups(cluster).get(*name) {
            Some(versions) => {
                let mut found = group(name, versions);
                found["kind"] = json!("APIGroup");
                found["apiVersion"] = json!("v1");
                json(found)
            }
            None => Err(unknown_path()),
        },
        ["api", version] => types(cluster, "", version),
        ["apis", group, version] => types(cluster, group, version),
        ["openapi", "v3"] => json(openapi::index(cluster)),
        ["openapi", "v3", rest @ ..] => {
            openapi::document(cluster, &rest.join("/")).map_or_else(|| Err(unknown_path()), json)
        }
        ["openapi", ..] => Err(unknown_path()),
        _ => return None,
    };
    Some(if matches!(request.method.as_str(), "GET" | "HEAD") { reply } else { Err(not_allowed()) })
}

fn address(cluster: &Cluster) -> String {
    let server = cluster.facts.nodes.iter().find(|n| n.control_plane).and_then(|n| n.addresses.first());
    format!("{}:6443", server.map_or("127.0.0.1", String::as_str))
}

/// The version of the oldest API server, as a client behind a shared address may meet any.
pub fn server_version(cluster: &Cluster) -> &str {
    let running = cluster.facts.nodes.iter().filter(|n| n.api_up).filter_map(|n| n.api_version.as_deref());
    running
        .min()
        .or_else(|| cluster.facts.nodes.iter().find_map(|n| n.api_version.as_deref()))
        .unwrap_or("v1.36.0")
}

fn version(cluster: &Cluster) -> Value {
    let git = server_version(cluster);
    let mut numbers = git.trim_start_matches('v').split('.');
    json!({
        "major": numbers.next().unwrap_or("1"), "minor": numbers.next().unwrap_or("0"), "gitVersion": git,
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26", "compiler": "gc", "platform": "linux/amd64",
    })
}

fn health(cluster: &Cluster, path: &str, check: &[&str]) -> Reply {
    let fails = !cluster.facts.api_up && (path == "readyz" || check == ["etcd"]);
    if fails {
        Reply::Text(500, format!("[+]ping ok\n[-]etcd failed: reason withheld\n{path} check failed\n"))
    } else {
        Reply::Text(200, "ok".to_owned())
    }
}

/// The versions of each group but the core one, the preferred version first.
fn groups(cluster: &Cluster) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for resource in cluster.resources().filter(|r| !r.group.is_empty()) {
        let versions = groups.entry(resource.group).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version);
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
    }
    groups
}

/// `v2` before `v1` before `v1beta2` before `v1alpha1`.
fn rank(version: &str) -> (u8, u32, u32) {
    let rest = version.trim_start_matches('v');
    let split = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, tail) = rest.split_at(split);
    let major = major.parse().unwrap_or_default();
    let minor = |prefix: &str| tail.strip_prefix(prefix).and_then(|n| n.parse().ok());
    match (tail, minor("beta"), minor("alpha")) {
        ("", _, _) => (2, major, 0),
        (_, Some(minor), _) => (1, major, minor),
        (_, _, Some(minor)) => (0, major, minor),
        _ => (0, 0, 0),
    }
}

fn group(name: &str, versions: &[String]) -> Value {
    let entry = |v: &String| json!({ "groupVersion": api_version(name, v), "version": v });
    json!({
        "name": name, "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

fn types(cluster: &Cluster, group: &str, version: &str) -> Outcome<Reply> {
    let found: Vec<Resource> =
        cluster.resources().filter(|r| r.group == group && r.version == version).collect();
    if found.is_empty() {
        return Err(unknown_path());
    }
    Ok(Reply::Object(
        200,
        json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version),
            "resources": found.iter().flat_map(Resource::api_resources).collect::<Vec<_>>(),
        }),
    ))
}
