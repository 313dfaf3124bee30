//! Users, roles, tokens, pools, and what they may do.

use serde_json::json;

use crate::client::Site;

/// A token of user bob, and what it takes to call with it.
async fn bob(site: &Site) -> String {
    site.post("/access/users", &[("userid", "bob@pve"), ("password", "secret12")]).await.data();
    let token = site.post("/access/users/bob@pve/token/ci", &[("privsep", "0")]).await;
    format!("{}={}", token.data()["full-tokenid"].as_str().unwrap(), token.data()["value"].as_str().unwrap())
}

#[tokio::test]
async fn a_user_sees_what_a_role_shows() {
    let site = Site::single().await;
    for vmid in ["100", "101"] {
        site.task("POST", "/nodes/pve/qemu", &[("vmid", vmid)]).await;
    }
    let token = bob(&site).await;
    let config = "/nodes/pve/qemu/100/config";
    let refused = site.call_as(&token, "GET", config, &[]).await;
    assert_eq!(
        (refused.status, refused.reason.as_str()),
        (403, "Permission check failed (/vms/100, VM.Audit)")
    );
    site.post("/access/roles", &[("roleid", "Look"), ("privs", "VM.Audit VM.PowerMgmt")]).await.data();
    let acl = [("path", "/vms/100"), ("users", "bob@pve"), ("roles", "Look")];
    site.put("/access/acl", &acl).await.data();
    site.call_as(&token, "GET", config, &[]).await.data();
    let list = site.call_as(&token, "GET", "/nodes/pve/qemu", &[]).await;
    assert_eq!(list.data().as_array().unwrap().len(), 1);
    let write = site.call_as(&token, "PUT", config, &[("memory", "64")]).await;
    assert_eq!(write.status, 403);
    let start = site.call_as(&token, "POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    assert_eq!(site.wait(start.data().as_str().unwrap()).await, "OK");

    let rights = site.call_as(&token, "GET", "/access/permissions", &[("path", "/vms/100")]).await;
    assert_eq!(rights.data(), &json!({ "/vms/100": { "VM.Audit": 1, "VM.PowerMgmt": 1 } }));
    site.put("/access/roles/Look", &[("privs", "VM.Audit")]).await.data();
    let stop = site.call_as(&token, "POST", "/nodes/pve/qemu/100/status/stop", &[]).await;
    assert_eq!(stop.status, 403);
    let removed: Vec<_> = acl.into_iter().chain([("delete", "1")]).collect();
    site.put("/access/acl", &removed).await.data();
    assert_eq!(site.call_as(&token, "GET", config, &[]).await.status, 403);
}

#[tokio::test]
async fn a_separated_token_has_at_most_what_its_user_has() {
    let site = Site::single().await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100")]).await;
    site.post("/access/users", &[("userid", "bob@pve")]).await.data();
    let token = site.post("/access/users/bob@pve/token/ci", &[]).await;
    let secret = format!("bob@pve!ci={}", token.data()["value"].as_str().unwrap());
    let config = "/nodes/pve/qemu/100/config";
    let grant = async |who: (&str, &str)| {
        site.put("/access/acl", &[("path", "/vms"), ("roles", "PVEAuditor"), who]).await.data();
    };
    grant(("users", "bob@pve")).await;
    assert_eq!(site.call_as(&secret, "GET", config, &[]).await.status, 403);
    grant(("tokens", "bob@pve!ci")).await;
    site.call_as(&secret, "GET", config, &[]).await.data();
    site.put("/access/users/bob@pve", &[("enable", "0")]).await.data();
    assert_eq!(site.call_as(&secret, "GET", config, &[]).await.status, 401);
}

#[tokio::test]
async fn a_group_gives_its_rights_to_its_members() {
    let site = Site::single().await;
    let before = site.export().await;
    let token = bob(&site).await;
    site.post("/access/groups", &[("groupid", "ops")]).await.data();
    site.put("/access/acl", &[("path", "/"), ("groups", "ops"), ("roles", "PVEAuditor")]).await.data();
    let status = "/nodes/pve/status";
    assert_eq!(site.call_as(&token, "GET", status, &[]).await.status, 403);
    site.put("/access/users/bob@pve", &[("groups", "ops")]).await.data();
    site.call_as(&token, "GET", status, &[]).await.data();
    assert_eq!(site.get("/access/groups/ops").await["members"], json!(["bob@pve"]));
    site.delete("/access/users/bob@pve", &[]).await.data();
    assert_eq!(site.call_as(&token, "GET", status, &[]).await.status, 401);
    site.delete("/access/groups/ops", &[]).await.data();
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn a_secret_is_told_once_and_never_exported() {
    let site = Site::single().await;
    let token = bob(&site).await;
    let secret = token.split_once('=').unwrap().1;
    assert!(!site.export().await.to_string().contains(secret));
    let seen = site.get("/access/users/bob@pve/token/ci").await;
    assert_eq!(seen.get("value"), None);
    let again = site.post("/access/users/bob@pve/token/ci", &[]).await;
    assert_eq!(again.error("tokenid"), "Token already exists.");
}

#[tokio::test]
async fn built_in_roles_and_realms_stay() {
    let site = Site::single().await;
    assert!(site.delete("/access/roles/PVEAdmin", &[]).await.status >= 400);
    assert!(site.put("/access/roles/PVEAdmin", &[("privs", "VM.Audit")]).await.status >= 400);
    site.delete("/access/domains/pam", &[]).await.data();
    assert!(site.get("/access/domains").await.to_string().contains("pam"));
    let unknown = site.post("/access/roles", &[("roleid", "R"), ("privs", "VM.Nope")]).await;
    assert!(unknown.error("privs").contains("VM.Nope"), "{unknown:?}");
}

#[tokio::test]
async fn a_pool_holds_guests_and_gives_rights_on_them() {
    let site = Site::single().await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100")]).await;
    let token = bob(&site).await;
    site.post("/pools", &[("poolid", "prod")]).await.data();
    let acl = [("path", "/pool/prod"), ("users", "bob@pve"), ("roles", "PVEVMUser")];
    site.put("/access/acl", &acl).await.data();
    let config = "/nodes/pve/qemu/100/config";
    assert_eq!(site.call_as(&token, "GET", config, &[]).await.status, 403);
    site.put("/pools", &[("poolid", "prod"), ("vms", "100"), ("storage", "local")]).await.data();
    site.call_as(&token, "GET", config, &[]).await.data();
    let full = site.delete("/pools", &[("poolid", "prod")]).await;
    assert_eq!(full.reason, "delete pool failed: pool 'prod' is not empty (contains VM 100)");
    let create = [("vmid", "101"), ("pool", "prod")];
    assert_eq!(site.task("POST", "/nodes/pve/qemu", &create).await, "OK");
    let members = site.call("GET", "/pools", &[("poolid", "prod")]).await.data()[0]["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 3);
    for vmid in ["100", "101"] {
        site.task("DELETE", &format!("/nodes/pve/qemu/{vmid}"), &[]).await;
    }
    let members = site.call("GET", "/pools", &[("poolid", "prod")]).await.data()[0]["members"].clone();
    assert_eq!(members.as_array().unwrap().len(), 1);
}
