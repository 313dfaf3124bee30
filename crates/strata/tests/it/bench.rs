//! What a plan costs: requests, time, processor time, memory.

use std::fmt::Write as _;
use std::time::Instant;

use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::cluster::lab::{Lab, Shape};
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

/// A stack of ten guests from a VMID on.
fn small_stack(number: u32) -> String {
    format!(
        "metadata: {{name: s{number}, environment: test}}\nproxmox: {{target: pve, nodes: [pve1, pve2, pve3], storage: tank}}\n\
         vms:\n  s{number}-g: {{count: 10, vmId: {}, memory: 64, disk: 1, started: false, network: [vmbr0]}}\n",
        10_000 + number * 10
    )
}

#[test]
#[ignore = "two thousand guests: just bench"]
fn bench_one_broken_stack_leaves_the_others_applied() {
    let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
    let repo = Repo::on(&sim);
    for number in 0..200 {
        repo.write(&format!("stacks/s{number}/stack.yaml"), &small_stack(number));
    }
    // Somebody else's guest stands where the middle one wants its fifth.
    let taken = serde_json::json!({"method": "POST", "path": "/nodes/pve1/qemu", "params": {
        "vmid": 11_004, "name": "theirs", "memory": 64,
    }});
    assert_eq!(sim.control().change(&taken)["status"], 200);
    let begun = Instant::now();
    let applied = Strata::new(BINARY, &repo).run(&["apply", "--yes"]);
    assert_ne!(applied.code, 0);
    let vmids = |sim: &TestSim| -> Vec<u64> {
        let export = sim.export();
        let guests = export["guests"].as_array().unwrap().iter();
        guests.filter_map(|guest| guest["vmid"].as_u64()).filter(|vmid| *vmid >= 10_000).collect()
    };
    let found = vmids(&sim);
    println!(
        "one of 200 stacks is broken: {} guests of the others, {:.1} s",
        found.iter().filter(|vmid| !(11_000..11_010).contains(*vmid)).count(),
        begun.elapsed().as_secs_f64()
    );
    for vmid in (10_000..12_000).filter(|vmid| !(11_000..11_010).contains(vmid)) {
        assert!(found.contains(&vmid), "{vmid} is missing\n{}", applied.all());
    }
}

fn cluster(number: u32) -> String {
    format!(
        r#"
metadata: {{name: c{number}, environment: test}}
cluster:
  talos:
    version: v1.13.9
    schematic: {{id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515}}
    installDisk: /dev/sda
  kubernetes: {{version: v1.36.3}}
  network: {{cidr: 198.18.{number}.0/24, gateway: 198.18.{number}.1, nameservers: [198.18.{number}.1], vip: 198.18.{number}.40, bridge: vmbr0}}
  topology:
    controlPlane: {{count: 3, resources: {{cores: 2, memory: 4096, disk: 20}}, addresses: 198.18.{number}.41-198.18.{number}.43}}
proxmox:
  target: pve
  nodes: [pve1, pve2, pve3]
  storage: {{iso: tank, disk: local-lvm}}
  vm: {{idBase: {}}}
"#,
        20_000 + number * 10
    )
}

/// Seconds of the whole apply, and of the slowest cluster in it, by the events of each.
fn boots(clusters: u32, pace: &str) -> (f64, f64) {
    let lab = Lab::paced(&Shape::new(3, 0), pace.parse().unwrap());
    lab.repo.remove("clusters/lab/cluster.yaml");
    lab.repo.remove("clusters/lab/talos.sops.yaml");
    for number in 0..clusters {
        lab.repo.write(&format!("clusters/c{number}/cluster.yaml"), &cluster(number));
    }
    let begun = Instant::now();
    let applied = lab.run(&["--json", "apply", "--yes"]).ok();
    let whole = begun.elapsed().as_secs_f64();
    let mut spans: std::collections::BTreeMap<String, (f64, f64)> = std::collections::BTreeMap::new();
    for line in applied.stdout.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let (Some(stack), Some(time)) = (event["stack"].as_str(), event["time"].as_str()) else { continue };
        if event["event"] == "step-started" || event["event"] == "step-done" {
            let at = time.parse::<jiff::Timestamp>().unwrap().as_millisecond() as f64 / 1000.0;
            let span = spans.entry(stack.to_owned()).or_insert((at, at));
            *span = (span.0.min(at), span.1.max(at));
        }
    }
    assert_eq!(spans.len(), clusters as usize, "{:?}", spans.keys());
    (whole, spans.values().map(|(first, last)| last - first).fold(0.0, f64::max))
}

#[test]
#[ignore = "a measurement: just bench"]
fn bench_apply_of_many_clusters() {
    let pace = std::env::var("STRATA_PACE").unwrap_or_else(|_| "0.2".to_owned());
    let (alone, _) = boots(1, &pace);
    let (whole, slowest) = boots(50, &pace);
    println!("one cluster of 3 nodes: {alone:.1} s; 50 of them: {whole:.1} s, {:.2} times", whole / alone);
    println!(
        "the slowest of the 50: {slowest:.1} s; the whole apply takes {:.2} times that",
        whole / slowest
    );
}
