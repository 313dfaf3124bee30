//! The leak test: each place of the schema that takes a secret gets one, everything is run, and nothing that was written or printed
//! holds any of them in any form.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};
use strata_sim::{ROOT_PASSWORD, ROOT_TOKEN, SimOptions, TRUENAS_API_KEY};
use strata_testkit::{Output, Repo, Strata, TestSim};

use super::schema::{Place, places};
use crate::cluster::lab::{Lab, Shape, keys};
use crate::layer0::certificates::{CHAIN, KEY};
use crate::world::BINARY;

/// A secret, and where it stands.
struct Planted {
    place: Place,
    name: String,
    value: String,
    /// A part of it that no other text has.
    core: String,
}

/// Everything that was planted and everything that was said.
#[derive(Default)]
struct Leaks {
    planted: Vec<Planted>,
    outputs: Vec<(String, String)>,
}

impl Leaks {
    /// A secret with a text of its own; `wrap` makes of it what the place takes. Gives how it is referred to.
    fn plant(&mut self, record: &str, key: &str, wrap: impl Fn(&str) -> String) -> Value {
        let core = format!("mk7f3a{}q9z8x7w6", self.planted.len());
        self.plant_value(record, key, wrap(&core), core)
    }

    fn plant_value(&mut self, record: &str, key: &str, value: String, core: String) -> Value {
        let name = format!("s{}", self.planted.len());
        self.planted.push(Planted {
            place: (record.to_owned(), key.to_owned()),
            name: name.clone(),
            value,
            core,
        });
        json!({"secret": name})
    }

    /// The file of all secrets, encrypted, and the settings that name it.
    fn keep(&self, repo: &Repo, strata: &Strata) {
        let plain: BTreeMap<&str, &str> =
            self.planted.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
        repo.write("secrets.sops.yaml", &serde_json::to_string(&plain).unwrap());
        strata.run(&["secrets", "encrypt", "secrets.sops.yaml"]).ok();
        if !repo.read("strata.yaml").contains("secrets.sops.yaml") {
            let settings = repo.read("strata.yaml") + "\nsecrets:\n  - sops: secrets.sops.yaml\n";
            repo.write("strata.yaml", &settings);
        }
    }

    fn said(&mut self, arguments: &[&str], output: Output) -> Output {
        self.outputs.push((arguments.join(" "), output.all()));
        output
    }

    /// No secret in what was printed, nor in any file, nor in an address that servers log.
    fn search(&self, repo: &Repo, sim: Option<&TestSim>) {
        for one in &self.planted {
            for form in forms(&one.core) {
                for (arguments, output) in &self.outputs {
                    assert!(
                        !output.contains(&form),
                        "`strata {arguments}` prints the secret of {:?}:\n{output}",
                        one.place
                    );
                }
                for (path, bytes) in repo.all_files() {
                    let has = bytes.windows(form.len()).any(|part| part == form.as_bytes());
                    let own = path.ends_with("age.key");
                    assert!(!has || own, "`{}` holds the secret of {:?}", path.display(), one.place);
                }
                if let Some(sim) = sim {
                    let requests = sim.control().requests().to_string();
                    assert!(!requests.contains(&form), "an address holds the secret of {:?}", one.place);
                }
            }
        }
    }

    fn filled(&self) -> BTreeSet<Place> {
        self.planted.iter().map(|one| one.place.clone()).collect()
    }

    /// What a server says that repeats everything it was sent.
    fn echo(&self) -> String {
        let values: Vec<String> = self
            .planted
            .iter()
            .flat_map(|one| {
                let mut said =
                    vec![one.value.clone(), STANDARD_NO_PAD.encode(&one.value), json!(one.value).to_string()];
                // Of a patch that is a secret a server quotes single values.
                if one.place.1 == "patches" && one.value.contains("extraKernelArgs") {
                    said.push(format!("bad argument `k={0}` and bad variable 'A={0}', see x{0}", one.core));
                }
                said
            })
            .collect();
        values.join(" | ").replace('\n', "\\n")
    }
}

/// OpenTofu that says what it was given wherever it can.
const CHATTY_TOFU: &str = r#"#!/bin/sh
if [ "$1" = version ]; then echo '{"terraform_version": "1.12.6"}'; exit 0; fi
case $1 in
  plan) for argument in "$@"; do case $argument in -out=*) echo '{"meta":1}' > "${argument#-out=}" ;; esac; done
    echo '{"type": "diagnostic", "diagnostic": {"severity": "warning", "summary": "chatty '"$TF_VAR_a"'", "detail": "'"$TF_VAR_a"'"}}' ;;
  show) echo '{"format_version": "1.2", "resource_changes": [{"address": "x.y", "mode": "managed", "change": {"actions": ["create"],
      "before": null, "after": {"text": "chatty '"$TF_VAR_a"'"}, "after_unknown": {}}}],
      "output_changes": {"b": {"actions": ["create"], "before": null, "after": "chatty '"$TF_VAR_a"'"}},
      "planned_values": {"outputs": {"b": {"sensitive": false, "value": "chatty '"$TF_VAR_a"'"}}}}' ;;
  apply) echo '{"type": "outputs", "outputs": {"b": {"sensitive": false, "value": "chatty '"$TF_VAR_a"'"}}}' 
    echo '{"type": "diagnostic", "diagnostic": {"severity": "error", "summary": "chatty '"$TF_VAR_a"'", "detail": "'"$TF_VAR_a"'"}}'
    exit 1 ;;
esac
exit 0
"#;

/// A text in the forms that it can take: plain (also where it is URL-encoded or escaped, as it has nothing to escape), in base64 with
/// each of the three alignments, and in hex.
fn forms(core: &str) -> Vec<String> {
    let mut forms = vec![core.to_owned(), hex::encode(core), hex::encode_upper(core)];
    for before in 0..3 {
        let text = format!("{}{core}", "x".repeat(before));
        let encoded = STANDARD_NO_PAD.encode(text);
        // What its neighbours decide is left out.
        let first = (before * 8).div_ceil(6);
        let last = (before + core.len()) * 8 / 6;
        forms.push(encoded[first..last].to_owned());
    }
    forms
}

fn with_keys(repo: &Repo) {
    let own = Repo::empty();
    Strata::new(BINARY, &own).run(&["init", "."]).ok();
    repo.write("age.key", &own.read("age.key"));
    repo.write(".sops.yaml", &own.read(".sops.yaml"));
}

/// The keys of one record that take a secret.
fn fields(record: &str) -> Vec<(String, bool)> {
    let places = places();
    let own = places.into_iter().filter(|((of, _), _)| of == record);
    let found: Vec<(String, bool)> = own.map(|((_, key), document)| (key, document)).collect();
    assert!(!found.is_empty(), "the schema has no `{record}` any more");
    found
}

/// What a secret of this key has to look like.
fn value_of(key: &str, core: &str) -> String {
    match key {
        "sshKeys" => {
            format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA {core}")
        }
        "userData" | "vendorData" => format!("#cloud-config\n# {core}\nruncmd: [\"echo {core}\"]\n"),
        "networkData" => format!("version: 2\nethernets: {{eth0: {{dhcp4: true, set-name: {core}}}}}\n"),
        "metaData" => format!("instance-id: {core}\nlocal-hostname: x\n"),
        "user" | "username" => core.to_owned(),
        _ => format!("{core}\"/+ü &"),
    }
}

/// Each field on a guest of its own; documents twice, as a whole and with a secret deep inside.
fn guests(leaks: &mut Leaks) -> Value {
    let mut stack = json!({
        "metadata": {"name": "web", "environment": "test"},
        "proxmox": {"target": "pve", "node": "pve1", "storage": {"iso": "local", "disk": "local-lvm"}},
        "vms": {},
        "containers": {},
    });
    let mut id = 9100;
    let mut vm = |stack: &mut Value, field: &str, value: Value| {
        id += 1;
        stack["vms"][format!("vm-{id}")] = json!({
            "vmId": id, "disk": 1, "memory": 64, "started": false,
            "cloudInit": {"allowSecretOnStorage": true, field: value},
        });
    };
    for (field, document) in fields("CloudInit") {
        let whole = leaks.plant("CloudInit", &field, |core| value_of(&field, core));
        let value = if field == "sshKeys" {
            json!([
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB public",
                whole
            ])
        } else {
            whole
        };
        vm(&mut stack, &field, value);
        if document {
            let inside = leaks.plant("CloudInit", &field, |core| format!("{core}\"/+ü &"));
            vm(&mut stack, &field, json!({"a": {"b": ["c", inside]}}));
        }
    }
    // What goes into a generated document lies on the storage, too.
    stack["vms"]["generated"] = json!({
        "vmId": 9190, "disk": 1, "memory": 64, "started": false,
        "cloudInit": {
            "allowSecretOnStorage": true,
            "vendorData": {"a": "b"},
            "user": leaks.plant("CloudInit", "user", str::to_owned),
            "password": leaks.plant("CloudInit", "password", str::to_owned),
            "sshKeys": [leaks.plant("CloudInit", "sshKeys", |core| value_of("sshKeys", core))],
        },
    });
    for (index, (field, _)) in fields("Container").into_iter().enumerate() {
        let value = leaks.plant("Container", &field, |core| value_of(&field, core));
        let value = if field == "sshKeys" { json!([value]) } else { value };
        stack["containers"][format!("box-{index}")] = json!({
            "vmId": 9200 + index, "disk": 1, "memory": 64, "started": false,
            "image": {"url": "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"},
            field: value,
        });
    }
    stack
}

fn storages_and_users(leaks: &mut Leaks) -> Value {
    let mut file = json!({
        "metadata": {"name": "dc", "environment": "test"},
        "proxmox": {"target": "pve", "nodes": ["pve1", "pve2"]},
        "storages": {},
        "users": {},
    });
    for (index, (field, _)) in fields("Storage").into_iter().enumerate() {
        let value = leaks.plant("Storage", &field, |core| value_of(&field, core));
        let mut storage = json!({
            "type": "pbs", "server": "192.0.2.30", "datastore": "main", "content": ["backup"],
            "username": "strata@pbs", "password": {"env": "PBS_PASSWORD"},
        });
        storage[field] = value;
        file["storages"][format!("backup{index}")] = storage;
    }
    for (index, (field, _)) in fields("User").into_iter().enumerate() {
        let value = leaks.plant("User", &field, |core| value_of(&field, core));
        file["users"][format!("user{index}@pve")] = json!({field: value});
    }
    services_and_realms(leaks, &mut file);
    networks_and_certificates(leaks, &mut file);
    file
}

fn networks_and_certificates(leaks: &mut Leaks, file: &mut Value) {
    let mut servers = json!({"ipams": {}, "dnsServers": {}});
    for (field, _) in fields("SdnIpam") {
        let value = leaks.plant("SdnIpam", &field, |core| value_of(&field, core));
        servers["ipams"]["netbox"] =
            json!({"type": "netbox", "url": "https://netbox.example/api", field: value});
    }
    for (field, _) in fields("SdnDns") {
        let value = leaks.plant("SdnDns", &field, |core| value_of(&field, core));
        servers["dnsServers"]["names"] = json!({"url": "https://dns.example/api", field: value});
    }
    file["sdn"] = servers;
    file["acme"] = json!({"plugins": {}, "accounts": {}});
    for (field, _) in fields("AcmePlugin") {
        // Each is a line of a file: it has no line of its own.
        let value = leaks.plant("AcmePlugin", &field, str::to_owned);
        file["acme"]["plugins"]["zone"] = json!({"api": "cf", field: {"CF_Token": value}});
    }
    for (field, _) in fields("AcmeAccount") {
        let value = leaks.plant("AcmeAccount", &field, str::to_owned);
        let account = json!({
            "contact": ["a@x.example"], "terms": "https://x.example/terms", "eabKeyId": "id", field: value,
        });
        file["acme"]["accounts"]["default"] = account;
    }
    let mut certificate = json!({});
    for (field, _) in fields("HostCertificate") {
        let pem = match field.as_str() {
            "chain" => CHAIN,
            "key" => KEY,
            other => panic!("no way to fill `HostCertificate.{other}`"),
        };
        let line = pem.lines().nth(2).unwrap_or_default();
        certificate[&field] = leaks.plant_value("HostCertificate", &field, pem.to_owned(), line.to_owned());
    }
    file["hosts"] = json!({"pve1": {"certificate": certificate}});
}

fn services_and_realms(leaks: &mut Leaks, file: &mut Value) {
    for (field, _) in fields("MetricServer") {
        let value = leaks.plant("MetricServer", &field, |core| value_of(&field, core));
        let server = json!({"type": "influxdb", "server": "192.0.2.40", "port": 8086, field: value});
        file["metricServers"] = json!({"stats": server});
    }
    file["notifications"] = json!({"endpoints": {}});
    for (index, (field, _)) in fields("NotificationEndpoint").into_iter().enumerate() {
        let mut value = leaks.plant("NotificationEndpoint", &field, |core| value_of(&field, core));
        let mut endpoint = match field.as_str() {
            "token" => json!({"type": "gotify", "server": "https://push.example"}),
            "secrets" => json!({"type": "webhook", "url": "https://hook.example/{{ secrets.id }}"}),
            _ => {
                json!({"type": "smtp", "server": "mail.example", "from": "a@x.example", "to": ["b@x.example"]})
            }
        };
        if field == "secrets" {
            value = json!({"id": value});
        }
        endpoint[field] = value;
        file["notifications"]["endpoints"][format!("end{index}")] = endpoint;
    }
    file["realms"] = json!({});
    for (index, (field, _)) in fields("Realm").into_iter().enumerate() {
        let value = leaks.plant("Realm", &field, |core| value_of(&field, core));
        let mut realm = match field.as_str() {
            "clientKey" => json!({"type": "openid", "issuerUrl": "https://sso.example", "clientId": "pve"}),
            _ => json!({"type": "ldap", "server": "ldap.example", "baseDn": "dc=x", "userAttribute": "uid"}),
        };
        realm[field] = value;
        file["realms"][format!("realm{index}")] = realm;
    }
}

fn settings(sim: &TestSim, leaks: &mut Leaks) -> Value {
    let mut target = json!({
        "endpoint": sim.endpoint(),
        "tls": {"fingerprint": sim.fingerprint()},
    });
    for (field, _) in fields("ProxmoxTarget") {
        assert_eq!(field, "token", "how is it filled?");
        let core = ROOT_TOKEN.split_once('=').unwrap().1.to_owned();
        target[field] = leaks.plant_value("ProxmoxTarget", "token", ROOT_TOKEN.to_owned(), core);
    }
    // The name of root is no secret: see the test of what cannot be reached.
    target["login"] = json!({
        "user": "root@pam",
        "password": leaks.plant_value("Login", "password", ROOT_PASSWORD.to_owned(), ROOT_PASSWORD.to_owned()),
    });
    json!({"repository": "test", "targets": {"pve": {"proxmox": target}}})
}

/// Everything that a user can run with a stack that has secrets in it.
fn run_through(leaks: &mut Leaks, strata: &Strata, repo: &Repo, sim: &TestSim) {
    let mut run = |arguments: &[&str]| {
        let output = strata.run(arguments);
        leaks.said(arguments, output)
    };
    run(&["validate"]).ok();
    run(&["--json", "validate"]).ok();
    run(&["plan"]).ok();
    run(&["-v", "plan"]).ok();
    run(&["--json", "plan"]).ok();
    repo.write("saved.plan", "somebody's, and everybody may read it");
    std::fs::set_permissions(repo.file("saved.plan"), std::fs::Permissions::from_mode(0o644)).unwrap();
    run(&["-v", "plan", "-o", "saved.plan"]).ok();
    let mode = std::fs::metadata(repo.file("saved.plan")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a plan is its owner's");
    run(&["graph"]).ok();
    run(&["secrets", "list"]).ok();
    run(&["doctor"]);
    let echo = leaks.echo();
    for (status, arguments) in [(400, ["-v", "apply", "--yes"]), (500, ["--json", "apply", "--yes"])] {
        let order = json!({
            "kind": "refuse", "status": status, "writes": true, "path": "*", "count": 0, "text": echo,
        });
        sim.control().fault(&order);
        let output = strata.run(&arguments);
        assert_ne!(leaks.said(&arguments, output).code, 0);
        sim.control().clear_faults();
    }
    sim.control().fault(&json!({"kind": "lost", "writes": true, "count": 2}));
    let output = strata.run(&["-v", "apply", "--yes"]);
    leaks.said(&["-v", "apply", "--yes"], output);
    sim.control().clear_faults();
    leaks.search(repo, Some(sim));
    let mut run = |arguments: &[&str]| {
        let output = strata.run(arguments);
        leaks.said(arguments, output)
    };
    run(&["-v", "apply", "--yes"]).ok();
    // What is read back is known again: no change, and no drift.
    run(&["-v", "plan", "--detailed-exitcode"]).ok();
    run(&["drift"]).ok();
    let listed = run(&["state", "list"]).ok().stdout;
    for address in listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.contains('/'))) {
        run(&["state", "show", address]);
    }
    let stack = listed.lines().find_map(|line| line.split('/').next()).unwrap_or_default().trim().to_owned();
    for arguments in [
        &["state", "pull", &stack][..],
        &["state", "history", &stack],
        &["state", "diff", &stack],
        &["--json", "output", &stack],
        &["sync"],
        &["show", "saved.plan"],
        &["--json", "show", "saved.plan"],
        &["-v", "drift"],
        &["--json", "drift"],
        &["drift", "--orphans"],
        &["--json", "graph"],
        &["--json", "inventory"],
    ] {
        run(arguments);
    }
    for format in ["json", "ansible", "ssh", "hosts", "prometheus"] {
        run(&["inventory", "--format", format]);
    }
    // The record is lost, and found again by what is there.
    std::fs::remove_dir_all(repo.file(".strata/state")).unwrap();
    run(&["-v", "plan"]);
    run(&["--json", "recover"]);
    run(&["-v", "recover", "--yes"]);
    run(&["state", "pull", &stack]);
}

#[test]
fn c1_no_secret_of_a_guest_is_shown_or_stored() {
    let sim = TestSim::with(SimOptions::default());
    let repo = Repo::on(&sim);
    repo.remove("sim-token");
    with_keys(&repo);
    let mut leaks = Leaks::default();
    let mut settings = settings(&sim, &mut leaks);
    settings["secrets"] = json!([{"sops": "secrets.sops.yaml"}]);
    repo.write("strata.yaml", &settings.to_string());
    repo.write("stacks/web/stack.yaml", &guests(&mut leaks).to_string());
    let strata = Strata::new(BINARY, &repo);
    leaks.keep(&repo, &strata);
    run_through(&mut leaks, &strata, &repo, &sim);
    // Another secret is a change, and is not shown either.
    for one in &mut leaks.planted {
        if one.place.0 == "CloudInit" || one.place.0 == "Container" {
            one.core = one.core.replace("mk7f3a", "mk8e4b");
            one.value = one.value.replace("mk7f3a", "mk8e4b");
        }
    }
    leaks.keep(&repo, &strata);
    let plan = strata.run(&["-v", "plan", "--detailed-exitcode"]).code(2);
    for field in ["cloudinit.user", "cloudinit.ssh_keys", "cloudinit.password"] {
        assert!(plan.stdout.contains(field) && plan.stdout.contains("(secret)"), "{}", plan.all());
    }
    leaks.said(&["-v", "plan"], plan);
    let output = strata.run(&["apply", "--yes"]).ok();
    leaks.said(&["apply"], output);
    let output = strata.run(&["destroy", "--yes"]).ok();
    leaks.said(&["destroy"], output);
    leaks.search(&repo, Some(&sim));
}

#[test]
fn c1_no_secret_of_a_datacenter_is_shown_or_stored() {
    let sim = TestSim::with(SimOptions::default());
    let repo = Repo::on(&sim);
    with_keys(&repo);
    let mut leaks = Leaks::default();
    let mut settings = settings(&sim, &mut leaks);
    settings["secrets"] = json!([{"sops": "secrets.sops.yaml"}]);
    repo.write("strata.yaml", &settings.to_string());
    repo.write("hypervisors/dc.yaml", &storages_and_users(&mut leaks).to_string());
    let strata = Strata::new(BINARY, &repo).env("PBS_PASSWORD", "mk7f3a-of-the-environment");
    leaks.planted.push(Planted {
        place: ("Storage".to_owned(), "password".to_owned()),
        name: "unused".to_owned(),
        value: "mk7f3a-of-the-environment".to_owned(),
        core: "mk7f3a-of-the-environment".to_owned(),
    });
    leaks.keep(&repo, &strata);
    run_through(&mut leaks, &strata, &repo, &sim);
    let output = strata.run(&["destroy", "--yes"]).ok();
    leaks.said(&["destroy"], output);
    leaks.search(&repo, Some(&sim));
}

/// Patches of one layer: as a whole, with keys of the user's choice and a document with a name, and with a scalar and an item inside.
fn patches(leaks: &mut Leaks, record: &str) -> Value {
    let whole = leaks.plant(record, "patches", |core| {
        format!(
            "machine:\n  env: {{TOKEN_{core}: \"{core}\"}}\n  nodeAnnotations: {{example.test/{core}: \"x{core}\"}}\n  install: {{extraKernelArgs: [\"k={core}\"]}}\n---\napiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: svc-{core}\nenvironment: [\"A={core}\"]\n"
        )
    });
    let (scalar, item) = (
        leaks.plant(record, "patches", |core| format!("{core}\"/+ü &")),
        leaks.plant(record, "patches", |core| format!("{core}.example.test")),
    );
    json!([
        whole,
        {"machine": {"nodeAnnotations": {format!("example.test/{}", record.to_lowercase()): scalar}, "certSANs": [item, "public.example.test"]}},
    ])
}

#[test]
fn c1_no_secret_of_a_cluster_is_shown_or_stored() {
    let lab = Lab::new(&Shape::new(1, 1).with_gitops());
    let mut leaks = Leaks::default();
    let text = lab.repo.read("clusters/lab/cluster.yaml");
    let list = |value: &Value| value.to_string();
    let text = text
        .replace("  topology:\n", &format!("  patches: {}\n  topology:\n", list(&patches(&mut leaks, "ClusterSpec"))))
        .replace("controlPlane: {count: 1,", &format!("controlPlane: {{patches: {}, count: 1,", list(&patches(&mut leaks, "Pool"))))
        .replace(
            "proxmox:\n",
            &format!(
                "    pools: [{{name: more, count: 1, addresses: 192.0.2.71-192.0.2.79, idBase: 850, resources: {{cores: 2, memory: 4096, disk: 20}}, patches: {}}}]\nproxmox:\n",
                list(&patches(&mut leaks, "NamedPool"))
            ),
        );
    let key = keys().age_key.lines().last().unwrap().to_owned();
    let mut text = text;
    for (field, _) in fields("Flux") {
        let value = match field.as_str() {
            "ageKey" => leaks.plant_value("Flux", "ageKey", key.clone(), key.clone()),
            "username" | "password" => leaks.plant("Flux", &field, |core| value_of(&field, core)),
            // Over SSH: see the test of what cannot be reached.
            "sshKey" | "knownHosts" => continue,
            other => panic!("no way to fill `Flux.{other}`"),
        };
        let line =
            text.lines().find(|line| line.trim_start().starts_with(&format!("{field}:"))).unwrap().to_owned();
        text = text.replace(&line, &format!("    {field}: {value}"));
    }
    for (field, _) in fields("KubernetesSecret") {
        assert_eq!(field, "data", "how is it filled?");
        let value = leaks.plant("KubernetesSecret", "data", |core| value_of("", core));
        text = text.replace("{key: {env: STORAGE_KEY}}", &json!({"key": value}).to_string());
    }
    lab.repo.write("clusters/lab/cluster.yaml", &text);
    let node = json!({"nodes": {"lab-cp-1": {"patches": patches(&mut leaks, "ClusterNode")}}});
    lab.repo.write("clusters/lab/nodes.yaml", &node.to_string());
    let settings = lab.repo.read("strata.yaml");
    for (field, _) in fields("TruenasTarget") {
        assert_eq!(field, "apiKey", "how is it filled?");
        let value = leaks.plant_value(
            "TruenasTarget",
            "apiKey",
            TRUENAS_API_KEY.to_owned(),
            TRUENAS_API_KEY.to_owned(),
        );
        lab.repo.write("strata.yaml", &settings.replace("{env: NAS_KEY}", &value.to_string()));
    }
    let strata = lab.strata();
    leaks.keep(&lab.repo, &strata);
    run_through(&mut leaks, &strata, &lab.repo, &lab.sim);
    // Another secret is a change that is told without it; then the patches go, and what they were is not told either.
    for one in leaks.planted.iter_mut().filter(|one| one.place.1 == "patches") {
        one.core = one.core.replace("mk7f3a", "mk8e4b");
        one.value = one.value.replace("mk7f3a", "mk8e4b");
    }
    leaks.keep(&lab.repo, &strata);
    let plan = strata.run(&["-v", "plan", "--detailed-exitcode"]).code(2);
    assert!(plan.stdout.contains("config.") && plan.stdout.contains("(secret)"), "{}", plan.all());
    leaks.said(&["-v", "plan"], plan);
    for arguments in [&["--json", "plan"][..], &["-v", "apply", "--yes"]] {
        let output = strata.run(arguments).ok();
        leaks.said(arguments, output);
    }
    strata.run(&["plan", "--detailed-exitcode"]).ok();
    lab.repo.remove("clusters/lab/nodes.yaml");
    lab.source(&Shape::new(1, 1).with_gitops());
    for arguments in [&["-v", "plan"][..], &["--json", "plan"]] {
        let output = strata.run(arguments).ok();
        leaks.said(arguments, output);
    }
    leaks.search(&lab.repo, Some(&lab.sim));
}

/// What asks for servers that are not there: the errors of a failed connection tell nothing.
fn unreachable() -> Leaks {
    let mut all = Leaks::default();
    let dead = "https://127.0.0.1:9";
    let stack = json!({
        "metadata": {"name": "web", "environment": "test"},
        "proxmox": {"target": "pve", "node": "pve1"},
        "vms": {"a": {"vmId": 9100, "disk": 1, "memory": 64}},
    });
    let plain = json!({"env": "PLAIN"});
    let mut groups = [
        (vec!["username", "password"], json!({"backend": "http", "url": dead})),
        (vec!["token", "headers"], json!({"backend": "http", "url": dead})),
        (
            vec!["accessKeyId", "secretAccessKey"],
            json!({"backend": "s3", "bucket": "b", "region": "r", "endpoint": dead}),
        ),
        (vec!["connection"], json!({"backend": "postgres", "password": plain})),
    ];
    for (field, _) in fields("State") {
        let wrap = |core: &str| match field.as_str() {
            "connection" => format!("postgres://{core}@127.0.0.1:9/states"),
            _ => core.to_owned(),
        };
        let group = groups.iter_mut().find(|(of, _)| of.contains(&field.as_str()));
        let Some((_, state)) = group else { panic!("no way to fill `State.{field}`") };
        let value = all.plant("State", &field, wrap);
        state[&field] = if field == "headers" { json!({"x-key": value}) } else { value };
    }
    let mut states: Vec<Value> = groups.into_iter().map(|(_, state)| state).collect();
    for (field, _) in fields("Encryption") {
        let value = all.plant("Encryption", &field, |core| format!("{core} and more of it"));
        states.push(json!({"backend": "local", "encryption": {field: value}}));
    }
    for (field, _) in fields("FormerKey") {
        let value = all.plant("FormerKey", &field, |core| format!("{core} and more of it"));
        states.push(json!({"backend": "local", "encryption": {"previous": [{field: value}]}}));
    }
    for state in states {
        let sim = TestSim::with(SimOptions::default());
        let repo = Repo::on(&sim);
        with_keys(&repo);
        repo.write("stacks/web/stack.yaml", &stack.to_string());
        repo.write("strata.yaml", &(repo.read("strata.yaml") + &format!("state: {state}\n")));
        run_all(&mut all, &repo, Some(&sim));
    }
    let mut login = json!({});
    for (field, _) in fields("Login") {
        login[&field] = match field.as_str() {
            "user" => all.plant("Login", "user", |core| format!("{core}@pam")),
            "password" => all.plant("Login", "password", str::to_owned),
            other => panic!("no way to fill `Login.{other}`"),
        };
    }
    let repo = Repo::empty();
    with_keys(&repo);
    let target = json!({"endpoint": dead, "login": login});
    let settings = json!({
        "repository": "test", "targets": {"pve": {"proxmox": target}}, "secrets": [{"sops": "secrets.sops.yaml"}],
    });
    repo.write("strata.yaml", &settings.to_string());
    repo.write("stacks/web/stack.yaml", &stack.to_string());
    run_all(&mut all, &repo, None);
    // A cluster that names its server itself, and Flux over SSH.
    let lab = Lab::new(&Shape::new(1, 0).with_gitops());
    let text = lab.repo.read("clusters/lab/cluster.yaml");
    let mut own = format!("  endpoint: {dead}\n");
    for (field, _) in fields("ClusterProxmox") {
        let value = match field.as_str() {
            "token" => all.plant("ClusterProxmox", "token", str::to_owned),
            "tokenId" => all.plant("ClusterProxmox", "tokenId", |core| format!("root@pam!{core}")),
            other => panic!("no way to fill `ClusterProxmox.{other}`"),
        };
        own.push_str(&format!("  {field}: {value}\n"));
    }
    let ssh = all.plant("Flux", "sshKey", |core| {
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{core}\n-----END OPENSSH PRIVATE KEY-----\n")
    });
    let hosts = all.plant("Flux", "knownHosts", |core| format!("git.example ssh-ed25519 {core}"));
    let text = text
        .replace("  target: pve\n", &own)
        .replace("https://git.example/me/infra", "ssh://git@git.example/me/infra")
        .replace(
            "    username: git\n    password: {env: GIT_TOKEN}\n",
            &format!("    sshKey: {ssh}\n    knownHosts: {hosts}\n"),
        );
    lab.repo.write("clusters/lab/cluster.yaml", &text);
    let strata = lab.strata();
    run_all_with(&mut all, &lab.repo, &strata, None);
    // A stack of OpenTofu.
    let repo = Repo::empty();
    with_keys(&repo);
    repo.write("strata.yaml", "repository: test\n");
    repo.write(
        "stacks/hand/main.tf",
        "variable \"a\" {\n  type = string\n}\noutput \"b\" {\n  value = var.a\n}\n",
    );
    let mut given = json!({});
    for (field, _) in fields("TofuInputs") {
        assert_eq!(field, "variables", "how is it filled?");
        given[field] = json!({"a": all.plant("TofuInputs", "variables", str::to_owned)});
    }
    repo.write("stacks/hand/stack.yaml", &json!({"tofu": given}).to_string());
    // What OpenTofu itself keeps is its own, and a warning says so. This one shows all that it was given, and keeps it nowhere.
    repo.write("fake/tofu", CHATTY_TOFU);
    let tofu = repo.file("fake/tofu");
    std::fs::set_permissions(&tofu, std::fs::Permissions::from_mode(0o755)).unwrap();
    let strata = Strata::new(BINARY, &repo).env("STRATA_TOFU", &tofu.display().to_string());
    run_all_with(&mut all, &repo, &strata, None);
    let (_, said) = all.outputs.iter().rfind(|(command, _)| command.contains("plan")).unwrap();
    assert!(said.contains("its state is a plain file in `stacks/hand`"), "{said}");
    let (_, said) = all.outputs.last().unwrap();
    assert!(said.contains("chatty"), "{said}");
    all
}

fn run_all(leaks: &mut Leaks, repo: &Repo, sim: Option<&TestSim>) {
    let strata = Strata::new(BINARY, repo).env("PLAIN", "nobody");
    run_all_with(leaks, repo, &strata, sim);
}

fn run_all_with(leaks: &mut Leaks, repo: &Repo, strata: &Strata, sim: Option<&TestSim>) {
    leaks.keep(repo, strata);
    let validated = strata.run(&["validate"]);
    leaks.said(&["validate"], validated).ok();
    for arguments in [&["-v", "plan", "-o", "saved.plan"][..], &["--json", "apply", "--yes"]] {
        let output = strata.run(arguments);
        leaks.said(arguments, output);
    }
    leaks.search(repo, sim);
}

#[test]
fn c1_every_place_of_the_schema_is_filled_and_none_leaks() {
    let mut filled = unreachable().filled();
    let sim = TestSim::with(SimOptions::default());
    let mut others = Leaks::default();
    let _ = (guests(&mut others), storages_and_users(&mut others), settings(&sim, &mut others));
    for record in ["ClusterSpec", "Pool", "NamedPool", "ClusterNode"] {
        let _ = patches(&mut others, record);
    }
    filled.extend(others.filled());
    // Those of the cluster's own test, which fails for a key that it does not know.
    for record in ["Flux", "KubernetesSecret", "TruenasTarget"] {
        filled.extend(fields(record).into_iter().map(|(key, _)| (record.to_owned(), key)));
    }
    let missing: Vec<String> = places()
        .into_keys()
        .filter(|place| !filled.contains(place))
        .map(|(record, key)| format!("{record}.{key}"))
        .collect();
    assert!(missing.is_empty(), "no test fills these places of a secret: {}", missing.join(", "));
}
