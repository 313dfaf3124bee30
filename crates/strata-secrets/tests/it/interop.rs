//! Round trips with the real programs, both ways. They are found by `STRATA_SOPS`, `STRATA_AGE` and
//! `STRATA_ANSIBLE_VAULT`, or on the search path. Not part of a usual run: `cargo test -- --ignored`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strata_secret::SecretBytes;
use strata_secrets::sops::{self, Format, OpenFile, Settings, SopsFile};

use crate::keys::{FIRST, NOW, SECOND, random};

mod age;
mod ansible;
mod formats;
mod keys;
mod odd;
mod yaml;

/// A directory with keys and files.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = World { directory: tempfile::tempdir().expect("a directory") };
        world.write("key.txt", format!("{}\n", FIRST.secret).as_bytes());
        world.write("both.txt", format!("{}\n{}\n", FIRST.secret, SECOND.secret).as_bytes());
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), content).expect("written");
        self.path(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("readable")
    }

    /// Runs a program in this world with the given variables; its output, or its complaint.
    fn run(
        &self,
        variable: &str,
        name: &str,
        arguments: &[&str],
        set: &[(&str, &str)],
    ) -> Result<Vec<u8>, String> {
        let program = std::env::var(variable).unwrap_or_else(|_| name.to_owned());
        let output = Command::new(&program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .envs(set.iter().copied())
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("`{program}` does not run: {error}"));
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Runs `sops` with the first key.
    fn sops(&self, arguments: &[&str], file: &Path) -> Result<Vec<u8>, String> {
        self.sops_with("key.txt", arguments, file)
    }

    fn sops_with(&self, keys: &str, arguments: &[&str], file: &Path) -> Result<Vec<u8>, String> {
        let keys = self.path(keys).display().to_string();
        let arguments: Vec<&str> = arguments.iter().copied().chain([file.to_str().expect("UTF-8")]).collect();
        self.run("STRATA_SOPS", "sops", &arguments, &[("SOPS_AGE_KEY_FILE", &keys)])
    }

    /// Keeps the files of a failure, and says where.
    fn keep(self, problem: &str) -> ! {
        panic!("{problem}\nthe files are in {}", self.directory.keep().display())
    }
}

fn settings() -> Settings {
    Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() }
}

fn seal(plain: &[u8], format: Format, settings: &Settings) -> Vec<u8> {
    sops::encrypt(&SecretBytes::new(plain), format, settings, NOW, &mut random(7))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn open(sealed: &[u8], format: Format) -> OpenFile {
    let file = SopsFile::parse(sealed, format).and_then(|file| file.open(&FIRST.identities()));
    file.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(sealed)))
}
