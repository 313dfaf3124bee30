//! Where notifications go. None is ever sent.

mod values;

use serde_json::{Map, Value, json};

use super::index::listing;
use super::replication;
use super::section::{self, Props};
use crate::api::param::usual;
use crate::api::permission::{Check, on};
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, array, delete, flag, format, fuse, get, int, post, put, text,
};
use crate::world::World;
use crate::world::cluster::Section;

const FILE: &str = "notifications";
const PATH: &str = "/mapping/notifications";
const KINDS: [&str; 5] = ["gotify", "sendmail", "smtp", "webhook", "matcher"];

/// The endpoint and the matcher that every installation has.
const MAIL: &str = "mail-to-root";
const DEFAULT_MATCHER: &str = "default-matcher";

pub fn routes() -> Vec<Route> {
    let mut routes = vec![
        get("/cluster/notifications", Perm::Anyone, vec![], |_| {
            let parts = ["endpoints", "matchers", "targets", "matcher-fields", "matcher-field-values"];
            listing("name", &parts)
        }),
        get("/cluster/notifications/endpoints", Perm::Anyone, vec![], |_| {
            listing("name", &["gotify", "sendmail", "smtp", "webhook"])
        }),
        get("/cluster/notifications/targets", look(&["Mapping.Use"]), vec![], targets),
        post("/cluster/notifications/targets/{name}/test", look(&["Mapping.Use"]), vec![name()], test),
        get("/cluster/notifications/matcher-fields", look(&[]), vec![], |_| {
            listing("name", &["type", "hostname", "job-id"])
        }),
        get("/cluster/notifications/matcher-field-values", look(&[]), vec![], field_values),
    ];
    routes.extend(family::<0>("endpoints/gotify"));
    routes.extend(family::<1>("endpoints/sendmail"));
    routes.extend(family::<2>("endpoints/smtp"));
    routes.extend(family::<3>("endpoints/webhook"));
    routes.extend(family::<4>("matchers"));
    routes
}

/// One of the privileges on notifications, each asked for by itself.
fn look(more: &[&str]) -> Perm {
    let mut checks = vec![Check::All(PATH, &["Mapping.Modify"]), Check::All(PATH, &["Mapping.Audit"])];
    if !more.is_empty() {
        checks.push(Check::All(PATH, &["Mapping.Use"]));
    }
    Perm::Check(Check::Or(checks))
}

fn modify(kind: &str) -> Perm {
    let own = Check::All(PATH, &["Mapping.Modify"]);
    if kind == "matcher" {
        return Perm::Check(own);
    }
    // Those that talk to a server can be used to look around in the network.
    let network = Check::Or(vec![
        Check::All("/", &["Sys.Audit", "Sys.Modify"]),
        Check::All("/", &["Sys.AccessNetwork"]),
    ]);
    Perm::Check(Check::And(vec![own, network]))
}

/// The routes of a kind.
fn family<const K: usize>(path: &str) -> Vec<Route> {
    let kind = KINDS[K];
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let all = leak(format!("/cluster/notifications/{path}"));
    let one = leak(format!("/cluster/notifications/{path}/{{name}}"));
    let doomed = array("delete", text("delete").format(format::configid)).opt();
    let change = [fields(kind, false), vec![doomed, usual::digest()]].concat();
    let seen = if kind == "matcher" { look(&["Mapping.Use"]) } else { on(PATH, &["Mapping.Audit"]) };
    vec![
        get(all, seen, vec![], |call| {
            let rows = entities(call.world, KINDS[K]).into_iter();
            Ok(Value::Array(rows.map(|(_, row)| Value::Object(row)).collect()).into())
        }),
        post(all, modify(kind), fields(kind, true), |call| create(call, KINDS[K])),
        get(one, look(&[]), vec![name()], |call| show(call, KINDS[K])),
        put(one, modify(kind), change, |call| update(call, KINDS[K])),
        delete(one, on(PATH, &["Mapping.Modify"]), vec![name()], |call| remove(call, KINDS[K])),
    ]
}

fn name() -> Param {
    text("name").format(format::configid)
}

fn fields(kind: &str, creating: bool) -> Vec<Param> {
    let must = |param: Param| if creating { param } else { param.opt() };
    let list = |key: &'static str| array(key, text(key)).opt();
    let users = || array("mailto-user", text("mailto-user").format(format::user_id)).opt();
    let mut fields = vec![name(), text("comment").opt(), flag("disable").opt()];
    fields.extend(match kind {
        "gotify" => vec![must(text("server")), must(text("token"))],
        "sendmail" => vec![list("mailto"), users(), text("from-address").opt(), text("author").opt()],
        "smtp" => vec![
            must(text("server")),
            must(text("from-address")),
            list("mailto"),
            users(),
            text("author").opt(),
            text("mode").one_of(&["insecure", "starttls", "tls"]).opt(),
            int("port").opt(),
            text("username").opt(),
            text("password").opt(),
        ],
        "webhook" => vec![
            must(text("url")),
            must(text("method").one_of(&["post", "put", "get"])),
            list("header"),
            list("secret"),
            text("body").opt(),
        ],
        _ => vec![
            array("target", text("target").format(format::configid)).opt(),
            list("match-field"),
            list("match-severity"),
            list("match-calendar"),
            text("mode").one_of(&["all", "any"]).opt(),
            flag("invert-match").opt(),
        ],
    });
    fields
}

/// Options that are kept apart and never shown.
const SECRETS: &[&str] = &["token", "password"];

/// What every installation has of a kind.
fn built_in(kind: &str) -> Option<(&'static str, Props)> {
    let props = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    match kind {
        "sendmail" => {
            let about = "Send mails to root@pam's email address";
            Some((MAIL, props(&[("comment", about), ("mailto-user", "root@pam")])))
        }
        "matcher" => {
            let about = "Route all notifications to mail-to-root";
            Some((DEFAULT_MATCHER, props(&[("comment", about), ("mode", "all"), ("target", MAIL)])))
        }
        _ => None,
    }
}

/// Every section of a kind, with where it comes from.
fn sections(world: &World, kind: &str) -> Vec<(String, Props, &'static str)> {
    let own = built_in(kind);
    let mut all: Vec<(String, Props, &'static str)> = world
        .cluster
        .file(FILE)
        .filter(|(_, section)| section.kind == kind)
        .map(|(name, section)| {
            let changed = own.as_ref().is_some_and(|(own, _)| *own == name);
            let origin = if changed { "modified-builtin" } else { "user-created" };
            (name.to_owned(), section.props.clone(), origin)
        })
        .collect();
    if let Some((name, props)) = own.filter(|(own, _)| !all.iter().any(|(name, ..)| name == own)) {
        all.push((name.to_owned(), props, "builtin"));
    }
    all
}

/// Every entity of a kind as it is shown.
fn entities(world: &World, kind: &str) -> Vec<(String, Map<String, Value>)> {
    let params = fields(kind, true);
    sections(world, kind)
        .into_iter()
        .map(|(name, mut props, origin)| {
            // Of secrets only their names are told.
            if let Some(secrets) = props.get_mut("secret") {
                let names = secrets.lines().map(|line| format!("name={}", values::name_of(line)));
                *secrets = names.collect::<Vec<_>>().join("\n");
            }
            let mut row = section::typed_all(&params, &props);
            row.retain(|key, _| !SECRETS.contains(&key.as_str()));
            row.insert("origin".into(), json!(origin));
            row.insert("name".into(), json!(name));
            (name, row)
        })
        .collect()
}

fn endpoints(world: &World) -> impl Iterator<Item = (&'static str, String, Map<String, Value>)> {
    let kinds = KINDS.into_iter().filter(|kind| *kind != "matcher");
    kinds.flat_map(|kind| entities(world, kind).into_iter().map(move |(name, row)| (kind, name, row)))
}

fn targets(call: &mut Call<'_>) -> Reply {
    let mut rows = Vec::new();
    for (kind, name, row) in endpoints(call.world) {
        let mut target = json!({ "name": name, "type": kind, "origin": row["origin"] });
        for key in ["comment", "disable"] {
            if let Some(value) = row.get(key) {
                target[key] = value.clone();
            }
        }
        rows.push(target);
    }
    Ok(Value::Array(rows).into())
}

fn unknown_target(name: &str) -> Refusal {
    fuse(404, format!("endpoint '{name}' does not exist\n"))
}

/// Every target takes what it is sent.
fn test(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("name");
    if endpoints(call.world).all(|(_, own, _)| own != name) {
        return Err(unknown_target(name));
    }
    Ok(().into())
}

/// What matchers can be given to look for.
fn field_values(call: &mut Call<'_>) -> Reply {
    let kinds = ["package-updates", "fencing", "replication", "vzdump", "system-mail"];
    let mut rows: Vec<Value> = kinds.map(|kind| json!({ "field": "type", "value": kind })).to_vec();
    let cluster = &call.world.cluster;
    let backups = cluster.file("backup").filter(|_| call.may("/", "Sys.Audit"));
    let copies =
        cluster.file(crate::world::replication::FILE).filter(|(id, _)| replication::may_see(call, id));
    for (id, job) in backups.chain(copies) {
        rows.push(json!({ "field": "job-id", "value": id, "comment": job.props.get("comment") }));
    }
    rows.extend(call.world.nodes.keys().map(|node| json!({ "field": "hostname", "value": node })));
    Ok(Value::Array(rows).into())
}

fn missing(kind: &str, name: &str) -> Refusal {
    let what = if kind == "matcher" { "matcher" } else { "endpoint" };
    fuse(404, format!("{what} '{name}' not found\n"))
}

fn show(call: &mut Call<'_>, kind: &str) -> Reply {
    let name = call.args.must("name");
    let found = entities(call.world, kind).into_iter().find(|(own, _)| own == name);
    let Some((_, mut row)) = found else { return Err(missing(kind, name)) };
    row.insert("digest".into(), json!(digest(call)));
    Ok(Value::Object(row).into())
}

fn digest(call: &Call<'_>) -> String {
    // This file's digest is of another kind than the others'.
    let text = section::file_digest(call.world, FILE);
    crate::upload::checksum("sha256", text.as_bytes()).unwrap_or(text)
}

fn check_digest(call: &Call<'_>) -> Result<(), Refusal> {
    let Some(given) = call.args.text("digest") else { return Ok(()) };
    if let Some((at, bad)) = given.char_indices().find(|(_, c)| !c.is_ascii_hexdigit()) {
        return Err(fuse(400, format!("invalid digest: Invalid character '{bad}' at position {at}\n")));
    }
    if given != digest(call) {
        let text = "detected modified configuration - file changed by other user? Try again.\n";
        return Err(fuse(400, text));
    }
    Ok(())
}

/// Mails have somebody who gets them, and matchers name what is there.
fn check_entity(call: &Call<'_>, kind: &str, props: &Props) -> Result<(), Refusal> {
    let told = |key: &str| props.get(key).is_some_and(|value| !value.is_empty());
    if matches!(kind, "sendmail" | "smtp") && !told("mailto") && !told("mailto-user") {
        let text = "must at least provide one recipient, either in mailto or in mailto-user\n";
        return Err(fuse(400, text));
    }
    let targets = props.get("target").map_or("", String::as_str).lines();
    let unknown = |target: &&str| endpoints(call.world).all(|(_, own, _)| own != *target);
    match targets.into_iter().find(unknown) {
        Some(target) => Err(unknown_target(target)),
        None => Ok(()),
    }
}

fn create(call: &mut Call<'_>, kind: &str) -> Reply {
    values::check(call, kind)?;
    let name = call.args.must("name").to_owned();
    let taken = KINDS.iter().any(|kind| sections(call.world, kind).iter().any(|(own, ..)| *own == name));
    if taken {
        let text = format!("Cannot create '{name}', an entity with the same name already exists\n");
        return Err(fuse(400, text));
    }
    let props = section::given(call, &["name"]);
    check_entity(call, kind, &props)?;
    call.world.cluster.file_mut(FILE).insert(name, Section { kind: kind.to_owned(), props });
    Ok(().into())
}

fn update(call: &mut Call<'_>, kind: &str) -> Reply {
    values::check(call, kind)?;
    check_digest(call)?;
    let name = call.args.must("name").to_owned();
    let found = sections(call.world, kind).into_iter().find(|(own, ..)| *own == name);
    let Some((_, mut props, _)) = found else { return Err(missing(kind, &name)) };
    for key in call.args.values("delete") {
        props.shift_remove(&key);
    }
    let mut set = section::given(call, &["name", "delete", "digest"]);
    if let Some(secrets) = set.get_mut("secret") {
        *secrets = keep_secrets(secrets, props.get("secret").map_or("", String::as_str))?;
    }
    props.extend(set);
    check_entity(call, kind, &props)?;
    call.world.cluster.file_mut(FILE).insert(name, Section { kind: kind.to_owned(), props });
    Ok(().into())
}

/// A secret that comes without its value keeps the one it has.
fn keep_secrets(new: &str, old: &str) -> Result<String, Refusal> {
    let mut kept: Vec<String> = Vec::new();
    for line in new.lines() {
        let name = values::name_of(line);
        let has_value = line.split(',').any(|part| part.starts_with("value="));
        let known = old.lines().find(|old| values::name_of(old) == name);
        let Some(line) = (if has_value { Some(line) } else { known }) else {
            return Err(fuse(400, format!("secret '{name}' not known\n")));
        };
        if kept.iter().any(|own| values::name_of(own) == name) {
            return Err(fuse(400, format!("secret '{name}' defined multiple times\n")));
        }
        kept.push(line.to_owned());
    }
    Ok(kept.join("\n"))
}

fn remove(call: &mut Call<'_>, kind: &str) -> Reply {
    let name = call.args.must("name").to_owned();
    let Some((.., origin)) = sections(call.world, kind).into_iter().find(|(own, ..)| *own == name) else {
        return Err(missing(kind, &name));
    };
    // Those that are built in only go back to how they were.
    if kind != "matcher" && origin == "user-created" {
        let users: Vec<String> = sections(call.world, "matcher")
            .into_iter()
            .filter(|(_, props, _)| props.get("target").is_some_and(|all| all.lines().any(|t| t == name)))
            .map(|(matcher, ..)| matcher)
            .collect();
        if !users.is_empty() {
            let text = format!("cannot delete '{name}', referenced by: {}\n", users.join(", "));
            return Err(fuse(400, text));
        }
    }
    call.world.cluster.file_mut(FILE).shift_remove(&name);
    Ok(().into())
}
