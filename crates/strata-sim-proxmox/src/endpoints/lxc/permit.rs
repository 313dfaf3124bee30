//! Who may change which option of a container.

use super::mount::{Mount, Source};
use super::schema;
use crate::api::{Call, PropertyString, Refusal, forbidden};
use crate::endpoints::guest::{check_bridge, check_tags, check_volume};
use crate::world::guest::Config;

/// What a change is made to.
pub struct Subject<'s> {
    pub vmid: u32,
    pub pool: Option<&'s str>,
    /// None for a container that is being made.
    pub old: Option<&'s Config>,
    pub unprivileged: bool,
}

impl Subject<'_> {
    fn before(&self, key: &str) -> Option<&str> {
        self.old.and_then(|config| config.get(key)).map(String::as_str)
    }
}

/// Checks every option that is set, then every one that is removed.
pub fn check(call: &Call<'_>, on: &Subject<'_>, set: &Config, unset: &[String]) -> Result<(), Refusal> {
    if call.caller.is_root() {
        return Ok(());
    }
    for (key, value) in set {
        check_option(call, on, key, Some(value))?;
    }
    unset.iter().try_for_each(|key| check_option(call, on, key, None))
}

fn check_option(call: &Call<'_>, on: &Subject<'_>, key: &str, new: Option<&str>) -> Result<(), Refusal> {
    let need = |privilege: &'static str| call.check_vm(on.vmid, on.pool, &[privilege]);
    match key {
        "cores" | "cpuunits" | "cpulimit" => need("VM.Config.CPU"),
        "memory" | "swap" => need("VM.Config.Memory"),
        "nameserver" | "searchdomain" | "hostname" => need("VM.Config.Network"),
        "features" => check_features(call, on, new),
        "hookscript" => Err(forbidden("changing the hookscript is only allowed for root@pam")),
        "tags" => {
            check_tags(call, on.vmid, on.pool, on.before("tags").unwrap_or_default(), new.unwrap_or_default())
        }
        _ if schema::is_mount(key) => {
            need("VM.Config.Disk")?;
            new.map_or(Ok(()), |value| check_mount(call, on, &Mount::parse(key, value)))
        }
        _ if schema::is_net(key) => {
            need("VM.Config.Network")?;
            for value in on.before(key).into_iter().chain(new) {
                check_bridge(call, &schema::parse_net(value))?;
            }
            Ok(())
        }
        _ if schema::is_device(key) => {
            Err(forbidden("configuring device passthrough is only allowed for root@pam"))
        }
        _ => need("VM.Config.Options"),
    }
}

fn check_mount(call: &Call<'_>, on: &Subject<'_>, mount: &Mount) -> Result<(), Refusal> {
    if mount.source() != Source::Volume {
        let kind = mount.source().name();
        return Err(forbidden(format!("mount point type {kind} is only allowed for root@pam")));
    }
    match mount.new_volume() {
        Some((storage, _)) => call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"]),
        None => check_volume(call, Some(on.vmid), mount.volume()),
    }
}

/// Nesting is for whoever may make containers; the other features are for root.
fn check_features(call: &Call<'_>, on: &Subject<'_>, new: Option<&str>) -> Result<(), Refusal> {
    if !on.unprivileged {
        let text = "changing feature flags for privileged container is only allowed for root@pam";
        return Err(forbidden(text));
    }
    let read = |value: Option<&str>| value.map(|v| schema::features().read(v)).unwrap_or_default();
    let (old, new) = (read(on.before("features")), read(new));
    let differs = |key: &str| old.get(key).unwrap_or_default() != new.get(key).unwrap_or_default();
    let keys = |features: &PropertyString| features.0.keys().cloned().collect::<Vec<_>>();
    let all = [keys(&old), keys(&new)].concat();
    if all.iter().any(|key| key != "nesting" && differs(key)) {
        return Err(forbidden("changing feature flags (except nesting) is only allowed for root@pam"));
    }
    if differs("nesting") {
        call.check_vm(on.vmid, on.pool, &["VM.Allocate"])?;
    }
    Ok(())
}
