//! Realms: where users come from.

use std::sync::LazyLock;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::{failed, sync};
use crate::api::args::split_list;
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, int, no, post, put, text,
};
use crate::endpoints::section;
use crate::world::access::Domain;
use crate::world::{Access, World};

pub fn routes() -> Vec<Route> {
    let allocate = || on("/access/realm", &["Realm.Allocate"]);
    let look = on_any("/access/realm", &["Realm.Allocate", "Sys.Audit"]);
    vec![
        get("/access/domains", Perm::World, vec![], list),
        post("/access/domains", allocate(), create_params(), create),
        get("/access/domains/{realm}", look, vec![realm()], show),
        put("/access/domains/{realm}", allocate(), update_params(), update),
        delete("/access/domains/{realm}", allocate(), vec![realm()], remove),
    ]
}

fn realm() -> Param {
    text("realm").format(format::realm).max_len(32)
}

fn create_params() -> Vec<Param> {
    vec![
        realm(),
        text("type").one_of(&["ad", "ldap", "openid", "pam", "pve"]),
        text("acr-values").pattern("[^\\x00-\\x1F\\x7F <>#\"]*").opt(),
        flag("autocreate").opt(),
        text("base_dn").max_len(256).opt(),
        text("bind_dn").max_len(256).opt(),
        text("capath").opt(),
        flag("case-sensitive").opt(),
        text("cert").opt(),
        text("certkey").opt(),
        flag("check-connection").opt(),
        text("client-id").max_len(256).opt(),
        text("client-key").max_len(256).opt(),
        text("comment").max_len(4096).opt(),
        flag("default").opt(),
        text("domain").max_len(256).pattern(r"\S+").opt(),
        text("filter").max_len(2048).opt(),
        text("group_classes").each(attribute).opt(),
        text("group_dn").max_len(256).opt(),
        text("group_filter").max_len(2048).opt(),
        text("group_name_attr").format(attribute).max_len(256).opt(),
        flag("groups-autocreate").opt(),
        text("groups-claim").max_len(256).pattern(r"[A-Za-z0-9.\-_]+").opt(),
        flag("groups-overwrite").opt(),
        text("issuer-url").max_len(256).opt(),
        text("mode").one_of(&["ldap", "ldaps", "ldap+starttls"]).opt(),
        text("password").opt(),
        int("port").min(1.0).max(65_535.0).opt(),
        text("prompt").pattern(r"(?:none|login|consent|select_account|\S+)").opt(),
        flag("query-userinfo").opt(),
        text("scopes").opt(),
        flag("secure").opt(),
        text("server1").format(format::address).max_len(256).opt(),
        text("server2").format(format::address).max_len(256).opt(),
        text("sslversion").one_of(&["tlsv1", "tlsv1_1", "tlsv1_2", "tlsv1_3"]).opt(),
        text("sync-defaults-options").properties(|| &sync::DEFAULTS).opt(),
        text("sync_attributes").pattern(r"\w+=[^,]+(,\s*\w+=[^,]+)*").opt(),
        text("tfa").properties(|| &sync::FACTOR).max_len(128).opt(),
        text("user_attr").max_len(256).pattern(r"\S{2,}").opt(),
        text("user_classes").each(attribute).opt(),
        text("username-claim").opt(),
        flag("verify").opt(),
    ]
}

fn update_params() -> Vec<Param> {
    let mut params = create_params();
    params.retain(|p| p.name != "type" && p.name != "username-claim");
    params.push(usual::delete().max_len(4096));
    params.push(usual::digest());
    params
}

fn attribute(value: &str) -> Result<(), String> {
    let ok = value.starts_with(|c: char| c.is_ascii_alphabetic()) && format::only(value, "-");
    if ok {
        Ok(())
    } else {
        Err(format!("value '{value}' does not look like a simple ldap attribute name\n"))
    }
}

/// Options of every realm.
const EVERY: &[&str] = &["default", "comment"];
const DIRECTORY: &[&str] = &[
    "server1",
    "server2",
    "domain",
    "base_dn",
    "bind_dn",
    "user_attr",
    "port",
    "secure",
    "sslversion",
    "tfa",
    "verify",
    "capath",
    "cert",
    "certkey",
    "filter",
    "sync_attributes",
    "user_classes",
    "group_dn",
    "group_name_attr",
    "group_filter",
    "group_classes",
    "sync-defaults-options",
    "mode",
    "case-sensitive",
];
const OPENID: &[&str] = &[
    "issuer-url",
    "client-id",
    "client-key",
    "autocreate",
    "username-claim",
    "groups-claim",
    "groups-autocreate",
    "groups-overwrite",
    "prompt",
    "scopes",
    "acr-values",
    "query-userinfo",
];

fn takes(kind: &str, option: &str) -> bool {
    EVERY.contains(&option)
        || match kind {
            "ldap" => option != "domain" && DIRECTORY.contains(&option),
            "ad" => DIRECTORY.contains(&option),
            "openid" => OPENID.contains(&option),
            _ => option == "tfa",
        }
}

fn required(kind: &str) -> &'static [&'static str] {
    match kind {
        "ldap" => &["server1", "base_dn", "user_attr"],
        "ad" => &["server1", "domain"],
        "openid" => &["issuer-url", "client-id"],
        _ => &[],
    }
}

fn digest(world: &World) -> String {
    let files: Vec<(String, &str, IndexMap<String, String>)> = world
        .access
        .domains
        .iter()
        .map(|(id, d)| {
            (d.kind.clone(), id.as_str(), d.fields.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
        })
        .collect();
    section::digest(files.iter().map(|(kind, id, props)| (kind.as_str(), *id, props)))
}

fn list(call: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = call
        .world
        .access
        .domains
        .iter()
        .map(|(realm, domain)| {
            let mut row = json!({ "realm": realm, "type": domain.kind });
            if let Some(comment) = domain.fields.get("comment") {
                row["comment"] = json!(comment);
            }
            if domain.fields.get("default").is_some_and(|d| d == "1") {
                row["default"] = json!(1);
            }
            if let Some(tfa) = domain.fields.get("tfa") {
                row["tfa"] = json!(tfa.split(',').find_map(|p| p.strip_prefix("type=")).unwrap_or(tfa));
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    static PARAMS: LazyLock<Vec<Param>> = LazyLock::new(create_params);
    let realm = call.args.must("realm");
    let Some(domain) = call.world.access.domains.get(realm) else {
        return Err(no(format!("domain '{realm}' does not exist")));
    };
    let mut data = json!({ "type": domain.kind, "digest": digest(call.world) });
    for (key, value) in &domain.fields {
        data[key] = section::typed(&PARAMS, key, value);
    }
    if domain.kind == "pam" {
        data["plugin"] = json!("PVE::Auth::PAM");
    }
    Ok(data.into())
}

/// The options that were given, if this kind of realm has them.
fn given(call: &Call<'_>, kind: &str, creating: bool) -> Result<Vec<(String, String)>, String> {
    let mut options = Vec::new();
    for (key, value) in call.args.texts() {
        if ["realm", "type", "password", "check-connection", "digest", "delete"].contains(&key) {
            continue;
        }
        if !creating && key == "username-claim" {
            return Err(format!("can't change value of fixed parameter '{key}'"));
        }
        if !takes(kind, key) {
            return Err(format!("unexpected property '{key}'"));
        }
        let value = match key {
            "sync-defaults-options" => sync::DEFAULTS.print(&sync::DEFAULTS.read(value)),
            _ => value.to_owned(),
        };
        options.push((key.to_owned(), value));
    }
    Ok(options)
}

/// Only one realm is the default.
fn undo_default(access: &mut Access) {
    for domain in access.domains.values_mut() {
        domain.fields.remove("default");
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let fail = |text: String| failed("add auth server", text);
    let (realm, kind) = (call.args.must("realm").to_owned(), call.args.must("type").to_owned());
    if call.world.access.domains.contains_key(&realm) {
        return Err(fail(format!("domain '{realm}' already exists")));
    }
    if realm == "pam" || realm == "pve" {
        return Err(fail(format!("unable to use reserved name '{realm}'")));
    }
    if kind == "pam" || kind == "pve" {
        return Err(fail(format!("unable to create builtin type '{kind}'")));
    }
    check_connection_param(call, &kind).map_err(fail)?;
    let options = given(call, &kind, true).map_err(fail)?;
    if let Some(missing) = required(&kind).iter().find(|key| !options.iter().any(|(k, _)| k == *key)) {
        return Err(fail(format!("missing value for required option '{missing}'")));
    }
    if call.args.is_set("default") {
        undo_default(&mut call.world.access);
    }
    // An empty option has no line in the file.
    let fields = options.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    call.world.access.domains.insert(realm, Domain { kind, fields });
    Ok(().into())
}

fn check_connection_param(call: &Call<'_>, kind: &str) -> Result<(), String> {
    if call.args.has("check-connection") && !matches!(kind, "ldap" | "ad") {
        let text = "'check-connection' parameter can only be set for realms of type 'ldap' or 'ad'";
        return Err(text.to_owned());
    }
    Ok(())
}

fn update(call: &mut Call<'_>) -> Reply {
    let fail = |text: String| failed("update auth server", text);
    call.check_digest(&digest(call.world)).map_err(|refusal: Refusal| fail(refusal.text()))?;
    let realm = call.args.must("realm").to_owned();
    let Some(domain) = call.world.access.domains.get(&realm).cloned() else {
        let source = "at /usr/share/perl5/PVE/API2/Domains.pm line 261.";
        return Err(fail(format!("cannot lookup undefined type! {source}")));
    };
    check_connection_param(call, &domain.kind).map_err(fail)?;
    let unset = call.args.text("delete").unwrap_or_default();
    let nothing =
        call.args.names().all(|name| matches!(name, "realm" | "digest" | "delete" | "check-connection"));
    if unset.is_empty() && nothing {
        return Err(fail("no options specified".to_owned()));
    }
    let mut fields = domain.fields;
    for key in split_list(unset) {
        fields.remove(key);
    }
    fields.extend(given(call, &domain.kind, false).map_err(fail)?);
    if let Some(missing) = required(&domain.kind).iter().find(|key| !fields.contains_key(**key)) {
        let text = format!("section '{realm}' - missing value for required option '{missing}'");
        return Err(fail(text));
    }
    if call.args.is_set("default") {
        undo_default(&mut call.world.access);
    }
    fields.retain(|_, value| !value.is_empty());
    if !fields.contains_key("comment") {
        fields.extend(built_in_comment(&realm).map(|text| ("comment".to_owned(), text)));
    }
    if let Some(domain) = call.world.access.domains.get_mut(&realm) {
        domain.fields = fields;
    }
    Ok(().into())
}

/// The comment that the realms of every installation have.
fn built_in_comment(realm: &str) -> Option<String> {
    Access::fresh().domains.get(realm).and_then(|domain| domain.fields.get("comment").cloned())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let realm = call.args.must("realm").to_owned();
    if call.world.access.domains.remove(&realm).is_none() {
        let text = format!("authentication domain '{realm}' does not exist");
        return Err(failed("delete auth server", text));
    }
    // Those that every installation has come back by themselves.
    if let Some(domain) = Access::fresh().domains.remove(&realm) {
        call.world.access.domains.insert(realm, domain);
    }
    Ok(().into())
}
