//! Files of checksums, in the forms that distributions publish.

use std::collections::BTreeSet;

use strata_source::value::checksum::{Algorithm, Checksum};

/// Names that a folder's checksums go by, those of this file first.
pub(crate) fn candidates(names: &BTreeSet<String>, file: &str) -> Vec<String> {
    const SIGNATURES: [&str; 5] = [".gpg", ".asc", ".sig", ".sign", ".pem"];
    let is_sums = |name: &&String| {
        let lower = name.to_ascii_lowercase();
        let of_another = name.len() > file.len() && !name.starts_with(file) && lower.ends_with(".sha256");
        let is_sum = ["sha512", "sha256", "checksum"].iter().any(|word| lower.contains(word));
        is_sum && !of_another && !SIGNATURES.iter().any(|end| lower.ends_with(end))
    };
    let mut found: Vec<String> = names.iter().filter(is_sums).cloned().collect();
    found.sort_by_key(|name| (!name.starts_with(file), !name.contains("512"), name.clone()));
    found.truncate(4);
    found
}

/// The checksums that a text gives for a file. One that is there twice with different values is none at all.
pub(crate) fn of(text: &str, file: &str) -> Vec<Checksum> {
    let mut found: Vec<Checksum> = Vec::new();
    let mut torn: Vec<Algorithm> = Vec::new();
    for checksum in lines(text, file).into_iter().chain(stanzas(text, file)) {
        match found.iter().find(|one| one.algorithm == checksum.algorithm) {
            Some(same) if *same == checksum => {}
            Some(_) => torn.push(checksum.algorithm),
            None => found.push(checksum),
        }
    }
    found.retain(|checksum| !torn.contains(&checksum.algorithm));
    found
}

/// What replaces a checksum: of the same algorithm, else of the weakest stronger one; never of a weaker one.
pub(crate) fn successor(found: &[Checksum], before: Option<&Checksum>) -> Option<Checksum> {
    let least = before.map_or(Algorithm::Sha256, |before| before.algorithm);
    found
        .iter()
        .filter(|checksum| checksum.algorithm >= least)
        .min_by_key(|checksum| checksum.algorithm)
        .cloned()
}

fn lines(text: &str, file: &str) -> Vec<Checksum> {
    let is_own = |name: &str| {
        let name = name.trim().trim_start_matches('*');
        name == file || name.strip_prefix("./") == Some(file)
    };
    let mut found = Vec::new();
    let mut alone = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some((hex, name)) = line.split_once(char::is_whitespace) {
            if is_own(name) {
                found.extend(checksum(hex));
            } else if let Some((name, hex)) =
                line.split_once(" (").and_then(|(_, rest)| rest.split_once(") = "))
            {
                found.extend(Some(hex).filter(|_| is_own(name)).and_then(checksum));
            }
        } else {
            alone.extend(checksum(line));
        }
    }
    // A file with nothing but a checksum is about the file that it is called after.
    if found.is_empty() && alone.len() == 1 && text.trim().lines().count() == 1 { alone } else { found }
}

/// The list of templates of Proxmox VE: paragraphs with `Location:` and `sha512sum:`.
fn stanzas(text: &str, file: &str) -> Vec<Checksum> {
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            let line = paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        if field("Location").and_then(|path| path.rsplit('/').next()) == Some(file) {
            found.extend(["sha512sum", "sha256sum"].iter().filter_map(|name| checksum(field(name)?)));
        }
    }
    found
}

fn checksum(hex: &str) -> Option<Checksum> {
    let algorithm = match hex.len() {
        64 => Algorithm::Sha256,
        96 => Algorithm::Sha384,
        128 => Algorithm::Sha512,
        _ => return None,
    };
    let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| Checksum { algorithm, hex: hex.to_ascii_lowercase() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(letter: char, digits: usize) -> String {
        letter.to_string().repeat(digits)
    }

    #[test]
    fn every_form_is_read() {
        let (a, b) = (sum('a', 64), sum('b', 128));
        let forms = [
            format!("{a}  x.img\n{}  y.img\n", sum('c', 64)),
            format!("{a} *x.img\n"),
            format!("{a}  ./x.img"),
            format!("# x.img: 12 bytes\nSHA256 (x.img) = {a}\nSHA256 (y.img) = {}\n", sum('c', 64)),
            format!("{a}\n"),
            format!("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{a}  x.img\n"),
        ];
        for form in forms {
            let found = of(&form, "x.img");
            assert_eq!(
                found.iter().map(ToString::to_string).collect::<Vec<_>>(),
                [format!("sha256:{a}")],
                "{form}"
            );
        }
        let list = format!(
            "Package: d\nLocation: system/x.img\nmd5sum: {}\nsha512sum: {b}\n\nPackage: e\n",
            sum('d', 32)
        );
        assert_eq!(of(&list, "x.img")[0].to_string(), format!("sha512:{b}"));
    }

    #[test]
    fn what_is_missing_torn_or_weak_is_none() {
        let (a, b) = (sum('a', 64), sum('b', 64));
        for text in [
            format!("{a}  other.img\n{b}  prefix-x.img\n"),
            format!("{a}  x.img\n{b}  x.img\n"),
            format!("{}  x.img\n", sum('a', 32)),
            format!("{}  x.img\n", sum('z', 64)),
            "<html>x.img</html>".to_owned(),
            format!("{a}\n{b}\n"),
        ] {
            assert_eq!(of(&text, "x.img"), [], "{text}");
        }
        let strong = Checksum { algorithm: Algorithm::Sha512, hex: sum('1', 128) };
        let weak = Checksum { algorithm: Algorithm::Sha256, hex: a };
        assert_eq!(successor(std::slice::from_ref(&weak), Some(&strong)), None);
        assert_eq!(successor(&[strong.clone(), weak.clone()], Some(&weak)), Some(weak.clone()));
        assert_eq!(successor(std::slice::from_ref(&strong), Some(&weak)), Some(strong));
    }

    #[test]
    fn files_of_checksums_are_known_by_their_names() {
        let names = [
            "SHA256SUMS",
            "SHA512SUMS",
            "SHA512SUMS.gpg",
            "x.img",
            "x.img.sha256",
            "y.img.sha256",
            "CHECKSUM",
        ];
        let names = names.map(str::to_owned).into_iter().collect();
        assert_eq!(candidates(&names, "x.img"), ["x.img.sha256", "SHA512SUMS", "CHECKSUM", "SHA256SUMS"]);
    }
}
