//! Each kind of repository, with the quirks that are found in the wild.

use std::path::Path;

use strata_source::Repository;
use strata_source::world::{Disk, Memory};
use strata_tofu::import::{Imported, import};

fn imported(fixture: &str) -> Imported {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(fixture);
    import(&Disk::new(folder, []), "fixture1")
}

/// The new repository, which must be valid and drawable.
fn repository(imported: &Imported) -> Repository {
    let mut world = Memory::new();
    for (path, text) in &imported.files {
        world = world.file(path, text.as_str());
    }
    let names: String = imported.secrets.keys().map(|name| format!("{name}: ENC[x]\n")).collect();
    let world = world.file("secrets.sops.yaml", format!("{names}sops: {{version: 3.9.0}}\n"));
    let (repository, diagnostics) = Repository::load(&world);
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|found| found.is_error())
        .map(|found| {
            let at = found.primary.as_ref().map(|label| repository.sources.location(label.span));
            format!("{:?}: {}", at.map(|at| (at.file, at.line)), found.message)
        })
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{:#?}", imported.files);
    repository
}

fn has_note(imported: &Imported, place: &str, part: &str) -> bool {
    let at = |note: &strata_tofu::import::Note| {
        note.place.as_ref().map(|place| format!("{}:{}", place.file, place.line)).unwrap_or_default()
    };
    let found = imported.notes.iter().any(|note| at(note) == place && note.message.contains(part));
    if !found {
        for note in &imported.notes {
            eprintln!("{}: {}", at(note), note.message);
        }
    }
    found
}

#[test]
fn layered_terraform() {
    let imported = imported("layered");
    let repository = repository(&imported);
    let cluster = repository.stack("k8s-prod", None).and_then(|stack| stack.cluster()).unwrap();
    let machines = cluster.machines("k8s-prod", &mut strata_diagnostics::Diagnostics::new());
    assert_eq!(machines.len(), 3);
    assert_eq!(machines[0].vm_id.as_ref().unwrap().value, 400);
    assert_eq!(machines[1].address.as_ref().unwrap().value.to_string(), "192.0.2.42");
    assert_eq!(machines[2].mac.as_ref().unwrap().value.to_string(), "BC:24:11:00:00:03");
    assert_eq!(imported.secrets["truenas_api_key"], "1-example");
    assert!(imported.secrets["proxmox_api_token"].starts_with("terraform@pve!iac="));
    assert!(!imported.files.values().any(|text| text.contains("11111111")), "a token is in the clear");
    let folder = "infrastructure/02-platforms/k8s-prod";
    assert!(has_note(&imported, &format!("{folder}/main.tf:25"), "unusual_argument"));
    assert!(has_note(&imported, "infrastructure/01-hypervisors/network.tf:1", "was not carried over"));
    assert!(has_note(&imported, "infrastructure/03-legacy/main.tf:1", "pihole"));
}

#[test]
fn the_cluster_template_family() {
    let imported = imported("template");
    let repository = repository(&imported);
    assert!(repository.stack("kubernetes", None).is_some());
    assert!(imported.files["cluster.yaml"].contains("keycloak_realm"), "keys of applications pass unharmed");
    assert!(has_note(&imported, "cluster.yaml:7", "in the clear"));
}

#[test]
fn cluster_toml() {
    let imported = imported("toml");
    let repository = repository(&imported);
    let cluster = repository.stack("kubernetes", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.len(), 1);
    assert_eq!(cluster.cluster.network.as_ref().unwrap().guest_vlan, Some(20));
    assert!(has_note(&imported, "cluster.toml:10", "coredns_addr"));
    assert!(imported.notes.iter().any(|note| note.message.contains("without a name")));
}

#[test]
fn stacks_with_ansible_vault() {
    let imported = imported("stacks");
    let repository = repository(&imported);
    let stack = repository.stack("server-a", None).and_then(|stack| stack.machines()).unwrap();
    assert_eq!(stack.vms.len(), 2, "one has no number");
    assert_eq!(stack.vms.get("web-02").unwrap().hardware.cores, Some(4), "the node's key wins");
    assert_eq!(stack.vms.get("web-01").unwrap().hardware.disks.iter().count(), 2);
    assert_eq!(stack.containers.len(), 1);
    assert!(repository.stack("aws_global", None).is_some(), "a stack of another provider is kept");
    assert_eq!(repository.settings.state.as_ref().unwrap().bucket.as_deref(), Some("tofu-state"));
    let data = "stacks/onprem/server_a/vms.tfvars";
    assert!(has_note(&imported, &format!("{data}:26"), "no `vm_id`"));
    assert!(has_note(&imported, &format!("{data}:43"), "not enabled"));
    assert!(has_note(&imported, &format!("{data}:49"), "mystery"));
    assert!(has_note(&imported, "stacks/onprem/server_a/secrets.tfvars:1", "ansible-vault"));
}

#[test]
fn one_cluster_yaml_for_each_cluster() {
    let imported = imported("clusters");
    let repository = repository(&imported);
    let cluster = repository.stack("homelab", None).and_then(|stack| stack.cluster()).unwrap();
    let machines = cluster.machines("homelab", &mut strata_diagnostics::Diagnostics::new());
    let names: Vec<(&str, u32)> = machines
        .iter()
        .map(|machine| (machine.name.as_str(), machine.vm_id.as_ref().unwrap().value))
        .collect();
    assert_eq!(names, [("homelab-cp1", 800), ("homelab-worker1", 810), ("homelab-worker2", 811)]);
    assert_eq!(
        repository.settings.state.as_ref().unwrap().endpoint.as_deref(),
        Some("https://garage.example")
    );
    assert!(has_note(&imported, "clusters/homelab/cluster.yaml:31", "colour"));
}

#[test]
fn templates_and_guests_by_environment() {
    let imported = imported("environments");
    let repository = repository(&imported);
    let dev = repository.stack("shop-dev", None).and_then(|stack| stack.machines()).unwrap();
    let prod = repository.stack("shop-prod", None).and_then(|stack| stack.machines()).unwrap();
    assert_eq!((dev.templates.len(), dev.vms.len()), (1, 1));
    assert_eq!((prod.templates.len(), prod.vms.len(), prod.containers.len()), (0, 1, 1));
    let template = prod.vms.get("web-01-shop-prod").unwrap().template.as_ref().unwrap();
    assert_eq!(template.value, "shop-dev/debian12", "one template, however many environments have it");
    let dev = "environments/dev/terraform.tfvars";
    assert!(has_note(&imported, &format!("{dev}:42"), "a block `locals`"));
    assert!(has_note(&imported, &format!("{dev}:10"), "undeclared"));
    assert!(imported.notes.iter().any(|note| note.message.contains("`broken`")));
    assert!(has_note(&imported, "environments/prod/terraform.tfvars:16", "has already"));
    assert_eq!(imported.secrets["monitor_root_password"], "open");
}

#[test]
fn talhelper() {
    let imported = imported("talconfig");
    let repository = repository(&imported);
    let cluster = repository.stack("home-lab", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.len(), 2);
    assert_eq!(cluster.cluster.nodes.get("cp-1").unwrap().settings.patches.len(), 2);
    assert_eq!(cluster.cluster.network.as_ref().unwrap().cidr.to_string(), "192.0.2.0/24");
    assert!(has_note(&imported, "talconfig.yaml:24", "ingressFirewall"));
    assert!(has_note(&imported, "talconfig.yaml:30", "missing.yaml"));
}

#[test]
fn topf() {
    let imported = imported("topf");
    let repository = repository(&imported);
    let cluster = repository.stack("edge", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.len(), 2);
    assert!(has_note(&imported, "topf.yaml:12", "`data`"));
}

#[test]
fn a_folder_with_nothing_known_gives_nothing() {
    let imported = import(&Memory::new().file("README.md", "x"), "fixture1");
    assert!(imported.found.is_empty() && imported.files.is_empty());
}
