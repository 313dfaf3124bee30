//! Realms that are synchronised with their directory. No directory is simulated, so nobody answers.

use std::sync::LazyLock;

use crate::api::permission::Check;
use crate::api::{Call, Param, Perm, Properties, Reply, Route, flag, format, no, post, text, wrong};
use crate::task::{Step, work};

const VANISHED: &str = "(?:(?:(?:acl|properties|entry);)*(?:acl|properties|entry))|none";

pub fn routes() -> Vec<Route> {
    let perm = Perm::Check(Check::And(vec![
        Check::All("/access/realm/{realm}", &["Realm.AllocateUser"]),
        Check::All("/access/groups", &["User.Modify"]),
    ]));
    let own = vec![text("realm").format(format::realm).max_len(32), flag("dry-run").opt()];
    vec![post("/access/domains/{realm}/sync", perm, [own, options()].concat(), sync)]
}

/// How a realm is synchronised. The schema says they are needed, and yet a realm may have them instead.
fn options() -> Vec<Param> {
    vec![
        flag("enable-new").opt(),
        flag("full").opt(),
        flag("purge").opt(),
        text("remove-vanished").pattern(VANISHED).opt(),
        text("scope").one_of(&["users", "groups", "both"]).opt(),
    ]
}

/// The same as one option of a realm.
pub static DEFAULTS: LazyLock<Properties> = LazyLock::new(|| Properties::new(options()));

/// The second factor that a realm asks for.
pub static FACTOR: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([
        text("type").one_of(&["yubico", "oath"]),
        text("id").opt(),
        text("key").opt(),
        text("url").opt(),
        text("digits").opt(),
        text("step").opt(),
    ])
});

fn sync(call: &mut Call<'_>) -> Reply {
    let realm = call.args.must("realm").to_owned();
    let Some(domain) = call.world.access.domains.get(&realm) else {
        return Err(wrong("realm", "Realm does not exist."));
    };
    let kind = &domain.kind;
    if !matches!(kind.as_str(), "ldap" | "ad") {
        return Err(no(format!("Cannot sync realm type '{kind}'! Only LDAP/AD realms can be synced.")));
    }
    let defaults = DEFAULTS.read(domain.fields.get("sync-defaults-options").map_or("", String::as_str));
    if call.args.text("scope").or(defaults.get("scope")).is_none() {
        let text = "Not passed as parameter and not defined in realm default sync options.";
        return Err(wrong("scope", text));
    }
    let server = domain.fields.get("server1").cloned().unwrap_or_default();
    let dry = call.args.is_set("dry-run");
    let (node, id) = (call.world.nodes.keys().next().cloned().unwrap_or_default(), realm.clone());
    let work = work(move |world, job| -> Result<Step, String> {
        let trial = if dry { "(dry test run) " } else { "" };
        job.log(world, format!("{trial}starting sync for realm {realm}"));
        Err(format!("unable to connect to server '{server}': no route to host"))
    });
    let task = if dry { "auth-realm-sync-test" } else { "auth-realm-sync" };
    Ok(call.spawn(&node, task, id, work).into())
}
