//! Stacks that were written by hand in OpenTofu.

use strata_source::world::Memory;
use strata_source::{Model, StackKind};

use crate::{SETTINGS, clean, mistakes};

fn world() -> Memory {
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file(
            "stacks/web/stack.yaml",
            "proxmox: {target: pve, node: pve1}\nvms: {web: {vmId: 100, disk: 8}}\noutputs: {name: vms.web.name}\n",
        )
        .file("stacks/bare/main.tf", "")
        .file("stacks/bare/modules/part/main.tf", "")
        .file(
            "stacks/cloud/stack.yaml",
            "metadata: {name: aws, layer: platforms, environment: prod, dependsOn: [net]}\n\
             tofu:\n  variables: {region: eu, token: {env: TOKEN}}\n",
        )
        .file("stacks/cloud/main.tf", "a")
        .file("stacks/net/stack.yaml", "metadata: {layer: platforms}\ntofu: {}\n")
        .file("stacks/net/main.tofu", "")
        .file("stacks/last/stack.yaml", "tofu: {inputs: {host: web.name, region: aws.region}}\n")
        .file("stacks/last/main.tf", "")
}

#[test]
fn they_have_names_layers_and_an_order() {
    let repository = clean(&world());
    let order: Vec<(&str, StackKind)> =
        repository.stacks().iter().map(|entry| (entry.name.value.as_str(), entry.kind)).collect();
    // What is below a stack of OpenTofu is its own.
    assert_eq!(
        order,
        [
            ("net", StackKind::Tofu),
            ("aws", StackKind::Tofu),
            ("bare", StackKind::Tofu),
            ("web", StackKind::Machines),
            ("last", StackKind::Tofu)
        ]
    );
    let aws = repository.stack("aws", None).unwrap();
    assert_eq!((aws.environment.as_str(), aws.needed().collect::<Vec<_>>()), ("prod", vec!["net"]));
    let given: Vec<&str> = aws.tofu().unwrap().variables.keys().collect();
    assert_eq!(given, ["region", "token"]);
    assert_eq!(repository.stack("last", None).unwrap().needed().collect::<Vec<_>>(), ["web", "aws"]);
    assert!(matches!(repository.stack("bare", None).unwrap().model, Model::Tofu(_)));
}

#[test]
fn an_environment_lays_over_them() {
    let world =
        world().file("environments/dev.yaml", "stacks: {aws: {tofu: {variables: {region: us}}}, bare: {}}\n");
    let repository = clean(&world);
    let region = |environment: &str| {
        let stack = repository.stack("aws", Some(environment)).unwrap();
        stack.tofu().unwrap().variables.get("region").unwrap().literal().cloned()
    };
    assert_eq!((region("prod").as_deref(), region("dev").as_deref()), (Some("eu"), Some("us")));
    assert!(repository.stack("bare", Some("dev")).is_some());
}

#[test]
fn their_code_is_a_part_of_the_digest() {
    let digest = |world: &Memory| {
        let repository = clean(world);
        repository.source_digest(repository.stack("aws", None).unwrap(), world)
    };
    let base = digest(&world());
    for (path, content) in [
        ("stacks/cloud/main.tf", "b"),
        ("stacks/cloud/templates/init.yaml", "x"),
        ("stacks/cloud/.terraform.lock.hcl", "x"),
        ("modules/part/main.tf", "x"),
    ] {
        assert_ne!(digest(&world().file(path, content)), base, "{path}");
    }
    for path in ["stacks/cloud/terraform.tfstate", "stacks/cloud/.terraform/x", "stacks/net/other.tf", "x.tf"]
    {
        assert_eq!(digest(&world().file(path, "x")), base, "{path}");
    }
}

#[test]
fn mistakes_are_told() {
    let told = |path: &str, content: &str| mistakes(&world().file(path, content));
    let both = told("stacks/cloud/stack.yaml", "tofu: {}\nvms: {web: {vmId: 101, disk: 8}}\n");
    assert!(both.contains("`tofu`") && both.contains("`vms`"), "{both}");
    let none = told("stacks/empty/stack.yaml", "tofu: {}\n");
    assert!(none.contains("there is no OpenTofu code in `stacks/empty`"), "{none}");
    let idle = told("stacks/cloud/stack.yaml", "metadata: {name: cloud}\n");
    assert!(idle.contains("is not driven") && idle.contains("`tofu: {}`"), "{idle}");
    let stack = told("stacks/last/stack.yaml", "tofu: {inputs: {a: webb.name}}\n");
    assert!(stack.contains("there is no stack `webb`") && stack.contains("did you mean `web`?"), "{stack}");
    let output = told("stacks/last/stack.yaml", "tofu: {inputs: {a: web.nam}}\n");
    assert!(output.contains("the stack `web` has no output `nam`"), "{output}");
    let layer =
        told("stacks/last/stack.yaml", "metadata: {layer: hypervisors}\ntofu: {inputs: {a: web.name}}\n");
    assert!(layer.contains("cannot need `web`"), "{layer}");
    let circle =
        told("stacks/net/stack.yaml", "metadata: {layer: platforms}\ntofu: {inputs: {a: aws.region}}\n");
    assert!(circle.contains("in a circle"), "{circle}");
    let variable = told("stacks/last/stack.yaml", "tofu: {variables: {1a: x}}\n");
    assert!(variable.contains("1a"), "{variable}");
    let text = told("stacks/last/stack.yaml", "tofu: {inputs: {a: web}}\n");
    assert!(text.contains("`web` is not an output of a stack"), "{text}");
}
