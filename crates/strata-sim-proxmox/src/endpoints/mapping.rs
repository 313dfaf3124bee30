//! Mappings: names for hardware and directories that nodes have in different places.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::index::listing;
use super::section::{self, Options, Props};
use crate::api::param::usual;
use crate::api::permission::{Check, on};
use crate::api::{
    Call, Param, Perm, Properties, Refusal, Reply, Route, array, delete, flag, format, get, int, no, post,
    put, text,
};
use crate::world::cluster::Section;

pub fn routes() -> Vec<Route> {
    let mut routes =
        vec![get("/cluster/mapping", Perm::Anyone, vec![], |_| listing("name", &["dir", "pci", "usb"]))];
    routes.extend(of("pci", |call| list(call, "pci"), |call| create(call, "pci")));
    routes.extend(one("pci", |c| show(c, "pci"), |c| update(c, "pci"), |c| remove(c, "pci")));
    routes.extend(of("usb", |call| list(call, "usb"), |call| create(call, "usb")));
    routes.extend(one("usb", |c| show(c, "usb"), |c| update(c, "usb"), |c| remove(c, "usb")));
    routes.extend(of("dir", |call| list(call, "dir"), |call| create(call, "dir")));
    routes.extend(one("dir", |c| show(c, "dir"), |c| update(c, "dir"), |c| remove(c, "dir")));
    routes
}

type Handler = fn(&mut Call<'_>) -> Reply;

/// Texts of routes live as long as the program.
fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn of(kind: &'static str, list: Handler, create: Handler) -> Vec<Route> {
    let path = leak(format!("/cluster/mapping/{kind}"));
    let modify = on(leak(format!("/mapping/{kind}")), &["Mapping.Modify"]);
    vec![
        get(path, Perm::Anyone, vec![text("check-node").format(format::node).opt()], list),
        post(path, modify, fields(kind, true), create),
    ]
}

fn one(kind: &'static str, show: Handler, update: Handler, remove: Handler) -> Vec<Route> {
    let path = leak(format!("/cluster/mapping/{kind}/{{id}}"));
    let own = leak(format!("/mapping/{kind}/{{id}}"));
    let look = Check::Or(vec![
        Check::All(own, &["Mapping.Use"]),
        Check::All(own, &["Mapping.Modify"]),
        Check::All(own, &["Mapping.Audit"]),
    ]);
    let all = on(leak(format!("/mapping/{kind}")), &["Mapping.Modify"]);
    let change = [fields(kind, kind == "usb"), vec![usual::delete().max_len(4096), usual::digest()]].concat();
    vec![
        get(path, Perm::Check(look), vec![id()], show),
        put(path, on(own, &["Mapping.Modify"]), change, update),
        delete(path, all, vec![id()], remove),
    ]
}

fn id() -> Param {
    text("id").format(format::configid)
}

fn fields(kind: &str, creating: bool) -> Vec<Param> {
    let item = text("map").properties(match kind {
        "pci" => pci,
        "usb" => usb,
        _ => dir,
    });
    let map = array("map", item);
    let mut fields =
        vec![id(), text("description").max_len(4096).opt(), if creating { map } else { map.opt() }];
    if kind == "pci" {
        fields.extend([flag("mdev").opt(), flag("live-migration-capable").opt()]);
    }
    fields
}

const DEVICE: &str = "[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}";

fn pci() -> &'static Properties {
    const ADDRESS: &str = "(?:[a-f0-9]{4,}:[a-f0-9]{2}:[a-f0-9]{2}(?:.[a-f0-9])?;)*\
                           [a-f0-9]{4,}:[a-f0-9]{2}:[a-f0-9]{2}(?:.[a-f0-9])?";
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            text("node").format(format::node),
            text("id").pattern(DEVICE),
            text("subsystem-id").pattern(DEVICE).opt(),
            text("path").pattern(ADDRESS),
            int("iommugroup").opt(),
            text("description").max_len(4096).opt(),
        ])
    });
    &SCHEMA
}

fn usb() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
        Properties::new([
            text("node").format(format::node),
            text("id").pattern(DEVICE),
            text("path").pattern(r"(\d+)\-(\d+(\.\d+)*)").opt(),
            text("description").max_len(4096).opt(),
        ])
    });
    &SCHEMA
}

fn dir() -> &'static Properties {
    static SCHEMA: LazyLock<Properties> =
        LazyLock::new(|| Properties::new([text("node").format(format::node), text("path").format(absolute)]));
    &SCHEMA
}

fn absolute(value: &str) -> Result<(), String> {
    let ok = value.len() > 1 && value.starts_with('/') && !value.contains([';', '(', ')']);
    if ok {
        Ok(())
    } else {
        Err("Value does not look like a valid absolute path. These symbols are currently not allowed in path: ;,=()\n"
            .to_owned())
    }
}

const OPTIONS: Options =
    Options { required: &["map"], optional: &["description", "mdev", "live-migration-capable"] };

fn file(kind: &str) -> String {
    format!("mapping/{kind}")
}

fn view(call: &Call<'_>, kind: &str, section: &Section) -> Value {
    let params = fields(kind, true);
    let mut row = section::typed_all(&params, &section.props);
    row.insert("type".into(), json!(kind));
    row.insert("digest".into(), json!(section::file_digest(call.world, &file(kind))));
    Value::Object(row)
}

fn list(call: &mut Call<'_>, kind: &str) -> Reply {
    let node = call.args.text("check-node");
    if let Some(unknown) = node.filter(|node| *node != "localhost" && !call.world.nodes.contains_key(*node)) {
        let own = call.world.nodes.keys().next().map_or("", String::as_str);
        return Err(no(match kind {
            "usb" => "Wrong node to check".to_owned(),
            _ => format!("wrong node to check - {unknown} != {own}"),
        }));
    }
    let privs = &["Mapping.Modify", "Mapping.Use", "Mapping.Audit"];
    let rows: Vec<Value> = call
        .world
        .cluster
        .file(&file(kind))
        .filter(|(id, _)| call.check_any(&format!("/mapping/{kind}/{id}"), privs).is_ok())
        .map(|(id, section)| {
            let mut row = view(call, kind, section);
            row["id"] = json!(id);
            if let Some(node) = node {
                let key = if kind == "usb" { "errors" } else { "checks" };
                row[key] = Value::Array(problems(kind, node, section));
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

/// What is wrong with a mapping on a node. Simulated nodes have no devices, but every directory.
fn problems(kind: &str, node: &str, section: &Section) -> Vec<Value> {
    let schema = match kind {
        "pci" => pci(),
        "usb" => usb(),
        _ => dir(),
    };
    let lines = section.props.get("map").map_or("", String::as_str).lines();
    let here: Vec<_> = lines.map(|line| schema.read(line)).filter(|m| m.get("node") == Some(node)).collect();
    if here.is_empty() {
        return vec![json!({ "severity": "warning", "message": format!("No mapping for node {node}.") })];
    }
    here.iter()
        .filter_map(|mapping| {
            let text = match kind {
                "pci" => format!("pci device '{}' not found", mapping.get("path").unwrap_or_default()),
                "usb" => {
                    let device = mapping.get("path").or(mapping.get("id")).unwrap_or_default();
                    format!("usb device '{device}' not found")
                }
                _ => return None,
            };
            Some(json!({ "severity": "error", "message": format!("Invalid configuration: {text}\n") }))
        })
        .collect()
}

fn find<'c>(call: &'c Call<'_>, kind: &str) -> Result<&'c Section, Refusal> {
    let id = call.args.must("id");
    call.world.cluster.section(&file(kind), id).ok_or_else(|| no(format!("mapping '{id}' not found")))
}

fn show(call: &mut Call<'_>, kind: &str) -> Reply {
    Ok(view(call, kind, find(call, kind)?).into())
}

fn what(kind: &str) -> &'static str {
    if kind == "dir" { "directory" } else { "hardware" }
}

fn props(call: &Call<'_>) -> Props {
    section::given(call, &["id", "delete", "digest"])
}

fn create(call: &mut Call<'_>, kind: &str) -> Reply {
    let id = call.args.must("id").to_owned();
    let props = props(call);
    OPTIONS.check(&props, true)?;
    let sections = call.world.cluster.file_mut(&file(kind));
    if sections.contains_key(&id) {
        let what = what(kind);
        return Err(no(format!("create {what} mapping failed: {kind} ID '{id}' already defined")));
    }
    sections.insert(id, Section { kind: kind.to_owned(), props });
    Ok(().into())
}

fn update(call: &mut Call<'_>, kind: &str) -> Reply {
    let fail = |refusal: Refusal| no(format!("update {} mapping failed: {}", what(kind), refusal.text()));
    let id = call.args.must("id").to_owned();
    call.check_digest(&section::file_digest(call.world, &file(kind))).map_err(fail)?;
    let set = props(call);
    let Some(mut section) = call.world.cluster.section(&file(kind), &id).cloned() else {
        return Err(fail(no(format!("{kind} ID '{id}' does not exist"))));
    };
    // The original checks an update like a creation.
    OPTIONS.check(&set, true).map_err(fail)?;
    OPTIONS.remove(&mut section.props, &set, &call.args.list("delete")).map_err(fail)?;
    section.props.extend(set);
    call.world.cluster.file_mut(&file(kind)).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>, kind: &str) -> Reply {
    let id = call.args.must("id").to_owned();
    call.world.cluster.file_mut(&file(kind)).shift_remove(&id);
    Ok(().into())
}
