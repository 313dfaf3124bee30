use super::*;
use crate::api::ApiError;

fn refused(status: u16, message: &str) -> StepError {
    let body = serde_json::json!({"data": null, "message": message}).to_string();
    let error = ApiError::read("PUT", "/nodes/pve1/qemu/100/config", status, "", body.as_bytes());
    StepError::Refused { error: CallError::Api(Box::new(error)), doing: "change it".to_owned() }
}

fn again(error: &StepError) -> bool {
    matches!(verdict_on_write(error), Verdict::Again)
}

/// Only what did nothing and may do it later is sent again.
#[test]
fn a_write_that_met_a_lock_is_sent_again_and_no_other() {
    assert!(again(&refused(500, "VM is locked (backup)")));
    assert!(again(&refused(500, "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout")));
    assert!(!again(&refused(403, "Permission check failed (/vms/100, VM.Config.CPU)")));
    assert!(!again(&refused(400, "Parameter verification failed.")));
    let StepError::Refused { error, doing } = refused(500, "VM is locked (backup)") else { return };
    assert!(!again(&StepError::Lost { error, doing }), "nobody knows what it did");
    let failed = ProviderError::new(ErrorClass::TaskFailed, "VM is locked (backup)");
    assert!(!again(&StepError::Task(failed)));
}

#[test]
fn a_value_that_waits_for_a_restart_is_told_by_the_server_or_by_its_task() {
    assert!(refused(500, "hotplug problem - cannot unplug").is_not_hotplugged());
    assert!(!refused(500, "no such disk").is_not_hotplugged());
    let failed = task_failed("grow it", TaskFailure::read("hotplug problem"), Vec::new());
    assert!(StepError::Task(failed.clone()).is_not_hotplugged());
    assert!(!StepError::Stop(failed).is_not_hotplugged(), "the run ended: no server said it");
}

#[test]
fn a_full_storage_is_told_with_what_to_do() {
    let hint = |status: &str| task_failed("make it", TaskFailure::read(status), Vec::new()).hint;
    assert!(
        hint("write error: No space left on device").is_some_and(|hint| hint.contains("storage is full"))
    );
    assert_eq!(hint("exit code 1"), None);
}
