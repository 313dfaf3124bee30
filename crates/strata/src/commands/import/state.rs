//! `strata import --state`: takes over what OpenTofu built. Nothing on a hypervisor is changed.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use strata_diagnostics::{LARGEST_DOCUMENT, LARGEST_FILE, read_text_file};
use strata_engine::Adoption;
use strata_events::Event;
use strata_import::tofu_state::{BuiltObjects, Connection, Repository, StateNote, write_repository};
use strata_providers::{ExpectedObjects, KeptBundle};
use strata_secret::{SecretBytes, SecretString};
use strata_secrets::{OsRandom, sops};
use strata_session::{Purpose, StackSession, StateAccess};
use strata_tofu::TofuState;

use super::Args;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::{Context, random_hex};
use crate::style::{self, paint};
use crate::workspace::{Workspace, find_root};

pub(super) async fn run(context: &Context, args: &Args, path: &Path) -> CommandResult {
    let state = read(context, path)?;
    let built = BuiltObjects::of(&state);
    if built.is_empty() {
        report(context, &built.notes);
        return Err(CommandError::failed("the state has nothing that Strata could take over")
            .hint("resources of bpg/proxmox and of siderolabs/talos are"));
    }
    let mut notes = built.notes.clone();
    if find_root(&context.start()).is_err() {
        let (repository, ready) = begin(context, args, &state, &built)?;
        notes = repository.notes;
        if !ready || args.dry_run {
            report(context, &notes);
            context.printer.line(if args.dry_run {
                "nothing was written"
            } else {
                "next: set endpoint and token in `strata.yaml` and `secrets.sops.yaml`, then import the state again: it is then taken over"
            });
            return Ok(ExitCode::SUCCESS);
        }
    }
    take_over(context, args, &built, notes).await
}

fn read(context: &Context, path: &Path) -> Result<TofuState, CommandError> {
    let shown = path.display();
    let failed = |error: std::io::Error| CommandError::failed(format!("cannot read `{shown}`: {error}"));
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text).map_err(failed)?;
    } else {
        text = read_text_file(&context.elsewhere(path), LARGEST_DOCUMENT).map_err(failed)?;
    }
    TofuState::parse(&text).map_err(|error| {
        CommandError::failed(format!("the state `{shown}` cannot be taken over: {error}")).hint(error.hint())
    })
}

/// Writes a repository where there is none. Gives whether its server is known.
fn begin(
    context: &Context,
    args: &Args,
    state: &TofuState,
    built: &BuiltObjects,
) -> Result<(Repository, bool), CommandError> {
    let into = std::path::absolute(context.start()).unwrap_or_else(|_| context.start());
    let variable = |name: &str| context.environment.get(name).filter(|value| !value.is_empty()).cloned();
    let connection = Connection {
        endpoint: args.endpoint.clone().or_else(|| variable("PROXMOX_VE_ENDPOINT")),
        insecure: variable("PROXMOX_VE_INSECURE").is_some_and(|value| value == "true" || value == "1"),
        token: variable("PROXMOX_VE_API_TOKEN").map(SecretString::new),
    };
    let ready = !built.is_on_proxmox() || (connection.endpoint.is_some() && connection.token.is_some());
    let stack = args.stack.clone().unwrap_or_else(|| "imported".to_owned());
    let repository = write_repository(state, built, &connection, &random_hex(5), &stack);
    if !args.dry_run {
        write(context, &into, &repository)?;
    }
    for path in repository.files.keys().chain(repository.sealed.keys()) {
        context.printer.event(&Event::file(path, None));
        context.printer.line(format!("{} {path}", paint(style::CREATE, "+")));
    }
    Ok((repository, ready))
}

fn write(context: &Context, into: &Path, repository: &Repository) -> Result<(), CommandError> {
    let all = repository.files.keys().chain(repository.sealed.keys());
    for path in all.map(String::as_str).chain(["secrets.sops.yaml"]) {
        if into.join(path).exists() {
            return Err(CommandError::refused(format!("`{path}` is there already, and would be another"))
                .hint("name an empty folder with `-C`"));
        }
    }
    let failed = |path: &Path, error: std::io::Error| {
        CommandError::failed(format!("cannot write `{}`: {error}", path.display()))
    };
    let put = |path: &str, bytes: &[u8]| -> Result<(), CommandError> {
        let place = into.join(path);
        if let Some(folder) = place.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        strata_secrets::replace(&place, bytes).map_err(|error| failed(&place, error))
    };
    std::fs::create_dir_all(into).map_err(|error| failed(into, error))?;
    // Encrypted for the user's own key where there is one.
    let access = context.access(into);
    let mut recipients: Vec<String> = access.identities().recipients().to_vec();
    if recipients.is_empty() {
        let (key, recipient) = strata_secrets::generate_identity();
        let place = into.join(strata_session::secrets::OWN_KEY);
        strata_secrets::replace_private(&place, key.expose().as_bytes())
            .map_err(|error| failed(&place, error))?;
        recipients.push(recipient);
    }
    let settings = sops::Settings { groups: vec![recipients.clone()], ..sops::Settings::default() };
    let seal = |plain: &SecretString| {
        let plain = SecretBytes::new(plain.expose().as_bytes().to_vec());
        sops::encrypt(&plain, sops::Format::Yaml, &settings, jiff::Timestamp::now(), &mut OsRandom)
            .map_err(|error| CommandError::failed(format!("cannot encrypt the secrets: {error}")))
    };
    let mut plain = String::new();
    for (name, value) in &repository.secrets {
        plain.push_str(&format!("{name}: {}\n", serde_json::Value::from(value.expose())));
    }
    put("secrets.sops.yaml", &seal(&SecretString::new(plain))?)?;
    for (path, text) in &repository.sealed {
        put(path, &seal(text)?)?;
    }
    for (path, text) in &repository.files {
        put(path, text.as_bytes())?;
    }
    if !into.join(sops::CONFIG_FILE).exists() {
        let rules =
            format!("creation_rules:\n  - path_regex: \\.sops\\.ya?ml$\n    age: {}\n", recipients.join(","));
        put(sops::CONFIG_FILE, rules.as_bytes())?;
    }
    let ignored = into.join(".gitignore");
    let mut text = read_text_file(&ignored, LARGEST_FILE).unwrap_or_default();
    if !text.lines().any(|line| line.trim_start_matches('/') == strata_session::secrets::OWN_KEY) {
        text.push_str("/age.key\n/.strata/\n*.tfstate*\n");
        put(".gitignore", text.as_bytes())?;
    }
    Ok(())
}

/// Finds the counterparts in the repository, looks at each, and records what is proven.
async fn take_over(
    context: &Context,
    args: &Args,
    built: &BuiltObjects,
    mut notes: Vec<StateNote>,
) -> CommandResult {
    let mut workspace = Workspace::load(context)?;
    let only: Vec<String> = args.stack.iter().cloned().collect();
    let matched = workspace.takeover().matched(built, &only)?;
    // What was told when the repository was written is not told again.
    let told: Vec<String> = notes.iter().map(|note| note.address.clone()).collect();
    notes.extend(matched.notes.into_iter().filter(|note| !told.contains(&note.address)));
    let write = !args.dry_run;
    for (cluster, stack) in &matched.clusters {
        let (path, kept) = workspace.takeover().keep_bundle(stack, &cluster.secrets, write).await?;
        if kept == KeptBundle::Written {
            let path = path.display().to_string();
            let from_there = Some(cluster.address.as_str());
            context.printer.event(&Event::File { path: path.clone(), status: None, from: from_there });
            context.printer.line(format!(
                "{} {path}, encrypted  {}",
                paint(style::CREATE, "+"),
                from(&cluster.address)
            ));
        }
    }
    let mut reload = false;
    for (cluster, stack) in &matched.clusters {
        let kept = workspace.takeover().keep_configs(stack, cluster, write)?;
        notes.extend(kept.notes);
        for path in kept.files {
            reload = write;
            context.printer.event(&Event::file(&path, None));
            context.printer.line(format!(
                "{} {path}  {}",
                paint(style::CREATE, "+"),
                paint(style::FAINT, "keeps the machines as they are configured")
            ));
        }
    }
    if reload {
        workspace = Workspace::load(context)?;
    }
    let mut done = Done::default();
    if !matched.stacks.is_empty() {
        let names: Vec<String> = matched.stacks.iter().map(|(name, _)| name.clone()).collect();
        let access = if write { StateAccess::Lock("import") } else { StateAccess::Look };
        let mut sessions = workspace.open_native(&names, &Purpose::LOOK, access).await?;
        let mut outcome = Ok(());
        for session in &mut sessions {
            let Some((_, expected)) = matched.stacks.iter().find(|(name, _)| *name == session.name) else {
                continue;
            };
            let mut expected = expected.clone();
            for (cluster, _) in matched.clusters.iter().filter(|(_, stack)| *stack == session.name) {
                expected.add_machines(&session.view().graph, cluster);
            }
            notes.extend(expected.add_documents(&session.view().graph));
            outcome = record(context, session, &expected, &mut done, &mut notes).await;
            if outcome.is_err() {
                break;
            }
        }
        for session in sessions {
            outcome = outcome.and(session.release().await);
        }
        outcome?;
    }
    report(context, &notes);
    done.summary(context, args.dry_run)
}

/// Looks at what there is and, under the lock, writes it down.
async fn record(
    context: &Context,
    session: &mut StackSession,
    expected: &ExpectedObjects,
    done: &mut Done,
    notes: &mut Vec<StateNote>,
) -> Result<(), CommandError> {
    let adoption = session.survey(&expected.proofs).await?;
    let recorded = session.record(&adoption).await?;
    done.report(context, &adoption, expected, notes);
    if recorded {
        let plan = session.plan().await?;
        done.left += plan.summary().changes() + plan.problems.len();
    }
    Ok(())
}

fn from(address: &str) -> String {
    paint(style::FAINT, format!("from {address}"))
}

#[derive(Default)]
struct Done {
    taken: usize,
    known: usize,
    refused: usize,
    /// What `strata plan` would still do.
    left: usize,
}

impl Done {
    fn report(
        &mut self,
        context: &Context,
        adoption: &Adoption,
        expected: &ExpectedObjects,
        notes: &mut Vec<StateNote>,
    ) {
        self.taken += adoption.records.len();
        self.known += adoption.known.len();
        self.refused += adoption.refused.len();
        for address in adoption.records.keys() {
            let there = expected.from.get(address);
            context.printer.event(&Event::TakenOver { address, from: there.map(String::as_str) });
            let there = there.map(|there| format!("  {}", from(there))).unwrap_or_default();
            context.printer.line(format!("{} {address}{there}", paint(style::CREATE, "=")));
        }
        for (address, reason) in &adoption.refused {
            let there = expected.from.get(address).cloned().unwrap_or_else(|| address.to_string());
            notes.push(StateNote {
                address: there,
                message: format!("not taken over as `{address}`: {reason}"),
            });
        }
        for (address, changes) in &adoption.differences {
            let fields: Vec<String> = changes.iter().map(|change| format!("`{}`", change.path)).collect();
            let there = expected.from.get(address).cloned().unwrap_or_else(|| address.to_string());
            let message = format!("`{address}` differs from the source in {}", fields.join(", "));
            notes.push(StateNote { address: there, message });
        }
    }

    fn summary(&self, context: &Context, dry_run: bool) -> CommandResult {
        let Self { taken, known, refused, left } = *self;
        context.printer.event(&Event::TakenOverAll { taken, known, refused, left, dry_run });
        let what = format!("{taken} taken over, {known} known before, {refused} left alone");
        let plan = match (dry_run, left) {
            (true, _) => "nothing was written".to_owned(),
            (false, 0) => "the plan of these stacks is empty".to_owned(),
            (false, left) => format!("`strata plan` shows {left} differences from the source"),
        };
        context.printer.line(format!("{} {what}; {plan}", paint(style::CREATE, "imported:")));
        Ok(ExitCode::SUCCESS)
    }
}

fn report(context: &Context, notes: &[StateNote]) {
    for note in notes {
        let (message, address) = (note.message.as_str(), Some(note.address.as_str()));
        context.printer.event(&Event::Note { message, address, file: None, line: None });
        context.printer.note(format!(
            "{} {}: {}",
            paint(style::WARNING, "note:"),
            note.address,
            note.message
        ));
    }
}
