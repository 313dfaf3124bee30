//! Realms: where users come from.

use serde_json::{Value, json};

use super::{Datacenter, FILE, PBS, assert_same};

pub(crate) const REALMS: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
realms:
  corp: {type: ldap, server: ldap.example.test, mode: ldaps, verify: true, baseDn: "dc=example,dc=test", userAttribute: uid, bindDn: "cn=pve,dc=example,dc=test", password: {env: PBS_PASSWORD}, comment: everybody}
  sso: {type: openid, issuerUrl: "https://sso.example.test", clientId: pve, clientKey: {env: PBS_PASSWORD}, usernameClaim: email}
realmSyncJobs:
  people: {realm: corp, schedule: hourly, scope: users, removeVanished: [acl, entry], comment: the staff}
users:
  ann@corp: {}
"#;

#[test]
fn realms_are_made_kept_and_taken_away() {
    let dc = Datacenter::new(REALMS);
    let before = dc.export();
    let applied = dc.apply();
    assert!(!applied.contains(PBS), "{applied}");
    dc.assert_settled();
    for (path, bytes) in dc.repo.all_files() {
        assert!(!String::from_utf8_lossy(&bytes).contains(PBS), "`{}` holds a secret", path.display());
    }
    for (from, to) in [
        ("mode: ldaps, verify: true", "mode: ldap+starttls, port: 1389"),
        (", comment: everybody", ", filter: \"(mail=*)\", groupDn: \"ou=groups,dc=example,dc=test\""),
        ("password: {env: PBS_PASSWORD}", "password: {env: ANN_PASSWORD}"),
        ("clientId: pve", "clientId: other, scopes: email, autocreate: true"),
        ("usernameClaim: email", "usernameClaim: subject"),
        ("schedule: hourly, scope: users", "schedule: \"02:00\", scope: both"),
        ("removeVanished: [acl, entry], comment: the staff", "enableNew: false, enabled: false"),
    ] {
        dc.assert_edited(from, to);
    }
    dc.change("PUT", "/access/domains/corp", json!({"server1": "other.example.test"}));
    let job = json!({"schedule": "03:00", "scope": "groups", "remove-vanished": "properties"});
    dc.change("PUT", "/cluster/jobs/realm-sync/people", job);
    let drift = dc.strata().run(&["drift"]).all();
    assert!(drift.contains("dc/realm/corp") && drift.contains("dc/realmsync/people"), "{drift}");
    dc.apply();
    dc.assert_settled();
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.export(), &before, "destroy leaves the datacenter as it was");
}

#[test]
fn a_realm_that_users_log_in_by_is_not_deleted() {
    let dc = Datacenter::new(REALMS);
    dc.apply();
    dc.change("POST", "/access/users", json!({"userid": "bob@corp"}));
    let before = dc.export();
    let refused = dc.strata().run(&["destroy", "--yes"]).code(3).all();
    assert!(refused.contains("the login of `bob@corp`") && !refused.contains("ann@corp`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.change("DELETE", "/access/users/bob@corp", json!({}));
    dc.strata().run(&["destroy", "--yes"]).ok();
}

#[test]
fn realms_of_others_and_built_in_ones_stay_as_they_are() {
    let dc = Datacenter::new(REALMS);
    let theirs =
        json!({"realm": "sso", "type": "openid", "issuer-url": "https://x.example.test", "client-id": "x"});
    dc.change("POST", "/access/domains", theirs);
    let before = dc.export();
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("realm `sso`"), "{refused}");
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.repo.edit(FILE, "  sso: {type: openid,", "  pve: {adopt: true, type: openid,");
    let refused = dc.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("realm `pve`") && refused.contains("every installation has it"), "{refused}");
}

#[test]
fn a_kill_while_a_realm_is_made_loses_nothing() {
    let undisturbed = Datacenter::new(REALMS);
    undisturbed.apply();
    let expected = undisturbed.export();
    for kind in ["hold-before", "hold-after"] {
        let dc = Datacenter::new(REALMS);
        let fault = json!({"kind": kind, "method": "POST", "path": "/access/domains"});
        let killed =
            dc.strata().kill_at(&dc.sim.control(), &fault, &["apply", "--yes", "--parallelism", "1"]);
        assert!(killed.struck_or_good(kind));
        dc.apply();
        assert_same(&dc.export(), &expected, kind);
        dc.assert_settled();
    }
    assert_ne!(expected["domains"]["corp"], Value::Null);
}

#[test]
fn wrong_realms_are_named_before_anything_is_done() {
    for (from, to, told) in [
        ("type: ldap, server: ldap.example.test,", "type: ldap,", "has no `server`"),
        ("type: openid,", "type: openid, bindDn: x,", "has no `bindDn`"),
        ("people: {realm: corp,", "people: {realm: sso,", "has no directory"),
    ] {
        let dc = Datacenter::new(&REALMS.replacen(from, to, 1));
        let refused = dc.strata().run(&["validate"]);
        assert!(refused.code != 0 && refused.all().contains(told), "{to}:\n{}", refused.all());
    }
}
