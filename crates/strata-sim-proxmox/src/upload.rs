//! A file that a client sent: counted and hashed on the way in, its content kept only while it is small.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// How much of a file is kept to look into.
pub const KEPT: usize = 1 << 20;

/// A file that arrived whole.
#[derive(Debug, Default, Clone)]
pub struct Upload {
    pub filename: String,
    pub size: u64,
    /// The first bytes, up to `KEPT`.
    pub head: Vec<u8>,
    pub sha256: String,
    /// Algorithm and value of the checksum that the client wants compared.
    pub checksum: Option<(String, String)>,
    /// What the temporary file would be called.
    pub temporary: String,
}

/// A hash that is chosen at run time.
#[derive(Clone)]
pub enum Hasher {
    Md5(Md5),
    Sha1(Sha1),
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Box<Sha512>),
}

impl Hasher {
    pub fn new(algorithm: &str) -> Option<Self> {
        Some(match algorithm {
            "md5" => Self::Md5(Md5::new()),
            "sha1" => Self::Sha1(Sha1::new()),
            "sha224" => Self::Sha224(Sha224::new()),
            "sha256" => Self::Sha256(Sha256::new()),
            "sha384" => Self::Sha384(Sha384::new()),
            "sha512" => Self::Sha512(Box::new(Sha512::new())),
            _ => return None,
        })
    }

    pub fn update(&mut self, data: &[u8]) {
        match self {
            Self::Md5(h) => h.update(data),
            Self::Sha1(h) => h.update(data),
            Self::Sha224(h) => h.update(data),
            Self::Sha256(h) => h.update(data),
            Self::Sha384(h) => h.update(data),
            Self::Sha512(h) => h.update(data),
        }
    }

    pub fn hex(self) -> String {
        match self {
            Self::Md5(h) => hex::encode(h.finalize()),
            Self::Sha1(h) => hex::encode(h.finalize()),
            Self::Sha224(h) => hex::encode(h.finalize()),
            Self::Sha256(h) => hex::encode(h.finalize()),
            Self::Sha384(h) => hex::encode(h.finalize()),
            Self::Sha512(h) => hex::encode(h.finalize()),
        }
    }
}

/// The checksum of bytes that are all there.
pub fn checksum(algorithm: &str, data: &[u8]) -> Option<String> {
    let mut hasher = Hasher::new(algorithm)?;
    hasher.update(data);
    Some(hasher.hex())
}
