//! Which stacks a command is about, and what a plan is bound to.

use strata_source::Repository;
use strata_source::world::{Disk, Memory};

use crate::{SETTINGS, clean, web};

fn world() -> Memory {
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("hypervisors/pve.yaml", "metadata: {name: hosts}\nproxmox: {target: pve}\n")
        .file("stacks/home/web/stack.yaml", "metadata: {environment: dev}\nvms: {}\n")
        .file("stacks/home/db/stack.yaml", "vms: {}\n")
        .file("stacks/by-hand/main.tf", "")
        .file("environments/prod.yaml", "stacks: {db: {}}\n")
}

fn names(
    repository: &Repository,
    arguments: &[&str],
    environment: Option<&str>,
) -> Result<Vec<String>, String> {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    match repository.select(&arguments, environment) {
        Ok(stacks) => {
            Ok(stacks.iter().map(|stack| format!("{}:{}", stack.environment, stack.name)).collect())
        }
        Err(error) => Err(format!("{error}; {}", error.hint.clone().unwrap_or_default())),
    }
}

#[test]
fn by_name_path_layer_and_environment() {
    let repository = clean(&world());
    let select = |arguments: &[&str], environment| names(&repository, arguments, environment);
    assert_eq!(select(&[], None).unwrap(), ["default:hosts", "default:by-hand", "default:db", "dev:web"]);
    assert_eq!(select(&["web"], None).unwrap(), ["dev:web"]);
    assert_eq!(select(&["stacks/home"], None).unwrap(), ["default:db", "dev:web"]);
    assert_eq!(select(&["./stacks/home/db/"], None).unwrap(), ["default:db"]);
    assert_eq!(select(&["stacks/home/db/stack.yaml"], None).unwrap(), ["default:db"]);
    assert_eq!(select(&["layer:hypervisors"], None).unwrap(), ["default:hosts"]);
    assert_eq!(select(&[], Some("prod")).unwrap(), ["prod:db"]);
}

#[test]
fn what_selects_nothing_says_why() {
    let repository = clean(&world());
    let select = |arguments: &[&str], environment| names(&repository, arguments, environment).unwrap_err();
    assert_eq!(select(&["wbe"], None), "there is no stack `wbe`; did you mean `web`?");
    assert_eq!(
        select(&["layer:top"], None),
        "there is no layer `top`; the layers are hypervisors, platforms and workloads"
    );
    assert_eq!(select(&[], Some("prd")), "there is no environment `prd`; did you mean `prod`?");
    assert_eq!(
        select(&["web"], Some("prod")),
        "the stack `web` is not part of the environment `prod`; name it in environments/prod.yaml; it is part of dev"
    );
}

#[test]
fn the_digest_follows_the_meaning() {
    let digest = |world: &Memory| {
        let repository = clean(world);
        repository.source_digest(repository.stack("web", None).unwrap(), world)
    };
    let body =
        "vms: {a: {vmId: 100, cores: 2, cloudInit: {userData: user.yaml, password: {env: PASSWORD}}}}\n";
    let base = web(body).file("user.yaml", "#cloud-config\n").variable("PASSWORD", "one");
    let other = |changed: &Memory| digest(changed) != digest(&base);
    assert!(!other(&base.clone().file("README.md", "x")));
    let spelled = "vms:\n  a:\n    cloudInit: {password: {env: PASSWORD}, userData: 'user.yaml'} # why\n    cores: 2\n    vmId: 100\n";
    let spelled = web(spelled).file("user.yaml", "#cloud-config\n").variable("PASSWORD", "one");
    assert!(!other(&spelled), "order, quotes and comments mean nothing");
    assert!(!other(&base.clone().variable("PASSWORD", "two")), "a secret is not in the digest");
    assert!(other(&base.clone().file("user.yaml", "#cloud-config\nx: 1\n")), "a file it names is");
    assert!(other(&web(&body.replace("cores: 2", "cores: 3")).file("user.yaml", "#cloud-config\n")));
    let target = SETTINGS.replace("192.0.2.10", "192.0.2.11");
    assert!(other(&base.clone().file("strata.yaml", target)), "so is the target");
    let by_variable =
        |cores: &str| web("vms: {a: {vmId: 100, cores: {env: CORES}}}\n").variable("CORES", cores);
    assert_ne!(digest(&by_variable("1")), digest(&by_variable("2")), "an ordinary value from outside is");
}

#[test]
fn a_repository_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("stacks/web")).unwrap();
    std::fs::write(root.join("strata.yaml"), SETTINGS).unwrap();
    std::fs::write(root.join("user.yaml"), "#cloud-config\n").unwrap();
    let stack = "proxmox: {node: pve1}\nvms: {a: {vmId: 100, cores: {env: CORES}, cloudInit: {userData: user.yaml}}}\n";
    std::fs::write(root.join("stacks/web/stack.yaml"), stack).unwrap();
    let world = Disk::new(root, [("CORES".to_owned(), "3".to_owned())]);
    let (repository, diagnostics) = Repository::load(&world);
    assert!(diagnostics.is_empty(), "{}", crate::show(&repository, &diagnostics));
    let stack = repository.stack("web", None).unwrap();
    assert_eq!(stack.machines().unwrap().vms.get("a").unwrap().hardware.cores, Some(3));
    assert_eq!(stack.read("user.yaml", &world).unwrap(), b"#cloud-config\n");
    assert!(stack.read("nope.yaml", &world).unwrap_err().contains("there is no file"));
}
