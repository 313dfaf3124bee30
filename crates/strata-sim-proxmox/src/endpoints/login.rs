//! Getting a ticket, and the list of realms one can log in to.

use serde_json::{Map, Value, json};

use crate::api::{Call, Perm, Refusal, Reply, Route, flag, format, get, post, text};
use crate::auth;

pub fn routes() -> Vec<Route> {
    let ticket = vec![
        text("username").max_len(64),
        text("realm").format(format::realm).max_len(32).opt(),
        text("password"),
        text("otp").opt(),
        text("path").max_len(64).needs("privs").opt(),
        text("privs").max_len(64).needs("path").opt(),
        text("tfa-challenge").opt(),
        flag("new-format").opt(),
    ];
    vec![
        get("/access/ticket", Perm::World, vec![], |_| Ok(().into())),
        post("/access/ticket", Perm::World, ticket, create_ticket),
    ]
}

fn failure() -> Refusal {
    Refusal::Error { status: 401, message: "authentication failure\n".to_owned(), errors: None }
}

fn create_ticket(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("username");
    let user = match call.args.text("realm") {
        Some(realm) => format!("{name}@{realm}"),
        None => name.to_owned(),
    };
    if !auth::verify_password(call.world, &user, call.args.must("password")) {
        return Err(failure());
    }
    let mut data = json!({
        "username": user,
        "ticket": auth::make_ticket(call.world, &user),
        "CSRFPreventionToken": auth::make_csrf(call.world, &user),
        "cap": capabilities(call, &user),
    });
    if !call.world.cluster.name.is_empty() {
        data["clustername"] = json!(call.world.cluster.name);
    }
    Ok(data.into())
}

/// What the web interface needs to know to grey out buttons.
fn capabilities(call: &Call<'_>, user: &str) -> Value {
    const AREAS: &[(&str, &str, &[&str])] = &[
        ("vms", "/vms", &["VM.", "Permissions.Modify"]),
        ("access", "/access", &["User.", "Group.", "Permissions.Modify"]),
        ("storage", "/storage", &["Datastore.", "Permissions.Modify"]),
        ("nodes", "/nodes", &["Sys.", "Permissions.Modify"]),
        ("sdn", "/sdn", &["SDN.", "Permissions.Modify"]),
        ("dc", "/", &["Sys.Audit", "Sys.Modify", "SDN."]),
        ("mapping", "/mapping", &["Mapping.", "Permissions.Modify"]),
    ];
    let mut cap = Map::new();
    for (area, path, prefixes) in AREAS {
        let mut privs = Map::new();
        let listed = call.world.access.acl.keys().map(String::as_str);
        let below = listed.filter(|p| *path != "/" && p.starts_with(path));
        for path in std::iter::once(*path).chain(below) {
            for (privilege, _) in call.world.permissions(user, path) {
                if prefixes.iter().any(|prefix| privilege.starts_with(prefix)) {
                    privs.insert(privilege, json!(1));
                }
            }
        }
        cap.insert((*area).to_owned(), Value::Object(privs));
    }
    Value::Object(cap)
}
