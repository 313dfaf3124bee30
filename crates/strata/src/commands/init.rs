//! `strata init`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_examples::Example;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::{Context, random_hex};

/// Makes a repository that validates, from an example
///
/// The examples work unchanged with `strata sim`: run that in one terminal and `strata apply` here in another.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `homelab`, `prod`, `environments`; an almost empty repository without one
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// Where to make it
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

/// The fingerprint of the simulator's certificate.
const FINGERPRINT: &str =
    "E7:BB:A5:1F:3F:2C:00:66:6A:1F:E1:89:AD:BC:D8:F0:EE:A1:D0:31:49:00:1E:31:B7:08:7B:50:79:7C:04:36";

/// What an example needs to know of the datacenter that it is for.
pub(crate) struct ExampleTarget {
    endpoint: String,
    token: String,
    fingerprint: String,
    gateway: String,
}

impl ExampleTarget {
    #[cfg(feature = "sim")]
    pub(crate) fn of(sim: &strata_sim::Sim) -> Self {
        Self {
            endpoint: sim.endpoint(),
            token: sim.token().to_owned(),
            fingerprint: sim.fingerprint(),
            gateway: format!("http://{}", sim.gateway()),
        }
    }

    /// The default world of `strata sim`, which a build without the simulator knows too: its examples fit to the simulator of any other.
    fn default_world() -> Self {
        Self {
            endpoint: "https://127.0.0.1:18006".to_owned(),
            token: "strata@pve!demo=5174a7a0-0d9e-4c0f-8f3d-6d6f2d73696d".to_owned(),
            fingerprint: FINGERPRINT.to_owned(),
            gateway: "http://127.0.0.1:18008".to_owned(),
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let folder = match &context.global.directory {
        Some(base) => base.join(&args.folder),
        None => args.folder.clone(),
    };
    let name = args.example.as_deref().unwrap_or("empty");
    write_example(name, &folder, &ExampleTarget::default_world())?;
    context.printer.event(&strata_events::Event::Initialized { folder: &folder, example: name });
    context.printer.line(format!("made a repository in `{}`", folder.display()));
    if args.example.is_some() {
        context.printer.line("next: `strata sim` in another terminal, then `strata plan` here");
    } else {
        context.printer.line(
            "next: put your Proxmox endpoint and token into strata.yaml, then add stacks/NAME/stack.yaml",
        );
    }
    context.printer.line(
        "keep a copy of `age.key` outside of this folder: git ignores it, and nobody can read the secrets without it",
    );
    context.printer.line(
        "in git: `git config core.hooksPath .githooks` looks for secrets in the clear before each commit",
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of an example. Refuses to touch a folder that is a repository already.
pub(crate) fn write_example(name: &str, folder: &Path, place: &ExampleTarget) -> Result<(), CommandError> {
    let example = Example::named(name).ok_or_else(|| {
        CommandError::failed(format!("there is no example `{name}`"))
            .hint(format!("there are: {}", strata_examples::names().join(", ")))
    })?;
    if folder.join("strata.yaml").exists() {
        return Err(CommandError::refused(format!("`{}` is a repository already", folder.display())));
    }
    let id = random_hex(5);
    let put = |(path, text): (&str, &str)| {
        let text = text
            .replace("@ENDPOINT@", &place.endpoint)
            .replace("@FINGERPRINT@", &place.fingerprint)
            .replace("@GATEWAY@", &place.gateway)
            .replace("@REPOSITORY@", &id);
        write(&folder.join(path), text.as_bytes(), 0o644)
    };
    // The settings make it a repository: they come last, so that one that was interrupted can be made again.
    let (settings, others): (Vec<_>, Vec<_>) = example.files().partition(|(path, _)| *path == "strata.yaml");
    others.into_iter().try_for_each(put)?;
    for (name, schema) in super::schema::all() {
        let text = super::schema::text(&schema);
        write(&folder.join(format!(".strata/schema/{name}.json")), text.as_bytes(), 0o644)?;
    }
    let (path, hook) = strata_examples::PRE_COMMIT;
    write(&folder.join(path), hook.as_bytes(), 0o755)?;
    write_secrets(folder, &place.token)?;
    settings.into_iter().try_for_each(put)
}

/// A fresh age key, and the secrets of the example encrypted for it.
pub(crate) fn write_secrets(folder: &Path, token: &str) -> Result<(), CommandError> {
    let (key, recipient) = strata_secrets::generate_identity();
    write(&folder.join("age.key"), key.expose().as_bytes(), 0o600)?;
    let sops = format!("creation_rules:\n  - path_regex: \\.sops\\.ya?ml$\n    age: {recipient}\n");
    write(&folder.join(".sops.yaml"), sops.as_bytes(), 0o644)?;
    let plain = format!("proxmox_api_token: {token}\nweb_password: {}\n", random_hex(12));
    let encrypted = strata_session::secrets::encrypt_yaml(
        &plain,
        &recipient,
        jiff::Timestamp::now(),
        &mut strata_secrets::OsRandom,
    )?;
    write(&folder.join("secrets.sops.yaml"), encrypted.as_bytes(), 0o644)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), CommandError> {
    let failed =
        |error: std::io::Error| CommandError::failed(format!("cannot write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;

    #[test]
    fn the_examples_fit_to_the_simulator() {
        let place = ExampleTarget::default_world();
        assert_eq!(place.endpoint, format!("https://127.0.0.1:{}", strata_sim::DEFAULT_PORT));
        assert_eq!(place.gateway, format!("http://127.0.0.1:{}", strata_sim::DEFAULT_GATEWAY_PORT));
        assert_eq!(place.token, strata_sim::DEMO_TOKEN);
        assert_eq!(place.fingerprint, strata_sim::fingerprint());
    }
}
