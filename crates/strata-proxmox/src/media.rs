//! What is in a VM's CD drive: the ISO that it was installed from, until it is ejected.

use http::Method;
use strata_engine::ProviderError;
use strata_net::{Verdict, retry};

use crate::absence;
use crate::api::Params;
use crate::client::{CallError, Client, Permit, Rights};
use crate::codec::GuestKind;
use crate::guest::{Guest, locate};

pub(crate) async fn inserted(
    client: &Client,
    vmid: u32,
    slot: &str,
) -> Result<Option<String>, ProviderError> {
    let failed = |error: CallError| error.explain(&format!("look into the drive `{slot}` of VM {vmid}"));
    let Some(guest) = find(client, vmid).await.map_err(failed)? else { return Ok(None) };
    let config = guest.config_if_any(client).await.map_err(failed)?;
    Ok(config.and_then(|config| volume(config.get(slot)?)))
}

pub(crate) async fn eject(
    client: &Client,
    vmid: u32,
    slot: &str,
    before_write: &(dyn Fn() -> Result<(), ProviderError> + Sync),
) -> Result<(), ProviderError> {
    let doing = format!("eject the ISO from `{slot}` of VM {vmid}");
    // Each attempt looks first: one whose answer was lost is found done.
    let attempt = || async {
        let Some(guest) = find(client, vmid).await? else {
            return match absence::is_free(client, vmid).await? {
                true => Ok(()),
                false => Err(Ejecting::Stop(absence::hidden_guest_error(vmid))),
            };
        };
        let config = guest.config(client).await?;
        if config.get(slot).and_then(volume).is_none() {
            return Ok(());
        }
        let permit = Permit::ask(before_write).map_err(Ejecting::Stop)?;
        let params = Params::new().with(slot, "none,media=cdrom").with("digest", &config.digest);
        client.write(permit, Method::PUT, &guest.path("/config"), &params, Rights::Usual).await?;
        Ok(())
    };
    let verdict = |error: &Ejecting| match error {
        Ejecting::Stop(_) => Verdict::Final,
        Ejecting::Call(error) => error.verdict_on_read(),
    };
    let done = retry(client.policy(), client.clock(), client.random(), attempt, verdict);
    done.await.map_err(|error| match error {
        Ejecting::Stop(error) => error,
        Ejecting::Call(error) => error.explain(&doing),
    })
}

/// Why an ISO was not ejected.
enum Ejecting {
    Stop(ProviderError),
    Call(CallError),
}

impl From<CallError> for Ejecting {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

async fn find(client: &Client, vmid: u32) -> Result<Option<Guest>, CallError> {
    let row = locate(client, vmid).await?;
    Ok(row.and_then(|row| row.node).map(|node| Guest { kind: GuestKind::Qemu, node: node.into(), vmid }))
}

/// `local:iso/x.iso,media=cdrom` holds a volume, `none,media=cdrom` does not.
fn volume(drive: &str) -> Option<String> {
    let volume = drive.split(',').next()?;
    (volume != "none" && !volume.is_empty()).then(|| volume.to_owned())
}
