//! The verbs and the options that all of them take.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use strata_events::Event;

use crate::command_error::{CommandError, exit_code};
use crate::commands;
use crate::context::SystemClock;
use crate::printer::Printer;

/// Manages a Proxmox datacenter layer by layer from one source of truth.
///
/// Exit codes: 0 done, 1 failed, 2 changes or drift (where asked), 3 refused by a guard, 4 locked by someone else, 64 a wrong command
/// line, 130 interrupted with everything saved.
#[derive(Parser)]
#[command(name = "strata", version, max_term_width = 100, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Args, Clone)]
pub(crate) struct Global {
    /// Works in this repository instead of the current folder; every other path of the command line starts there
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Where the program was started.
    #[arg(skip)]
    pub(crate) started_in: PathBuf,
    /// The environment whose overlay is used
    #[arg(short = 'e', long, value_name = "ENV", global = true)]
    pub(crate) environment: Option<String>,
    /// One JSON object a line on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Says more, such as every request, and every field of a machine configuration that changes
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// No colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// A file with the password of vaults, or a program that prints it; `prompt` asks; can be given more than once
    #[arg(long, value_name = "[ID@]FILE", global = true)]
    pub(crate) vault_password_file: Vec<String>,
    /// Waits this long for a state that somebody else has locked, such as `10m`; without it a lock is an error at once
    #[arg(
        long,
        value_name = "DURATION",
        env = "STRATA_LOCK_TIMEOUT",
        global = true,
        value_parser = strata_views::duration::read_duration,
        default_value = "0s",
        hide_default_value = true,
        hide_env_values = true
    )]
    pub(crate) lock_timeout: std::time::Duration,
    /// Connects elsewhere: a JSON file that maps `host:port` of the model to `host:port` to dial
    #[arg(long, value_name = "FILE", env = "STRATA_DIAL", global = true, hide_env_values = true)]
    pub(crate) dial: Option<PathBuf>,
}

/// The command line. The help of a verb has the options of that verb; those that all verbs take stand in the help of the program, once.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&with_short_help(Cli::command()).try_get_matches()?)
}

fn with_short_help(command: clap::Command) -> clap::Command {
    let global = command.get_arguments().filter(|argument| argument.is_global_set());
    let hidden: Vec<clap::Arg> = global.map(|argument| argument.clone().hide(true)).collect();
    command.mut_subcommands(|verb| below(verb, &hidden))
}

fn below(verb: clap::Command, hidden: &[clap::Arg]) -> clap::Command {
    let verb = verb.args(hidden.iter().cloned()).mut_subcommands(|verb| below(verb, hidden));
    verb.after_help("`strata --help` has the options that every verb takes, such as -C, -e, --json and -v.")
}

/// What is said instead of a run: help and version are results, anything else is a wrong command line.
pub(crate) fn answer(answer: &clap::Error) -> ExitCode {
    let _ = answer.print();
    if !answer.use_stderr() {
        return ExitCode::SUCCESS;
    }
    // Nothing was parsed: whether the line is for a program can only be seen in the words themselves.
    let json = std::env::args_os().any(|word| word == "--json");
    let text = answer.render().to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let error =
        CommandError::usage(message).hint("`strata help` and `strata help VERB` say what can be given");
    let printer = Printer::new(json, false, true, &SystemClock);
    printer.event(&Event::Error { error: &error });
    ExitCode::from(exit_code(error.kind))
}

impl Global {
    /// Goes to the folder of `-C`, as `git` and `make` do: no verb has to think of it for a path that it is given.
    pub(crate) fn enter(&mut self) -> Result<(), CommandError> {
        self.started_in = std::env::current_dir().unwrap_or_default();
        let Some(folder) = &self.directory else { return Ok(()) };
        match std::env::set_current_dir(folder) {
            Ok(()) => self.directory = None,
            // `init` and `import` make it; for the others there is no repository.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(CommandError::failed(format!("cannot work in `{}`: {error}", folder.display())));
            }
        }
        Ok(())
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Init(commands::init::Args),
    #[cfg_attr(not(feature = "sim"), command(hide = true))]
    Demo(commands::demo::Args),
    Validate(commands::validate::Args),
    Fmt(commands::fmt::Args),
    Explain(commands::explain::Args),
    Schema(commands::schema::Args),
    Plan(commands::plan::Args),
    Show(commands::show::Args),
    Apply(commands::apply::Args),
    Destroy(commands::destroy::Args),
    Drift(commands::drift::Args),
    Review(commands::review::Args),
    Recover(commands::recover::Args),
    #[command(flatten)]
    Act(strata_acts::Act),
    Output(commands::output::Args),
    Inventory(commands::inventory::Args),
    Graph(commands::graph::Args),
    State(commands::state::Args),
    Adopt(commands::adopt::Args),
    Import(commands::import::Args),
    Sync(commands::sync::Args),
    Tofu(commands::tofu::Args),
    Promote(commands::promote::Args),
    Policy(commands::policy::Args),
    Outdated(commands::outdated::Args),
    Secrets(commands::secrets::Args),
    Unlock(commands::unlock::Args),
    Talos(commands::talos::Args),
    Serve(commands::serve::Args),
    #[cfg_attr(not(feature = "sim"), command(hide = true))]
    Sim(commands::sim::Args),
    Mcp(commands::mcp::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    Version(commands::version::Args),
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::collections::BTreeSet;

    use super::*;

    /// Every path that the command line takes, as `verb --option` or `verb NAME`.
    fn paths(command: &clap::Command, verb: &str, found: &mut BTreeSet<String>) {
        for argument in command.get_arguments() {
            let names: Vec<String> =
                argument.get_value_names().unwrap_or_default().iter().map(|name| name.to_string()).collect();
            let says_so =
                |name: &String| ["FILE", "DIR", "FOLDER", "PATH"].iter().any(|word| name.contains(word));
            let typed = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            if typed || names.iter().any(says_so) {
                let own = argument.get_long().map_or_else(|| names.join(" "), |long| format!("--{long}"));
                found.insert(format!("{verb} {own}").trim().to_owned());
            }
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            paths(below, format!("{verb} {}", below.get_name()).trim(), found);
        }
    }

    #[test]
    fn the_help_of_a_verb_does_not_repeat_what_all_of_them_take() {
        let help = |words: &[&str]| match with_short_help(Cli::command()).try_get_matches_from(words) {
            Err(answer) => answer.render().to_string(),
            Ok(_) => panic!("{words:?} is no question for help"),
        };
        for words in [
            &["strata", "plan", "--help"][..],
            &["strata", "state", "mv", "-h"],
            &["strata", "help", "apply"],
        ] {
            let text = help(words);
            assert!(!text.contains("--vault-password-file") && !text.contains("--lock-timeout"), "{text}");
            assert!(text.contains("`strata --help` has the options that every verb takes"), "{text}");
        }
        assert!(help(&["strata", "--help"]).contains("--vault-password-file"));
        // They are taken before the verb and behind it all the same.
        for words in [
            &["strata", "--json", "-e", "dev", "plan"][..],
            &["strata", "state", "list", "--json", "-e", "dev"],
        ] {
            let matches = with_short_help(Cli::command()).try_get_matches_from(words).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            assert!(cli.global.json && cli.global.environment.as_deref() == Some("dev"), "{words:?}");
        }
    }

    /// A new path of the command line is tried with `-C` too, before it is there.
    #[test]
    fn f19_every_path_of_the_command_line_is_tried_with_c() {
        let mut found = BTreeSet::new();
        paths(&Cli::command(), "", &mut found);
        let table = include_str!("../tests/it/findings/secrecy/paths.rs");
        // The first text of each pair, on the line of its bracket or on the next.
        let rows =
            table.split("const TABLE").nth(1).and_then(|rest| rest.split("];").next()).unwrap_or_default();
        let starts = rows.split("\n    (").skip(1);
        let tried: BTreeSet<String> =
            starts.filter_map(|row| Some(row.split('"').nth(1)?.to_owned())).collect();
        assert!(found.contains("plan --output") && found.contains("state push FILE"), "{found:?}");
        assert_eq!(
            found, tried,
            "in the command line, and in the table of tests/it/findings/secrecy/paths.rs"
        );
    }
}
