//! `strata init`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_events::Event;
use strata_examples::{Example, ExampleTarget};
use strata_pipelines::verb as pipelines;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::{Context, random_hex};

/// Makes a repository that validates, from an example; with `--ci` the pipelines of one
///
/// The examples work unchanged with `strata sim`: run that in one terminal and `strata apply` here in another. In a folder that is a repository
/// already, `--ci` writes its pipelines alone; files that differ are shown, and overwritten only if somebody agrees.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `homelab`, `prod`, `environments`; an almost empty repository without one
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// Where to make it
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    pipelines: pipelines::Args,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let folder =
        context.global.directory.as_ref().map_or(args.folder.clone(), |base| base.join(&args.folder));
    let ci = args.pipelines.ci;
    if ci.is_none() || !folder.join("strata.yaml").exists() {
        make(context, args.example.as_deref(), &folder)?;
    }
    if let Some(forge) = ci {
        let own = std::env::current_exe().unwrap_or_default();
        pipelines::run(forge, &args.pipelines, &context.absolute(&args.folder), &own, context)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn make(context: &Context, example: Option<&str>, folder: &Path) -> Result<(), CommandError> {
    let name = example.unwrap_or("empty");
    write_example(name, folder, &ExampleTarget::default_world())?;
    context.printer.event(&Event::Initialized { folder, example: name });
    context.printer.line(format!("made a repository in `{}`", folder.display()));
    strata_examples::advice(example.is_some()).into_iter().for_each(|line| context.printer.line(line));
    Ok(())
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
    let put = |(path, text): (&str, String)| write(&folder.join(path), text.as_bytes(), 0o644);
    // The settings make it a repository: they come last, so that one that was interrupted can be made again.
    let (settings, others): (Vec<_>, Vec<_>) =
        example.filled(place, &id).partition(|(path, _)| *path == "strata.yaml");
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
    strata_examples::write(path, bytes, mode)
        .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;

    /// Every line of a pipeline that calls the program: as the shell takes it apart, it is a command line of this version.
    #[test]
    fn the_commands_of_pipelines_are_commands_of_this_version() {
        use clap::Parser as _;

        let settings =
            strata_pipelines::Settings { sha256: "0".repeat(64), ..strata_pipelines::Settings::default() };
        for forge in strata_pipelines::Forge::ALL {
            let mut commands = 0;
            for file in strata_pipelines::files(forge, &settings) {
                for line in file.text.lines().filter_map(|line| line.trim().strip_prefix("strata ")) {
                    let script = format!("printf '%s\\n' strata {line}");
                    let words = std::process::Command::new("sh")
                        .args(["-c", &script])
                        .envs([("REQUEST", "7"), ("BEFORE", "HEAD~2"), ("CI_COMMIT_BEFORE_SHA", "HEAD~2")])
                        .output()
                        .unwrap();
                    let words = String::from_utf8(words.stdout).unwrap();
                    if let Err(error) = crate::cli::Cli::try_parse_from(words.lines()) {
                        panic!("{}: `strata {line}`: {error}", file.path);
                    }
                    commands += 1;
                }
            }
            assert!(commands >= 4, "{forge:?}: {commands}");
        }
    }

    #[test]
    fn the_examples_fit_to_the_simulator() {
        let place = ExampleTarget::default_world();
        assert_eq!(place.endpoint, format!("https://127.0.0.1:{}", strata_sim::DEFAULT_PORT));
        assert_eq!(place.gateway, format!("http://127.0.0.1:{}", strata_sim::DEFAULT_GATEWAY_PORT));
        assert_eq!(place.token, strata_sim::DEMO_TOKEN);
        assert_eq!(place.fingerprint, strata_sim::fingerprint());
    }
}
