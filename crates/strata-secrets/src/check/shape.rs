//! What is likely a secret by the way it looks, whoever wrote it: keys, also in base64, tokens, files that open a cluster.

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::bytes::Regex;

/// What it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    PrivateKey,
    /// That of an API, which anybody can use who has it.
    Token,
    /// What machines of a cluster know each other by.
    ClusterSecret,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PrivateKey => "a private key",
            Self::Token => "a token",
            Self::ClusterSecret => "a secret of a Talos cluster",
        })
    }
}

/// A key in base64 in a file in base64 in a manifest: further down nobody looks.
const DEEPEST: usize = 3;

/// Shorter texts in base64 hold nothing that could be told from other words.
const SHORTEST: usize = 40;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const LARGEST_UNPACKED: u64 = 4 * 1024 * 1024;

/// Padding is often cut.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Tokens that say themselves what they are.
static TOKENS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Proxmox, with its value; GitHub; GitLab; a signed token such as those of Kubernetes.
        r"[A-Za-z0-9._-]+@[A-Za-z0-9._-]+![A-Za-z0-9._-]+=([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
        r"\bgh[opsur]_([A-Za-z0-9]{36})",
        r"\bgithub_pat_([A-Za-z0-9_]{60,})",
        r"\bglpat-([A-Za-z0-9_-]{20,})",
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{20,}\.([A-Za-z0-9_-]{20,})",
        // Slack.
        r"\bxox[abprs]-([A-Za-z0-9-]{20,})",
        // A token of Proxmox whose name stands elsewhere; a key of TrueNAS; the secret half of a key for S3.
        r#"(?i)token[a-z_]*["']?\s*[:=]\s*["']?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:["'\s,}\]#]|$)"#,
        r#"(?i)api_?key["']?\s*[:=]\s*["']?([0-9]{1,6}-[a-z0-9]{40,})(?:["'\s,}\]#]|$)"#,
        r#"(?i)secret_?(?:access_?)?key["']?\s*[:=]\s*["']?([A-Za-z0-9/+]{40})(?:["'\s,}\]#]|$)"#,
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// Fields of a machine configuration or of a secrets bundle, in any style that YAML and JSON know.
static CLUSTER: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r#"(?i)\b(?:token|bootstraptoken)["']?\s*:\s*["']?([a-z0-9]{6}\.[a-z0-9]{16})(?:["'\s,}\]#]|$)"#,
        r#"(?i)\b(?:secret|clustersecret|secretboxencryptionsecret|aescbcencryptionsecret)["']?\s*:\s*["']?([A-Za-z0-9+/]{43}=)(?:["'\s,}\]#]|$)"#,
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// A key of WireGuard is 32 bytes that only their name tells from others.
static WIREGUARD: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [r#"(?i)\b(?:private|preshared)_?key["']?\s*[:=]\s*["']?([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)(?:["'\s,}\]#]|$)"#]
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
});

/// `\x20`, `\u0020` and the like in a text in quotes.
static ESCAPED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\\(?:x([0-9A-Fa-f]{2})|u00([0-9A-Fa-f]{2})|([/ ]))").ok());

/// What a line holds.
pub(crate) fn of_line(line: &[u8]) -> Option<Shape> {
    look(line, 0)
}

fn look(line: &[u8], depth: usize) -> Option<Shape> {
    let line = &*without_escapes(line);
    if is_private_key(line) || has(&WIREGUARD, line) {
        return Some(Shape::PrivateKey);
    }
    if has(&TOKENS, line) {
        return Some(Shape::Token);
    }
    if has(&CLUSTER, line) {
        return Some(Shape::ClusterSecret);
    }
    if depth == DEEPEST {
        return None;
    }
    runs(line).filter_map(|run| BASE64.decode(run).ok()).find_map(|inner| {
        let inner = if inner.starts_with(&GZIP) { unpacked(&inner)? } else { inner };
        // What is no text is a digest, a picture, or encrypted.
        let text = std::str::from_utf8(&inner).ok()?;
        text.lines().find_map(|line| look(line.as_bytes(), depth + 1))
    })
}

/// What the letters of an escape stand for.
fn without_escapes(line: &[u8]) -> Cow<'_, [u8]> {
    let Some(escaped) = ESCAPED.as_ref().filter(|_| line.contains(&b'\\')) else {
        return Cow::Borrowed(line);
    };
    escaped.replace_all(line, |found: &regex::bytes::Captures<'_>| {
        let digits =
            found.get(1).or(found.get(2)).and_then(|digits| std::str::from_utf8(digits.as_bytes()).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        vec![byte.or(found.get(3).and_then(|plain| plain.as_bytes().first().copied())).unwrap_or(b' ')]
    })
}

/// The beginning of what was packed: no file that opens something is larger.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed).take(LARGEST_UNPACKED).read_to_end(&mut text).ok()?;
    Some(text)
}

fn has(patterns: &[Regex], line: &[u8]) -> bool {
    patterns.iter().any(|pattern| {
        pattern
            .captures_iter(line)
            .any(|found| found.get(1).is_some_and(|value| !is_example(value.as_bytes())))
    })
}

/// Only a few different characters, or a word that says so: something that stands for a value.
fn is_example(value: &[u8]) -> bool {
    if value.to_ascii_lowercase().windows(7).any(|part| part == b"example") {
        return true;
    }
    let mut seen: Vec<u8> = value.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() < 5
}

/// Words that may be base64.
fn runs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    line.split(move |byte| !is_part(byte)).filter(|run| run.len() >= SHORTEST)
}

/// An age identity, or a private key that is not encrypted itself.
fn is_private_key(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let age = line
        .split("AGE-SECRET-KEY-")
        .skip(1)
        .map(|rest| rest.strip_prefix("PQ-").unwrap_or(rest))
        .any(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).count() >= 50);
    let pem = line.split("-----BEGIN ").skip(1).any(|rest| {
        rest.split_once("-----").is_some_and(|(label, _)| {
            let label = label.trim_end_matches(" BLOCK");
            label.ends_with("PRIVATE KEY") && !label.contains("ENCRYPTED")
        })
    });
    age || pem
}

/// Whether a file is a saved plan: it tells of a whole datacenter, and belongs to the run that was reviewed.
pub(crate) fn is_plan(content: &[u8]) -> bool {
    let start = &content[..content.len().min(4096)];
    let start = String::from_utf8_lossy(start);
    start.trim_start().starts_with('{')
        && ["\"format\"", "\"strata\"", "\"destroy\"", "\"stacks\""].iter().all(|key| start.contains(key))
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIHx\n-----END EC PRIVATE KEY-----\n";

    fn of(line: &str) -> Option<Shape> {
        of_line(line.as_bytes())
    }

    #[test]
    fn c2_keys_are_found_in_base64_however_deep() {
        let once = STANDARD.encode(KEY);
        assert_eq!(of(&format!("    client-key-data: {once}")), Some(Shape::PrivateKey));
        assert_eq!(of(&format!("        key: {}", once.trim_end_matches('='))), Some(Shape::PrivateKey));
        let twice = STANDARD.encode(format!("kind: Config\nusers:\n- user: {{client-key-data: {once}}}\n"));
        assert_eq!(of(&format!("  kubeconfig: {twice}")), Some(Shape::PrivateKey));
        let public = STANDARD.encode(KEY.replace("EC PRIVATE KEY", "CERTIFICATE"));
        assert_eq!(of(&format!("  certificate-authority-data: {public}")), None);
        assert_eq!(
            of("data:ENC[AES256_GCM,data:Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6Zm9vYmFyYmF6,iv:x]"),
            None
        );
    }

    #[test]
    fn c2_tokens_and_cluster_secrets_are_found_and_examples_are_not() {
        for line in [
            "token: root@pam!strata=1b7c9f54-8a4e-4c1d-9d52-6f1c0e7a3b21",
            "    token: ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "token: eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJrdWJlcm5ldGVzL3Nlcn.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg",
        ] {
            assert_eq!(of(line), Some(Shape::Token), "{line}");
        }
        for line in [
            "    token: 9dt69t.rzbk2gb2uxmgx3k6",
            "  secret: qR1Y5pQ3k9tT7bH2wX8zV4cN6mJ0sD1fG5hL7eA3uI4=",
            "    secretboxEncryptionSecret: \"qR1Y5pQ3k9tT7bH2wX8zV4cN6mJ0sD1fG5hL7eA3uI4=\"",
        ] {
            assert_eq!(of(line), Some(Shape::ClusterSecret), "{line}");
        }
        for line in [
            "token: root@pam!strata=00000000-0000-0000-0000-000000000000",
            "token: user@realm!name=xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
            "token: {secret: proxmox_api_token}",
            "checksum: sha512:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "token: ABCDEF.ABCDEF",
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "privateKey: {secret: wireguard}",
            "publicKey: \"Cy9RVAPjreNZC44GcJq+iXThAzATxouHjonSLeoqpmc=\"",
            "tokenId: strata",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn c2_secrets_are_found_in_every_style_of_yaml_and_json() {
        for (line, like) in [
            ("trustdinfo: {token: 9dt69t.rzbk2gb2uxmgx3k6}", Shape::ClusterSecret),
            ("token: 9dt69t.rzbk2gb2uxmgx3k6 # join", Shape::ClusterSecret),
            (
                "{\"cluster\": {\"id\": \"x\", \"secret\": \"CoKy01CS0K2ko0f6jXVxsJFAmNHO+nbwXYtGP/tI/6c=\"}, \"a\": 1}",
                Shape::ClusterSecret,
            ),
            ("secret: u7/8SJZV3Tl0JnG7nsJ8/foOZj+iOa9O+JMS3FQjUEQ= # of the cluster", Shape::ClusterSecret),
            (
                "{wireguard: {privateKey: \"Cy9RVAPjreNZC44GcJq+iXThAzATxouHjonSLeoqpmc=\"}}",
                Shape::PrivateKey,
            ),
            ("PrivateKey = hDTzzq1rjJm/l2DR2Rro6Kvrz9SpnM/4lAnpvrX2xiE=", Shape::PrivateKey),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----", Shape::PrivateKey),
            ("x: \"-----BEGIN\\x20RSA PRIVATE KEY-----\"", Shape::PrivateKey),
            ("pm_api_token_secret = \"5174a7a0-0d9e-4c0f-8f3d-6d6f2d736961\"", Shape::Token),
            ("apiKey: 1-kJ8sd7Fh3Gd8Kd9Lx0Qw2Er4Ty6Ui8Op1As3Df5Gh7Jk9Lz2Xc4Vb6Nm8Qw1Er3", Shape::Token),
            ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYKEYxyz12abcd", Shape::Token),
        ] {
            assert_eq!(of(line), Some(like), "{line}");
        }
        let quantum = format!("AGE-SECRET-KEY-PQ-1{}", "QPZRY9X8GF".repeat(6));
        assert_eq!(of(&quantum), Some(Shape::PrivateKey));
    }

    #[test]
    fn c2_a_packed_file_in_base64_is_opened() {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(format!("kind: Config\nkey: {}\n", STANDARD.encode(KEY)).as_bytes()).unwrap();
        let line = format!("kubeconfig: {}", STANDARD.encode(packed.finish().unwrap()));
        assert_eq!(of(&line), Some(Shape::PrivateKey));
    }
}
