//! Certificates of hosts: those that somebody brings along, and what is needed to order them.

use serde_json::{Value, json};
use strata_testkit::Strata;

use super::{Datacenter, FILE, assert_same, without_settings};

pub(crate) const CHAIN: &str = include_str!("../../../../strata-talos/src/pki/pair/p256.crt");
pub(crate) const KEY: &str = include_str!("../../../../strata-talos/src/pki/pair/p256.key");
const OTHER_CHAIN: &str = include_str!("../../../../strata-talos/src/pki/pair/ed25519.crt");
const OTHER_KEY: &str = include_str!("../../../../strata-talos/src/pki/pair/ed25519.key");

const OWN: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
hosts:
  pve1: {certificate: {chain: {file: pve1.crt}, key: {env: HOST_KEY}}}
"#;

/// Accounts need a login, and are in [`accounts_need_root`].
pub(crate) const ACME: &str = r#"
metadata: {name: dc, environment: test}
proxmox: {target: pve}
acme:
  plugins:
    zone: {api: cf, credentials: {CF_Token: {env: PBS_PASSWORD}, CF_Zone: {env: ANN_PASSWORD}}, nodes: [pve1, pve2], validationDelay: 60}
    spare: {api: hetzner, enabled: false}
hosts:
  pve1: {acme: {domains: [{domain: pve1.example.test, plugin: zone}, {domain: pve.example.test, plugin: zone, alias: proof.example.test}]}}
  pve2: {acme: {domains: [pve2.example.test]}}
"#;

fn with_certificate() -> Datacenter {
    let dc = Datacenter::new(OWN);
    dc.repo.write("pve1.crt", CHAIN);
    dc
}

impl Datacenter {
    fn holding(&self, key: &str) -> Strata {
        self.strata().env("HOST_KEY", key)
    }

    fn served(&self) -> Value {
        let rows = self.get("/nodes/pve1/certificates/info");
        let own = rows.as_array().unwrap().iter().find(|row| row["filename"] == "pveproxy-ssl.pem");
        own.map(|row| row["subject"].clone()).unwrap_or_default()
    }
}

#[test]
fn a_certificate_is_given_kept_and_taken_away() {
    let dc = with_certificate();
    let before = dc.export();
    dc.holding(KEY).run(&["validate"]).ok();
    let plan = dc.holding(KEY).run(&["plan"]).ok().all();
    assert!(plan.contains("+ dc/certificate/pve1") && plan.contains("needs the new one"), "{plan}");
    let applied = dc.holding(KEY).run(&["apply", "--yes"]).ok().all();
    assert!(!applied.contains("PRIVATE KEY"), "{applied}");
    assert_eq!(dc.served(), "/CN=pve1.example.test");
    dc.holding(KEY).run(&["plan", "--detailed-exitcode"]).code(0);
    for (path, bytes) in dc.repo.all_files() {
        let line = KEY.lines().nth(1).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(line), "`{}` holds the key", path.display());
    }
    // Somebody gives it another one.
    let other = json!({"certificates": OTHER_CHAIN, "key": OTHER_KEY, "force": 1});
    dc.change("POST", "/nodes/pve1/certificates/custom", other);
    let drift = dc.holding(KEY).run(&["drift"]).all();
    assert!(drift.contains("dc/certificate/pve1"), "{drift}");
    dc.holding(KEY).run(&["apply", "--yes"]).ok();
    dc.holding(KEY).run(&["plan", "--detailed-exitcode"]).code(0);
    // It is renewed in the source.
    dc.repo.write("pve1.crt", OTHER_CHAIN);
    dc.holding(OTHER_KEY).run(&["apply", "--yes"]).ok();
    dc.holding(OTHER_KEY).run(&["plan", "--detailed-exitcode"]).code(0);
    dc.holding(OTHER_KEY).run(&["destroy", "--yes"]).ok();
    assert_same(&dc.export(), &before, "Proxmox' own certificate is served again");
}

#[test]
fn a_certificate_that_does_not_match_its_key_is_refused_in_the_plan() {
    let dc = with_certificate();
    let before = dc.export();
    for (key, told) in [(OTHER_KEY, "was made for another key"), (CHAIN, "no private key")] {
        for verb in [&["plan"][..], &["apply", "--yes"]] {
            let refused = dc.holding(key).run(verb);
            assert!(refused.code != 0 && refused.all().contains(told), "{told}:\n{}", refused.all());
        }
    }
    dc.repo.write("pve1.crt", "nothing");
    let refused = dc.holding(KEY).run(&["plan"]);
    assert!(refused.code != 0 && refused.all().contains("no certificate in PEM"), "{}", refused.all());
    assert_same(&dc.export(), &before, "nothing is touched");
}

#[test]
fn the_certificate_of_somebody_else_stays() {
    let dc = with_certificate();
    let other = json!({"certificates": OTHER_CHAIN, "key": OTHER_KEY});
    dc.change("POST", "/nodes/pve1/certificates/custom", other);
    let refused = dc.holding(KEY).run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("certificate of `pve1`") && refused.contains("`adopt: true`"), "{refused}");
    dc.repo.edit(FILE, "{certificate: {chain", "{certificate: {adopt: true, chain");
    dc.holding(KEY).run(&["apply", "--yes"]).ok();
    dc.holding(KEY).run(&["plan", "--detailed-exitcode"]).code(0);
}

#[test]
fn a_kill_while_a_certificate_is_given_loses_nothing() {
    for kind in ["hold-before", "hold-after"] {
        let dc = with_certificate();
        let fault = json!({"kind": kind, "method": "POST", "path": "/nodes/pve1/certificates/custom"});
        let killed = dc.holding(KEY).kill_at(&dc.sim.control(), &fault, &["apply", "--yes"]);
        assert!(killed.struck_or_good(kind));
        dc.holding(KEY).run(&["apply", "--yes"]).ok();
        assert_eq!(dc.served(), "/CN=pve1.example.test", "{kind}");
        dc.holding(KEY).run(&["plan", "--detailed-exitcode"]).code(0);
    }
}

#[test]
fn plugins_and_domains_are_made_kept_and_taken_away() {
    let dc = Datacenter::new(ACME);
    let before = dc.export();
    dc.apply();
    dc.assert_settled();
    let plugin = dc.get("/cluster/acme/plugins/zone");
    assert_eq!((&plugin["api"], &plugin["validation-delay"]), (&json!("cf"), &json!(60)));
    assert!(plugin["data"].as_str().unwrap().starts_with("CF_Token=MARKER"), "{plugin}");
    let config = dc.get("/nodes/pve1/config");
    assert_eq!(config["acmedomain1"], "domain=pve.example.test,plugin=zone,alias=proof.example.test");
    for (from, to) in [
        ("validationDelay: 60", "validationDelay: 90"),
        ("nodes: [pve1, pve2], ", ""),
        ("CF_Zone: {env: ANN_PASSWORD}", "CF_Zone: {env: PBS_PASSWORD}"),
        ("enabled: false", "enabled: true"),
        (", {domain: pve.example.test, plugin: zone, alias: proof.example.test}", ""),
        ("[pve2.example.test]", "[{domain: pve2.example.test, plugin: spare}]"),
    ] {
        dc.repo.edit(FILE, from, to);
        let applied = dc.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{to}:\n{}", applied.all());
        assert!(!applied.all().contains("nothing to do"), "{to}:\n{}", applied.all());
        dc.assert_settled();
    }
    dc.change("PUT", "/cluster/acme/plugins/zone", json!({"validation-delay": 5}));
    dc.change("PUT", "/nodes/pve2/config", json!({"delete": "acmedomain0"}));
    let drift = dc.strata().run(&["drift"]).all();
    assert!(drift.contains("dc/acmeplugin/zone") && drift.contains("dc/hostoptions/pve2"), "{drift}");
    dc.apply();
    dc.assert_settled();
    dc.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&dc.without_settings(), &without_settings(before), "destroy leaves the datacenter as it was");
}

#[test]
fn accounts_need_root() {
    let account = "  accounts: {default: {contact: [b@example.test, a@example.test], terms: \"https://x.example/terms\"}}\n";
    let dc = Datacenter::new(&ACME.replace("  plugins:\n", &format!("{account}  plugins:\n")));
    let before = dc.export();
    let refused = dc.strata().run(&["plan"]).code(3).all();
    assert!(
        refused.contains("only root@pam may make an ACME account") && refused.contains("login:"),
        "{refused}"
    );
    assert_same(&dc.export(), &before, "nothing is touched");
    dc.with_login();
    dc.apply();
    dc.assert_settled();
    dc.repo.edit(FILE, "[b@example.test, a@example.test]", "[a@example.test]");
    dc.apply();
    dc.assert_settled();
    let accounts = || dc.export()["cluster"]["files"]["acme/accounts"].clone();
    assert_eq!(accounts()["default"]["props"]["contact"], "a@example.test", "{}", accounts());
    let gone = dc.strata().run(&["destroy", "--yes"]).ok().all();
    assert!(gone.contains("the authority closes the account"), "{gone}");
    assert!(accounts()["default"].is_null(), "{}", accounts());
}
