//! Which files each forge reads.

use crate::template::{Settings, render};

/// Whose pipelines they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Forge {
    #[value(name = "github")]
    GitHub,
    #[value(name = "gitlab")]
    GitLab,
    Gitea,
    Forgejo,
    Woodpecker,
}

impl Forge {
    pub const ALL: [Self; 5] = [Self::GitHub, Self::GitLab, Self::Gitea, Self::Forgejo, Self::Woodpecker];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Forgejo => "forgejo",
            Self::Woodpecker => "woodpecker",
        }
    }

    /// The variable that its jobs have the token of the forge in; a pipeline of Woodpecker runs for any of them.
    pub(crate) fn token(self, settings: &Settings) -> &'static str {
        match self {
            Self::GitHub => "GITHUB_TOKEN",
            Self::GitLab => "GITLAB_TOKEN",
            Self::Gitea => "GITEA_TOKEN",
            Self::Forgejo => "FORGEJO_TOKEN",
            Self::Woodpecker => settings.woodpecker_token,
        }
    }
}

/// A file as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineFile {
    /// From the root of the repository.
    pub path: String,
    pub text: String,
    /// Others write into it too: made where there is none, and otherwise theirs, which is to have this line.
    pub shared: Option<&'static str>,
}

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../templates/", $name))
    };
}

const ACTIONS: [(&str, &str); 4] = [
    ("plan", template!("actions/plan")),
    ("apply", template!("actions/apply")),
    ("drift", template!("actions/drift")),
    ("outdated", template!("actions/outdated")),
];

const WOODPECKER: [(&str, &str); 4] = [
    ("plan", template!("woodpecker/plan")),
    ("apply", template!("woodpecker/apply")),
    ("drift", template!("woodpecker/drift")),
    ("outdated", template!("woodpecker/outdated")),
];

/// The pipelines of a repository.
pub fn files(forge: Forge, settings: &Settings) -> Vec<PipelineFile> {
    let (folder, extension, templates) = match forge {
        Forge::GitHub => (".github/workflows", "yml", ACTIONS),
        Forge::Gitea => (".gitea/workflows", "yml", ACTIONS),
        Forge::Forgejo => (".forgejo/workflows", "yml", ACTIONS),
        Forge::Woodpecker => (".woodpecker", "yaml", WOODPECKER),
        Forge::GitLab => return of_gitlab(settings),
    };
    let file = |(name, template): (&str, &str)| PipelineFile {
        path: format!("{folder}/strata-{name}.{extension}"),
        text: render(template, forge, settings),
        shared: None,
    };
    templates.into_iter().map(file).collect()
}

/// GitLab reads one file, which the repository may have for other things; ours is included by it.
fn of_gitlab(settings: &Settings) -> Vec<PipelineFile> {
    let text = |template| render(template, Forge::GitLab, settings);
    let own = ".gitlab/strata.yml";
    vec![
        PipelineFile { path: own.to_owned(), text: text(template!("gitlab/strata")), shared: None },
        PipelineFile {
            path: ".gitlab-ci.yml".to_owned(),
            text: text(template!("gitlab/root")),
            shared: Some(own),
        },
    ]
}
