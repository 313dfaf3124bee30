//! Firewalls of the datacenter, of nodes and of guests.

use serde_json::json;

use crate::client::Site;

const CLUSTER: &str = "/cluster/firewall";

#[tokio::test]
async fn rules_keep_their_order_and_move() {
    let site = Site::single().await;
    let rules = format!("{CLUSTER}/rules");
    for comment in ["first", "second", "third"] {
        let rule = [("type", "in"), ("action", "ACCEPT"), ("comment", comment), ("enable", "1")];
        site.post(&rules, &rule).await.data();
    }
    let order = async || {
        let rows = site.get(&rules).await;
        let rows = rows.as_array().unwrap().clone();
        rows.iter().map(|row| row["comment"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // A new rule comes first.
    assert_eq!(order().await, ["third", "second", "first"]);
    site.put(&format!("{rules}/2"), &[("moveto", "0")]).await.data();
    assert_eq!(order().await, ["first", "third", "second"]);
    let digest = site.get(&format!("{rules}/0")).await["digest"].as_str().unwrap().to_owned();
    site.put(&format!("{rules}/0"), &[("macro", "SSH"), ("digest", &digest)]).await.data();
    let stale = site.put(&format!("{rules}/0"), &[("enable", "0"), ("digest", &digest)]).await;
    assert!(stale.reason.contains("detected modified configuration"), "{stale:?}");
    site.put(&format!("{rules}/0"), &[("delete", "macro")]).await.data();
    assert_eq!(site.get(&format!("{rules}/0")).await.get("macro"), None);
    assert!(site.call("GET", &format!("{rules}/7"), &[]).await.status >= 400);
}

#[tokio::test]
async fn a_rule_that_names_what_is_not_there_is_refused() {
    let site = Site::single().await;
    let rules = format!("{CLUSTER}/rules");
    let rule =
        async |more: (&str, &str)| site.post(&rules, &[("type", "in"), ("action", "ACCEPT"), more]).await;
    assert_eq!(rule(("source", "web")).await.error("source"), "no such alias 'web'");
    assert_eq!(rule(("source", "+set")).await.error("source"), "no such ipset 'set'");
    assert_eq!(rule(("macro", "Nope")).await.error("macro"), "unknown macro 'Nope'");
    let port = rule(("dport", "80")).await;
    assert_eq!(port.error("proto"), "missing property - 'dport' requires this property");
    // Security groups are looked up only when the firewall is put into effect.
    site.post(&rules, &[("type", "group"), ("action", "nope")]).await.data();
}

#[tokio::test]
async fn what_is_used_cannot_be_deleted_and_after_all_nothing_is_left() {
    let site = Site::single().await;
    let before = site.export().await;
    let path = |rest: &str| format!("{CLUSTER}{rest}");
    site.post(&path("/aliases"), &[("name", "web"), ("cidr", "192.0.2.0/24")]).await.data();
    site.post(&path("/ipset"), &[("name", "hosts")]).await.data();
    site.post(&path("/ipset/hosts"), &[("cidr", "198.51.100.1"), ("comment", "one")]).await.data();
    site.post(&path("/groups"), &[("group", "base")]).await.data();
    let rule = [("type", "in"), ("action", "ACCEPT"), ("source", "+hosts"), ("dest", "web")];
    site.post(&path("/groups/base"), &rule).await.data();
    site.post(&path("/rules"), &[("type", "group"), ("action", "base")]).await.data();
    site.put(&path("/options"), &[("enable", "1"), ("policy_in", "DROP")]).await.data();
    assert_eq!(site.get(&path("/options")).await["enable"], 1);

    assert!(site.delete(&path("/ipset/hosts"), &[]).await.reason.contains("is not empty"));
    assert!(site.delete(&path("/groups/base"), &[]).await.reason.contains("is not empty"));
    let refs = site.get(&path("/refs")).await;
    let named: Vec<_> = refs.as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert_eq!(named, [json!("hosts"), json!("web")]);

    site.delete(&path("/rules/0"), &[]).await.data();
    site.delete(&path("/groups/base/0"), &[]).await.data();
    site.delete(&path("/groups/base"), &[]).await.data();
    site.delete(&path("/ipset/hosts/198.51.100.1"), &[]).await.data();
    site.delete(&path("/ipset/hosts"), &[]).await.data();
    site.delete(&path("/aliases/web"), &[]).await.data();
    site.put(&path("/options"), &[("delete", "enable,policy_in")]).await.data();
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn a_guest_has_its_own_firewall_and_takes_it_along() {
    let site = Site::cluster().await;
    site.task("POST", "/nodes/pve1/qemu", &[("vmid", "100"), ("net0", "virtio,bridge=vmbr0")]).await;
    let own = "/nodes/pve1/qemu/100/firewall";
    site.post(&format!("{own}/aliases"), &[("name", "me"), ("cidr", "192.0.2.7")]).await.data();
    site.put(&format!("{own}/options"), &[("enable", "1"), ("ipfilter", "1")]).await.data();
    let rule = [("type", "out"), ("action", "DROP"), ("iface", "net0"), ("source", "guest/me")];
    site.post(&format!("{own}/rules"), &rule).await.data();
    let wrong =
        site.post(&format!("{own}/rules"), &[("type", "in"), ("action", "DROP"), ("iface", "eth0")]).await;
    assert!(wrong.error("iface").contains("net\\d+"), "{wrong:?}");
    assert_eq!(site.get("/cluster/firewall/rules").await, json!([]));

    assert_eq!(
        site.task("POST", "/nodes/pve1/qemu/100/clone", &[("newid", "101"), ("full", "1")]).await,
        "OK"
    );
    let copied = site.get("/nodes/pve1/qemu/101/firewall/rules").await;
    assert_eq!(copied[0]["source"], "guest/me");
    assert_eq!(site.task("DELETE", "/nodes/pve1/qemu/100", &[]).await, "OK");
    site.task("POST", "/nodes/pve1/qemu", &[("vmid", "100")]).await;
    assert_eq!(site.get(&format!("{own}/rules")).await, json!([]));
}
