//! B5, F8, E6: what cannot work is said before anything is made.

use serde_json::json;

use crate::cluster::lab::{FILE, Lab, Shape};

#[test]
fn b5_versions_that_nothing_is_known_about_are_refused() {
    let lab = Lab::new(&Shape::new(1, 0));
    let before = lab.repo.read(FILE);
    for (from, to, told) in [
        (
            "version: v1.13.9",
            "version: v1.9.5",
            "Talos `v1.9.5` is not supported; supported are v1.10, v1.11, v1.12, v1.13, v1.14",
        ),
        ("version: v1.13.9", "version: v1.15.0", "Talos `v1.15.0` is not supported"),
        ("version: v1.13.9", "version: v2.13.0", "Talos `v2.13.0` is not supported"),
        (
            "version: v1.36.3",
            "version: v1.20.0",
            "Talos `v1.13.9` does not run Kubernetes `v1.20.0`, but 1.31 to 1.36",
        ),
        ("version: v1.36.3", "version: v1.37.0", "does not run Kubernetes `v1.37.0`"),
        (
            "version: v1.13.9",
            "version: v1.11.0",
            "Talos `v1.11.0` does not run Kubernetes `v1.36.3`, but 1.29 to 1.34",
        ),
    ] {
        lab.repo.edit(FILE, from, to);
        for verb in [&["validate"][..], &["plan"], &["apply", "--yes"]] {
            let output = lab.run(verb).code(1);
            assert!(output.stderr.contains(told), "{to}: {}", output.all());
            assert!(
                output.stderr.contains("clusters/lab/cluster.yaml:"),
                "it is underlined: {}",
                output.all()
            );
        }
        lab.repo.write(FILE, &before);
    }
    lab.run(&["validate"]).ok();
}

#[test]
fn f8_the_network_is_asked_before_the_shared_address_is_used() {
    let lab = Lab::new(&Shape::new(1, 0));
    let other = json!({"metal": {"name": "printer", "addresses": ["192.0.2.40"], "version": "v1.13.9"}});
    lab.change(&other);
    let told = "the shared address 192.0.2.40 of `lab` is taken: another machine answers there";
    // The machine needs a moment to boot.
    let mut plan = lab.run(&["plan"]);
    for _ in 0..100 {
        if plan.code == 3 {
            break;
        }
        plan = lab.run(&["plan"]);
    }
    assert!(plan.all().contains(told), "{}", plan.all());
    let apply = lab.run(&["apply", "--yes"]).code(3);
    assert!(apply.all().contains(told), "{}", apply.all());
    lab.change(&json!({"metal-remove": {"name": "printer"}}));
    lab.apply();
    lab.assert_settled("nobody has it any more");

    // Another one for a cluster that runs.
    let other = json!({"metal": {"name": "printer", "addresses": ["192.0.2.77"], "version": "v1.13.9"}});
    lab.change(&other);
    lab.repo.edit(FILE, "vip: 192.0.2.40", "vip: 192.0.2.77");
    let mut plan = lab.run(&["plan"]);
    for _ in 0..100 {
        if plan.code == 3 {
            break;
        }
        plan = lab.run(&["plan"]);
    }
    assert!(plan.all().contains("the shared address 192.0.2.77 of `lab` is taken"), "{}", plan.all());
    lab.change(&json!({"metal-remove": {"name": "printer"}}));
    lab.apply();
    lab.assert_settled("with another shared address");
}
