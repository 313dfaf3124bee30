//! Jobs of the cluster besides backups: realms that are synchronised, and when a schedule would run. Nothing runs them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::calendar;
use super::index::subdirs;
use super::section::{self, Options};
use crate::api::param::usual;
use crate::api::permission::{Check, on};
use crate::api::{
    Call, Param, Perm, Reply, Route, delete, flag, format, get, int, no, post, put, text, wrong,
};
use crate::world::cluster::Section;

const FILE: &str = "realm-sync";
const OPTIONS: Options = Options {
    required: &["schedule", "scope"],
    optional: &["enabled", "comment", "realm", "enable-new", "remove-vanished"],
};

pub fn routes() -> Vec<Route> {
    let one = "/cluster/jobs/realm-sync/{id}";
    let audit = || on("/", &["Sys.Audit"]);
    let change = || {
        Perm::Check(Check::And(vec![
            Check::All("/access/realm/{realm}", &["Realm.AllocateUser"]),
            Check::All("/access/groups", &["User.Modify"]),
        ]))
    };
    let id = || text("id").format(format::configid);
    let realm = text("realm").format(format::realm).max_len(32).opt();
    let analyze = vec![schedule(), int("iterations").min(1.0).max(100.0).opt(), int("starttime").opt()];
    vec![
        get("/cluster/jobs", Perm::Anyone, vec![], |_| subdirs(&["schedule-analyze", "realm-sync"])),
        get("/cluster/jobs/schedule-analyze", Perm::Anyone, analyze, foresee),
        get("/cluster/jobs/realm-sync", audit(), vec![], list),
        get(one, audit(), vec![id()], show),
        post(one, change(), [fields(), vec![realm]].concat(), create),
        put(one, change(), [fields(), vec![usual::delete().max_len(4096)]].concat(), update),
        delete(one, on("/", &["Sys.Modify"]), vec![id()], remove),
    ]
}

fn schedule() -> Param {
    text("schedule").format(calendar::event).max_len(128)
}

fn fields() -> Vec<Param> {
    vec![
        text("id").format(format::configid).max_len(64),
        schedule(),
        text("comment").max_len(512).opt(),
        flag("enable-new").opt(),
        flag("enabled").opt(),
        text("remove-vanished")
            .pattern("(?:(?:(?:acl|properties|entry);)*(?:acl|properties|entry))|none")
            .opt(),
        text("scope").one_of(&["users", "groups", "both"]).opt(),
    ]
}

/// The next times of a schedule.
fn foresee(call: &mut Call<'_>) -> Reply {
    let mut at = call.args.int("starttime").unwrap_or_else(|| call.world.now());
    let Some(event) = calendar::Event::parse(call.args.must("schedule")) else { return Ok(json!([]).into()) };
    let mut rows = Vec::new();
    for _ in 0..call.args.int("iterations").unwrap_or(10) {
        let Some(next) = event.next(at) else { break };
        let time = Timestamp::from_second(next).unwrap_or_default().to_zoned(TimeZone::UTC);
        rows.push(json!({ "timestamp": next, "utc": time.strftime("%a %b %e %H:%M:%S %Y").to_string() }));
        at = next;
    }
    Ok(Value::Array(rows).into())
}

fn row(section: &Section) -> Value {
    let mut row = section::typed_all(&fields(), &section.props);
    row.insert("type".into(), json!(section.kind));
    Value::Object(row)
}

fn list(call: &mut Call<'_>) -> Reply {
    let now = call.world.now();
    let rows = call.world.cluster.file(FILE).map(|(id, section)| {
        let mut row = row(section);
        row["id"] = json!(id);
        row["last-run"] = Value::Null;
        let event = section.props.get("schedule").and_then(|text| calendar::Event::parse(text));
        if let Some(next) = event.and_then(|event| event.next(now)) {
            row["next-run"] = json!(next);
        }
        row
    });
    Ok(Value::Array(rows.collect()).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    match call.world.cluster.section(FILE, id) {
        Some(section) => Ok(row(section).into()),
        None => Err(wrong("id", format!("No such job '{id}'"))),
    }
}

/// What is refused below the lock of the file comes out as text.
fn below_lock(name: &str, complaint: String) -> crate::api::Refusal {
    no(format!("400 Parameter verification failed.\n{name}: {complaint}"))
}

fn create(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    // All jobs are in one file.
    if ["realm-sync", "backup"].iter().any(|file| call.world.cluster.section(file, &id).is_some()) {
        return Err(no(format!("Job '{id}' already exists")));
    }
    let props = section::given(call, &["id"]);
    OPTIONS.check(&props, true)?;
    let realm = props.get("realm").map_or("", String::as_str);
    match call.world.access.domains.get(realm) {
        None => return Err(below_lock("realm", format!("No such realm '{realm}'"))),
        Some(domain) if !matches!(domain.kind.as_str(), "ldap" | "ad") => {
            return Err(below_lock("realm", "Only LDAP/AD realms can be synced.".to_owned()));
        }
        Some(_) => {}
    }
    call.world.cluster.file_mut(FILE).insert(id, Section { kind: FILE.into(), props });
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    let set = section::given(call, &["id", "delete"]);
    let Some(mut section) = call.world.cluster.section(FILE, &id).cloned() else {
        return Err(no("no such realm-sync job"));
    };
    OPTIONS.remove(&mut section.props, &set, &call.args.list("delete"))?;
    section.props.extend(set);
    call.world.cluster.file_mut(FILE).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    match call.world.cluster.file_mut(FILE).shift_remove(&id) {
        Some(_) => Ok(().into()),
        None => Err(below_lock("id", format!("No such job '{id}'"))),
    }
}
