//! Name servers that are told of guests.

use serde_json::{Map, Value, json};

use super::{check_lock, digest, file, ids, lock_token, reach};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, format, get, int, no, post, put, text};
use crate::endpoints::section::{self, Options};
use crate::world::cluster::Section;

const PART: &str = "dns";
const OPTIONS: Options =
    Options { required: &["url", "key"], optional: &["ttl", "reversemaskv6", "fingerprint"] };

pub fn routes() -> Vec<Route> {
    let (all, one) = ("/cluster/sdn/dns", "/cluster/sdn/dns/{dns}");
    let allocate = || on("/sdn/dns", &["SDN.Allocate"]);
    let kind = text("type").one_of(&["powerdns"]).format(format::configid);
    let must = vec![text("key"), text("url"), int("reversev6mask").opt(), kind, lock_token()];
    let edit = vec![
        text("key").opt(),
        text("url").opt(),
        usual::delete().max_len(4096),
        usual::digest(),
        lock_token(),
    ];
    vec![
        get(all, Perm::Anyone, vec![text("type").one_of(&["powerdns"]).opt()], list),
        post(all, allocate(), [fields(), must].concat(), create),
        get(one, on("/sdn/dns/{dns}", &["SDN.Allocate"]), vec![ids::dns()], show),
        put(one, allocate(), [fields(), edit].concat(), update),
        delete(one, allocate(), vec![ids::dns(), lock_token()], remove),
    ]
}

fn fields() -> Vec<Param> {
    vec![ids::dns(), ids::fingerprint(), int("reversemaskv6").opt(), int("ttl").opt()]
}

fn missing(id: &str) -> Refusal {
    no(format!("sdn '{id}' does not exist"))
}

fn row(call: &Call<'_>, id: &str, section: &Section) -> Value {
    let mut row: Map<String, Value> = section::typed_all(&fields(), &section.props);
    row.insert("type".into(), json!(section.kind));
    row.insert("dns".into(), json!(id));
    row.insert("digest".into(), json!(digest(call.world, PART)));
    Value::Object(row)
}

fn list(call: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = call
        .world
        .cluster
        .file(&file(PART))
        .filter(|(id, _)| call.check_any(&format!("/sdn/dns/{id}"), &["SDN.Audit", "SDN.Allocate"]).is_ok())
        .map(|(id, section)| row(call, id, section))
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("dns");
    match call.world.cluster.section(&file(PART), id) {
        Some(section) => Ok(row(call, id, section).into()),
        None => Err(missing(id)),
    }
}

fn verify(call: &Call<'_>, section: &Section) -> Result<(), Refusal> {
    reach(call, section.props.get("url").map_or("", String::as_str), "dns api error")
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create sdn dns object failed";
    let fail = section::failed(WHAT);
    let (id, kind) = (call.args.must("dns").to_owned(), call.args.must("type").to_owned());
    let props = section::given(call, &["dns", "type", "lock-token"]);
    OPTIONS.check(&props, true)?;
    check_lock(call, WHAT)?;
    if call.world.cluster.section(&file(PART), &id).is_some() {
        return Err(fail(no(format!("sdn dns object ID '{id}' already defined"))));
    }
    let section = Section { kind, props };
    verify(call, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file(PART)).insert(id, section);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "update sdn dns object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("dns").to_owned();
    check_lock(call, WHAT)?;
    call.check_digest(&digest(call.world, PART)).map_err(&fail)?;
    let Some(mut section) = call.world.cluster.section(&file(PART), &id).cloned() else {
        return Err(fail(missing(&id)));
    };
    let set = section::given(call, &["dns", "delete", "digest", "lock-token"]);
    OPTIONS.check(&set, false).map_err(&fail)?;
    OPTIONS.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    verify(call, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file(PART)).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "delete sdn dns object failed";
    let id = call.args.must("dns").to_owned();
    check_lock(call, WHAT)?;
    if call.world.cluster.section(&file(PART), &id).is_none() {
        return Err(section::failed(WHAT)(missing(&id)));
    }
    call.world.cluster.file_mut(&file(PART)).shift_remove(&id);
    Ok(().into())
}
