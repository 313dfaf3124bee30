//! How fast it renders: printed, never asserted.

use std::time::Instant;

use strata_source::world::Memory;

use crate::world::rendered;

#[test]
#[ignore = "a measurement: just bench-render"]
fn bench_render_100_clusters_of_10_nodes() {
    let mut world = Memory::new().file(
        "strata.yaml",
        "repository: golden\ntargets: {pve: {proxmox: {endpoint: 'https://192.0.2.10:8006', token: {env: T}}}}\n",
    );
    for number in 0..100 {
        let text = format!(
            "cluster:
  talos: {{version: v1.13.9}}
  network: {{cidr: 10.{number}.0.0/16, gateway: 10.{number}.0.1}}
  topology:
    controlPlane: {{count: 3, addresses: 10.{number}.0.11-10.{number}.0.19}}
    workers: {{count: 7, addresses: 10.{number}.0.21-10.{number}.0.49}}
proxmox: {{node: pve1, vm: {{idBase: {}}}}}
",
            1000 + number * 100
        );
        world = world.file(&format!("clusters/c{number}/cluster.yaml"), text);
    }
    // Once to know the files, then with the clock running; drawing is part of it.
    let begun = Instant::now();
    let files = rendered(&world);
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    eprintln!("loaded, drew and rendered {} files, {bytes} bytes, in {:?}", files.len(), begun.elapsed());
}
