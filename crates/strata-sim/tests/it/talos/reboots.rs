//! What a change of the configuration does to a machine, by version; and upgrades.

use super::{Cluster, Talos, eventually, machine, wire};

const REBOOT: i32 = 0;
const AUTO: i32 = 1;
const NO_REBOOT: i32 = 2;
const STAGED: i32 = 3;
const TRY: i32 = 4;

/// A change that is taken at once, and one that needs a reboot in old versions.
const AT_ONCE: &str = "  sysctls: {vm.nr_hugepages: \"1\"}\n";
const LATER: &str = "  files: [{path: /var/x, content: y, op: create}]\n";

async fn configured(version: &str) -> (Cluster, impl Fn(&Cluster, &str) -> String) {
    let cluster = Cluster::bootstrapped(version).await;
    let config = |cluster: &Cluster, more: &str| {
        let mut wanted = cluster.wanted("cp-1", "192.0.2.41", true);
        wanted.more = more.to_owned();
        cluster.pki.config(&wanted)
    };
    (cluster, config)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn until_1_13_auto_reboots_where_it_must() {
    for version in ["v1.11.0", "v1.12.3", "v1.13.0"] {
        let (cluster, config) = configured(version).await;
        let mut talos = cluster.admin("192.0.2.41").await;
        let before = talos.boot_id().await;
        assert_eq!(talos.apply(&config(&cluster, AT_ONCE), AUTO).await.unwrap().mode, NO_REBOOT);
        let later = config(&cluster, LATER);
        let dry = wire::Apply { data: later.as_bytes().to_vec(), mode: AUTO, dry_run: true, timeout: None };
        assert_eq!(talos.apply_as(dry).await.unwrap().mode, REBOOT);
        let refused = talos.apply(&later, NO_REBOOT).await.unwrap_err();
        assert!(refused.code == 3 && refused.text.contains("immediate mode"), "{refused:?}");
        assert_eq!(talos.boot_id().await, before);
        assert_eq!(talos.apply(&later, AUTO).await.unwrap().mode, REBOOT);
        let mut talos = cluster.admin("192.0.2.41").await;
        assert_ne!(talos.boot_id().await, before);
        let causes: Vec<String> = cluster.reboots().into_iter().map(|(_, cause)| cause).collect();
        assert_eq!(causes, ["install", "apply-config"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn since_1_14_nothing_reboots_by_itself() {
    let (cluster, config) = configured("v1.14.0").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    assert_eq!(talos.apply(&config(&cluster, LATER), REBOOT).await.unwrap_err().code, 12);
    assert_eq!(talos.apply(&config(&cluster, LATER), AUTO).await.unwrap().mode, NO_REBOOT);
    assert_eq!(cluster.machine(101)["reboot-pending"], true);
    let before = talos.get("runtime", "BootIDs.runtime.talos.dev", "boot-id").await.unwrap();
    talos.reboot().await.unwrap();
    let mut talos = cluster.admin("192.0.2.41").await;
    assert_ne!(talos.get("runtime", "BootIDs.runtime.talos.dev", "boot-id").await.unwrap(), before);
    assert_eq!(cluster.machine(101)["reboot-pending"], false);
    assert_eq!(cluster.reboots().last().unwrap().1, "api");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_staged_configuration_waits_for_a_reboot() {
    let (cluster, config) = configured("v1.13.0").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    let before = cluster.machine(101);
    talos.apply(&config(&cluster, LATER), STAGED).await.unwrap();
    let staged = cluster.machine(101);
    assert_eq!(staged["config-in-effect"], before["config-in-effect"]);
    assert_ne!(staged["config"], before["config"]);
    talos.reboot().await.unwrap();
    cluster.admin("192.0.2.41").await;
    assert_eq!(cluster.machine(101)["config-in-effect"], staged["config"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_ends_unless_something_else_is_applied() {
    let (cluster, config) = configured("v1.13.0").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    let before = cluster.machine(101)["config-in-effect"].clone();
    let trial = |seconds| wire::Apply {
        data: config(&cluster, AT_ONCE).into_bytes(),
        mode: TRY,
        dry_run: false,
        timeout: Some(wire::Seconds { seconds }),
    };
    talos.apply_as(trial(0)).await.unwrap();
    eventually(async || (cluster.machine(101)["config-in-effect"] == before).then_some(())).await;
    talos.apply_as(trial(3600)).await.unwrap();
    assert_ne!(cluster.machine(101)["config-in-effect"], before);
    // A call that is no trial ends it, even one that only asks.
    let ask = wire::Apply { mode: AUTO, dry_run: true, ..trial(0) };
    talos.apply_as(ask).await.unwrap();
    assert_ne!(cluster.machine(101)["config-in-effect"], before);
    assert_eq!(cluster.machine(101)["config"], before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_is_streamed_and_takes_effect_with_a_reboot() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    let image = format!("factory.talos.dev/nocloud-installer/{}:v1.14.0", super::SCHEMATIC);
    let request = wire::Lifecycle { source: Some(wire::Text { value: image }) };
    let steps = talos.call("/machine.LifecycleService/Upgrade", &[&request]).await.unwrap();
    assert!(steps.len() > 1);
    assert_eq!(talos.version().await.unwrap(), "v1.13.0");
    talos.reboot().await.unwrap();
    assert_eq!(cluster.admin("192.0.2.41").await.version().await.unwrap(), "v1.14.0");
    assert_eq!(cluster.machine(101)["installed"]["version"], "v1.14.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_versions_upgrade_in_one_call_and_mind_etcd() {
    let cluster = Cluster::bootstrapped("v1.12.0").await;
    let mut first = cluster.admin("192.0.2.41").await;
    let image = format!("factory.talos.dev/nocloud-installer/{}:v1.13.0", super::SCHEMATIC);
    let streamed = wire::Lifecycle { source: Some(wire::Text { value: image.clone() }) };
    assert_eq!(first.call("/machine.LifecycleService/Upgrade", &[&streamed]).await.unwrap_err().code, 12);
    cluster.add(102, "cp-2", "192.0.2.42", true).await;
    cluster.voters(&["cp-1", "cp-2"]).await;
    let request = wire::Text { value: image };
    let refused = first.call("/machine.MachineService/Upgrade", &[&request]).await.unwrap_err();
    assert!(refused.text.contains("insufficient to maintain quorum"), "{refused:?}");
    cluster.admin("192.0.2.42").await.leave().await.unwrap();
    first.call("/machine.MachineService/Upgrade", &[&request]).await.unwrap();
    assert_eq!(cluster.admin("192.0.2.41").await.version().await.unwrap(), "v1.13.0");
    assert_eq!(cluster.reboots().last().unwrap().1, "upgrade");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f5_a_disk_that_is_not_as_its_configuration_says_is_not_booted_from() {
    const ENCRYPTED: &str =
        "  systemDiskEncryption: {state: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}\n";
    let (cluster, config) = configured("v1.11.6").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    assert_eq!(talos.apply(&config(&cluster, ENCRYPTED), AUTO).await.unwrap().mode, REBOOT);
    // It goes down and does not come back, however often one looks.
    eventually(async || (cluster.machine(101)["stage"] == "booting").then_some(())).await;
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        assert_eq!(cluster.machine(101)["stage"], "booting");
    }
    // What is installed with it boots.
    machine(&cluster.sim, 102, "192.0.2.42", "v1.11.6").await;
    let mut wanted = cluster.wanted("cp-2", "192.0.2.42", true);
    wanted.more = ENCRYPTED.to_owned();
    let text = cluster.pki.config(&wanted);
    Talos::insecure(&cluster.sim, "192.0.2.42").await.unwrap().apply(&text, 1).await.unwrap();
    cluster.admin("192.0.2.42").await;
}
