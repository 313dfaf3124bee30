//! Frames of runs, for terminals of any size.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frames;
mod terminal;

use std::time::Duration;

use strata_engine::{Event, StepAction};
use strata_live::{Model, PlannedStack, Step, Times};
use strata_resource::{Address, Kind, Layer, Stage};

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn address(stack: &str, kind: &'static str, name: &str) -> Address {
    Address::new(None, stack, Kind::named(kind), name)
}

/// Steps that need each other as their numbers say.
pub(crate) fn stack(name: &str, layer: Layer, steps: &[(&'static str, &str, &[usize])]) -> PlannedStack {
    let step = |(kind, step, needs): &(&'static str, &str, &[usize])| Step {
        needs: needs.to_vec(),
        ..Step::new(&address(name, kind, step), StepAction::Create)
    };
    let steps = steps.iter().map(step).collect();
    PlannedStack { key: format!("prod/{name}"), name: name.to_owned(), layer, steps }
}

pub(crate) fn starts(step: usize, address: &Address) -> Event {
    let address = address.clone();
    Event::StepStarted { step, address, action: StepAction::Create, stage: Stage::Compute }
}

pub(crate) fn does(step: usize, address: &Address, doing: &str) -> Event {
    Event::StepProgress { step, address: address.clone(), doing: doing.to_owned() }
}

pub(crate) fn done(step: usize, address: &Address) -> Event {
    Event::StepDone { step, address: address.clone(), action: StepAction::Create }
}

/// A datacenter in the middle of its first apply: the hosts are done, a cluster comes up, the workloads wait.
pub(crate) fn story() -> Model {
    let times = Times::read(
        r#"{"seconds": {"vm created": 30, "machine created": 90, "bootstrap created": 20, "pool created": 2}}"#,
    );
    let mut model = Model::new(times);
    model.plan(stack(
        "web",
        Layer::Workloads,
        &[("vm", "web-1", &[]), ("vm", "web-2", &[]), ("vm", "db", &[])],
    ));
    model.plan(stack("datacenter", Layer::Hypervisors, &[("pool", "prod", &[]), ("pool", "test", &[])]));
    model.plan(stack(
        "lab",
        Layer::Platforms,
        &[
            ("vm", "cp-1", &[]),
            ("vm", "cp-2", &[]),
            ("vm", "cp-3", &[]),
            ("machine", "cp-1", &[0]),
            ("machine", "cp-2", &[1, 3]),
            ("machine", "cp-3", &[2, 4]),
            ("bootstrap", "etcd", &[3]),
        ],
    ));
    for step in 0..2 {
        let pool = address("datacenter", "pool", "prod");
        model.take("prod/datacenter", &starts(step, &pool), seconds(0));
        model.take("prod/datacenter", &done(step, &pool), seconds(2));
    }
    for step in 0..3 {
        let vm = address("lab", "vm", &format!("cp-{}", step + 1));
        model.take("prod/lab", &starts(step, &vm), seconds(2));
        if step < 2 {
            model.take("prod/lab", &done(step, &vm), seconds(40));
        } else {
            model.take("prod/lab", &does(step, &vm, "cloning 9000 to pve3, 61 %"), seconds(20));
        }
    }
    let machine = address("lab", "machine", "cp-1");
    model.take("prod/lab", &starts(3, &machine), seconds(40));
    model.take("prod/lab", &does(3, &machine, "waiting for the reboot of 192.0.2.41"), seconds(55));
    model
}
