//! Servers that statistics are sent to. Nothing is sent.

use serde_json::{Value, json};

use super::index::listing;
use super::section::{self, Options};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Reply, Route, delete, flag, format, get, int, no, post, put, text};
use crate::world::cluster::Section;

const FILE: &str = "metrics";

pub fn routes() -> Vec<Route> {
    let audit = || on("/", &["Sys.Audit"]);
    let modify = || on("/", &["Sys.Modify"]);
    let kind = text("type").one_of(&["graphite", "influxdb", "opentelemetry"]);
    let one = "/cluster/metrics/server/{id}";
    vec![
        get("/cluster/metrics", Perm::Anyone, vec![], |_| listing("name", &["server"])),
        get("/cluster/metrics/server", audit(), vec![], list),
        get(
            "/cluster/metrics/export",
            audit(),
            vec![
                flag("history").opt(),
                flag("local-only").opt(),
                text("node-list").opt(),
                int("start-time").opt(),
            ],
            |_| Ok(json!({ "data": [] }).into()),
        ),
        get(one, audit(), vec![id()], show),
        post(one, modify(), [fields(), vec![kind]].concat(), create),
        put(one, modify(), [fields(), vec![usual::delete().max_len(4096), usual::digest()]].concat(), update),
        delete(one, modify(), vec![id()], |call| {
            let id = call.args.must("id").to_owned();
            match call.world.cluster.file_mut(FILE).shift_remove(&id) {
                Some(_) => Ok(().into()),
                None => Err(no(
                    "cannot lookup undefined type! at /usr/share/perl5/PVE/API2/Cluster/MetricServer.pm line 281.",
                )),
            }
        }),
    ]
}

fn id() -> Param {
    text("id").format(format::configid)
}

/// Words between dots.
fn graphite_path(value: &str) -> Result<(), String> {
    let ok = value.split('.').all(|part| !part.is_empty() && format::only(part, "-_"));
    if ok { Ok(()) } else { Err("value does not look like a valid graphite path\n".to_owned()) }
}

fn fields() -> Vec<Param> {
    vec![
        id(),
        text("server").format(format::address),
        int("port").min(1.0).max(65_536.0),
        flag("disable").opt(),
        int("mtu").min(512.0).max(65_536.0).opt(),
        text("path").format(graphite_path).opt(),
        text("proto").one_of(&["udp", "tcp"]).opt(),
        int("timeout").min(0.0).opt(),
        text("api-path-prefix").opt(),
        text("bucket").opt(),
        text("influxdbproto").one_of(&["udp", "http", "https"]).opt(),
        int("max-body-size").min(1.0).opt(),
        text("organization").opt(),
        text("token").opt(),
        flag("verify-certificate").opt(),
        text("otel-compression").one_of(&["none", "gzip"]).opt(),
        text("otel-headers").max_len(1024).opt(),
        int("otel-max-body-size").min(1024.0).opt(),
        text("otel-path").opt(),
        text("otel-protocol").one_of(&["http", "https"]).opt(),
        text("otel-resource-attributes").max_len(1024).opt(),
        int("otel-timeout").min(1.0).max(10.0).opt(),
        flag("otel-verify-ssl").opt(),
    ]
}

fn options(kind: &str) -> Options {
    match kind {
        "graphite" => Options {
            required: &["server"],
            optional: &["port", "mtu", "proto", "timeout", "path", "disable"],
        },
        "influxdb" => Options {
            required: &["server", "port"],
            optional: &[
                "mtu",
                "disable",
                "organization",
                "bucket",
                "influxdbproto",
                "timeout",
                "max-body-size",
                "api-path-prefix",
                "verify-certificate",
            ],
        },
        _ => Options {
            required: &["server"],
            optional: &[
                "port",
                "disable",
                "otel-protocol",
                "otel-path",
                "otel-timeout",
                "otel-headers",
                "otel-verify-ssl",
                "otel-max-body-size",
                "otel-resource-attributes",
                "otel-compression",
            ],
        },
    }
}

fn list(call: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = call
        .world
        .cluster
        .file(FILE)
        .map(|(id, section)| {
            let row = section::typed_all(&fields(), &section.props);
            json!({
                "id": id, "type": section.kind, "disable": row.get("disable").unwrap_or(&json!(0)),
                "server": row.get("server"), "port": row.get("port"),
            })
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    let Some(section) = call.world.cluster.section(FILE, id) else {
        return Err(no(format!("status server entry '{id}' does not exist")));
    };
    let mut row = section::typed_all(&fields(), &section.props);
    row.insert("type".into(), json!(section.kind));
    Ok(Value::Object(row).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let (id, kind) = (call.args.must("id").to_owned(), call.args.must("type").to_owned());
    if call.world.cluster.section(FILE, &id).is_some() {
        return Err(no(format!("Metric server '{id}' already exists")));
    }
    // Tokens are kept elsewhere and never shown.
    let props = section::given(call, &["id", "type", "token"]);
    options(&kind).check(&props, true)?;
    call.world.cluster.file_mut(FILE).insert(id, Section { kind, props });
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    call.check_digest(&section::file_digest(call.world, FILE))?;
    let Some(mut section) = call.world.cluster.section(FILE, &id).cloned() else {
        return Err(no(format!("no such server '{id}'")));
    };
    let set = section::given(call, &["id", "delete", "digest", "token"]);
    let options = options(&section.kind);
    options.check(&set, false)?;
    options.remove(&mut section.props, &set, &call.args.list("delete"))?;
    section.props.extend(set);
    call.world.cluster.file_mut(FILE).insert(id, section);
    Ok(().into())
}
