//! Looking at everything that a plan is about, bulk first.
//!
//! The price: one listing of the cluster, one listing for each hypervisor and kind of guest on it, one read for each guest and
//! two more where its firewall is ours, one listing for each storage with volumes of ours, one listing for each other kind of
//! object. Guests that the listing does not have
//! are not asked for. Stacks that are planned in one run share the listings of guests and of volumes.

mod guests;
mod volumes;

use strata_engine::{Look, ProviderError, Sighting, Wanted};

pub(crate) use self::guests::{Covers, facts_of, observed_guest};
pub(crate) use self::volumes::{find_volume, prove_download, volume_facts};
use crate::client::Client;
use crate::datacenter;
use crate::snippets;

pub(crate) async fn observe_all(
    client: &Client,
    look: &Look,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Sighting>, ProviderError> {
    let mut sightings = vec![Sighting::Absent; wanted.len()];
    let (guests, volumes, others) = futures::future::try_join3(
        guests::look_at_guests(client, look, wanted),
        volumes::look_at_volumes(client, look, wanted),
        datacenter::look_at(client, wanted),
    )
    .await?;
    for (index, sighting) in guests.into_iter().chain(volumes).chain(others) {
        sightings[index] = sighting;
    }
    snippets::resolve_isos(wanted, &mut sightings);
    Ok(sightings)
}
