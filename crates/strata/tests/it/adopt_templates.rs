//! Templates that were made by hand, and the guests whose disks are linked to them.

use serde_json::{Value, json};

use crate::adopt_all::LivedIn;

const ADDRESS: &str = "golden/template/debian-12";

fn adopted(wanted: &[&str]) -> LivedIn {
    let lived_in = LivedIn::new();
    let all: Vec<&str> = ["adopt", "--yes"].iter().chain(wanted).copied().collect();
    lived_in.strata().run(&all).ok();
    lived_in
}

fn guest(lived_in: &LivedIn, vmid: u32) -> Value {
    let export = lived_in.sim.export();
    let mut guests = export["guests"].as_array().unwrap().iter();
    guests.find(|guest| guest["vmid"] == vmid).cloned().unwrap_or_default()
}

#[test]
fn a_template_is_kept_as_it_is_and_its_clones_refer_to_it() {
    let lived_in =
        adopted(&["golden/template/debian-12=9000", "golden/vm/worker-b=116", "work/vm/worker-a=115"]);
    let (golden, work) =
        (lived_in.repo.read("stacks/golden/stack.yaml"), lived_in.repo.read("stacks/work/stack.yaml"));
    assert!(golden.contains("template: debian-12\n") && golden.contains("clone: false\n"), "{golden}");
    assert!(work.contains("template: golden/debian-12\n"), "{work}");
    assert!(!golden.contains("image:"), "{golden}");
    for stack in ["golden", "work"] {
        lived_in.assert_empty_plan_of(stack, "adopted");
    }
    // What it has can change; the guests that hang on it keep it from being made again.
    let before = guest(&lived_in, 115);
    lived_in.repo.edit(
        "stacks/golden/stack.yaml",
        "    tags: [template]\n",
        "    tags: [golden, template]\n",
    );
    lived_in.strata().run(&["apply", "golden", "--yes"]).ok();
    lived_in.assert_empty_plan_of("golden", "changed");
    assert_eq!(guest(&lived_in, 9000)["config"]["tags"], "golden;template");
    let refused = lived_in.strata().run(&["plan", "--replace", ADDRESS]).code(3).all();
    assert!(refused.contains("has linked clones and cannot be recreated: VMID 115, 116"), "{refused}");
    assert_eq!(guest(&lived_in, 115), before);
}

#[test]
fn an_image_that_is_named_later_recreates_nothing_by_itself() {
    let lived_in = adopted(&["golden/template/debian-12=9000"]);
    let image = "    vmId: 9000\n    image: {url: \"https://images.example/debian.qcow2\", storage: nas}\n";
    lived_in.repo.edit("stacks/golden/stack.yaml", "    vmId: 9000\n", image);
    let before = guest(&lived_in, 9000);
    let plan = lived_in.strata().run(&["plan", "golden"]).ok().all();
    assert!(!plan.contains(ADDRESS), "{plan}");
    lived_in.strata().run(&["apply", "golden", "--yes"]).ok();
    assert_eq!(guest(&lived_in, 9000), before);
    lived_in.assert_empty_plan_of("golden", "with an image");
}

#[test]
fn a_template_that_is_gone_is_made_only_from_an_image() {
    let lived_in = adopted(&["golden/template/ubuntu-24.04=9002"]);
    let refused = lived_in.strata().run(&["plan", "--replace", "golden/template/ubuntu-24.04"]).code(3).all();
    assert!(refused.contains("nothing says what it is made from"), "{refused}");
    let gone = json!({"method": "DELETE", "path": "/nodes/pve3/qemu/9002", "params": {}});
    assert_eq!(lived_in.sim.control().change(&gone)["status"], 200);
    let refused = lived_in.strata().run(&["apply", "golden", "--yes"]).code(3).all();
    assert!(refused.contains("nothing says what it is made from"), "{refused}");
    assert!(refused.contains("name its `image`"), "{refused}");
    assert_eq!(guest(&lived_in, 9002), Value::Null);
}
