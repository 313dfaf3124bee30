//! What is proposed, and that nothing but the named values changes.

use strata_outdated::Looked;
use strata_source::Repository;
use strata_source::world::Memory;

use crate::server::{Reply, Server, page, rows, text, write};

pub(crate) const SETTINGS: &str =
    "repository: demo1\ntargets: {pve: {proxmox: {endpoint: 'https://192.0.2.1:8006', token: {env: T}}}}\n";

pub(crate) fn sum(letter: char, digits: usize) -> String {
    letter.to_string().repeat(digits)
}

fn cluster(talos: &str, kubernetes: &str, more: &str) -> String {
    format!(
        "# the lab\ncluster:\n  talos:\n    version: {talos} # pinned by ops\n    schematic: {{extensions: [siderolabs/qemu-guest-agent]}}\n  kubernetes:\n    version: \"{kubernetes}\"\n  network: {{cidr: 192.0.2.0/24, gateway: 192.0.2.1, vip: 192.0.2.9}}\n  topology: {{controlPlane: {{count: 1, addresses: 192.0.2.11-192.0.2.19}}}}\n{more}"
    )
}

fn with_cluster(talos: &str, kubernetes: &str, more: &str) -> Memory {
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("clusters/lab/cluster.yaml", cluster(talos, kubernetes, more))
}

fn extensions(tag: &str) -> Reply {
    text(format!(
        r#"[{{"name":"siderolabs/qemu-guest-agent","ref":"ghcr.io/siderolabs/qemu-guest-agent:{tag}","digest":"sha256:aa"}}]"#
    ))
}

fn versions() -> Reply {
    text(
        r#"["v1.11.5","v1.11.6","v1.12.0","v1.12.4","v1.12.9-beta.1","v1.13.2","v1.14.0","v1.15.0","v2.0.0"]"#,
    )
}

fn notes(looked: &Looked) -> String {
    looked.findings.iter().flat_map(|finding| finding.notes.clone()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn talos_and_kubernetes_go_up_together_and_one_step_at_a_time() {
    let server = Server::start(&[
        ("/factory.talos.dev/versions", versions()),
        ("/factory.talos.dev/version/v1.11.5/extensions/official", extensions("9.0.0")),
        ("/factory.talos.dev/version/v1.12.4/extensions/official", extensions("10.0.2")),
        ("/dl.k8s.io/release/stable-1.34.txt", text("v1.34.7\n")),
        ("/dl.k8s.io/release/stable-1.35.txt", text("v1.35.3")),
    ])
    .await;
    let world = with_cluster("v1.11.5", "1.34.1", "");
    let looked = server.look(&world).await;
    // Talos 1.11 runs Kubernetes up to 1.34.
    assert_eq!(rows(&looked), ["talos v1.11.5 v1.12.4 -", "kubernetes 1.34.1 1.34.7 -"]);
    let said = notes(&looked);
    for part in [
        "after that, v1.13.2",
        "v1.15.0 is there, which this Strata does not know",
        "siderolabs/qemu-guest-agent 9.0.0 → 10.0.2",
        "Talos v1.11.5 does not run Kubernetes v1.35.3",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("beta"), "{said}");
    let files = write(&world, &looked).unwrap();
    let expected = cluster("v1.12.4", "1.34.7", "");
    assert_eq!(files["clusters/lab/cluster.yaml"], expected, "comments and quotes stay");
    let (_, found) = Repository::load(&world.file("clusters/lab/cluster.yaml", expected));
    assert!(!found.has_errors());
    // What Kubernetes is at holds Talos back: 1.13 runs 1.31 at least.
    let looked = server.look(&with_cluster("v1.12.4", "1.30.1", "")).await;
    assert_eq!(rows(&looked)[0], "talos v1.12.4 - -");
    assert!(notes(&looked).contains("Talos v1.13.2 does not run Kubernetes v1.30.1"), "{}", notes(&looked));
}

#[tokio::test]
async fn a_version_without_an_extension_is_passed_over() {
    let server = Server::start(&[
        ("/factory.talos.dev/versions", versions()),
        ("/factory.talos.dev/version/v1.11.5/extensions/official", extensions("9.0.0")),
        ("/factory.talos.dev/version/v1.11.6/extensions/official", extensions("9.0.1")),
        ("/factory.talos.dev/version/v1.12.4/extensions/official", text("[]")),
    ])
    .await;
    let looked = server.look(&with_cluster("v1.11.5", "v1.34.1", "")).await;
    assert_eq!(rows(&looked)[0], "talos v1.11.5 v1.11.6 -");
    assert!(notes(&looked).contains("v1.12.4 is there, without the extension siderolabs/qemu-guest-agent"));
    assert_eq!(rows(&looked)[1], "kubernetes v1.34.1 - -", "no list of a minor version is no failure");
}

#[tokio::test]
async fn flux_is_written_with_its_checksum_or_not_at_all() {
    let digest = format!("sha256:{}", sum('b', 64));
    let release = |tag: &str, digest: &str| {
        format!(
            r#"{{"tag_name":"{tag}","draft":false,"prerelease":false,"assets":[{{"name":"install.yaml","digest":{digest}}}]}}"#
        )
    };
    let listed = [
        release("v2.9.7", &format!("\"{digest}\"")),
        release("v3.0.1", "null"),
        release("v2.10.0-rc.1", "null"),
        r#"{"tag_name":"v2.11.0","prerelease":true}"#.to_owned(),
    ];
    let path = "/api.github.com/repos/fluxcd/flux2/releases?per_page=50";
    let server = Server::start(&[(path, text(format!("[{}]", listed.join(","))))]).await;
    let flux = |version: &str, digest: &str| {
        format!(
            "gitops:\n  flux:\n    version: {version}\n    repository: https://git.example/x\n    path: ./c # here\n    manifests:\n      checksum: {digest} # of install.yaml\n"
        )
    };
    let old = format!("sha256:{}", sum('a', 64));
    let world = with_cluster("v1.14.0", "v1.36.0", &flux("v2.9.5", &old));
    let looked = server.look(&world).await;
    assert_eq!(rows(&looked)[2], "flux v2.9.5 v2.9.7 v3.0.1");
    let major = looked.findings[2].major.as_ref().unwrap();
    assert!(major.edits.as_ref().unwrap_err().contains("names no checksum"), "{:?}", major.edits);
    let files = write(&world, &looked).unwrap();
    let expected = cluster("v1.14.0", "v1.36.0", &flux("v2.9.7", &digest));
    assert_eq!(files["clusters/lab/cluster.yaml"], expected);
}

fn guests(url: &str, checksum: &str) -> String {
    format!(
        "proxmox: {{node: pve1}}\nimages:\n  # the one that everybody boots from\n  base: {{url: {url}, checksum: \"{checksum}\"}} # keep\nvms:\n  a: {{vmId: 9100, disk: {{size: 4, import: base}}}}\n"
    )
}

fn with_image(url: &str, checksum: &str) -> Memory {
    Memory::new().file("strata.yaml", SETTINGS).file("stacks/web/stack.yaml", guests(url, checksum))
}

#[tokio::test]
async fn an_image_is_written_with_the_checksum_of_its_new_serial() {
    let of = |serial: &str| {
        format!(
            "https://cloud.debian.org/images/cloud/bookworm/{serial}/debian-12-genericcloud-amd64-{serial}.qcow2"
        )
    };
    let (old, new) = (format!("sha512:{}", sum('a', 128)), sum('b', 128));
    let folder = "/cloud.debian.org/images/cloud/bookworm";
    let file = "debian-12-genericcloud-amd64-20251120-2299.qcow2";
    let inner = format!("{folder}/20251120-2299/");
    let sums = format!("{inner}SHA512SUMS");
    let server = Server::start(&[
        (
            &format!("{folder}/"),
            page(&["20241001-1800/", "20250115-1993/", "20251120-2299/", "latest/", "20251120-2299.bak/"]),
        ),
        (&inner, page(&[file, "SHA512SUMS", "SHA512SUMS.sign"])),
        (&sums, text(format!("{}  other.qcow2\n{new}  {file}\n", sum('c', 128)))),
    ])
    .await;
    let world = with_image(&of("20250115-1993"), &old);
    let looked = server.look(&world).await;
    assert_eq!(rows(&looked), ["images 20250115-1993 20251120-2299 -"]);
    let files = write(&world, &looked).unwrap();
    assert_eq!(files["stacks/web/stack.yaml"], guests(&of("20251120-2299"), &format!("sha512:{new}")));
    assert!(!server.asked().iter().any(|path| path.ends_with(".sign")), "{:?}", server.asked());
    // The same file where there is nothing newer: a checksum that moved is told, and not written.
    let server = Server::start(&[
        (&format!("{folder}/"), page(&["20251120-2299/"])),
        (&inner, page(&[file, "SHA512SUMS"])),
        (&sums, text(format!("{new}  {file}\n"))),
    ])
    .await;
    let world = with_image(&of("20251120-2299"), &old);
    let looked = server.look(&world).await;
    assert_eq!(rows(&looked), ["images 20251120-2299 - -"]);
    assert!(notes(&looked).contains("has another checksum now"), "{}", notes(&looked));
    assert!(write(&world, &looked).unwrap().is_empty());
}

#[tokio::test]
async fn templates_of_containers_have_series_and_a_list_of_checksums() {
    let of = |name: &str| format!("http://download.proxmox.com/images/system/{name}");
    let (old, new) = ("debian-12-standard_12.7-1_amd64.tar.zst", "debian-12-standard_12.12-1_amd64.tar.zst");
    let next = "debian-13-standard_13.1-2_amd64.tar.zst";
    let list = format!(
        "Package: x\nLocation: system/{new}\nsha512sum: {}\n\nPackage: y\nLocation: system/{next}\nsha512sum: {}\n",
        sum('b', 128),
        sum('c', 128)
    );
    let server = Server::start(&[
        (
            "/download.proxmox.com/images/system/",
            page(&[old, new, next, "debian-12-standard_12.13-1rc1_amd64.tar.zst"]),
        ),
        ("/download.proxmox.com/images/aplinfo-pve-9.dat", text(list)),
    ])
    .await;
    let world = with_image(&of(old), &format!("sha512:{}", sum('a', 128)));
    let looked = server.look(&world).await;
    assert_eq!(rows(&looked), ["images 12.7-1 12.12-1 13.1-2"]);
    let files = write(&world, &looked).unwrap();
    assert_eq!(files["stacks/web/stack.yaml"], guests(&of(new), &format!("sha512:{}", sum('b', 128))));
    let major = looked.findings[0].major.as_ref().unwrap().edits.as_ref().unwrap();
    assert_eq!(major[0].after, of(next));
    assert_eq!(major[1].after, format!("sha512:{}", sum('c', 128)));
}

#[tokio::test]
async fn a_series_with_a_folder_of_its_own_is_found() {
    let of = |version: &str, series: &str| {
        format!(
            "https://dl-cdn.alpinelinux.org/alpine/v{series}/releases/x86_64/alpine-virt-{version}-x86_64.iso"
        )
    };
    let at = |series: &str| format!("/dl-cdn.alpinelinux.org/alpine/v{series}/releases/x86_64/");
    let iso = "alpine-virt-3.24.0-x86_64.iso";
    let server = Server::start(&[
        (&at("3.22"), page(&["alpine-virt-3.22.1-x86_64.iso", "alpine-standard-3.22.9-x86_64.iso"])),
        ("/dl-cdn.alpinelinux.org/alpine/", page(&["v3.21/", "v3.22/", "v3.24/", "edge/", "latest-stable/"])),
        (&at("3.24"), page(&[iso, &format!("{iso}.sha256"), "alpine-virt-3.24.0_rc1-x86_64.iso"])),
        (&format!("{}{iso}.sha256", at("3.24")), text(format!("{}  {iso}\n", sum('e', 64)))),
    ])
    .await;
    let looked = server.look(&with_image(&of("3.22.1", "3.22"), &format!("sha256:{}", sum('a', 64)))).await;
    assert_eq!(rows(&looked), ["images 3.22.1 - 3.24.0"]);
    let major = looked.findings[0].major.as_ref().unwrap().edits.as_ref().unwrap();
    assert_eq!(major[0].after, of("3.24.0", "3.24"));
}

#[tokio::test]
async fn what_always_leads_to_the_newest_gets_its_new_checksum() {
    let url = "https://cloud-images.ubuntu.com/noble/current/noble-server-cloudimg-amd64.img";
    let folder = "/cloud-images.ubuntu.com/noble/current/";
    let server = Server::start(&[
        (folder, page(&["noble-server-cloudimg-amd64.img", "SHA256SUMS"])),
        (
            &format!("{folder}SHA256SUMS"),
            text(format!("{} *noble-server-cloudimg-amd64.img\n", sum('b', 64))),
        ),
    ])
    .await;
    let world = with_image(url, &format!("sha256:{}", sum('a', 64)));
    let looked = server.look(&world).await;
    assert_eq!(rows(&looked), ["images no release sha256:bbbbbbbbbbbb… -"]);
    let files = write(&world, &looked).unwrap();
    assert_eq!(files["stacks/web/stack.yaml"], guests(url, &format!("sha256:{}", sum('b', 64))));
}

#[tokio::test]
async fn providers_and_modules_keep_the_form_of_their_pins() {
    let code = |provider: &str, module: &str| {
        format!(
            "terraform {{\n  required_providers {{\n    proxmox = {{\n      source  = \"bpg/proxmox\" # ours\n      version = \"{provider}\" # see ADR 7\n    }}\n  }}\n}}\n\nmodule \"vpc\" {{\n  source  = \"terraform-aws-modules/vpc/aws//modules/x\"\n  version = \"{module}\"\n}}\n\nmodule \"own\" {{\n  source = \"../../modules/own\"\n}}\n\nmodule \"private\" {{\n  source  = \"registry.corp.example/a/b/c\"\n  version = \">= 1.0, < 2.0\"\n}}\n"
        )
    };
    let services = |base: &str| {
        text(format!(r#"{{"providers.v1":"{base}/providers/","modules.v1":"{base}/modules/"}}"#))
    };
    let server = Server::start(&[
        ("/registry.opentofu.org/.well-known/terraform.json", services("/v1")),
        ("/registry.opentofu.org/v1/providers/bpg/proxmox/versions", text(r#"{"versions":[{"version":"0.70.0"},{"version":"0.112.1"},{"version":"1.0.0-beta1"},{"version":"x"}]}"#)),
        ("/registry.opentofu.org/v1/modules/terraform-aws-modules/vpc/aws/versions", text(r#"{"modules":[{"versions":[{"version":"5.1.0"},{"version":"5.21.0"},{"version":"6.2.0"}]}]}"#)),
    ])
    .await;
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/app/main.tf", code("~> 0.70", "~> 5.1.0"))
        .file("modules/own/main.tf", "");
    let looked = server.look(&world).await;
    let expected =
        ["providers ~> 0.70 ~> 0.112 -", "modules ~> 5.1.0 ~> 5.21.0 ~> 6.2.0", "modules >= 1.0, < 2.0 ? -"];
    assert_eq!(rows(&looked), expected);
    assert_eq!(looked.findings[0].pin.place.to_string(), "stacks/app/main.tf:5");
    let files = write(&world, &looked).unwrap();
    assert_eq!(files["stacks/app/main.tf"], code("~> 0.112", "~> 5.21.0"));
}

#[tokio::test]
async fn a_pin_that_several_environments_have_is_one_and_fits_all_of_them() {
    let server = Server::start(&[
        ("/factory.talos.dev/versions", versions()),
        ("/factory.talos.dev/version/v1.12.4/extensions/official", extensions("1")),
        ("/factory.talos.dev/version/v1.13.2/extensions/official", extensions("1")),
    ])
    .await;
    let over = "environments/old.yaml";
    let world = with_cluster("v1.12.4", "v1.34.1", "")
        .file(over, "targets: {pve: {proxmox: {endpoint: 'https://192.0.2.2:8006'}}}\noffsets: {addresses: {192.0.2.0/24: 198.51.100.0/24}}\nclusters:\n  lab:\n    cluster:\n      kubernetes: {version: v1.30.4}\n");
    let looked = server.look(&world).await;
    let talos: Vec<_> = looked.findings.iter().filter(|one| one.pin.name == "talos").collect();
    assert_eq!((talos.len(), talos[0].pin.stacks.len()), (1, 2), "{:?}", rows(&looked));
    assert!(talos[0].next.is_none(), "1.13 does not run the 1.30 of the other environment");
    let kubernetes: Vec<String> = looked
        .findings
        .iter()
        .filter(|one| one.pin.name == "kubernetes")
        .map(|one| one.pin.place.to_string())
        .collect();
    assert_eq!(kubernetes, ["clusters/lab/cluster.yaml:7", "environments/old.yaml:6"]);
}
