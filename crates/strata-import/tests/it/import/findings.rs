//! What was proven wrong in imports: each test is named after its finding.

use std::path::Path;

use strata_import::{Imported, import};
use strata_source::world::Memory;

use super::{at, has_note, imported, repository};

fn of(files: &[(&str, &str)]) -> Imported {
    let world = files.iter().fold(Memory::new(), |world, (path, text)| world.file(path, *text));
    import(&world, "fixture1", None)
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

fn tells(imported: &Imported, part: &str) -> bool {
    let found = imported.notes.iter().any(|note| note.message.contains(part));
    if !found {
        imported.notes.iter().for_each(|note| eprintln!("{}: {}", at(note), note.message));
    }
    found
}

/// Prints what an import comes to, for whoever writes a fixture.
#[test]
#[ignore = "no test, prints what an import comes to: just show-import"]
fn show() {
    let folder = std::env::var_os("STRATA_SHOW").expect("STRATA_SHOW is set");
    let imported = import(&strata_source::world::Disk::new(Path::new(&folder), []), "fixture1", None);
    for (path, text) in &imported.files {
        println!("=== {path}\n{text}");
    }
    println!("secrets: {:?}", imported.secrets.keys());
    imported.notes.iter().for_each(|note| println!("{}: {}", at(note), note.message));
}

#[test]
fn e1_modules_of_layers_are_evaluated() {
    let imported = imported("checkouts/layers-talos");
    repository(&imported);
    let text = &imported.files["clusters/k8s-prod/cluster.yaml"];
    has(
        text,
        &[
            "clusterName: prod-cluster",
            "version: v1.12.4",
            "secureBoot: true",
            "siderolabs/iscsi-tools",
            "console=ttyS1",
            "encryptDisk: true",
            "installDisk: /dev/vda",
            "scheduleOnControlPlanes: true",
            "cni: none",
            "talos-prod-2:",
            "zone: cellar",
            "vip: \"192.0.2.40\"",
            "gateway: \"192.0.2.1\"",
            "- \"192.0.2.3\"",
            "vmId: 612",
            "cores: 6",
            "memory: 12288",
            "disk: 30",
            "virtio0:",
            "storage: fast",
            "iothread: false",
            "backup: true",
            "type: x86-64-v3",
            "- tofu",
            "version: v2.0",
            "bridge: vmbr2",
            "layer: platforms",
            "path: gitops/clusters/prod",
            "branch: trunk",
            "repository: https://git.example/home/lab.git",
            "protect: true",
            "notes: made by code",
            "disabled: true",
            "wipe: true",
            "environment: prod",
            "- ide2",
        ],
    );
    assert!(!imported.files.keys().any(|path| path.starts_with("stacks/")), "the machines are the cluster's");
    assert!(tells(&imported, "ignores changes of `cdrom`, `started`"));
    assert!(tells(&imported, "`strata import --state`"));
}

#[test]
fn e1_other_machines_of_layers_keep_their_layer() {
    let imported = imported("checkouts/layers-plain");
    repository(&imported);
    has(&imported.files["hypervisors/north.yaml"], &["vmbr5:", "enp5s0", "for guests"]);
    has(
        &imported.files["stacks/desk/stack.yaml"],
        &[
            "layer: platforms",
            "osType: win11",
            "sata1:",
            "size: 480",
            "model: e1000",
            "started: false",
            "type: qemu64",
        ],
    );
    has(
        &imported.files["stacks/legacy/stack.yaml"],
        &["layer: workloads", "unbound:", "vmId: 732", "swap: 128", "cpuUnits: 300", "192.0.2.31/24"],
    );
}

#[test]
fn e2_modules_of_environments_are_evaluated() {
    let imported = imported("checkouts/environments-modules");
    repository(&imported);
    let dev = &imported.files["stacks/shop-dev/stack.yaml"];
    has(
        dev,
        &[
            "environment: dev",
            "shop-debian13-template:",
            "template: shop-debian13-template",
            "started: false",
            "balloon: 1024",
            "serial:",
            "agent: true",
            "cpu: host",
            "onboot: true",
        ],
    );
    has(
        dev,
        &[
            "- environment-dev",
            "- type-vm",
            "policyIn: DROP",
            "logLevelIn: warning",
            "growpart",
            "qemu-guest-agent",
        ],
    );
    assert!(!dev.contains("size: 50"), "no module reads `disk_size` of a machine: {dev}");
    assert!(tells(&imported, "disk_size"));
    let prod = &imported.files["stacks/shop-prod/stack.yaml"];
    has(prod, &["template: shop-dev/shop-debian13-template", "memory: 8192", "balloon: 4096"]);
    assert!(tells(&imported, "ignores changes of `initialization`"));
}

#[test]
fn e2_modules_of_groups_are_evaluated() {
    let imported = imported("checkouts/groups-modules");
    repository(&imported);
    let text = &imported.files["stacks/harbour/stack.yaml"];
    has(
        text,
        &[
            "gateway: \"192.0.2.254\"",
            "- \"192.0.2.253\"",
            "machine: q35",
            "bios: ovmf",
            "efi:",
            "agent: true",
            "cache: writeback",
            "discard: true",
            "balloon: 512",
            "virtio0:",
            "environment: harbour",
            "mode: shell",
            "started: false",
            "cpuUnits: 1024",
        ],
    );
}

#[test]
fn e3_what_a_provider_does_by_itself_stays() {
    let vm = r#"
        provider "proxmox" { endpoint = "https://a.example:8006" }
        resource "proxmox_virtual_environment_vm" "a" {
          vm_id     = 101
          name      = "a"
          node_name = "pve"
          bios      = "ovmf"
          efi_disk { datastore_id = "thin" }
          disk {
            interface = "scsi0"
          }
          initialization {}
        }
        resource "proxmox_virtual_environment_vm" "b" {
          vm_id     = 102
          name      = "b"
          node_name = "pve"
          clone { vm_id = 9000 }
        }
        resource "proxmox_virtual_environment_container" "c" {
          vm_id     = 103
          node_name = "pve"
          operating_system { template_file_id = "local:vztmpl/x.tar.zst" }
        }
    "#;
    let imported = of(&[("main.tf", vm)]);
    let text = &imported.files["stacks/machines/stack.yaml"];
    has(
        text,
        &[
            "cpu: qemu64",
            "scsiController: virtio-scsi-pci",
            "osType: other",
            "type: \"2m\"",
            "storage: local-lvm",
            "memory: 512",
            "osType: unmanaged",
            "storage: local\n",
        ],
    );
    let clone = text.split("  b:\n").nth(1).unwrap().split("containers:").next().unwrap();
    for key in ["cores", "memory", "osType", "scsiController", "cpu"] {
        assert!(!clone.contains(key), "a clone has `{key}` of its template: {clone}");
    }
}

#[test]
fn e3_protection_and_ignored_changes_are_told() {
    let imported = imported("checkouts/counted");
    repository(&imported);
    let text = &imported.files["stacks/machines/stack.yaml"];
    has(text, &["node-02:", "vmId: 401", "protect: true", "192.0.2.101/24"]);
    assert!(tells(&imported, "ignores changes of `tags`"));
    assert!(tells(&imported, "the state is kept by the cloud of `home`, workspace `machines`"));
    assert!(tells(&imported, "provisioner `local-exec`"));
    assert!(has_note(&imported, "main.tf:24", "`spare` comes to nothing"));
    assert!(tells(&imported, "data.external.devices"), "how many devices there are is known only to a run");
}

#[test]
fn e3_files_of_variables_beside_the_code_are_found() {
    let imported = imported("checkouts/values-beside");
    repository(&imported);
    let text = imported.files.iter().find(|(path, _)| path.starts_with("stacks/")).map(|(_, text)| text);
    has(text.expect("the machines are there"), &["vmId: 301", "vmId: 302", "scsi0: 11"]);
    assert!(!tells_quietly(&imported, "makes nothing that Strata manages"));
}

fn tells_quietly(imported: &Imported, part: &str) -> bool {
    imported.notes.iter().any(|note| note.message.contains(part))
}

#[test]
fn e3_numbers_of_examples_drop_no_machine() {
    let imported = imported("checkouts/examples-alike");
    repository(&imported);
    let all: String = imported.files.values().cloned().collect();
    has(&all, &["one-0:", "one-1:", "two-0:", "two-1:", "vmId: 200", "vmId: 900001"]);
    assert!(tells(&imported, "comes from an example"));
}

#[test]
fn e3_nothing_to_manage_is_said_only_where_it_is_true() {
    let module =
        "variable \"n\" {}\nresource \"proxmox_virtual_environment_vm\" \"a\" {\n  count = var.n\n}\n";
    let files = [
        ("app/main.tf", "variable \"n\" {}\nmodule \"m\" {\n  source = \"../m\"\n  n      = var.n\n}\n"),
        ("m/main.tf", module),
        ("far/main.tf", "module \"m\" {\n  source = \"git::https://git.example/m.git\"\n}\n"),
        ("dns/main.tf", "resource \"cloudflare_record\" \"a\" {\n  name = \"x\"\n}\n"),
    ];
    let imported = of(&files);
    let said: Vec<String> = imported
        .notes
        .iter()
        .filter(|note| note.message.contains("makes nothing that Strata manages"))
        .map(at)
        .collect();
    assert_eq!(said, ["dns:1"]);
    assert!(has_note(&imported, "app:1", "files of variables that are not here"));
    assert!(has_note(&imported, "far:1", "is not known"));
}

#[test]
fn e4_the_path_of_a_state_server_is_kept() {
    let imported = imported("checkouts/talos-workers");
    repository(&imported);
    let settings = &imported.files["strata.yaml"];
    has(
        settings,
        &[
            "backend: http",
            "https://state.example/tfstate/states/{state}",
            "lockUrl:",
            "https://state.example/tfstate/states/{state}/lock",
            "unlockMethod: UNLOCK",
        ],
    );
    assert!(tells(&imported, "https://state.example/tfstate/states/proxmox"));
}

/// The values of the nodes are often kept out of git; what their modules say is there all the same.
#[test]
fn e1_a_cluster_without_its_values_is_what_its_modules_say() {
    let root = super::folder("checkouts/layers-talos");
    let mut files = std::collections::BTreeMap::new();
    super::nothing_is_lost::read(&root, "", &mut files);
    files.retain(|path, _| !path.ends_with("terraform.tfvars"));
    let world = files.iter().fold(Memory::new(), |world, (path, text)| world.file(path, text.clone()));
    let imported = import(&world, "fixture1", None);
    repository(&imported);
    has(
        &imported.files["clusters/k8s-prod/cluster.yaml"],
        &[
            "clusterName: prod-cluster",
            "secureBoot: true",
            "encryptDisk: true",
            "virtio0:",
            "cni: none",
            "vmId: 610",
            "talos-prod-0:",
        ],
    );
    assert!(tells(&imported, "how many of `nodes` there are is in no file that was read"));
}

const SEALED: &str = "proxmox_api_token: ENC[AES256_GCM,data:x]\nweb:\n  password: ENC[AES256_GCM,data:y]\nsops:\n  version: 3.9.0\n";

#[test]
fn e4_the_repositorys_own_secrets_are_kept_and_used() {
    let code = r#"
        data "sops_file" "own" { source_file = "secrets.sops.yaml" }
        provider "proxmox" {
          endpoint  = "https://a.example:8006"
          api_token = data.sops_file.own.data["proxmox_api_token"]
        }
        resource "proxmox_virtual_environment_vm" "a" {
          vm_id     = 101
          name      = "a"
          node_name = "pve"
          disk { interface = "scsi0" }
          initialization {
            user_account {
              username = "dev"
              password = data.sops_file.own.data["web.password"]
            }
          }
        }
        resource "proxmox_virtual_environment_vm" "b" {
          vm_id     = 102
          name      = "b"
          node_name = "pve"
          disk { interface = "scsi0" }
          initialization {
            user_account {
              username = "dev"
              password = "in the clear"
            }
          }
        }
    "#;
    let imported = of(&[("main.tf", code), ("secrets.sops.yaml", SEALED)]);
    assert_eq!(imported.files["secrets.sops.yaml"], SEALED);
    assert_eq!(imported.secrets_file, "strata.sops.yaml");
    assert_eq!(imported.secrets.keys().collect::<Vec<_>>(), ["b_password"]);
    has(
        &imported.files["strata.yaml"],
        &["- sops: strata.sops.yaml", "- sops: secrets.sops.yaml", "secret: proxmox_api_token"],
    );
    has(&imported.files["stacks/machines/stack.yaml"], &["secret: web.password", "secret: b_password"]);
}

#[test]
fn e4_labels_of_talhelper_are_filled_in_and_replace_those_of_talos() {
    let text = r#"
clusterName: pond
talosVersion: v1.12.4
endpoint: https://192.0.2.40:6443
nodes:
  - hostname: frog
    ipAddress: 192.0.2.41
    controlPlane: true
    nodeLabels:
      called: "{{ .ClusterConfig.ClusterName }}-{{ .MachineConfig.MachineType }}"
      image: "{{ .MachineConfig.MachineInstall.InstallImage }}"
  - hostname: newt
    ipAddress: 192.0.2.42
    controlPlane: false
    nodeLabels: {pond: small}
"#;
    let imported = of(&[("talconfig.yaml", text)]);
    repository(&imported);
    let written = &imported.files["clusters/pond/cluster.yaml"];
    has(written, &["called: pond-controlplane", "pond: small", "$patch", "delete"]);
    assert!(!written.contains("{{"), "{written}");
    assert_eq!(written.matches("exclude-from-external-load-balancers").count(), 1, "{written}");
    assert!(tells(&imported, "`image` is `{{ .MachineConfig.MachineInstall.InstallImage }}`"));
}

/// A machine that had no TPM, no tags and no options of its disk has none after it became a node.
#[test]
fn e4_machines_get_nothing_that_they_had_not() {
    let imported = imported("checkouts/talos-workers");
    let repository = repository(&imported);
    let text = &imported.files["clusters/dune/cluster.yaml"];
    has(
        text,
        &[
            "tags: []",
            "discard: false",
            "backup: true",
            "replicate: true",
            "numa: false",
            "bios: seabios",
            "onboot: true",
        ],
    );
    let stack = repository.stack("dune", None).unwrap();
    let blueprint = crate::world::draw(&repository, stack);
    let vm = blueprint.graph.iter().find(|resource| resource.address.name() == "dune-cp-1").unwrap();
    for key in ["tpm", "tags", "efidisk"] {
        assert!(!vm.spec.contains_key(key), "`{key}` was added");
    }
}

/// An environment that calls the modules itself is a root like any other.
#[test]
fn e2_environments_with_code_of_their_own_are_evaluated() {
    let module = "variable \"number\" {}\nresource \"proxmox_virtual_environment_vm\" \"this\" {\n  vm_id     = var.number\n  \
                  name      = \"web-${var.number}\"\n  node_name = \"pve\"\n  started   = false\n  disk {\n    interface = \"sata2\"\n  }\n}\n";
    let root = "variable \"vm_configs\" {}\nprovider \"proxmox\" {\n  endpoint = \"https://a.example:8006\"\n}\nmodule \"vm\" {\n  \
                for_each = { for vm in var.vm_configs : vm.name => vm }\n  source   = \"../../modules/vm\"\n  number   = each.value.vm_id\n}\n";
    let values = |number: u32| format!("vm_configs = [{{ name = \"web\", vm_id = {number} }}]\n");
    let imported = of(&[
        ("modules/vm/main.tf", module),
        ("environments/dev/main.tf", root),
        ("environments/dev/terraform.tfvars", &values(301)),
        ("environments/prod/main.tf", root),
        ("environments/prod/terraform.tfvars", &values(302)),
    ]);
    repository(&imported);
    has(
        &imported.files["stacks/dev/stack.yaml"],
        &["environment: dev", "web-301:", "sata2: 8", "started: false"],
    );
    has(&imported.files["stacks/prod/stack.yaml"], &["environment: prod", "web-302:"]);
}

#[test]
fn e3_files_of_variables_may_be_json_and_shared() {
    let root = "variable \"number\" {}\nvariable \"node\" {}\nprovider \"proxmox\" {\n  endpoint = \"https://a.example:8006\"\n}\n\
                resource \"proxmox_virtual_environment_vm\" \"a\" {\n  vm_id     = var.number\n  name      = \"a\"\n  node_name = var.node\n}\n";
    let imported = of(&[
        ("code/main.tf", root),
        ("values/home.tfvars.json", "{\"number\": 321, \"node\": \"north\"}\n"),
    ]);
    let text = imported.files.iter().find(|(path, _)| path.starts_with("stacks/")).map(|(_, text)| text);
    has(text.expect("the machine is there"), &["vmId: 321", "node: north"]);
}
