//! Where notifications go. None is ever sent.

use serde_json::{Map, Value, json};

use super::index::listing;
use super::section::{self, Props};
use crate::api::param::usual;
use crate::api::permission::{Check, on};
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, array, delete, flag, format, fuse, get, int, post, put, text,
};
use crate::world::cluster::Section;

const FILE: &str = "notifications";

/// The endpoints and the matcher that every installation has.
const MAIL: (&str, &str) = ("mail-to-root", "Send mails to root@pam's email address");
const DEFAULT_MATCHER: (&str, &str) = ("default-matcher", "Route all notifications to mail-to-root");

pub fn routes() -> Vec<Route> {
    let audit = || on("/mapping/notifications", &["Mapping.Audit"]);
    let mut routes = vec![
        get("/cluster/notifications", Perm::Anyone, vec![], |_| {
            listing("name", &["endpoints", "matchers", "targets"])
        }),
        get("/cluster/notifications/endpoints", Perm::Anyone, vec![], |_| {
            listing("name", &["gotify", "sendmail", "smtp", "webhook"])
        }),
        get("/cluster/notifications/targets", audit(), vec![], targets),
    ];
    routes.extend(family("endpoints/gotify", |c| list(c, "gotify"), |c| create(c, "gotify"), "gotify"));
    routes.extend(one(
        "endpoints/gotify",
        |c| show(c, "gotify"),
        |c| update(c, "gotify"),
        |c| remove(c, "gotify"),
        "gotify",
    ));
    routes.extend(family(
        "endpoints/sendmail",
        |c| list(c, "sendmail"),
        |c| create(c, "sendmail"),
        "sendmail",
    ));
    routes.extend(one(
        "endpoints/sendmail",
        |c| show(c, "sendmail"),
        |c| update(c, "sendmail"),
        |c| remove(c, "sendmail"),
        "sendmail",
    ));
    routes.extend(family("endpoints/smtp", |c| list(c, "smtp"), |c| create(c, "smtp"), "smtp"));
    routes.extend(one(
        "endpoints/smtp",
        |c| show(c, "smtp"),
        |c| update(c, "smtp"),
        |c| remove(c, "smtp"),
        "smtp",
    ));
    routes.extend(family("endpoints/webhook", |c| list(c, "webhook"), |c| create(c, "webhook"), "webhook"));
    routes.extend(one(
        "endpoints/webhook",
        |c| show(c, "webhook"),
        |c| update(c, "webhook"),
        |c| remove(c, "webhook"),
        "webhook",
    ));
    routes.extend(family("matchers", |c| list(c, "matcher"), |c| create(c, "matcher"), "matcher"));
    routes.extend(one(
        "matchers",
        |c| show(c, "matcher"),
        |c| update(c, "matcher"),
        |c| remove(c, "matcher"),
        "matcher",
    ));
    routes
}

type Handler = fn(&mut Call<'_>) -> Reply;

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn modify(kind: &str) -> Perm {
    let own = Check::All("/mapping/notifications", &["Mapping.Modify"]);
    if matches!(kind, "sendmail" | "matcher") {
        return Perm::Check(own);
    }
    // Those that talk to a server can be used to look around in the network.
    let network = Check::Or(vec![
        Check::All("/", &["Sys.Audit", "Sys.Modify"]),
        Check::All("/", &["Sys.AccessNetwork"]),
    ]);
    Perm::Check(Check::And(vec![own, network]))
}

fn family(path: &str, list: Handler, create: Handler, kind: &'static str) -> Vec<Route> {
    let path = leak(format!("/cluster/notifications/{path}"));
    vec![
        get(path, on("/mapping/notifications", &["Mapping.Audit"]), vec![], list),
        post(path, modify(kind), fields(kind, true), create),
    ]
}

fn one(path: &str, show: Handler, update: Handler, remove: Handler, kind: &'static str) -> Vec<Route> {
    let path = leak(format!("/cluster/notifications/{path}/{{name}}"));
    let look = Check::Or(vec![
        Check::All("/mapping/notifications", &["Mapping.Modify"]),
        Check::All("/mapping/notifications", &["Mapping.Audit"]),
    ]);
    let doomed = array("delete", text("delete").format(format::configid)).opt();
    let change = [fields(kind, false), vec![doomed, usual::digest()]].concat();
    vec![
        get(path, Perm::Check(look), vec![name()], show),
        put(path, modify(kind), change, update),
        delete(path, on("/mapping/notifications", &["Mapping.Modify"]), vec![name()], remove),
    ]
}

fn name() -> Param {
    text("name").format(format::configid)
}

fn fields(kind: &str, creating: bool) -> Vec<Param> {
    let must = |param: Param| if creating { param } else { param.opt() };
    let list = |key: &'static str| array(key, text(key)).opt();
    let mut fields = vec![name(), text("comment").opt(), flag("disable").opt()];
    fields.extend(match kind {
        "gotify" => vec![must(text("server")), must(text("token"))],
        "sendmail" => {
            vec![list("mailto"), list("mailto-user"), text("from-address").opt(), text("author").opt()]
        }
        "smtp" => vec![
            must(text("server")),
            must(text("from-address")),
            list("mailto"),
            list("mailto-user"),
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
            list("target"),
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

/// Every entity of a kind, those that are built in included.
fn entities(call: &Call<'_>, kind: &str) -> Vec<(String, Map<String, Value>)> {
    let mut all = Vec::new();
    for (name, section) in call.world.cluster.file(FILE).filter(|(_, s)| s.kind == kind) {
        let mut row = section::typed_all(&fields(kind, true), &section.props);
        row.retain(|key, _| !SECRETS.contains(&key.as_str()));
        let built_in = [MAIL.0, DEFAULT_MATCHER.0].contains(&name);
        row.insert("origin".into(), json!(if built_in { "modified-builtin" } else { "user-created" }));
        all.push((name.to_owned(), row));
    }
    let (built_in, about) = if kind == "matcher" { DEFAULT_MATCHER } else { MAIL };
    let known = matches!(kind, "matcher" | "sendmail");
    if known && call.world.cluster.section(FILE, built_in).is_none() {
        let mut row = Map::new();
        row.insert("comment".into(), json!(about));
        row.insert("origin".into(), json!("builtin"));
        if kind == "matcher" {
            row.insert("mode".into(), json!("all"));
            row.insert("target".into(), json!([MAIL.0]));
        } else {
            row.insert("mailto-user".into(), json!(["root@pam"]));
        }
        all.push((built_in.to_owned(), row));
    }
    for (name, row) in &mut all {
        row.insert("name".into(), json!(name));
        if kind == "matcher" {
            row.entry("mode").or_insert(json!("all"));
        }
    }
    all
}

fn targets(call: &mut Call<'_>) -> Reply {
    let mut rows = Vec::new();
    for kind in ["gotify", "sendmail", "smtp", "webhook"] {
        for (name, row) in entities(call, kind) {
            let mut target = json!({ "name": name, "type": kind, "origin": row["origin"] });
            for key in ["comment", "disable"] {
                if let Some(value) = row.get(key) {
                    target[key] = value.clone();
                }
            }
            rows.push(target);
        }
    }
    Ok(Value::Array(rows).into())
}

fn list(call: &mut Call<'_>, kind: &str) -> Reply {
    let rows: Vec<Value> = entities(call, kind).into_iter().map(|(_, row)| Value::Object(row)).collect();
    Ok(Value::Array(rows).into())
}

fn missing(kind: &str, name: &str) -> Refusal {
    let what = if kind == "matcher" { "matcher" } else { "endpoint" };
    fuse(404, format!("{what} '{name}' not found"))
}

fn show(call: &mut Call<'_>, kind: &str) -> Reply {
    let name = call.args.must("name");
    let found = entities(call, kind).into_iter().find(|(own, _)| own == name);
    let Some((_, mut row)) = found else { return Err(missing(kind, name)) };
    row.insert("digest".into(), json!(digest(call)));
    Ok(Value::Object(row).into())
}

fn digest(call: &Call<'_>) -> String {
    // This file's digest is of another kind than the others'.
    let text = section::file_digest(call.world, FILE);
    crate::upload::checksum("sha256", text.as_bytes()).unwrap_or(text)
}

fn create(call: &mut Call<'_>, kind: &str) -> Reply {
    let name = call.args.must("name").to_owned();
    let taken = call.world.cluster.section(FILE, &name).is_some()
        || [MAIL.0, DEFAULT_MATCHER.0].contains(&name.as_str());
    if taken {
        return Err(fuse(400, format!("an entity with the name '{name}' already exists")));
    }
    let props = section::given(call, &["name"]);
    call.world.cluster.file_mut(FILE).insert(name, Section { kind: kind.to_owned(), props });
    Ok(().into())
}

fn update(call: &mut Call<'_>, kind: &str) -> Reply {
    let name = call.args.must("name").to_owned();
    if call.args.text("digest").is_some_and(|given| given != digest(call)) {
        return Err(fuse(400, "detected modified configuration - file changed by other user? Try again."));
    }
    let mut props: Props = match call.world.cluster.section(FILE, &name).filter(|s| s.kind == kind) {
        Some(section) => section.props.clone(),
        None if entities(call, kind).iter().any(|(own, _)| *own == name) => Props::new(),
        None => return Err(missing(kind, &name)),
    };
    for key in call.args.values("delete") {
        props.shift_remove(&key);
    }
    props.extend(section::given(call, &["name", "delete", "digest"]));
    call.world.cluster.file_mut(FILE).insert(name, Section { kind: kind.to_owned(), props });
    Ok(().into())
}

fn remove(call: &mut Call<'_>, kind: &str) -> Reply {
    let name = call.args.must("name").to_owned();
    if !entities(call, kind).iter().any(|(own, _)| *own == name) {
        return Err(missing(kind, &name));
    }
    // Those that are built in go back to how they were.
    call.world.cluster.file_mut(FILE).shift_remove(&name);
    Ok(().into())
}
