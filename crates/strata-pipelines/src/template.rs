//! Templates: lines, of which some are for some forges alone, some bring in the lines of a part, and all may have values to fill in.

use std::collections::BTreeSet;

use crate::Forge;

/// What differs between repositories.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The label of the runner on the control machine.
    pub runner: String,
    /// The label of the runner for requests from forks.
    pub fork_runner: String,
    /// The branch that is applied.
    pub branch: String,
    /// The folder on the control machine for sealed plans and the audit log.
    pub home: String,
    /// The checksum of the program that jobs run.
    pub sha256: String,
    /// Where jobs download the program from; otherwise it is installed on the runner.
    pub program: Option<String>,
    /// Variables that the source reads.
    pub variables: BTreeSet<String>,
    /// The token of the forge that Woodpecker runs for.
    pub woodpecker_token: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runner: "strata".to_owned(),
            fork_runner: "strata".to_owned(),
            branch: "main".to_owned(),
            home: "/var/lib/strata".to_owned(),
            sha256: String::new(),
            program: None,
            variables: BTreeSet::new(),
            woodpecker_token: "GITEA_TOKEN",
        }
    }
}

macro_rules! parts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../templates/parts/", $name)))),*]
    };
}

const PARTS: &[(&str, &str)] = parts![
    "head",
    "program",
    "sign-in",
    "fetch-request",
    "fetch-branch",
    "token",
    "secrets",
    "review-folder",
    "outdated",
    "push",
    "clone",
    "woodpecker-token",
    "woodpecker-secrets",
];

/// The text of a file.
pub(crate) fn render(template: &str, forge: Forge, settings: &Settings) -> String {
    let mut text = String::new();
    add(&mut text, template, "", forge, settings);
    text
}

fn add(text: &mut String, template: &str, indent: &str, forge: Forge, settings: &Settings) {
    for line in template.lines() {
        let Some(line) = chosen(line, forge, settings) else { continue };
        let bare = line.trim_start();
        let deeper = format!("{indent}{}", &line[..line.len() - bare.len()]);
        if let Some(name) = bare.strip_prefix("@include ") {
            let part = PARTS.iter().find(|(own, _)| *own == name).map_or("", |(_, part)| part);
            add(text, part, &deeper, forge, settings);
        } else if bare == "@VARIABLES@" {
            for name in &settings.variables {
                let line = variable(name, forge);
                line.lines().for_each(|line| text.push_str(&format!("{deeper}{line}\n")));
            }
        } else {
            let line = filled(bare, forge, settings);
            text.push_str(&if line.is_empty() { "\n".to_owned() } else { format!("{deeper}{line}\n") });
        }
    }
}

/// A line of this forge, without the words in brackets that say so: `[github,gitea+download] …`.
fn chosen<'l>(line: &'l str, forge: Forge, settings: &Settings) -> Option<&'l str> {
    let marked = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let Some((words, rest)) = marked.filter(|(words, _)| !words.contains(' ')) else { return Some(line) };
    let place = if settings.program.is_some() { "download" } else { "installed" };
    let is = |word: &str| word == forge.as_str() || word == place;
    words.split('+').all(|any| any.split(',').any(is)).then_some(rest)
}

/// How a job is given a secret of the forge; GitLab gives each job its variables.
fn variable(name: &str, forge: Forge) -> String {
    match forge {
        Forge::Woodpecker => format!("{name}:\n  from_secret: {}", name.to_lowercase()),
        _ => format!("{name}: ${{{{ secrets.{name} }}}}"),
    }
}

fn filled(line: &str, forge: Forge, settings: &Settings) -> String {
    let runner = |label: &str| match forge {
        // GitHub has machines of its own, whose labels begin like this.
        Forge::GitHub if !label.starts_with("ubuntu-") => format!("[self-hosted, {label}]"),
        _ => label.to_owned(),
    };
    let push = match forge {
        Forge::GitLab => format!(" -o merge_request.create -o merge_request.target='{}'", settings.branch),
        _ => String::new(),
    };
    line.replace("@CI@", forge.as_str())
        .replace("@BRANCH@", &settings.branch)
        .replace("@RUNNER@", &runner(&settings.runner))
        .replace("@FORKS@", &runner(&settings.fork_runner))
        .replace("@HOME@", &settings.home)
        .replace("@SHA256@", &settings.sha256)
        .replace("@PROGRAM@", settings.program.as_deref().unwrap_or_default())
        .replace("@TOKEN@", forge.token(settings))
        .replace("@PUSH_OPTIONS@", &push)
}
