//! Checksums of images, with the name of their algorithm.

use std::fmt;

use strata_yaml::TextShape;

use crate::value::text::text_value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// What a downloaded file must hash to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum {
    pub algorithm: Algorithm,
    /// Lower-case hex.
    pub hex: String,
}

impl Algorithm {
    const ALL: [Self; 6] = [Self::Md5, Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// The name that Proxmox knows it by.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_digits(self) -> usize {
        match self {
            Self::Md5 => 32,
            Self::Sha1 => 40,
            Self::Sha224 => 56,
            Self::Sha256 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

const TEXT: TextShape = TextShape {
    what: "an algorithm and a checksum such as `sha256:9f86…`",
    pattern: Some("^(md5|sha1|sha224|sha256|sha384|sha512):[0-9a-fA-F]+$"),
};

fn parse(text: &str) -> Result<Checksum, String> {
    let Some((name, hex)) = text.split_once(':') else {
        let fitting = Algorithm::ALL.into_iter().find(|algorithm| algorithm.hex_digits() == text.len());
        return Err(match fitting {
            Some(algorithm) => {
                format!("the checksum does not say its algorithm: write `{}:…`", algorithm.as_str())
            }
            None => "the checksum does not say its algorithm".to_owned(),
        });
    };
    let algorithm = Algorithm::ALL
        .into_iter()
        .find(|algorithm| algorithm.as_str() == name)
        .ok_or_else(|| format!("`{name}` is not a checksum algorithm"))?;
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) || hex.len() != algorithm.hex_digits() {
        let digits = algorithm.hex_digits();
        return Err(format!(
            "a {name} checksum has {digits} hex digits, this one has {} characters",
            hex.chars().count()
        ));
    }
    Ok(Checksum { algorithm, hex: hex.to_ascii_lowercase() })
}

text_value! {
    Checksum = TEXT, parse;
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_algorithm_and_the_length_must_fit() {
        let hex = "AB".repeat(32);
        assert_eq!(
            parse(&format!("sha256:{hex}")).unwrap().to_string(),
            format!("sha256:{}", "ab".repeat(32))
        );
        assert!(parse(&hex).unwrap_err().contains("write `sha256:…`"));
        assert!(parse("sha256:abcd").unwrap_err().contains("has 64 hex digits, this one has 4"));
        assert!(parse("crc:abcd").unwrap_err().contains("`crc` is not a checksum algorithm"));
    }
}
