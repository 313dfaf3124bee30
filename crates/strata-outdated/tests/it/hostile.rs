//! Servers that answer slowly, hugely, with something else, or with what would go back: nothing is proposed, and who did it is named.

use strata_outdated::Looked;
use strata_source::world::Memory;

use crate::server::{Reply, Server, page, rows, text, write};
use crate::written::{SETTINGS, sum};

const URL: &str = "https://images.example/cloud/20250115/base-20250115.qcow2";
const FOLDER: &str = "/images.example/cloud/";
const NEW: &str = "/images.example/cloud/20251120/";

fn world() -> Memory {
    let stack = format!(
        "proxmox: {{node: pve1}}\nimages:\n  base: {{url: {URL}, checksum: \"sha512:{}\"}}\nvms:\n  a: {{vmId: 9100, disk: {{size: 4, import: base}}}}\n",
        sum('a', 128)
    );
    let code =
        "terraform {\n  required_providers {\n    x = { source = \"a/x\", version = \"~> 1.0\" }\n  }\n}\n";
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/web/stack.yaml", stack)
        .file("stacks/hand/main.tf", code)
}

fn said(looked: &Looked) -> Vec<String> {
    looked.unanswered.iter().map(|one| format!("{} {}", one.url, one.error)).collect()
}

async fn image(pages: &[(&str, Reply)]) -> (Looked, Vec<String>) {
    let server = Server::start(pages).await;
    let looked = server.look(&world()).await;
    let found = said(&looked);
    (looked, found)
}

/// What the index of images answers, and what is said of it.
#[tokio::test]
async fn answers_that_are_none_are_named_and_nothing_comes_of_them() {
    let cases: Vec<(Reply, &str)> = vec![
        (Reply::Endless, "larger than"),
        (Reply::Silent, "did not answer GET"),
        (Reply::Status(500), "HTTP 500"),
        (Reply::Status(403), "HTTP 403"),
        (text("<html>please log in</html>"), "not an index of files"),
        (text(""), "not an index of files"),
        (Reply::Bytes(vec![0xff; 64]), "no text"),
        (Reply::Redirect(FOLDER.to_owned()), "redirects more than"),
        (Reply::Redirect("javascript:alert(1)".to_owned()), "no address of the web"),
        (Reply::Redirect("file:///etc/passwd".to_owned()), "no address of the web"),
    ];
    for (reply, expected) in cases {
        let (looked, said) = image(&[(FOLDER, reply)]).await;
        assert_eq!(rows(&looked)[1], "images 20250115 ? -", "{expected}: {said:?}");
        assert!(said.iter().any(|line| line.contains(expected)), "{expected}: {said:?}");
        assert!(write(&world(), &looked).unwrap().is_empty());
    }
}

#[tokio::test]
async fn html_instead_of_json_is_named_for_each_source() {
    let html = || text("<!doctype html><title>Sign in</title>");
    let server =
        Server::start(&[("/registry.opentofu.org/.well-known/terraform.json", html()), (FOLDER, html())])
            .await;
    let looked = server.look(&world()).await;
    assert!(looked.findings.iter().all(|finding| finding.unknown.is_some()), "{:?}", rows(&looked));
    let said = said(&looked);
    assert!(
        said.iter().any(|line| line.contains("registry.opentofu.org") && line.contains("is not JSON")),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_registry_leads_nowhere_that_is_not_encrypted() {
    for base in [r#""http://evil.example/v1/""#, "7", "null", r#""ftp://x/""#] {
        let services = text(format!("{{\"providers.v1\":{base}}}"));
        let server = Server::start(&[("/registry.opentofu.org/.well-known/terraform.json", services)]).await;
        let looked = server.look(&world()).await;
        assert!(rows(&looked)[0].ends_with("? -"), "{base}: {:?}", rows(&looked));
        assert!(!server.asked().iter().any(|path| path.contains("evil")), "{:?}", server.asked());
    }
}

#[tokio::test]
async fn a_place_that_is_down_is_asked_once_and_the_others_are_looked_at() {
    let list = text(r#"{"versions":[{"version":"1.0.0"},{"version":"1.7.0"}]}"#);
    let server = Server::start(&[
        (FOLDER, Reply::Status(503)),
        ("/registry.opentofu.org/.well-known/terraform.json", text(r#"{"providers.v1":"/v1/providers/"}"#)),
        ("/registry.opentofu.org/v1/providers/a/x/versions", list),
    ])
    .await;
    let looked = server.look(&world()).await;
    assert_eq!(rows(&looked), ["providers ~> 1.0 ~> 1.7 -", "images 20250115 ? -"]);
    assert_eq!(said(&looked).len(), 1, "{:?}", said(&looked));
    assert_eq!(server.asked().iter().filter(|path| path.starts_with("/images")).count(), 1);
}

#[tokio::test]
async fn nothing_goes_back_and_no_suffix_is_a_release() {
    let names = [
        "20240101/",
        "20250114/",
        "20250115/",
        "20251120-rc1/",
        "20251120.old/",
        "2025112/",
        "x20251120/",
        "99999999/",
    ];
    let own = "/images.example/cloud/20250115/";
    let (looked, _) = image(&[(FOLDER, page(&names)), (own, page(&["base-20250115.qcow2"]))]).await;
    assert_eq!(rows(&looked)[1], "images 20250115 - -");
    let listed = text(
        r#"{"versions":[{"version":"0.9.9"},{"version":"1.0.0"},{"version":"1.8.0-rc1"},{"version":"1.9"},{"version":"../../x"}]}"#,
    );
    let server = Server::start(&[
        ("/registry.opentofu.org/.well-known/terraform.json", text(r#"{"providers.v1":"/v1/providers/"}"#)),
        ("/registry.opentofu.org/v1/providers/a/x/versions", listed),
    ])
    .await;
    assert_eq!(rows(&server.look(&world()).await)[0], "providers ~> 1.0 - -");
}

#[tokio::test]
async fn without_a_checksum_as_strong_as_the_pinned_one_nothing_is_written() {
    let file = "base-20251120.qcow2";
    let sums = format!("{NEW}SHA512SUMS");
    let weak = format!("{NEW}SHA256SUMS");
    let cases: Vec<(Vec<(&str, Reply)>, &str)> = vec![
        (vec![(&sums, text(format!("{}  other.qcow2\n", sum('b', 128))))], "has no checksum of it"),
        (vec![(&sums, text("<html>"))], "has no checksum of it"),
        (
            vec![(&sums, text(format!("{}  {file}\n{}  {file}\n", sum('b', 128), sum('c', 128))))],
            "has no checksum of it",
        ),
        (vec![(&weak, text(format!("{}  {file}\n", sum('b', 64))))], "of sha512 or stronger"),
        (vec![], "no file of checksums"),
    ];
    for (more, expected) in cases {
        let names: Vec<&str> =
            more.iter().map(|(path, _)| path.rsplit('/').next().unwrap()).chain([file]).collect();
        let pages = [vec![(FOLDER, page(&["20251120/"])), (NEW, page(&names))], more].concat();
        let (looked, _) = image(&pages).await;
        assert_eq!(rows(&looked)[1], "images 20250115 20251120 -");
        let why = looked.findings[1].next.as_ref().unwrap().edits.as_ref().unwrap_err();
        assert!(why.contains(expected), "{expected}: {why}");
        assert!(write(&world(), &looked).unwrap().is_empty());
    }
}

#[tokio::test]
async fn redirects_are_followed_through_the_mirrors_and_their_names_are_not_taken() {
    // A page of another host lists its own folders: they are no folders of the pinned address.
    let elsewhere = "/mirror.example/pub/";
    let links = text("<a href=\"https://mirror.example/pub/20260101/\">x</a><a href=\"20251120/\">x</a>");
    let pages = [
        (FOLDER, Reply::Redirect("https://mirror.example/pub/".to_owned())),
        (elsewhere, links),
        (NEW, page(&["base-20251120.qcow2", "SHA512SUMS"])),
        (&format!("{NEW}SHA512SUMS"), text(format!("{}  base-20251120.qcow2\n", sum('b', 128)))),
    ];
    let (looked, _) = image(&pages).await;
    assert_eq!(rows(&looked)[1], "images 20250115 20251120 -");
    let edits = looked.findings[1].next.as_ref().unwrap().edits.as_ref().unwrap();
    assert_eq!(edits[0].after, "https://images.example/cloud/20251120/base-20251120.qcow2");
}

#[tokio::test]
async fn versions_of_talos_that_are_nonsense_are_named() {
    let cluster = "cluster:\n  talos: {version: v1.12.4}\n  kubernetes: v1.34.1\n  network: {cidr: 192.0.2.0/24, gateway: 192.0.2.1, vip: 192.0.2.9}\n  topology: {controlPlane: {count: 1, addresses: 192.0.2.11-192.0.2.19}}\n";
    let world = Memory::new().file("strata.yaml", SETTINGS).file("clusters/lab/cluster.yaml", cluster);
    for (talos, kubernetes, expected) in [
        ("{}", "v1.36.2", "a list of versions"),
        ("[1,2]", "v1.33.9", "a version of Kubernetes"),
        ("[]", "<html>", "a version of Kubernetes"),
        ("[\"v1.12.3\", \"v1.1\", \"latest\"]", "v1.34.1-evil", "a version of Kubernetes"),
    ] {
        let server = Server::start(&[
            ("/factory.talos.dev/versions", text(talos)),
            ("/dl.k8s.io/release/stable-1.34.txt", text(kubernetes)),
        ])
        .await;
        let looked = server.look(&world).await;
        assert!(looked.findings.iter().all(|finding| finding.next.is_none()), "{:?}", rows(&looked));
        let said = said(&looked).join("\n");
        assert!(said.contains(expected) || kubernetes.ends_with("evil"), "{talos} {kubernetes}: {said}");
    }
}

/// A registry that asks for a token gets its own, and nobody else gets it.
#[tokio::test]
async fn a_token_goes_to_its_own_host_alone() {
    const DISCOVERY: &str = "/registry.opentofu.org/.well-known/terraform.json";
    const VERSIONS: &str = "/registry.opentofu.org/p/a/x/versions";
    let versions = r#"{"versions":[{"version":"1.0.0"},{"version":"1.4.0"}]}"#;
    let pages = [
        (DISCOVERY, text(r#"{"providers.v1":"/p/"}"#)),
        (VERSIONS, Reply::Guarded("s3cret-of-mine", versions.to_owned())),
    ];
    let mut server = Server::start(&pages).await;
    let looked = server.look(&world()).await;
    assert!(said(&looked).iter().any(|line| line.ends_with("HTTP 401")), "{:?}", said(&looked));
    server.variables = [("TF_TOKEN_127_0_0_1".to_owned(), "s3cret-of-mine".to_owned())].into();
    let looked = server.look(&world()).await;
    assert!(rows(&looked).contains(&"providers ~> 1.0 ~> 1.4 -".to_owned()), "{:?}", rows(&looked));
    server.variables = [("TF_TOKEN_registry_opentofu_org".to_owned(), "s3cret-of-mine".to_owned())].into();
    let looked = server.look(&world()).await;
    assert!(said(&looked).iter().any(|line| line.ends_with("HTTP 401")), "the mirror is another host");
}
