//! Objects that outlive the process.

use strata_sim::{Pace, SimOptions, WorldKind};

use crate::client::{Site, TOKEN};

#[tokio::test]
async fn objects_are_there_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let options = SimOptions {
        world: WorldKind::Single,
        token: Some(TOKEN.to_owned()),
        pace: Pace::INSTANT,
        data_dir: Some(dir.path().join("data")),
        ..SimOptions::default()
    };
    let site = Site::start(options.clone()).await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100"), ("name", "kept"), ("scsi0", "local:1")]).await;
    let before = site.export().await;
    site.sim.shutdown().await.unwrap();
    let site = Site::start(options).await;
    assert_eq!(site.export().await, before);
    assert_eq!(site.get("/nodes/pve/qemu/100/config").await["name"], "kept");
    // The books of the storage were kept too.
    let disk = site.task("PUT", "/nodes/pve/qemu/100/resize", &[("disk", "scsi0"), ("size", "+1G")]).await;
    assert_eq!(disk, "OK");
}

#[tokio::test]
async fn a_damaged_file_is_an_error_not_an_empty_world() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("world.json"), "{").unwrap();
    let options = SimOptions { data_dir: Some(dir.path().to_owned()), ..SimOptions::default() };
    assert!(strata_sim::Sim::start(options).await.is_err());
}
