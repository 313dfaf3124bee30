//! `strata outdated`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use strata_diagnostics::{Color, Diagnostic, LARGEST_FILE, read_text_file};
use strata_events::{Event, Terminal};
use strata_net::TlsTrust;
use strata_session::{ErrorKind, SessionError, Workspace};
use strata_source::settings::Settings;
use strata_source::world::World as _;
use strata_views::style::{self, paint};
use strata_views::text::diff;

use crate::tokens::variable;
use crate::{
    BranchError, Branches, Edit, FetchError, Finding, Group, Looked, Pin, Tokens, Unanswered, Web, edited,
    look, pins,
};

/// For one page of those that publish versions.
const PAGE: Duration = Duration::from_secs(30);

/// Says which pinned versions have newer ones, and writes them into the source
///
/// Talos, Kubernetes and Flux of clusters, images with their checksums, providers and modules of stacks that were written for OpenTofu. What is
/// asked are the places that publish them, through the `mirrors` of `strata.yaml`; one that does not answer is named, and everything else is
/// looked at all the same. Only what goes together is proposed, and nothing that this Strata does not know.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these groups: talos, kubernetes, flux, images, providers, modules
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    group: Vec<Group>,
    /// Only what counts for these stacks
    #[arg(long, value_name = "STACK", value_delimiter = ',')]
    on: Vec<String>,
    /// Writes newer versions and their checksums into the files, shown as a diff; comments stay
    #[arg(long)]
    write: bool,
    /// With `--write`: also the next major version or series, for the stacks of `--on`
    #[arg(long, requires = "write", requires = "on")]
    major: bool,
    /// With `--write`: leaves the files as they are, and makes a branch `outdated/GROUP` with one commit for each group
    #[arg(long, requires = "write")]
    branch: bool,
    /// With `--write`: goes ahead without asking
    #[arg(long, short, requires = "write")]
    yes: bool,
    /// Exit code 2 if anything is outdated
    #[arg(long)]
    detailed_exitcode: bool,
}

/// Says what is outdated in a valid repository; whether anything is, where the caller asked for an exit code that says so.
pub async fn run(args: &Args, workspace: &Workspace, terminal: &dyn Terminal) -> Result<bool, SessionError> {
    let repository = workspace.repository();
    let chosen = if args.on.is_empty() { Vec::new() } else { workspace.select(&args.on)? };
    let on: BTreeSet<String> =
        chosen.iter().map(|stack| format!("{}/{}", stack.environment, stack.name)).collect();
    let is_meant = |pin: &Pin| {
        let in_group = args.group.is_empty() || args.group.contains(&pin.group);
        in_group && (args.on.is_empty() || !pin.stacks.is_disjoint(&on))
    };
    let pinned = pins(repository, workspace.world()).into_iter().filter(is_meant).collect();
    let settings = &repository.settings;
    let mirror = |url: &str| settings.mirrored(url);
    let tokens = Tokens::of(&workspace.surroundings().variables);
    let web = Web { tls: TlsTrust::System, dial: workspace.dial()?, timeout: PAGE, mirror: &mirror, tokens };
    let looked = look(pinned, &web).await;
    tell(terminal, &looked, settings);
    is_known(&looked)?;
    let outdated = looked.findings.iter().any(|finding| finding.next.is_some());
    if args.write {
        let write = Write { terminal, workspace, args, on: &on };
        write.run(&looked)?;
    }
    Ok(outdated && args.detailed_exitcode)
}

/// Nothing at all is known, and that is no "up to date".
fn is_known(looked: &Looked) -> Result<(), SessionError> {
    let unknown = !looked.findings.is_empty() && looked.findings.iter().all(|one| one.unknown.is_some());
    if !unknown || looked.unanswered.is_empty() {
        return Ok(());
    }
    let is_offline = looked.unanswered.iter().all(|one| matches!(one.error, FetchError::Net(_)));
    let error = SessionError::failed(format!(
        "nothing is known of {}: no place that publishes versions gave an answer",
        counted(looked.findings.len())
    ));
    Err(match is_offline {
        true => error.hint("this machine reaches none of them: `mirrors` of `strata.yaml` names places that it reaches, `proxy` a way to them"),
        false => error.hint("the warnings above say what each of them answered"),
    })
}

/// What a place that asks who wants to know is given.
fn token_hint(one: &Unanswered, settings: &Settings) -> Option<String> {
    let asks = matches!(one.error, FetchError::Status(401 | 403));
    let url = url::Url::parse(&settings.mirrored(&one.url)).ok().filter(|_| asks)?;
    let (host, variable) = (url.host_str()?, variable(url.host_str()?));
    Some(format!("  hint: the variable `{variable}` has the token for `{host}`"))
}

fn tell(terminal: &dyn Terminal, looked: &Looked, settings: &Settings) {
    for finding in &looked.findings {
        terminal.event(None, &event(finding));
        terminal.line(&line(finding));
    }
    for one in &looked.unanswered {
        let message = one.error.to_string();
        terminal.note(&format!("warning: no versions from `{}`: {message}", one.url));
        terminal.event(None, &Event::SourceFailed { url: &one.url, message });
        if let Some(hint) = token_hint(one, settings) {
            terminal.note(&hint);
        }
    }
    if !looked.unanswered.is_empty() {
        terminal.note("  hint: what depends on it is not known; `mirrors` of `strata.yaml` names a place that this machine reaches");
    }
    let count = |is: fn(&Finding) -> bool| looked.findings.iter().filter(|finding| is(finding)).count();
    let (all, newer, unknown) = (
        looked.findings.len(),
        count(|finding| finding.next.is_some()),
        count(|finding| finding.unknown.is_some()),
    );
    let known = match unknown {
        0 => String::new(),
        unknown => format!(", {unknown} not known"),
    };
    terminal.line(&match (all, newer) {
        (0, _) => "nothing is pinned".to_owned(),
        (_, 0) if unknown == 0 => format!("{} {}", paint(style::CREATE, "up to date:"), counted(all)),
        (_, newer) => format!("{} {newer} of {}{known}", paint(style::CHANGE, "outdated:"), counted(all)),
    });
}

fn counted(versions: usize) -> String {
    if versions == 1 { "1 pinned version".to_owned() } else { format!("{versions} pinned versions") }
}

fn event(finding: &Finding) -> Event<'_> {
    let pin = &finding.pin;
    Event::Pinned {
        group: pin.group.as_str(),
        name: &pin.name,
        file: &pin.place.file,
        line: pin.place.line,
        current: pin.version(),
        stacks: pin.stacks.iter().map(String::as_str).collect(),
        next: finding.next.as_ref().map(|next| next.version.as_str()),
        major: finding.major.as_ref().map(|major| major.version.as_str()),
        notes: finding.notes.iter().map(String::as_str).collect(),
        unknown: finding.unknown.as_deref(),
    }
}

/// What, from what to what, where; the next major version apart, and what a reader should know below.
fn line(finding: &Finding) -> String {
    let pin = &finding.pin;
    let place = paint(style::FAINT, &pin.place);
    let (sign, versions) = match (&finding.unknown, &finding.next) {
        (Some(_), _) => (paint(style::WARNING, "?"), pin.version().to_owned()),
        (None, Some(next)) => (
            paint(style::CHANGE, "~"),
            format!("{} → {}", pin.version(), paint(style::CREATE, &next.version)),
        ),
        (None, None) => (paint(style::FAINT, "="), pin.version().to_owned()),
    };
    let major = finding.major.as_ref().map(|major| format!("  (next major: {})", major.version));
    let mut text = format!("{sign} {}  {versions}{}  {place}", pin.name, major.unwrap_or_default());
    let by_hand =
        [&finding.next, &finding.major].into_iter().flatten().filter_map(|one| one.edits.as_ref().err());
    let notes = finding.notes.iter().chain(&finding.unknown).cloned();
    for note in notes.chain(by_hand.map(|why| format!("not written: {why}"))) {
        text.push_str(&format!("\n    {}", paint(style::FAINT, note)));
    }
    text
}

struct Write<'w> {
    terminal: &'w dyn Terminal,
    workspace: &'w Workspace,
    args: &'w Args,
    on: &'w BTreeSet<String>,
}

/// A file as it is and as it would be.
struct Change {
    before: String,
    after: String,
}

/// Writes it whole or not at all, and only over what was shown.
fn write(root: &Path, path: &str, change: &Change) -> Result<(), SessionError> {
    let place = root.join(path);
    let failed = |error: std::io::Error| {
        SessionError::failed(format!("cannot write `{path}`: {error}")).because(error)
    };
    if read_text_file(&place, LARGEST_FILE).map_err(failed)? != change.before {
        return Err(SessionError::refused(format!("`{path}` was changed meanwhile"))
            .hint("run the command again: it reads the file as it is now"));
    }
    strata_secrets::replace(&place, change.after.as_bytes()).map_err(failed)
}

/// The edits of a group, and a line for each pin.
#[derive(Default)]
struct Batch {
    edits: Vec<Edit>,
    lines: Vec<String>,
}

impl Write<'_> {
    fn run(&self, looked: &Looked) -> Result<(), SessionError> {
        let mut batches: BTreeMap<Group, Batch> = BTreeMap::new();
        for finding in &looked.findings {
            let Some(edits) = self.chosen(finding) else { continue };
            let batch = batches.entry(finding.pin.group).or_default();
            batch.edits.extend(edits.1.iter().cloned());
            let (from, place) = (finding.pin.version(), &finding.pin.place);
            batch.lines.push(format!("{} {from} → {} in {place}", finding.pin.name, edits.0));
        }
        if batches.is_empty() {
            self.terminal.line("nothing was written");
            return Ok(());
        }
        match self.args.branch {
            true => self.branches(&batches),
            false => self.files(&batches),
        }
    }

    /// What is written of a finding: what counts for other stacks too is left to them.
    fn chosen<'f>(&self, finding: &'f Finding) -> Option<(&'f str, &'f [Edit])> {
        let major = finding.major.as_ref().filter(|_| self.args.major);
        let proposal = major.or(finding.next.as_ref())?;
        let edits = proposal.edits.as_ref().ok()?;
        let others: Vec<&str> =
            finding.pin.stacks.iter().filter(|stack| !self.on.contains(*stack)).map(String::as_str).collect();
        if !self.args.on.is_empty() && !others.is_empty() {
            let (name, place) = (&finding.pin.name, &finding.pin.place);
            let note = format!(
                "warning: `{name}` in {place} is not written: it counts for {} too",
                others.join(", ")
            );
            self.terminal.note(&note);
            return None;
        }
        Some((&proposal.version, edits))
    }

    fn texts(&self, edits: &[Edit]) -> Result<BTreeMap<String, Change>, SessionError> {
        let sources = &self.workspace.repository().sources;
        let read = |path: &str| {
            let known =
                sources.files().find(|(_, file)| file.path() == path).map(|(_, file)| file.text().to_owned());
            known.or_else(|| String::from_utf8(self.workspace.world().read(path).ok()?).ok())
        };
        let after = edited(edits, &read).map_err(|why| {
            SessionError::refused(why).hint(
                "nothing was written: change this one by hand, and name the other groups with `--group`",
            )
        })?;
        let whole = after.into_iter().filter_map(|(path, after)| {
            let before = read(&path)?;
            Some((path, Change { before, after }))
        });
        Ok(whole.collect())
    }

    /// Whether the repository is valid with it.
    fn validate(&self, files: &BTreeMap<String, Change>) -> Result<(), SessionError> {
        let texts = files.iter().map(|(path, edit)| (path.clone(), edit.after.clone())).collect();
        let (trial, found) = self.workspace.edited(texts)?;
        let refuse = || {
            SessionError::refused(
                "the repository would not be valid with these versions, and nothing was written",
            )
            .hint("`--group` writes one group alone; `strata validate` says what is wrong today")
        };
        let mut errors: Vec<&Diagnostic> = found.iter().filter(|one| one.is_error()).collect();
        if !errors.is_empty() {
            errors.truncate(10);
            for error in errors {
                let sources = &trial.repository().sources;
                self.terminal.event(None, &Event::diagnostic(error, sources));
                self.terminal.note(&strata_diagnostics::render(error, sources, Color::Always));
            }
            return Err(refuse());
        }
        for stack in trial.repository().effective() {
            trial.blueprint_by_names(stack).map_err(|error| refuse().detail(error.message))?;
        }
        Ok(())
    }

    fn show(&self, files: &BTreeMap<String, Change>) {
        for (path, edit) in files {
            self.terminal.event(None, &Event::file(path, None));
            self.terminal.line(diff(path, &edit.before, &edit.after).trim_end());
        }
    }

    fn files(&self, batches: &BTreeMap<Group, Batch>) -> Result<(), SessionError> {
        let edits: Vec<Edit> = batches.values().flat_map(|batch| batch.edits.iter().cloned()).collect();
        let files = self.texts(&edits)?;
        self.validate(&files)?;
        self.show(&files);
        if !self.args.yes {
            self.terminal.ask("Write this to the source?")?;
        }
        for (path, edit) in &files {
            write(self.workspace.root(), path, edit)?;
        }
        let written: usize = batches.values().map(|batch| batch.lines.len()).sum();
        let (done, written) = (paint(style::CREATE, "written:"), counted(written));
        self.terminal.line(&format!("{done} {written}; `strata plan` says what changes with it"));
        Ok(())
    }

    fn branches(&self, batches: &BTreeMap<Group, Batch>) -> Result<(), SessionError> {
        let git = Branches::open(self.workspace.root()).map_err(failed)?;
        let mut prepared = Vec::new();
        for (group, batch) in batches {
            let files = self.texts(&batch.edits)?;
            self.validate(&files)?;
            self.show(&files);
            prepared.push((*group, batch, files));
        }
        if !self.args.yes {
            self.terminal.ask("Make a branch for each group?")?;
        }
        for (group, batch, files) in prepared {
            let side = |of: fn(&Change) -> &String| {
                files.iter().map(|(path, edit)| (path.clone(), of(edit).clone())).collect()
            };
            let (before, after) = (side(|edit| &edit.before), side(|edit| &edit.after));
            let (branch, listed) = (format!("outdated/{group}"), batch.lines.join("\n- "));
            let message = format!("Bring {group} up to date\n\n- {listed}\n");
            let made = git.commit(&branch, &message, &before, &after).map_err(failed)?;
            self.terminal.event(
                None,
                &Event::Branch { branch: &made.branch, commit: &made.commit, group: group.as_str() },
            );
            let how = if made.was_there { "is there already" } else { "made" };
            self.terminal.line(&format!("branch `{}` {how}: {}", made.branch, made.commit));
        }
        Ok(())
    }
}

fn failed(error: BranchError) -> SessionError {
    let hint = match &error {
        BranchError::NoGit(_) => "without `--branch` the files themselves are written",
        BranchError::Failed(_) => "the files are as they were; branches that were named above are made",
        BranchError::Uncommitted(_) => {
            "branches begin at the last commit: commit what is changed, then run it again"
        }
        BranchError::Exists(_) => "merge it or delete it (`git branch -D`), then run it again",
    };
    let kind = if matches!(error, BranchError::Uncommitted(_) | BranchError::Exists(_)) {
        ErrorKind::Refused
    } else {
        ErrorKind::Failed
    };
    SessionError::new(kind, error.to_string()).hint(hint).because(error)
}
