//! Images: a newer release where the address has one, and its checksum.

use std::collections::BTreeSet;

use strata_source::value::checksum::Checksum;

use super::sources::Sources;
use super::{Proposal, Seen, Unknown, edit_at, value_edit};
use crate::image::address::{Address, Release};
use crate::image::{checksums, index};
use crate::pin::{At, Edit, Pin};

pub(super) async fn image(
    pin: &Pin,
    checksum: Option<&Checksum>,
    checksum_at: Option<&At>,
    sources: &Sources<'_>,
) -> Result<Seen, Unknown> {
    let image = Image { pin, checksum, checksum_at, sources };
    let Some(address) = Address::parse(&pin.current) else { return image.unnumbered().await };
    let (folder, segment) = address.listed(&address.release);
    let names = image.names(&folder).await?;
    let all: Vec<Release> = names.iter().filter_map(|name| address.release_of(segment, name)).collect();
    let own = address.release.series(address.series);
    let newer = |release: &&Release| release.parts > address.release.parts;
    let of_series = |release: &&Release| release.series(address.series) == own;
    let mut seen = Seen::default();
    if let Some(newest) =
        all.iter().filter(newer).filter(of_series).max_by(|one, other| one.parts.cmp(&other.parts))
    {
        seen.next = Some(image.proposal(&address, newest).await?);
    } else {
        seen.notes.extend(image.moved().await?);
    }
    let beyond = all.iter().filter(newer).filter(|release| !of_series(release));
    let mut major = beyond.max_by(|one, other| one.parts.cmp(&other.parts)).cloned();
    if major.is_none() {
        major = image.next_series(&address).await?;
    }
    if let Some(major) = major {
        seen.major = Some(image.proposal(&address, &major).await?);
    }
    Ok(seen)
}

struct Image<'i> {
    pin: &'i Pin,
    checksum: Option<&'i Checksum>,
    checksum_at: Option<&'i At>,
    sources: &'i Sources<'i>,
}

impl Image<'_> {
    async fn names(&self, folder: &str) -> Result<BTreeSet<String>, Unknown> {
        let page = self.sources.text(folder).await?;
        index::names(folder, &page.text).ok_or_else(|| self.sources.nonsense(folder, "an index of files"))
    }

    /// The newest release of the newest series, where each series has a folder.
    async fn next_series(&self, address: &Address) -> Result<Option<Release>, Unknown> {
        let Some((folder, segment)) = address.series_listed() else { return Ok(None) };
        let own = address.release.series(address.series);
        // Not every server lists what lies above.
        let Some(page) = self.sources.text_if_there(&folder).await? else { return Ok(None) };
        let listed = index::names(&folder, &page.text).unwrap_or_default();
        let beyond = listed
            .iter()
            .filter_map(|name| segment.release_of(name))
            .filter(|one| one.parts.as_slice() > own);
        let Some(series) = beyond.max_by(|one, other| one.parts.cmp(&other.parts)) else { return Ok(None) };
        let (folder, segment) = address.listed(&series);
        let Some(page) = self.sources.text_if_there(&folder).await? else { return Ok(None) };
        let names = index::names(&folder, &page.text).unwrap_or_default();
        let of_series = |release: &Release| release.series(address.series) == series.parts;
        let all = names.iter().filter_map(|name| address.release_of(segment, name)).filter(of_series);
        Ok(all.max_by(|one, other| one.parts.cmp(&other.parts)))
    }

    async fn proposal(&self, address: &Address, release: &Release) -> Result<Proposal, Unknown> {
        let url = address.fill(release);
        let version = release.text.clone();
        let published = self.published(&url).await?;
        let edits = self.edits(&url, published.as_deref());
        Ok(Proposal { version, edits })
    }

    fn edits(&self, url: &str, published: Option<&[Checksum]>) -> Result<Vec<Edit>, String> {
        let mut edits = vec![value_edit(self.pin, url.to_owned())?];
        let Some(before) = self.checksum else { return Ok(edits) };
        let published = published.ok_or("no file of checksums is published beside it")?;
        let after = checksums::successor(published, Some(before)).ok_or_else(|| {
            let least = before.algorithm.as_str();
            format!("what is published beside it has no checksum of it, of {least} or stronger")
        })?;
        let at = self.checksum_at.ok_or("its checksum does not stand beside its `url`")?;
        edits.push(edit_at(self.pin, at, before.to_string(), after.to_string()));
        Ok(edits)
    }

    /// The checksums that are published for a file; none where there is no file of checksums at all.
    async fn published(&self, url: &str) -> Result<Option<Vec<Checksum>>, Unknown> {
        let Some((folder, file)) = url.rsplit_once('/') else { return Ok(None) };
        let folder = format!("{folder}/");
        let listed = match self.sources.text_if_there(&folder).await? {
            Some(page) => index::names(&folder, &page.text).unwrap_or_default(),
            None => BTreeSet::new(),
        };
        let mut pages: Vec<String> =
            checksums::candidates(&listed, file).iter().map(|name| format!("{folder}{name}")).collect();
        if pages.is_empty() {
            // Proxmox lists its templates one folder above them.
            let above = folder.trim_end_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
            pages = ["aplinfo-pve-9.dat", "aplinfo-pve-8.dat"].map(|name| format!("{above}/{name}")).to_vec();
        }
        let mut found: Option<Vec<Checksum>> = None;
        for page in pages {
            let Some(answer) = self.sources.text_if_there(&page).await? else { continue };
            found.get_or_insert_default().extend(checksums::of(&answer.text, file));
        }
        Ok(found)
    }

    /// Whether what is published for the pinned file itself is still what is pinned.
    async fn moved(&self) -> Result<Option<String>, Unknown> {
        let Some(after) = self.differing().await? else { return Ok(None) };
        Ok(Some(format!(
            "the file of this very address has another checksum now, {after}: whoever publishes it knows why"
        )))
    }

    async fn differing(&self) -> Result<Option<Checksum>, Unknown> {
        let Some(before) = self.checksum else { return Ok(None) };
        let published = self.published(&self.pin.current).await?.unwrap_or_default();
        let same = published.into_iter().find(|one| one.algorithm == before.algorithm);
        Ok(same.filter(|one| one != before))
    }

    /// An address that always leads to the newest: only its checksum changes.
    async fn unnumbered(&self) -> Result<Seen, Unknown> {
        const NO_RELEASE: &str = "its address names no release";
        let Some(before) = self.checksum else {
            return Err(Unknown(format!("{NO_RELEASE}, and it has no checksum")));
        };
        let is_rolling = self.pin.current.split('/').any(|part| matches!(part, "latest" | "current"));
        if !is_rolling {
            return Err(Unknown(NO_RELEASE.to_owned()));
        }
        let Some(after) = self.differing().await? else { return Ok(Seen::default()) };
        let edits = match self.checksum_at {
            Some(at) => Ok(vec![edit_at(self.pin, at, before.to_string(), after.to_string())]),
            None => Err("its checksum does not stand beside its `url`".to_owned()),
        };
        let version = format!("{}:{}…", after.algorithm.as_str(), &after.hex[..12]);
        Ok(Seen { next: Some(Proposal { version, edits }), ..Seen::default() })
    }
}
