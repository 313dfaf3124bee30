//! What real repositories have that nobody would make up.

use strata_import::import;
use strata_source::world::{Disk, Memory};

use super::{folder, has_note, imported, repository};

#[test]
fn nodes_override_their_group_and_clashes_are_told() {
    let imported = imported("stacks");
    let repository = repository(&imported);
    let stack = repository.stack("server-b", None).and_then(|stack| stack.machines()).unwrap();
    let first = stack.vms.get("worker-01").unwrap();
    assert_eq!(first.hardware.cores, Some(11), "what stands in the node's own `vm_config` wins");
    assert_eq!(stack.vms.len(), 3, "one is not enabled");
    assert!(stack.vms.get("worker-04").is_some());
    let text = &imported.files["stacks/onprem/server-b/stack.yaml"];
    assert!(
        text.contains("- pool") && text.contains("- first") && text.contains("notes: the workers"),
        "{text}"
    );
    assert!(!text.contains("in the clear"));
    let data = "stacks/onprem/server_b/schema.tfvars";
    assert!(has_note(&imported, &format!("{data}:5"), "password_auth"));
    assert!(has_note(&imported, &format!("{data}:14"), "given again in line 15"));
    assert!(has_note(&imported, &format!("{data}:31"), "192.0.2.81, which `server-b/worker-01` has already"));
    assert!(has_note(&imported, &format!("{data}:37"), "not enabled"));
    assert!(has_note(&imported, &format!("{data}:41"), "no name for a machine"));
}

#[test]
fn a_vault_is_opened_if_somebody_can() {
    let secrets = "proxmox_connection = { url = \"https://192.0.2.10:8006\", token_auth = { id = \"a@pve!b\", secret = \"c\" } }\nuser_credentials = { admin = { username = \"ops\", password = \"hush\", ssh_public_keys = [\"ssh-ed25519 AAAA\"] } }\n";
    let open = |path: &str, content: &[u8]| {
        assert!(path.ends_with("secrets.tfvars") && content.starts_with(b"$ANSIBLE_VAULT"));
        Ok(secrets.as_bytes().to_vec())
    };
    let disk = Disk::new(folder("stacks"), []);
    let imported = import(&disk, "fixture1", Some(&open));
    repository(&imported);
    assert_eq!(imported.secrets["proxmox_api_token"], "a@pve!b=c");
    assert_eq!(imported.secrets["ops_password"], "hush");
    assert!(!imported.files.values().any(|text| text.contains("hush")), "nothing secret is in the clear");
    assert!(imported.files["stacks/onprem/server-a/stack.yaml"].contains("user: ops"));
    assert!(has_note(&imported, "stacks/onprem/server_a/secrets.tfvars:1", "was opened"));
    let refuse = |_: &str, _: &[u8]| Err("the password is wrong".to_owned());
    let refused = import(&disk, "fixture1", Some(&refuse));
    assert!(has_note(&refused, "stacks/onprem/server_a/secrets.tfvars:1", "the password is wrong"));
}

#[test]
fn locals_functions_and_other_words_for_a_firewall() {
    let imported = imported("environments");
    let repository = repository(&imported);
    let stage = repository.stack("shop-stage", None).and_then(|stack| stack.machines()).unwrap();
    assert_eq!(stage.vms.len(), 1, "another Proxmox may have the same numbers");
    let text = &imported.files["stacks/shop-stage/stack.yaml"];
    for part in ["scsi3:", "size: 210", "storage: fast", "discard: true", "destinationPort: \"8443\""] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let data = "environments/stage/terraform.tfvars";
    assert!(has_note(&imported, &format!("{data}:22"), "cloud_init_extra"));
    assert!(has_note(&imported, &format!("{data}:30"), "old-style"));
    assert!(has_note(&imported, "environments/stage/locals.tf:4", "local.disk.cache"));
    assert!(has_note(&imported, "environments/stage/locals.tf:8", "local.unused"));
}

#[test]
fn talhelper_with_marks_of_editors_anchors_and_an_environment() {
    let imported = imported("simple");
    let repository = repository(&imported);
    let cluster = repository.stack("tiny", None).and_then(|stack| stack.cluster()).unwrap();
    let network = cluster.cluster.network.as_ref().unwrap();
    assert_eq!((network.cidr.to_string().as_str(), network.guest_vlan), ("192.0.2.128/25", Some(33)));
    let text = &imported.files["clusters/tiny/cluster.yaml"];
    let parts =
        ["gateway: \"192.0.2.129\"", "vip: \"192.0.2.140\"", "version: v1.35.1", "installDisk: /dev/vda"];
    for part in parts.into_iter().chain([
        "cni: none",
        "rack: \"7\"",
        "ready: \"true\"",
        "net.ifnames=0",
        "siderolabs/nfsd",
    ]) {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(imported.files["clusters/tiny/patches/cp.yaml"].starts_with("# kept with its comment"));
    assert!(imported.files["clusters/tiny/talos.sops.yaml"].contains("sops:"));
    let file = "talos/talconfig.yaml";
    assert!(has_note(&imported, &format!("{file}:25"), "strange"));
    assert!(has_note(&imported, &format!("{file}:26"), "without `hostname`"));
    assert!(has_note(&imported, &format!("{file}:33"), "customization.meta"));
    assert!(has_note(&imported, "talos/talenv.yaml:2", "UNUSED"));
}

#[test]
fn templates_of_topf_are_filled_in() {
    let imported = imported("templates");
    let repository = repository(&imported);
    let cluster = repository.stack("edge", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.len(), 2);
    let patch = |own: &str| imported.files[&format!("clusters/edge/patches/{own}")].clone();
    assert!(patch("all-10-nodes.yaml").contains("validSubnets: [192.0.2.128/25]"));
    let links = patch("alpha-20-links.yaml");
    assert!(links.contains("name: eno1\nmtu: 9000") && links.contains("name: eno2"), "{links}");
    assert!(
        !imported.files.keys().any(|path| path.contains("beta-20-links")),
        "nothing is left of an empty one"
    );
    assert!(imported.files["clusters/edge/cluster.yaml"].contains("clusterName: Edge"));
    assert!(has_note(&imported, "talos/all/30-odd.yaml.tpl:3", "`env` is not understood"));
    assert!(has_note(&imported, "talos/schematic.yaml:5", "bootloader"));
    assert!(has_note(&imported, "talos/secrets.yaml:1", "in the clear"));
    assert!(!imported.files.contains_key("clusters/edge/talos.sops.yaml"));
    assert!(has_note(&imported, "talos/topf.yaml:7", "data.unused"));
}

#[test]
fn machines_and_the_cluster_on_them_become_one() {
    let imported = imported("together");
    let repository = repository(&imported);
    let cluster = repository.stack("together", None).and_then(|stack| stack.cluster()).unwrap();
    let machines = cluster.machines("together", &mut strata_diagnostics::Diagnostics::new());
    let numbers: Vec<u32> = machines.iter().map(|machine| machine.vm_id.as_ref().unwrap().value).collect();
    assert_eq!(numbers, [701, 702]);
    assert_eq!(machines[1].mac.as_ref().unwrap().value.to_string(), "BC:24:11:00:02:02");
    let text = &imported.files["clusters/together/cluster.yaml"];
    for part in ["memory: 4096", "memory: 6144", "disk: 55", "bridge: vmbr4", "bios: ovmf", "ssd: true"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(imported.files.len(), 2, "nothing of a stack is left: {:?}", imported.files.keys());
    assert!(has_note(&imported, "infrastructure/tofu/main.tf:21", "the CD in `ide2`"));
    assert!(has_note(&imported, "talos/talconfig.yaml:1", "one cluster now"));
}

#[test]
fn what_strata_refuses_is_left_out_and_told() {
    let text = "templates = {}\nvm_configs = [\n  {\n    name = \"a\"\n    vm_id = 100\n    ip_configs = [{ ipv4_address = \"192.0.2.9/24\", ipv4_gateway = \"198.51.100.1\" }]\n  },\n]\npve_api_url = \"https://192.0.2.1:8006\"\nnode = \"pve\"\n";
    let imported = import(&Memory::new().file("environments/x/terraform.tfvars", text), "fixture1", None);
    repository(&imported);
    let written = &imported.files["stacks/machines-x/stack.yaml"];
    assert!(written.contains("192.0.2.9/24") && !written.contains("198.51.100.1"), "{written}");
    assert!(has_note(&imported, "environments/x/terraform.tfvars:3", "lies outside"));
}

#[test]
fn broken_files_cost_only_themselves() {
    let world = Memory::new()
        .file(
            "talconfig.yaml",
            "clusterName: a\nnodes: [{hostname: n, ipAddress: 192.0.2.1, controlPlane: true}]\n---\nb: 1\n",
        )
        .file("other/talconfig.yaml", "clusterName: b\n\tnodes: []\n")
        .file("topf.yaml", vec![0_u8, 1, 2])
        .file("cluster.toml", "[network\n")
        .file("environments/dev/terraform.tfvars", "a = = 1\n")
        .file("stacks/x/main.tf", b"# M\xfcller\nresource \"null_resource\" \"a\" {}\n".to_vec());
    let imported = import(&world, "fixture1", None);
    repository(&imported);
    assert!(has_note(&imported, "talconfig.yaml:3", "second document"));
    assert!(has_note(&imported, "other/talconfig.yaml:2", "was not read"));
    assert!(has_note(&imported, "topf.yaml:1", "not text"));
    assert!(has_note(&imported, "cluster.toml:1", "was not read"));
    assert!(has_note(&imported, "environments/dev/terraform.tfvars:1", "was not read"));
    assert!(has_note(&imported, "stacks/x/main.tf:1", "not UTF-8"));
}

/// Modules that call each other and loops in loops end.
#[test]
fn code_that_never_ends_is_given_up() {
    let loops = "locals {\n  a = range(500)\n  b = [for x in local.a : [for y in local.a : [for z in local.a : x]]]\n  c = local.d\n  d = local.c\n}\n";
    let machine = "resource \"proxmox_virtual_environment_vm\" \"a\" {\n  vm_id = length(local.b)\n  name = local.c\n  node_name = \"pve\"\n}\n";
    let world = Memory::new()
        .file("infra/main.tf", format!("{loops}{machine}module \"m\" {{\n  source = \"./m\"\n}}\n"))
        .file("infra/m/main.tf", "module \"again\" {\n  source = \"../m\"\n}\n");
    let imported = import(&world, "fixture1", None);
    repository(&imported);
    assert!(has_note(&imported, "infra/main.tf:9", "`local.c`, which only running the code would show"));
    assert!(has_note(&imported, "infra/m/main.tf:1", "`again`"));
}

#[test]
fn sets_of_values_beside_each_other_are_environments() {
    let code = "variable \"size\" {}\nprovider \"proxmox\" {\n  endpoint = \"https://192.0.2.1:8006\"\n}\nresource \"proxmox_virtual_environment_vm\" \"a\" {\n  vm_id = var.size\n  name = \"m${var.size}\"\n  node_name = \"pve\"\n}\n";
    let world = Memory::new()
        .file("lab/main.tf", code)
        .file("lab/dev.tfvars", "size = 101\n")
        .file("lab/prod.tfvars", "size = 102\nextra = 1\n")
        .file("lab/common.auto.tfvars.json", "{\n  \"unused\": true\n}\n");
    let imported = import(&world, "fixture1", None);
    let repository = repository(&imported);
    for (own, machine) in [("lab-dev", "m101"), ("lab-prod", "m102")] {
        let stack = repository.stack(own, None).and_then(|stack| stack.machines()).unwrap();
        assert!(stack.vms.get(machine).is_some());
    }
    assert!(has_note(&imported, "lab/prod.tfvars:2", "extra"));
}

/// Each takes outputs of the other for its arguments, which is no circle as long as no output depends on itself.
#[test]
fn two_modules_that_ask_each_other_are_worked_out() {
    let main = r#"
module "image" {
  source = "./image"
  first  = module.machines.first
  second = module.machines.second
}
module "machines" {
  source = "./machines"
  file   = module.image.file
  size   = module.image.size
}
"#;
    let image = r#"
variable "first" {}
variable "second" {}
output "file" { value = "local:iso/installer.iso" }
output "size" { value = 25 }
output "note" { value = "${var.first} ${var.second}" }
"#;
    let machines = r#"
variable "file" {}
variable "size" {}
resource "proxmox_virtual_environment_vm" "box" {
  name      = "box"
  vm_id     = 150
  node_name = "pve1"
  disk {
    interface = "scsi0"
    size      = var.size
  }
  cdrom {
    file_id = var.file
  }
}
output "first" { value = proxmox_virtual_environment_vm.box.name }
output "second" { value = "x" }
"#;
    let world =
        Memory::new().file("main.tf", main).file("image/main.tf", image).file("machines/main.tf", machines);
    let imported = import(&world, "fixture1", None);
    let written = &imported.files["stacks/machines/stack.yaml"];
    assert!(written.contains("scsi0: 25") && written.contains("local:iso/installer.iso"), "{written}");
}

/// The real file is kept out of git; what it looks like is not.
#[test]
fn an_example_says_what_no_other_file_does_but_no_secrets() {
    let main = r#"
variable "api_url" {}
variable "api_token" {}
variable "names" {}
variable "memory" { default = 512 }
provider "proxmox" {
  endpoint  = var.api_url
  api_token = var.api_token
}
resource "proxmox_virtual_environment_vm" "box" {
  for_each  = toset(var.names)
  name      = each.key
  node_name = "pve1"
  vm_id     = 160
  memory { dedicated = var.memory }
}
"#;
    let example = "api_url = \"https://pve.example:8006\"\napi_token = \"a@pve!b=xxxx\"\nnames = [\"DC01.example.org\"]\nmemory = 1024\n";
    let real = "memory = 4096\n";
    let world = Memory::new()
        .file("main.tf", main)
        .file("terraform.tfvars.example", example)
        .file("sizes.auto.tfvars", real);
    let imported = import(&world, "fixture1", None);
    repository(&imported);
    let written = &imported.files["stacks/machines/stack.yaml"];
    assert!(written.contains("  dc01:") && written.contains("memory: 4096"), "{written}");
    assert!(!imported.secrets.values().any(|secret| secret.contains("xxxx")));
    assert!(has_note(&imported, "terraform.tfvars.example:1", "taken from this example"));
}

/// A card that asks DHCP has the address that is written down only to reach it.
#[test]
fn talhelper_says_who_asks_dhcp_and_versions_are_checked() {
    let text = r#"clusterName: lab
talosVersion: v1.9.5
kubernetesVersion: v1.36.0
endpoint: https://192.0.2.11:6443
nodes:
  - hostname: one
    ipAddress: 192.0.2.11
    controlPlane: true
    networkInterfaces:
      - interface: eth0
        dhcp: true
  - hostname: ${SECOND}
    ipAddress: 192.0.2.12
    networkInterfaces:
      - interface: eth0
        dhcp: true
        addresses: [192.0.2.12/24]
"#;
    let read = |text: &str| import(&Memory::new().file("talconfig.yaml", text), "fixture1", None);
    let imported = read(text);
    // The version stays as it is, and `validate` refuses it.
    let supported = read(&text.replace("v1.9.5", "v1.13.0"));
    let repository = repository(&supported);
    let cluster = repository.stack("lab", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.get("one").unwrap().settings.dhcp, Some(true));
    assert_eq!(cluster.cluster.nodes.get("second").unwrap().settings.dhcp, None, "it has the address itself");
    assert!(has_note(&imported, "talconfig.yaml:2", "upgrade the machines with talosctl"));
    assert!(has_note(&imported, "talconfig.yaml:12", "`${SECOND}`"));
    let newer = read(&text.replace("v1.9.5", "v1.15.0"));
    assert!(has_note(&newer, "talconfig.yaml:2", "wait for a newer Strata"));
    let unfit = read(&text.replace("v1.9.5", "v1.12.4"));
    assert!(has_note(
        &unfit,
        "talconfig.yaml:3",
        "does not go with Talos `v1.12.4`, which runs 1.30 to 1.35"
    ));
}

/// What a plan would refuse of a configuration is told, with the patch in place.
#[test]
fn a_patch_that_fits_nowhere_is_told_and_one_with_two_dollars_is_read() {
    let text = r#"clusterName: lab
talosVersion: v1.12.4
endpoint: https://192.0.2.11:6443
nodes:
  - {hostname: one, ipAddress: 192.0.2.11, controlPlane: true}
patches:
  - "@./good.yaml"
  - "@./bad.yaml"
"#;
    let good = "cluster:\n  apiServer:\n    admissionControl:\n      $$patch: delete\n";
    let world = |bad: &str| {
        let world = Memory::new().file("talconfig.yaml", text).file("good.yaml", good).file("bad.yaml", bad);
        import(&world, "fixture1", None)
    };
    let told = |imported: &strata_import::Imported| {
        imported.notes.iter().any(|note| note.message.contains("`strata plan lab` refuses this for now"))
    };
    assert!(!told(&world("machine:\n  sysctls: {vm.swappiness: '1'}\n")));
    let refused = world("machine:\n  sysctls: [1]\n");
    assert!(told(&refused), "{:?}", refused.notes);
    assert!(refused.files.contains_key("clusters/lab/patches/bad.yaml"));
}

/// OpenTofu's own ending wins over Terraform's; code in JSON is told.
#[test]
fn code_has_two_endings() {
    let vm = |name: &str, number: u32| {
        format!(
            "resource \"proxmox_virtual_environment_vm\" \"{name}\" {{\n  name = \"{name}\"\n  node_name = \"a\"\n  vm_id = {number}\n}}\n"
        )
    };
    let world = Memory::new()
        .file("tofu/one.tofu", vm("one", 171))
        .file("tofu/two.tf", vm("old", 172))
        .file("tofu/two.tofu", vm("two", 173))
        .file("tofu/three.tf.json", "{}");
    let imported = import(&world, "fixture1", None);
    repository(&imported);
    let written = &imported.files["stacks/machines/stack.yaml"];
    assert!(
        written.contains("  one:") && written.contains("  two:") && !written.contains("old"),
        "{written}"
    );
    assert!(has_note(&imported, "tofu/three.tf.json:1", "code in JSON"));
}

/// What the provider has as resources of their own, and what it finds by the name of another resource.
#[test]
fn firewalls_and_clones_are_found_by_reference() {
    let main = r#"
resource "proxmox_virtual_environment_vm" "base" {
  name      = "base"
  node_name = "a"
  template  = true
  disk {
    interface = "scsi0"
    size      = 9
    file_id   = "local:import/base.qcow2"
  }
}
resource "proxmox_virtual_environment_vm" "web" {
  for_each        = toset(["one", "two"])
  name            = each.key
  node_name       = "a"
  timeout_create  = 900
  stop_on_destroy = true
  clone {
    vm_id = proxmox_virtual_environment_vm.base.vm_id
  }
  initialization {
    ip_config {
      ipv4 { address = "dhcp" }
    }
  }
}
resource "proxmox_virtual_environment_vm" "trunk" {
  name      = "trunk"
  node_name = "a"
  vm_id     = 181
  network_device {
    bridge = "vmbr0"
    trunks = "10;20"
  }
}
resource "proxmox_virtual_environment_firewall_options" "web" {
  for_each     = toset(["one"])
  vm_id        = proxmox_virtual_environment_vm.web[each.key].vm_id
  node_name    = "a"
  enabled      = true
  input_policy = "DROP"
}
resource "proxmox_virtual_environment_firewall_rules" "trunk" {
  vm_id = 181
  rule {
    type   = "in"
    action = "ACCEPT"
    dport  = "443"
    proto  = "tcp"
  }
  rule {
    security_group = "ssh"
  }
}
resource "proxmox_virtual_environment_firewall_rules" "datacenter" {
  rule {
    security_group = "ssh"
  }
}
"#;
    let imported = import(&Memory::new().file("main.tf", main), "fixture1", None);
    let repository = repository(&imported);
    let stack = repository.stack("machines", None).and_then(|stack| stack.machines()).unwrap();
    let one = stack.vms.get("one").unwrap();
    assert_eq!(one.template.as_ref().map(|template| template.value.as_str()), Some("base"));
    assert!(one.guest.firewall.is_some() && stack.vms.get("two").unwrap().guest.firewall.is_none());
    assert_eq!(one.hardware.network.iter().count(), 1, "the card is the template's");
    let trunk = stack.vms.get("trunk").unwrap();
    assert_eq!(trunk.guest.firewall.as_ref().unwrap().rules.len(), 2);
    let written = &imported.files["stacks/machines/stack.yaml"];
    assert!(written.contains("create: 900") && written.contains("policyIn: DROP"), "{written}");
    assert!(has_note(&imported, "main.tf:17", "`stop_on_destroy` is not needed"));
    let datacenter = &imported.files["hypervisors/machines-hypervisor.yaml"];
    assert!(datacenter.contains("action: ssh"), "{datacenter}");
    assert!(
        !imported.notes.iter().any(|note| note.message.contains("firewall_rules")),
        "{:?}",
        imported.notes
    );
}

/// Settings of a node whose name a file of variables has that is not there.
#[test]
fn settings_of_a_node_that_is_not_known_are_kept() {
    let main = r#"
variable "node" {}
variable "zone" {}
resource "proxmox_virtual_environment_dns" "one" {
  node_name = var.node
  domain    = "example.org"
  servers   = ["192.0.2.2"]
}
resource "proxmox_virtual_environment_time" "one" {
  node_name = var.node
  time_zone = var.zone
}
"#;
    let imported = import(&Memory::new().file("dns/main.tf", main), "fixture1", None);
    repository(&imported);
    let written = &imported.files["hypervisors/dns.yaml"];
    assert!(written.contains("node: pve") && written.contains("example.org"), "{written}");
    assert!(has_note(&imported, "dns:1", "`pve` was written down"));
}
