//! Round trips with the real programs, both ways. They are found by `STRATA_SOPS`, `STRATA_AGE` and
//! `STRATA_ANSIBLE_VAULT`, or on the search path. Not part of a usual run: `cargo test -- --ignored`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jiff::Timestamp;
use strata_secret::SecretBytes;
use strata_secrets::sops::{self, Format, Settings, SopsFile};

use crate::generate::Generator;
use crate::keys::{FIRST, random};

struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = World { directory: tempfile::tempdir().expect("a directory") };
        world.write("key.txt", format!("{}\n", FIRST.secret).as_bytes());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), content).expect("written");
        self.path(name)
    }

    /// Runs `sops` in this world; its output, or its complaint.
    fn sops(&self, arguments: &[&str], file: &Path) -> Result<Vec<u8>, String> {
        let program = std::env::var("STRATA_SOPS").unwrap_or_else(|_| "sops".to_owned());
        let output = Command::new(program)
            .args(arguments)
            .arg(file)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .env("SOPS_AGE_KEY_FILE", self.path("key.txt"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .output()
            .expect("`sops` runs");
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

fn settings() -> Settings {
    Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() }
}

/// Names and values, with values as text.
fn values(encrypted: &[u8], format: Format) -> Vec<(String, Vec<u8>)> {
    let open = SopsFile::parse(encrypted, format).and_then(|file| file.open(&FIRST.identities()));
    let open = open.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(encrypted)));
    open.values().into_iter().map(|(path, value)| (path.join("/"), value.expose().to_vec())).collect()
}

const DOCUMENTS: u64 = 60;

/// Keeps the files of a failure, and says where.
fn keep(world: World, seed: u64, problem: &str) -> ! {
    let path = world.directory.keep();
    panic!("seed {seed}: {problem}\nthe files are in {}", path.display())
}

#[test]
#[ignore = "needs sops"]
fn sops_opens_what_we_encrypt() {
    for seed in 0..DOCUMENTS {
        let world = World::new();
        let plain = Generator::new(seed).yaml();
        world.write("plain.yaml", plain.as_bytes());
        let sealed = match sops::encrypt(
            &SecretBytes::new(plain),
            Format::Yaml,
            &settings(),
            Timestamp::UNIX_EPOCH,
            &mut random(seed),
        ) {
            Ok(sealed) => sealed,
            Err(error) => keep(world, seed, &error.to_string()),
        };
        let file = world.write("ours.yaml", &sealed);
        let opened = match world.sops(&["decrypt"], &file) {
            Ok(opened) => opened,
            Err(error) => keep(world, seed, &error),
        };
        world.write("opened.yaml", &opened);
        if String::from_utf8_lossy(&opened).contains("ENC[AES") {
            keep(world, seed, "a comment stayed encrypted");
        }
        let (theirs, ours) = (first_document(&world, &file), first_values(&sealed));
        if ours[..theirs.len().min(ours.len())] != theirs {
            let differ = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            keep(world, seed, &format!("the values differ: {differ:?}"));
        }
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
        Value::String(text) => values.push((path, text.clone())),
        Value::Bool(value) => values.push((path, value.to_string())),
        Value::Number(number) => values.push((path, simplest(&number.to_string()))),
    }
}

/// Two programs write one number in two ways.
fn simplest(number: &str) -> String {
    let float = number.parse::<f64>().expect("a number");
    if number.parse::<i64>().is_ok() { number.to_owned() } else { float.to_string() }
}

fn first_values(sealed: &[u8]) -> Vec<(String, String)> {
    let values = values(sealed, Format::Yaml).into_iter();
    values.map(|(name, value)| (format!("/{name}"), String::from_utf8(value).expect("text"))).collect()
}

#[test]
#[ignore = "needs sops"]
fn we_open_what_sops_encrypts() {
    let mut differ = 0;
    for seed in 0..DOCUMENTS {
        let world = World::new();
        let plain = Generator::new(seed).yaml();
        let file = world.write("plain.yaml", plain.as_bytes());
        let sealed = match world.sops(&["encrypt", "--age", FIRST.recipient], &file) {
            Ok(sealed) => sealed,
            Err(error) => keep(world, seed, &error),
        };
        let file = world.write("theirs.yaml", &sealed);
        let theirs = world.sops(&["decrypt"], &file).expect("their own file");
        world.write("theirs.opened.yaml", &theirs);
        let open = SopsFile::parse(&sealed, Format::Yaml).and_then(|file| file.open(&FIRST.identities()));
        let ours = match open.and_then(|open| open.plaintext()) {
            Ok(ours) => ours,
            Err(error) => keep(world, seed, &error.to_string()),
        };
        world.write("ours.opened.yaml", ours.expose());
        if String::from_utf8_lossy(ours.expose()).contains("ENC[AES") {
            keep(world, seed, "a comment stayed encrypted");
        }
        let (theirs_json, ours_json) = (first_document(&world, &file), first_values(&sealed));
        if ours_json[..theirs_json.len().min(ours_json.len())] != theirs_json {
            keep(world, seed, "the values differ");
        }
        differ += usize::from(ours.expose() != theirs);
        if ours.expose() != theirs && std::env::var("SHOW").is_ok() {
            let ours = String::from_utf8_lossy(ours.expose()).into_owned();
            let theirs = String::from_utf8_lossy(&theirs).into_owned();
            for (a, b) in ours.lines().zip(theirs.lines()) {
                if a != b {
                    println!("{seed}\n  ours   {a}\n  theirs {b}");
                    break;
                }
            }
        }
    }
    println!("{differ} of {DOCUMENTS} differ in layout");
}
