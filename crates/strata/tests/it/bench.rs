//! What a plan costs: requests, time, processor time, memory.

use std::fmt::Write as _;
use std::time::Instant;

use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

fn stack(guests: u32) -> String {
    let mut text = "metadata: {name: many, environment: test}\nproxmox: {target: pve, nodes: [pve1, pve2, pve3], storage: tank}\nvms:\n".to_owned();
    let (mut first, mut left, mut group) = (10_000, guests, 0);
    while left > 0 {
        let count = left.min(1000);
        let _ = writeln!(
            text,
            "  g{group}: {{count: {count}, vmId: {first}, memory: 64, disk: 1, started: false, network: [vmbr0]}}"
        );
        (first, left, group) = (first + count, left - count, group + 1);
    }
    text
}

/// Processor seconds and peak memory of a finished child, by the kernel's account of this process' children.
fn usage(child: &mut std::process::Child) -> (f64, u64) {
    let pid = child.id();
    let mut peak = 0;
    let mut ticks = 0;
    loop {
        if let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
            let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
            peak = peak.max(line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0));
        }
        if let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            let number =
                |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
            ticks = ticks.max(number(11) + number(12));
        }
        if child.try_wait().unwrap().is_some() {
            return (ticks as f64 / 100.0, peak);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A plan that finds nothing to do: seconds, and what it asked for.
fn measured(sim: &TestSim, strata: &Strata) -> (f64, f64, u64) {
    sim.control().reset_requests();
    let begun = Instant::now();
    let mut child = strata.spawn(&["plan", "--detailed-exitcode"]);
    let (cpu, peak) = usage(&mut child);
    let wall = begun.elapsed().as_secs_f64();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    (wall, cpu, peak)
}

#[test]
#[ignore = "a measurement: just bench"]
fn bench_plan_of_many_stacks() {
    println!(
        "{:>7} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "stacks", "guests", "requests", "wall s", "cpu s", "peak MB"
    );
    let mut alone = None;
    for stacks in [1, 200_u32] {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let repo = Repo::on(&sim);
        let guests = 2000 / stacks;
        for number in 0..stacks {
            let text = format!(
                "metadata: {{name: s{number}, environment: test}}\nproxmox: {{target: pve, nodes: [pve1, pve2, pve3], storage: tank}}\n\
                 vms:\n  s{number}-g: {{count: {guests}, vmId: {}, memory: 64, disk: 1, started: false, network: [vmbr0]}}\n",
                10_000 + number * guests
            );
            repo.write(&format!("stacks/s{number}/stack.yaml"), &text);
        }
        let strata = Strata::new(BINARY, &repo);
        strata.run(&["apply", "--yes", "--parallelism", "8"]).ok();
        let (wall, cpu, peak) = measured(&sim, &strata);
        let requests = sim.requests();
        assert!(requests <= 2000 + 20, "{requests}");
        println!(
            "{stacks:>7} {:>7} {requests:>9} {wall:>9.2} {cpu:>9.2} {:>9.1}",
            2000,
            peak as f64 / 1024.0
        );
        match alone {
            None => alone = Some(wall),
            Some(alone) => println!("{:.2} times the time of one stack", wall / alone),
        }
    }
}

#[test]
#[ignore = "a measurement: just bench"]
fn bench_plan_without_changes() {
    println!(
        "{:>7} {:>9} {:>9} {:>9} {:>9} {:>14}",
        "guests", "requests", "wall s", "cpu s", "peak MB", "ms for a guest"
    );
    for guests in [10, 100, 300, 1000, 10_000] {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let repo = Repo::on(&sim);
        repo.write("stacks/many/stack.yaml", &stack(guests));
        let strata = Strata::new(BINARY, &repo);
        strata.run(&["apply", "--yes", "--parallelism", "8"]).ok();
        let (wall, cpu, peak) = measured(&sim, &strata);
        let per_guest = wall * 1000.0 / f64::from(guests);
        println!(
            "{guests:>7} {:>9} {wall:>9.2} {cpu:>9.2} {:>9.1} {per_guest:>14.3}",
            sim.requests(),
            peak as f64 / 1024.0
        );
    }
}
