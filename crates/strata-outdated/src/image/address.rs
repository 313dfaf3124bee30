//! The address of an image as a pattern: which of its numbers change from release to release.
//!
//! `…/debian-12-standard_12.7-1_amd64.tar.zst` is release 12.7-1 of the series 12: whatever of the release stands in the address for itself names the
//! series, and another series is a major step. A date is a release without a series.

use url::Url;

/// A number with dots and dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) text: String,
    pub(crate) parts: Vec<u64>,
}

impl Release {
    fn is_date(&self) -> bool {
        is_date(self.parts[0], &self.text)
    }

    /// Its first numbers, as they are written.
    fn prefix(&self, count: usize) -> &str {
        let ends = self.text.char_indices().filter(|(_, letter)| !letter.is_ascii_digit()).map(|(at, _)| at);
        ends.chain([self.text.len()])
            .nth(count.saturating_sub(1))
            .map_or(self.text.as_str(), |end| &self.text[..end])
    }

    pub(crate) fn series(&self, count: usize) -> &[u64] {
        &self.parts[..count.min(self.parts.len())]
    }
}

fn is_date(first: u64, text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits == 8 && (2000..2200).contains(&(first / 10_000)) && (1..=12).contains(&(first / 100 % 100))
}

/// A number that begins here, and where it ends. A letter directly behind it makes it something else: `13rc1`.
fn number_at(text: &str, start: usize) -> Option<(Release, usize)> {
    let bytes = text.as_bytes();
    let before = start.checked_sub(1).map(|at| bytes[at]);
    // `v1.2` begins a number, `amd64` does not.
    let is_begun = match before {
        Some(b'v') => start < 2 || !bytes[start - 2].is_ascii_alphanumeric(),
        Some(byte) => !byte.is_ascii_alphanumeric(),
        None => true,
    };
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let first = digits(start);
    if !is_begun || first == 0 {
        return None;
    }
    let mut end = start + first;
    let mut has_dot = is_date(text[start..end].parse().ok()?, &text[start..end]);
    while let Some(sign @ (b'.' | b'-')) = bytes.get(end) {
        let more = digits(end + 1);
        if more == 0 || (*sign == b'-' && !has_dot) {
            break;
        }
        // The part must end as a number, too: `-5rc1` is no part of it.
        if bytes.get(end + 1 + more).is_some_and(u8::is_ascii_alphabetic) {
            break;
        }
        has_dot = true;
        end += 1 + more;
    }
    if bytes.get(end).is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'~')) {
        return None;
    }
    let written = &text[start..end];
    let parts: Option<Vec<u64>> = written.split(['.', '-']).map(|part| part.parse().ok()).collect();
    Some((Release { text: written.to_owned(), parts: parts? }, end))
}

fn numbers(text: &str) -> Vec<(usize, Release, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match number_at(text, at) {
            Some((release, end)) => {
                found.push((at, release, end));
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Whole,
    /// The first numbers of the release.
    Series(usize),
}

/// One part of a path, between slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment(Vec<Piece>);

impl Segment {
    fn of(text: &str, release: &Release) -> Self {
        let (mut pieces, mut from) = (Vec::new(), 0);
        for (start, number, end) in numbers(text) {
            let piece = if number.parts == release.parts {
                Piece::Whole
            } else if number.parts.len() < release.parts.len()
                && !release.is_date()
                && release.parts.starts_with(&number.parts)
            {
                Piece::Series(number.parts.len())
            } else {
                continue;
            };
            if from < start {
                pieces.push(Piece::Literal(text[from..start].to_owned()));
            }
            pieces.push(piece);
            from = end;
        }
        if from < text.len() {
            pieces.push(Piece::Literal(text[from..].to_owned()));
        }
        Self(pieces)
    }

    fn has_whole(&self) -> bool {
        self.0.contains(&Piece::Whole)
    }

    fn series(&self) -> usize {
        let counts = self.0.iter().map(|piece| if let Piece::Series(count) = piece { *count } else { 0 });
        counts.max().unwrap_or_default()
    }

    pub(crate) fn fill(&self, release: &Release) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::Whole => release.text.clone(),
            Piece::Series(count) => release.prefix(*count).to_owned(),
        };
        self.0.iter().map(text).collect()
    }

    /// The release that a name is of: of a segment with nothing but the series, that.
    pub(crate) fn release_of(&self, name: &str) -> Option<Release> {
        let mut at = 0;
        let (mut whole, mut series): (Option<Release>, Vec<(usize, Release)>) = (None, Vec::new());
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => {
                    at += name.get(at..)?.strip_prefix(text.as_str()).map(|_| text.len())?
                }
                Piece::Whole | Piece::Series(_) => {
                    let (number, end) = number_at(name, at)?;
                    at = end;
                    match piece {
                        Piece::Series(count) if number.parts.len() == *count => series.push((*count, number)),
                        Piece::Series(_) => return None,
                        _ if whole.as_ref().is_some_and(|whole| *whole != number) => return None,
                        _ => whole = Some(number),
                    }
                }
            }
        }
        if at != name.len() {
            return None;
        }
        let found = whole.or_else(|| series.first().map(|(_, number)| number.clone()))?;
        let agrees = |(count, number): &(usize, Release)| found.series(*count) == number.parts;
        series.iter().all(agrees).then_some(found)
    }
}

/// An address whose release is known.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    origin: String,
    segments: Vec<Segment>,
    pub(crate) release: Release,
    /// How many numbers of the release name its series; none of a date.
    pub(crate) series: usize,
}

impl Address {
    /// None where no number says which release it is: `latest`, `current`.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let parsed = Url::parse(url).ok()?;
        let path: Vec<&str> = parsed.path().split('/').skip(1).collect();
        let all: Vec<Release> = path.iter().flat_map(|part| numbers(part)).map(|(_, one, _)| one).collect();
        let dated = all.iter().find(|one| one.is_date());
        let of_file = path.last().map(|name| numbers(name)).unwrap_or_default();
        let dotted = of_file.into_iter().map(|(_, one, _)| one).filter(|one| one.parts.len() > 1);
        let release = dotted.max_by_key(|one| one.parts.len()).filter(|one| {
            // A date besides says more than a version that all dates share.
            dated.is_none()
                || one.parts.len() > 2
                    && one.text.contains(&dated.map(|date| date.text.clone()).unwrap_or_default())
        });
        let release = release.or_else(|| dated.cloned())?;
        let segments: Vec<Segment> = path.iter().map(|part| Segment::of(part, &release)).collect();
        let series = segments.iter().map(Segment::series).max().unwrap_or_default();
        let series = if release.is_date() { 0 } else { series.max(1) };
        Some(Self { origin: parsed.origin().ascii_serialization(), segments, release, series })
    }

    /// The release of a name, if it is counted as that of the address is: by date or by version.
    pub(crate) fn release_of(&self, segment: &Segment, name: &str) -> Option<Release> {
        segment.release_of(name).filter(|found| found.is_date() == self.release.is_date())
    }

    pub(crate) fn fill(&self, release: &Release) -> String {
        let path: Vec<String> = self.segments.iter().map(|segment| segment.fill(release)).collect();
        format!("{}/{}", self.origin, path.join("/"))
    }

    /// The first part of the path that has the whole release, and the folder that lists it.
    pub(crate) fn listed(&self, release: &Release) -> (String, &Segment) {
        let at = self.segments.iter().position(Segment::has_whole).unwrap_or_default();
        (self.folder(at, release), &self.segments[at])
    }

    /// The same of the series, where the path has a folder for each.
    pub(crate) fn series_listed(&self) -> Option<(String, &Segment)> {
        let whole = self.segments.iter().position(Segment::has_whole).filter(|_| self.series > 0)?;
        let at = self.segments[..whole].iter().position(|segment| segment.series() == self.series)?;
        Some((self.folder(at, &self.release), &self.segments[at]))
    }

    fn folder(&self, at: usize, release: &Release) -> String {
        let above: Vec<String> = self.segments[..at].iter().map(|segment| segment.fill(release)).collect();
        let slash = if above.is_empty() { "" } else { "/" };
        format!("{}/{}{slash}", self.origin, above.join("/"))
    }
}

/// The release that an address names, as it stands there.
pub(crate) fn release_in(url: &str) -> Option<&str> {
    let release = Address::parse(url)?.release.text;
    let at = url.find(&release)?;
    url.get(at..at + release.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(url: &str) -> (String, usize) {
        let address = Address::parse(url).unwrap_or_else(|| panic!("{url}"));
        assert_eq!(address.fill(&address.release), url);
        (address.release.text.clone(), address.series)
    }

    #[test]
    fn what_changes_is_found_in_the_addresses_of_all_distributions() {
        let cases = [
            (
                "https://cloud.debian.org/images/cloud/bookworm/20250115-1993/debian-12-genericcloud-amd64-20250115-1993.qcow2",
                "20250115-1993",
                0,
            ),
            (
                "https://cloud-images.ubuntu.com/releases/noble/release-20250115/ubuntu-24.04-server-cloudimg-amd64.img",
                "20250115",
                0,
            ),
            (
                "http://download.proxmox.com/images/system/debian-12-standard_12.7-1_amd64.tar.zst",
                "12.7-1",
                1,
            ),
            (
                "http://download.proxmox.com/images/system/ubuntu-24.04-standard_24.04-2_amd64.tar.zst",
                "24.04-2",
                2,
            ),
            (
                "http://download.proxmox.com/images/system/alpine-3.22-default_20250617_amd64.tar.xz",
                "20250617",
                0,
            ),
            (
                "https://dl-cdn.alpinelinux.org/alpine/v3.22/releases/x86_64/alpine-virt-3.22.1-x86_64.iso",
                "3.22.1",
                2,
            ),
            (
                "https://cdimage.debian.org/debian-cd/12.11.0/amd64/iso-cd/debian-12.11.0-amd64-netinst.iso",
                "12.11.0",
                1,
            ),
            (
                "https://dl.rockylinux.org/pub/rocky/9/images/x86_64/Rocky-9-GenericCloud-Base-9.6-20250531.0.x86_64.qcow2",
                "9.6-20250531.0",
                1,
            ),
            ("https://factory.talos.dev/image/376567988ad3/v1.13.9/nocloud-amd64.iso", "", 0),
        ];
        for (url, text, series) in &cases[..8] {
            assert_eq!(release(url), ((*text).to_owned(), *series), "{url}");
        }
        for url in
            [cases[8].0, "https://x.example/images/noble/current/noble-server-cloudimg-amd64.img", "no url"]
        {
            assert!(Address::parse(url).is_none(), "{url}");
        }
    }

    #[test]
    fn names_are_of_a_release_or_of_none() {
        let address =
            Address::parse("http://d.example/system/debian-12-standard_12.7-1_amd64.tar.zst").unwrap();
        let (folder, segment) = address.listed(&address.release);
        assert_eq!(folder, "http://d.example/system/");
        let of = |name: &str| segment.release_of(name).map(|release| release.text);
        assert_eq!(of("debian-12-standard_12.12-1_amd64.tar.zst").as_deref(), Some("12.12-1"));
        assert_eq!(of("debian-13-standard_13.1-2_amd64.tar.zst").as_deref(), Some("13.1-2"));
        for other in [
            "debian-12-standard_13.1-2_amd64.tar.zst",
            "debian-12-standard_12.12-1_arm64.tar.zst",
            "debian-12-standard_12.12-1rc1_amd64.tar.zst",
            "debian-12-standard_12.12-1_amd64.tar.zst.asc",
            "debian-12-standard_12.12~beta-1_amd64.tar.zst",
            "debian-12-standard_99999999999999999999.1-1_amd64.tar.zst",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        let next = segment.release_of("debian-13-standard_13.1-2_amd64.tar.zst").unwrap();
        assert_eq!(address.fill(&next), "http://d.example/system/debian-13-standard_13.1-2_amd64.tar.zst");
    }
}
