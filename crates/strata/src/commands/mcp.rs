//! `strata mcp`.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;

use strata_mcp::{Argument, Ended, Form, Runner, Tool};
use tokio::fs::File;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Serves the verbs that only look to agents, over standard input and output (Model Context Protocol)
///
/// An agent can validate, plan, look for drift and ask what a message means. It cannot change a source, a state or a machine: what it
/// wants to have changed goes into the files of the repository, and is applied by a person or by the review of the change. docs/agents.md
#[derive(clap::Args)]
pub(crate) struct Args {}

const fn argument(
    name: &'static str,
    form: Form,
    option: Option<&'static str>,
    help: &'static str,
) -> Argument {
    Argument { name, form, option, required: false, help }
}

const fn needed(name: &'static str, option: Option<&'static str>, help: &'static str) -> Argument {
    Argument { name, form: Form::Text, option, required: true, help }
}

const STACKS: Argument = argument(
    "stacks",
    Form::Texts,
    None,
    "stacks by name or path, `layer:NAME`, addresses such as `web/vm/db` or patterns such as `web/vm/*`; all without any",
);
const ENVIRONMENT: Argument =
    argument("environment", Form::Text, Some("--environment"), "the environment whose overlay is used");
const EVENTS: Argument = argument(
    "events",
    Form::Flag,
    Some("--json"),
    "one JSON object a line, as docs/json.md says, and no text",
);
const DETAILS: Argument =
    argument("details", Form::Flag, Some("--verbose"), "says more, such as every field");

static TOOLS: [Tool; 10] = [
    Tool {
        name: "validate",
        verb: &["validate"],
        arguments: &[EVENTS],
        help: "Checks every file of the repository in every environment, and lists all mistakes with their places and hints. Needs no key and no network.",
    },
    Tool {
        name: "explain",
        verb: &["explain"],
        arguments: &[argument(
            "code",
            Form::Text,
            None,
            "the code in brackets of a message, such as `unknown-key`; without it, all codes",
        )],
        help: "Says what the code of a message means, with files that cause it, and the way out.",
    },
    Tool {
        name: "reference",
        verb: &["schema", "--markdown"],
        arguments: &[needed(
            "kind",
            None,
            "`strata`, `stack`, `cluster`, `nodes`, `environment` or `hypervisor`",
        )],
        help: "Every key of a kind of file of the repository: what it takes and what it is for.",
    },
    Tool {
        name: "graph",
        verb: &["graph"],
        arguments: &[STACKS, ENVIRONMENT, EVENTS],
        help: "What the repository describes and what depends on what, as Mermaid. Asks nothing remote.",
    },
    Tool {
        name: "plan",
        verb: &["plan"],
        arguments: &[STACKS, ENVIRONMENT, DETAILS, EVENTS],
        help: "What an apply of the files as they are now would do to the datacenter, and what stands in its way. Changes nothing.",
    },
    Tool {
        name: "drift",
        verb: &["drift"],
        arguments: &[STACKS, ENVIRONMENT, EVENTS],
        help: "What somebody changed in the datacenter since the last apply.",
    },
    Tool {
        name: "show",
        verb: &["show"],
        arguments: &[needed("file", None, "a file from `strata plan -o`"), DETAILS, EVENTS],
        help: "What a saved plan does and what it is bound to.",
    },
    Tool {
        name: "changed",
        verb: &["review", "changed"],
        arguments: &[
            needed("base", Some("--base"), "the commit or branch that is compared with"),
            argument(
                "head",
                Form::Text,
                Some("--head"),
                "the commit that is looked at; the checked-out one without it",
            ),
            EVENTS,
        ],
        help: "Which stacks a commit range can change, in which environments, and why.",
    },
    Tool {
        name: "inventory",
        verb: &["inventory", "--format=json"],
        arguments: &[ENVIRONMENT],
        help: "Guests and machines with their addresses, groups and roles.",
    },
    Tool {
        name: "doctor",
        verb: &["doctor"],
        arguments: &[ENVIRONMENT, EVENTS],
        help: "What is missing before an apply can work, and what fixes it.",
    },
];

pub(crate) async fn run(context: &Context, _args: &Args) -> CommandResult {
    let failed = |error: std::io::Error| CommandError::failed(format!("cannot go on: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let environment = context.global.environment.as_ref().map(|name| format!("--environment={name}"));
    let runner = Arc::new(Itself { program, root: context.start(), environment });
    let name = ("strata", env!("CARGO_PKG_VERSION"));
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let (input, output) = (stream(input.as_fd()).map_err(failed)?, stream(output.as_fd()).map_err(failed)?);
    strata_mcp::serve(name, &TOOLS, runner, input, output).await.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn stream(end: BorrowedFd<'_>) -> std::io::Result<File> {
    Ok(File::from_std(std::fs::File::from(end.try_clone_to_owned()?)))
}

/// This program, once for each call: a run that is cancelled, or fails in whatever way, takes nothing else along.
struct Itself {
    program: PathBuf,
    root: PathBuf,
    /// The one that this run was given, for calls that name none.
    environment: Option<String>,
}

#[async_trait::async_trait]
impl Runner for Itself {
    async fn run(&self, line: Vec<String>) -> Ended {
        let output = tokio::process::Command::new(&self.program)
            .arg("--no-color")
            .args(
                self.environment
                    .as_ref()
                    .filter(|_| !line.iter().any(|word| word.starts_with("--environment="))),
            )
            .args(&line)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        match output {
            Ok(output) => {
                let said =
                    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
                Ended { code: output.status.code(), text: said.concat() }
            }
            Err(error) => {
                Ended { code: None, text: format!("`{}` cannot be run: {error}", self.program.display()) }
            }
        }
    }
}
