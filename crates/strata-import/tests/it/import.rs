//! Each kind of repository, with the quirks that are found in the wild.

mod findings;
mod nothing_is_lost;
mod quirks;

use std::path::{Path, PathBuf};

use strata_import::{Imported, Note, import};
use strata_source::Repository;
use strata_source::world::{Disk, Memory};

fn folder(fixture: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures").join(fixture)
}

fn imported(fixture: &str) -> Imported {
    import(&Disk::new(folder(fixture), []), "fixture1", None)
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

fn at(note: &Note) -> String {
    note.place.as_ref().map(|place| format!("{}:{}", place.file, place.line)).unwrap_or_default()
}

fn has_note(imported: &Imported, place: &str, part: &str) -> bool {
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
    assert!(has_note(&imported, &format!("{folder}/main.tf:28"), "time_sleep.before_flux"));
    let legacy = &imported.files["stacks/legacy/stack.yaml"];
    assert!(legacy.contains("vmId: 900001 # stands in for the real one"), "{legacy}");
    assert!(imported.notes.iter().any(|note| note.message.contains("`legacy/pihole` has no `vm_id`")));
}

/// Hosts, and a machine that a module makes: what the code says is worked out.
#[test]
fn layered_terraform_has_hypervisors_and_other_machines() {
    let imported = imported("layered");
    let repository = repository(&imported);
    let access = &imported.files["hypervisors/datacenter.yaml"];
    for part in ["\"automation@pve\":\n", "\"automation@pve!pipeline\":\n", "role: Automation", "- VM.Audit"]
    {
        assert!(access.contains(part), "{part} is not in {access}");
    }
    let host = &imported.files["hypervisors/pve1.yaml"];
    for part in
        ["address: \"192.0.2.11/24\"", "vmbr1.77:", "tag: 77", "timezone: Europe/Oslo", "iommuGroup: 23"]
    {
        assert!(host.contains(part), "{part} is not in {host}");
    }
    let nas = repository.stack("nas", None).and_then(|stack| stack.machines()).unwrap();
    let nas = nas.vms.get("nas").unwrap();
    assert_eq!((nas.hardware.cores, nas.hardware.disks.iter().count()), (Some(3), 2));
    let written = &imported.files["stacks/nas/stack.yaml"];
    for part in ["vmId: 1500", "memory: 6144", "storage: local-zfs", "storage: tank", "mapping: card"] {
        assert!(written.contains(part), "{part} is not in {written}");
    }
    assert!(has_note(&imported, "infrastructure/02-platforms/nas/main.tf:13", "module.nas.colour"));
    assert!(has_note(&imported, "infrastructure/modules/machine/main.tf:6", "migrate"));
    let host = "infrastructure/01-hypervisors/02-pve1/host.tf";
    assert!(has_note(&imported, &format!("{host}:38"), "apt_repository.free"));
    assert!(has_note(&imported, &format!("{host}:5"), "local.rack"));
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
    assert!(has_note(&imported, "cluster.toml:30", "without a name"));
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
    assert_eq!(repository.settings.state.as_ref().unwrap().bucket.as_deref(), Some("tofu-state"));
    let data = "stacks/onprem/server_a/vms.tfvars";
    assert!(has_note(&imported, &format!("{data}:26"), "no `vm_id`"));
    assert!(has_note(&imported, &format!("{data}:43"), "not enabled"));
    assert!(has_note(&imported, &format!("{data}:49"), "mystery"));
    assert!(has_note(&imported, "stacks/onprem/server_a/secrets.tfvars:1", "ansible-vault"));
}

/// `resource_groups`, with sizes in profiles and the values in a folder of environments.
#[test]
fn the_older_layout_of_stacks() {
    let imported = imported("groups");
    let repository = repository(&imported);
    let stack = repository.stack("harbour", None).and_then(|stack| stack.machines()).unwrap();
    assert_eq!((stack.vms.len(), stack.containers.len()), (2, 1), "one has no number, one is not enabled");
    let written = &imported.files["stacks/harbour/stack.yaml"];
    for part in
        ["node: moor", "storage: thin", "ip: \"192.0.2.131/25\"", "cores: 4", "scsi0: 40", "user: dev"]
    {
        assert!(written.contains(part), "{part} is not in {written}");
    }
    assert_eq!(imported.secrets["user_password"], "anchor");
    assert!(imported.secrets["proxmox_api_token"].starts_with("tofu@pve!ci="));
    let data = "environments/harbour.tfvars";
    assert!(has_note(&imported, &format!("{data}:7"), "cloned from `ubuntu-cloud`"));
    assert!(has_note(&imported, &format!("{data}:13"), "no `id`"));
    assert!(has_note(&imported, &format!("{data}:26"), "not enabled"));
    assert!(has_note(&imported, "variables.tf:13", "`qemu.small`"));
}

/// Disks by their bus, numbers for truth, and texts for what later became blocks.
#[test]
fn the_telmate_provider_up_to_2_9() {
    let imported = imported("telmate");
    let repository = repository(&imported);
    let stack = repository.stack("old", None).and_then(|stack| stack.machines()).unwrap();
    assert_eq!((stack.vms.len(), stack.containers.len()), (3, 1));
    let web = stack.vms.get("web-2").unwrap();
    assert_eq!((web.guest.vm_id.value, web.hardware.cores), (311, Some(2)));
    assert_eq!(web.hardware.network.iter().count(), 2);
    let written = &imported.files["stacks/old/stack.yaml"];
    for part in [
        "  node: pve1",
        "virtio0:",
        "size: \"3584M\"",
        "mbps_rd: 50",
        "ip: \"192.0.2.11/24\"",
        "vlan: 30",
        "ip6: auto",
        "order: 2",
        "scsiController: lsi",
        "iso: local:iso/rescue.iso",
        "volume: /srv/share",
    ] {
        assert!(written.contains(part), "{part} is not in {written}");
    }
    assert!(!written.contains("vlan: -1"), "{written}");
    assert_eq!(imported.secrets["web_1_password"], "open");
    let code = "old/main.tf";
    assert!(has_note(&imported, &format!("{code}:28"), "cloned from `debian-12`"));
    assert!(has_note(&imported, &format!("{code}:85"), "`old/rescue` has no `vmid`"));
    assert!(has_note(&imported, &format!("{code}:101"), "hastate"));
    assert!(has_note(&imported, &format!("{code}:148"), "is a clone"));
}

/// Disks by slot or in a block for each slot, the processor in a block, and containers of the second kind.
#[test]
fn the_telmate_provider_from_3_on() {
    let imported = imported("telmate");
    let repository = repository(&imported);
    let stack = repository.stack("new", None).and_then(|stack| stack.machines()).unwrap();
    let alpha = stack.vms.get("alpha").unwrap();
    assert_eq!((alpha.hardware.cores, alpha.hardware.sockets), (Some(2), Some(2)));
    assert_eq!(stack.containers.len(), 1);
    let written = &imported.files["stacks/new/stack.yaml"];
    for part in [
        "- \"+aes\"",
        "- \"-pcid\"",
        "volume: /dev/disk/by-id/spare",
        "iops_rd_max: 900",
        "net1:",
        "mapping: card",
        "xvga: true",
        "started: false",
        "rng0: \"source=/dev/hwrng,max_bytes=512\"",
        "local:vztmpl/alpine-3.22-default_20250617_amd64.tar.xz",
        "upDelay: 20",
    ] {
        assert!(written.contains(part), "{part} is not in {written}");
    }
    assert!(imported.files["hypervisors/new-hypervisor.yaml"].contains("for trying things"));
    assert!(has_note(&imported, "new/main.tf:29", "any of 2 nodes"));
    assert!(has_note(&imported, "new/main.tf:96", "put their text into `cloudInit`"));
}

/// Strata drives OpenTofu for it, so its modules have to be found.
#[test]
fn a_stack_of_another_provider_is_kept_with_its_modules() {
    let imported = imported("stacks");
    assert!(repository(&imported).stack("aws_global", None).is_some());
    let code = &imported.files["stacks/cloud/aws_global/main.tf"];
    assert!(code.contains("source = \"../../../modules/aws_machine\""), "{code}");
    assert!(imported.files["modules/aws_machine/main.tf"].contains("\"../../modules/inner\""));
    assert!(imported.files.contains_key("modules/aws_machine/start.sh"));
    assert!(imported.files.contains_key("modules/inner/main.tf"));
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
    let text = &imported.files["clusters/homelab/cluster.yaml"];
    assert!(text.contains("dhcp: true") && text.contains("address: \"192.0.2.1\""), "{text}");
    assert!(
        imported
            .notes
            .iter()
            .any(|note| note.message.contains("`homelab-worker2`) has its address in no file"))
    );
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
    assert!(has_note(&imported, &format!("{dev}:19"), "`broken`"));
    assert!(has_note(&imported, "environments/prod/terraform.tfvars:16", "has already"));
    assert_eq!(imported.secrets["monitor_root_password"], "open");
}

#[test]
fn talhelper() {
    let imported = imported("talconfig");
    let repository = repository(&imported);
    let cluster = repository.stack("home-lab", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.len(), 2);
    // Two of its own, and the network, which is not the same for all nodes.
    assert_eq!(cluster.cluster.nodes.get("cp-1").unwrap().settings.patches.len(), 3);
    assert!(imported.files["clusters/home-lab/cluster.yaml"].contains("4GB"));
    assert!(has_note(&imported, "talconfig.yaml:24", "ingressFirewall"));
    assert!(has_note(&imported, "talconfig.yaml:30", "missing.yaml"));
}

#[test]
fn topf() {
    let imported = imported("topf");
    let repository = repository(&imported);
    let cluster = repository.stack("edge", None).and_then(|stack| stack.cluster()).unwrap();
    assert_eq!(cluster.cluster.nodes.len(), 2);
    assert!(has_note(&imported, "topf.yaml:12", "`nodes[0].data`"));
}

#[test]
fn a_folder_with_nothing_known_gives_nothing() {
    let imported = import(&Memory::new().file("README.md", "x"), "fixture1", None);
    assert!(imported.found.is_empty() && imported.files.is_empty());
}
