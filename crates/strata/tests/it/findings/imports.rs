//! What import and sync lost without a word, as a user meets it; each value of it is tested in `strata-import`.

use std::path::{Path, PathBuf};

use strata_testkit::{Repo, Strata};

use crate::world::BINARY;

fn checkout(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../strata-import/tests/it/fixtures/checkouts").join(name)
}

/// Every checkout becomes a repository that validates and that `strata sync` renders.
#[test]
fn e1_e2_e7_what_modules_make_is_valid_and_rendered() {
    for name in [
        "layers-talos",
        "layers-plain",
        "environments-modules",
        "values-beside",
        "groups-modules",
        "stacks-modules",
        "talos-workers",
        "counted",
        "clusters-code",
        "examples-alike",
    ] {
        let repo = Repo::empty();
        let strata = Strata::new(BINARY, &repo);
        strata.run(&["-C", "new", "import", checkout(name).to_str().unwrap()]).ok();
        strata.run(&["-C", "new", "validate"]).ok();
        strata.run(&["-C", "new", "sync"]).ok();
        strata.run(&["-C", "new", "sync", "--check"]).ok();
        if name == "layers-talos" {
            let topf = repo.read("new/clusters/k8s-prod/talos/topf.yaml");
            assert!(
                topf.contains("clusterName: prod-cluster") && topf.contains("secureboot: true"),
                "{topf}"
            );
            let vms = repo.read("new/clusters/k8s-prod/terraform/terraform.tfvars");
            assert!(vms.contains("virtio0") && !vms.contains("scsi0"), "{vms}");
        }
    }
}

/// The encrypted file that was there is what it was, and ours lies beside it.
#[test]
fn e4_an_encrypted_file_is_not_replaced() {
    let repo = Repo::empty();
    let sealed = "token: ENC[AES256_GCM,data:x]\nsops:\n  version: 3.9.0\n";
    repo.write("old/secrets.sops.yaml", sealed);
    repo.write(
        "old/main.tf",
        "provider \"proxmox\" {\n  endpoint = \"https://a.example:8006\"\n}\n\
         resource \"proxmox_virtual_environment_vm\" \"a\" {\n  vm_id     = 101\n  name      = \"a\"\n  node_name = \"pve\"\n  \
         disk {\n    interface = \"scsi0\"\n  }\n}\n",
    );
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["-C", "new", "import", repo.file("old").to_str().unwrap()]).ok();
    assert_eq!(repo.read("new/secrets.sops.yaml"), sealed);
    assert!(repo.read("new/strata.sops.yaml").contains("proxmox_api_token: ENC["));
    let settings = repo.read("new/strata.yaml");
    assert!(
        settings.contains("sops: strata.sops.yaml") && settings.contains("sops: secrets.sops.yaml"),
        "{settings}"
    );
}
