//! Rules, and what breaks them.

use strata_source::world::Memory;
use strata_tofu::policy::check;

use crate::world::rendered;

fn codes(world: &Memory) -> Vec<(String, &'static str)> {
    let (sources, found) = check(world);
    found
        .iter()
        .map(|found| {
            let file = found.primary.as_ref().map(|label| sources.location(label.span));
            (file.map(|at| format!("{}:{}", at.file, at.line)).unwrap_or_default(), found.code)
        })
        .collect()
}

#[test]
fn what_is_rendered_keeps_to_the_rules() {
    let source = Memory::new()
        .file(
            "strata.yaml",
            "repository: golden\ntargets: {pve: {proxmox: {endpoint: 'https://a', token: {env: T}}}}\n",
        )
        .file("stacks/a/stack.yaml", "proxmox: {node: pve1}\nvms: {a: {vmId: 100, disk: 8}}\n")
        .file("stacks/b/stack.yaml", "proxmox: {node: pve1}\nvms: {b: {vmId: 101, disk: 8}}\n");
    let mut world = source.clone();
    for (path, text) in rendered(&source).iter() {
        world = world.file(path, text);
    }
    assert_eq!(codes(&world), []);
}

#[test]
fn every_rule_finds_its_breach() {
    let backend = "terraform {\n  backend \"s3\" {\n    bucket = \"b\"\n    key    = \"same\"\n  }\n}\n";
    let world = Memory::new()
        .file("stacks/a/main.tf", "module \"x\" {\n  source = \"git::https://x/y.git\"\n}\nmodule \"v\" {\n  source  = \"a/b/c\"\n  version = \">= 1\"\n}\n")
        .file("stacks/a/variables.tf", "variable \"a\" {}\n")
        .file("stacks/a/backend.tf", backend)
        .file("stacks/a/secrets.tfvars", "root_password = \"open\"\nconnection = { token_id = \"x\", api_token = \"open\" }\n")
        .file("stacks/b/main.tf", "terraform {\n  required_providers {\n    aws = {\n      source = \"hashicorp/aws\"\n    }\n  }\n}\n")
        .file("stacks/b/backend.tf", backend)
        .file("modules/m/main.tf", "resource \"aws_instance\" \"m\" {}\n")
        .file("modules/m/variables.tf", "variable \"size\" {\n  type = string\n  description = \"how large\"\n}\n")
        .file("modules/m/README.md", "# m\n## Outputs\n\n| name | |\n|---|---|\n| `gone` | what was |\n")
        .file("stacks/c/main.tf", "provider \"aws\" {}\nresource \"terraform_data\" \"a\" {}\nlocals {\n  motd = <<-EOT\n    -----BEGIN RSA PRIVATE KEY-----\n    x\n  EOT\n  key = jsonencode({ apiToken = \"open\" })\n}\n")
        .file("stacks/c/more.auto.tfvars.json", r#"{"users": [{"password": "open"}]}"#);
    let found = codes(&world);
    let has = |file: &str, code: &str| found.iter().any(|(at, found)| at.starts_with(file) && *found == code);
    for (file, code) in [
        ("stacks/a/main.tf:2", "module-source"),
        ("stacks/a/main.tf:5", "module-pin"),
        ("stacks/a/variables.tf:1", "variable-type"),
        ("stacks/a/variables.tf:1", "variable-description"),
        ("stacks/a/secrets.tfvars:1", "plaintext-secret"),
        ("stacks/a/secrets.tfvars:2", "plaintext-secret"),
        ("stacks/b/main.tf:3", "provider-pin"),
        ("stacks/b/backend.tf:2", "backend-key"),
        ("stacks/b", "required-file"),
        ("modules/m/main.tf", "required-file"),
        ("modules/m/main.tf", "module-outputs"),
        ("modules/m/main.tf", "readme"),
        ("stacks/c/main.tf:1", "provider-pin"),
        ("stacks/c/main.tf:4", "plaintext-secret"),
        ("stacks/c/main.tf:8", "plaintext-secret"),
        ("stacks/c/more.auto.tfvars.json", "plaintext-secret"),
    ] {
        assert!(has(file, code), "no `{code}` at {file}: {found:?}");
    }
}

#[test]
fn what_is_no_secret_is_not_taken_for_one() {
    let world = Memory::new().file(
        "stacks/a/main.tf",
        r#"
locals {
  password        = var.password
  token           = "${var.user}=${var.token}"
  secret          = data.vault.x.secret
  token_ttl       = "24h"
  secret_name     = "db"
  db_password     = ""
  tls_private_key = file("key.pem")
  user_data       = <<-EOT
    password: ${var.password}
  EOT
  endpoint        = "https://pve.example:8006/"
  ssh_keys        = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ops@example"]
}
"#,
    );
    let secrets: Vec<_> = codes(&world).into_iter().filter(|(_, code)| *code == "plaintext-secret").collect();
    assert_eq!(secrets, []);
}
