//! Applying a configuration: first in maintenance mode, later on a machine that runs.

use super::{Call, Outcome, done, machine};
use crate::config::MachineConfig;
use crate::grpc::{Code, Status};
use crate::reboot;
use crate::wire::{Applied, ApplyRequest};
use crate::world::World;

const REBOOT: i32 = 0;
const AUTO: i32 = 1;
const NO_REBOOT: i32 = 2;
const STAGED: i32 = 3;
const TRY: i32 = 4;
/// How long a trial lasts if the request does not say, in seconds.
const TRIAL: i64 = 60;

fn invalid(text: impl Into<String>) -> Status {
    Status::new(Code::InvalidArgument, text)
}

pub(super) fn apply(call: &Call<'_>) -> Outcome {
    if !call.maintenance && !call.admin {
        return Err(Status::new(Code::PermissionDenied, "not authorized"));
    }
    let asked: ApplyRequest = call.request()?;
    match (call.maintenance, call.version.has_one_server()) {
        (true, false) => first_time_old(call, &asked),
        (true, true) => first_time(call, &asked),
        (false, _) => again(call, asked),
    }
}

fn mode_name(mode: i32) -> &'static str {
    ["reboot", "auto", "no-reboot", "staged", "try"].get(mode as usize).copied().unwrap_or("unknown")
}

/// Up to 1.12 maintenance mode has a server of its own.
fn first_time_old(call: &Call<'_>, asked: &ApplyRequest) -> Outcome {
    if matches!(asked.mode, NO_REBOOT | STAGED) {
        let mode = mode_name(asked.mode);
        let text = format!("apply configuration --mode='{mode}' is not supported in maintenance mode");
        return Err(Status::new(Code::Unimplemented, text));
    }
    let config = MachineConfig::read(&asked.data, call.version)
        .map_err(|error| Status::unknown(format!("failed to parse config: {error}")))?;
    let mut world = call.machines.world();
    let installed = machine(&world, call.key)?.1.from_disk;
    config
        .validate(installed)
        .map_err(|error| invalid(format!("configuration validation failed: {error}")))?;
    if asked.dry_run {
        let details = "Dry run summary:\nNode is running in maintenance mode and does not have a config yet."
            .to_owned();
        return done(&Applied { details, ..Applied::default() });
    }
    world.begin_install(call.key, config);
    done(&Applied::default())
}

fn first_time(call: &Call<'_>, asked: &ApplyRequest) -> Outcome {
    let config = MachineConfig::read(&asked.data, call.version).map_err(invalid)?;
    let mut world = call.machines.world();
    let installed = machine(&world, call.key)?.1.from_disk;
    config.validate(installed).map_err(invalid)?;
    let mode = if asked.mode == STAGED { STAGED } else { NO_REBOOT };
    let details = match mode {
        STAGED => "Staged configuration to be applied after the next reboot",
        _ => "Applied configuration without a reboot",
    };
    if asked.dry_run {
        let details = format!("Dry run summary:\n{details} (skipped in dry-run).\nNo changes.");
        return done(&Applied { mode, details, ..Applied::default() });
    }
    world.begin_install(call.key, config);
    done(&Applied { mode, details: details.to_owned(), ..Applied::default() })
}

fn again(call: &Call<'_>, asked: ApplyRequest) -> Outcome {
    let mut world = call.machines.world();
    if asked.mode != TRY {
        end_trial(&mut world, call.key);
    }
    let config = MachineConfig::read(&asked.data, call.version).map_err(invalid)?;
    if config.main().is_none() {
        return Err(invalid(
            "the applied machine configuration doesn't contain v1alpha1 config, did you mean to patch the machine config instead?",
        ));
    }
    let never = call.version.never_reboots();
    if never && asked.mode == REBOOT {
        let text = "the REBOOT mode is not supported, please use AUTO or NO_REBOOT modes instead";
        return Err(Status::new(Code::Unimplemented, text));
    }
    config.validate(true).map_err(invalid)?;
    let current = machine(&world, call.key)?.1.config.clone();
    let needed = current.as_ref().and_then(|current| reboot::needed(call.version, current, &config));
    let refusal = needed
        .as_ref()
        .filter(|_| !never)
        .map(|place| format!("this config change can't be applied in immediate mode\ndiff:\n{place}"));
    let mut reason = String::new();
    let mode = match (asked.mode, &refusal) {
        (AUTO, Some(text)) => {
            reason = format!(": {text}");
            REBOOT
        }
        (AUTO, None) => NO_REBOOT,
        (TRY | NO_REBOOT, Some(text)) => return Err(invalid(text.clone())),
        (mode @ (TRY | NO_REBOOT | STAGED | REBOOT), _) => mode,
        (other, _) => {
            return Err(invalid(format!("incorrect mode '{other}' specified for the apply config call")));
        }
    };
    let mut details = match mode {
        REBOOT => "Applied configuration with a reboot".to_owned(),
        STAGED => "Staged configuration to be applied after the next reboot".to_owned(),
        _ => "Applied configuration without a reboot".to_owned(),
    };
    if asked.dry_run {
        let same = current.as_ref().is_some_and(|current| current.text() == config.text());
        let diff = if same { "No changes." } else { "Config diff:\n" };
        let details = format!("Dry run summary:\n{details} (skipped in dry-run).\n{diff}");
        return done(&Applied { mode, details, ..Applied::default() });
    }
    match mode {
        TRY => {
            let seconds = asked.try_timeout.map_or(TRIAL, |timeout| timeout.seconds);
            details.push_str(&format!(
                "\nThe config is applied in 'try' mode and will be automatically reverted back in {seconds}s"
            ));
            let end = world.now_ms() + seconds * 1000;
            if let Some(boot) = world.talos.machines.get_mut(call.key).and_then(|m| m.boot.as_mut()) {
                let before = boot.trial.take().map(|(_, before)| before).or_else(|| boot.config.take());
                boot.trial = before.map(|before| (end, before));
                boot.config = Some(config);
            }
        }
        _ => {
            let kept = config.clone();
            world.edit_talos_disk(call.key, |disk| disk.config = Some(kept));
            if mode == NO_REBOOT
                && let Some(machine) = world.talos.machines.get_mut(call.key)
                && let Some(boot) = machine.boot.as_mut()
            {
                let before = boot.config.as_ref().and_then(|before| before.component_image("kubelet"));
                machine.kubelet_restarts += u32::from(before != config.component_image("kubelet"));
                boot.config = Some(config);
            }
            if mode == REBOOT {
                world.begin_reboot(call.key, "apply-config");
            }
        }
    }
    details.push_str(&reason);
    done(&Applied { mode, details, ..Applied::default() })
}

/// A trial that another call interrupts does not come to its end: what was tried stays until the next boot.
fn end_trial(world: &mut World, key: &str) {
    if let Some(boot) = world.talos.machines.get_mut(key).and_then(|machine| machine.boot.as_mut()) {
        boot.trial = None;
    }
}
