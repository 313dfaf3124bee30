//! Random YAML through `sops` and back.

use std::path::Path;

use strata_secret::SecretBytes;
use strata_secrets::sops::{self, Format, SopsFile};

use super::{World, open, settings};
use crate::generate::Generator;
use crate::keys::{FIRST, NOW, random};

/// `STRATA_INTEROP_SEEDS=100..2000` tries others, or more.
fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("STRATA_INTEROP_SEEDS").ok();
    let range = given.as_deref().and_then(|text| text.split_once(".."));
    range.map_or(0..100, |(from, to)| from.parse().expect("a number")..to.parse().expect("a number"))
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn sops_opens_what_we_encrypt() {
    for seed in seeds() {
        sops_opens(seed, Generator::new(seed).yaml());
    }
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn sops_finds_every_comment_where_we_put_it() {
    for seed in seeds() {
        sops_opens(seed, Generator::talkative(seed).yaml());
    }
}

fn sops_opens(seed: u64, plain: String) {
    let world = World::new();
    world.write("plain.yaml", plain.as_bytes());
    let plain = SecretBytes::new(plain);
    let sealed = match sops::encrypt(&plain, Format::Yaml, &settings(), NOW, &mut random(seed)) {
        Ok(sealed) => sealed,
        Err(error) => world.keep(&format!("seed {seed}: {error}")),
    };
    let file = world.write("ours.yaml", &sealed);
    let opened = match world.sops(&["decrypt"], &file) {
        Ok(opened) => opened,
        Err(error) => world.keep(&format!("seed {seed}: {error}")),
    };
    world.write("opened.yaml", &opened);
    if String::from_utf8_lossy(&opened).contains("ENC[AES") {
        world.keep(&format!("seed {seed}: a comment stayed encrypted"));
    }
    compare(world, seed, &file, &sealed);
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn we_open_what_sops_encrypts_and_sops_opens_what_we_edited() {
    for seed in seeds() {
        let world = World::new();
        let plain = Generator::new(seed).yaml();
        let file = world.write("plain.yaml", plain.as_bytes());
        let sealed = match world.sops(&["encrypt", "--age", FIRST.recipient], &file) {
            Ok(sealed) => sealed,
            Err(error) => world.keep(&format!("seed {seed}: {error}")),
        };
        let file = world.write("theirs.yaml", &sealed);
        let opened = SopsFile::parse(&sealed, Format::Yaml).and_then(|file| file.open(&FIRST.identities()));
        let (opened, plain) = match opened.and_then(|opened| opened.plaintext().map(|plain| (opened, plain)))
        {
            Ok(both) => both,
            Err(error) => world.keep(&format!("seed {seed}: {error}")),
        };
        let text = String::from_utf8_lossy(plain.expose()).into_owned();
        world.write("ours.opened.yaml", plain.expose());
        if text.contains("ENC[AES") {
            world.keep(&format!("seed {seed}: a comment stayed encrypted"));
        }
        // Add a key at the top, and give the file back.
        let start = if text.starts_with("---") { "---\n".len() } else { 0 };
        let edited = format!("{}added: by us\n{}", &text[..start], &text[start..]);
        let edited = match opened.edit(&SecretBytes::new(edited), NOW, &mut random(seed)) {
            Ok(edited) => edited.expect("a change"),
            Err(error) => world.keep(&format!("seed {seed}: {error}")),
        };
        compare(world, seed, &file, &sealed);
        let world = World::new();
        let file = world.write("edited.yaml", &edited);
        if let Err(error) = world.sops(&["decrypt"], &file) {
            world.keep(&format!("seed {seed}: {error}"));
        }
        compare(world, seed, &file, &edited);
    }
}

/// The same values for both programs.
fn compare(world: World, seed: u64, file: &Path, sealed: &[u8]) {
    let theirs = first_document(&world, file);
    let ours: Vec<(String, String)> = open(sealed, Format::Yaml)
        .values()
        .into_iter()
        .map(|(path, value)| {
            (format!("/{}", path.join("/")), value.into_string().ok().expect("text").expose().to_owned())
        })
        .map(|(path, value)| (path, simplest(&value)))
        .collect();
    assert!(!theirs.is_empty());
    if ours.get(..theirs.len()) != Some(&theirs) {
        let differ = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        world.keep(&format!("seed {seed}: the values differ: {differ:?}"));
    }
}

/// What `sops` says the first document has, as names and texts. Its YAML cannot be used for this: it writes text that
/// starts with a blank or line break in a form that it cannot read itself.
fn first_document(world: &World, file: &Path) -> Vec<(String, String)> {
    let json = world.sops(&["decrypt", "--output-type", "json"], file).expect("it opened before");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let mut values = Vec::new();
    flatten(&json, String::new(), &mut values);
    values
}

fn flatten(json: &serde_json::Value, path: String, values: &mut Vec<(String, String)>) {
    use serde_json::Value;
    let below = |name: &str| format!("{path}/{name}");
    match json {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(value, below(name), values)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| flatten(value, below(&index.to_string()), values));
        }
        Value::Null => {}
        Value::String(text) => values.push((path, simplest(text))),
        Value::Bool(value) => values.push((path, value.to_string())),
        Value::Number(number) => values.push((path, simplest(&number.to_string()))),
    }
}

/// Two programs write one number in two ways.
fn simplest(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(float)
            if number.parse::<i64>().is_err()
                && number.starts_with(|c: char| c.is_ascii_digit() || c == '-') =>
        {
            float.to_string()
        }
        _ => number.to_owned(),
    }
}
