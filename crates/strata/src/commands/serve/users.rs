//! `strata serve user`, `strata serve token` and `strata serve hash`.

use std::io::{IsTerminal as _, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::process::ExitCode;

use clap::Subcommand;
use strata_secrets::Prompt as _;
use strata_server::access::{
    AccessError, AccessFile, Action, Rule, Token, hash_password, new_token, token_digest,
};

use super::settings::Settings;
use strata_events::Event;

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::prompt::TerminalPrompt;

/// Adds, changes, removes and lists users; a running server follows
#[derive(clap::Args)]
pub(super) struct UserArgs {
    #[command(subcommand)]
    verb: UserVerb,
}

#[derive(Subcommand)]
enum UserVerb {
    /// Adds a user
    Add {
        name: String,
        #[command(flatten)]
        rules: RuleArgs,
        /// Asks for a password, or reads it from standard input; without one the user needs a token
        #[arg(long)]
        password: bool,
    },
    /// Replaces what a user may do
    Allow {
        name: String,
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Asks for a new password, or reads it from standard input
    Password { name: String },
    /// Removes a user, with all tokens
    Remove { name: String },
    /// Lists users, their tokens and what they may do
    List,
}

#[derive(clap::Args)]
struct RuleArgs {
    /// What is allowed where: `PREFIX=ACTION,…` with read, write, lock, unlock, admin; without a prefix on every state
    #[arg(long = "allow", value_name = "RULE")]
    allow: Vec<Rule>,
    /// Everything on every state
    #[arg(long)]
    admin: bool,
}

impl RuleArgs {
    fn rules(&self) -> Vec<Rule> {
        let mut rules = self.allow.clone();
        if self.admin {
            rules.push(Rule { prefix: String::new(), actions: vec![Action::Admin] });
        }
        rules
    }
}

/// Makes and takes back tokens
#[derive(clap::Args)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Subcommand)]
enum TokenVerb {
    /// Makes a token and prints it, this once
    Add {
        user: String,
        /// A name to take it back by
        #[arg(long, default_value = "default")]
        name: String,
        /// Ends after this many days
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
    },
    /// Takes a token back
    Remove {
        user: String,
        #[arg(long, default_value = "default")]
        name: String,
    },
}

fn refused(error: AccessError) -> CommandError {
    CommandError::failed(error.to_string())
}

/// Reads the file, changes it, and writes it.
fn change(
    settings: &Settings,
    change: impl FnOnce(&mut AccessFile) -> Result<(), AccessError>,
) -> Result<(), CommandError> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.data).map_err(|error| {
        CommandError::failed(format!("cannot make `{}`: {error}", settings.data.display()))
    })?;
    let path = AccessFile::path(&settings.data);
    let mut file = AccessFile::load(&path).map_err(refused)?;
    change(&mut file).map_err(refused)?;
    file.save(&path).map_err(refused)
}

pub(super) fn run_user(context: &Context, settings: &Settings, args: &UserArgs) -> CommandResult {
    let changed = match &args.verb {
        UserVerb::List => return list(context, settings).map(|()| ExitCode::SUCCESS),
        UserVerb::Add { name, .. } | UserVerb::Allow { name, .. } => name,
        UserVerb::Password { name } | UserVerb::Remove { name } => name,
    };
    match &args.verb {
        UserVerb::Add { name, rules, password } => {
            let rules = rules.rules();
            if rules.is_empty() {
                return Err(CommandError::refused(format!("`{name}` could do nothing"))
                    .hint("`--allow prod=read,write,lock` or `--admin`"));
            }
            let password = if *password { Some(ask_hash()?) } else { None };
            let needs_token = password.is_none();
            change(settings, |file| file.add_user(name, password, rules))?;
            if needs_token {
                context.printer.note(format!("`strata serve token add {name}` makes a token for `{name}`"));
            }
        }
        UserVerb::Allow { name, rules } => change(settings, |file| file.set_rules(name, rules.rules()))?,
        UserVerb::Password { name } => {
            let hash = ask_hash()?;
            change(settings, |file| file.set_password(name, hash))?;
        }
        UserVerb::Remove { name } => change(settings, |file| file.remove_user(name))?,
        UserVerb::List => {}
    }
    context.printer.event(&Event::UsersChanged { user: changed });
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run_token(context: &Context, settings: &Settings, args: &TokenArgs) -> CommandResult {
    match &args.verb {
        TokenVerb::Add { user, name, days } => {
            let text = new_token().map_err(|error| CommandError::failed(error.to_string()))?;
            let now = jiff::Timestamp::now().as_second();
            let expires = days.map(|days| now + i64::from(days) * 24 * 3600);
            let token = Token { name: name.clone(), sha256: token_digest(&text), expires };
            change(settings, |file| file.add_token(user, token))?;
            context.printer.event(&Event::Token { user, token: &text });
            context.printer.line(text);
        }
        TokenVerb::Remove { user, name } => {
            change(settings, |file| file.remove_token(user, name))?;
            context.printer.event(&Event::UsersChanged { user });
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn hash(context: &Context) -> CommandResult {
    let hash = ask_hash()?;
    context.printer.event(&Event::Hash { hash: &hash });
    context.printer.line(hash);
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context, settings: &Settings) -> Result<(), CommandError> {
    let file = AccessFile::load(&AccessFile::path(&settings.data)).map_err(refused)?;
    for user in settings.config.configured_users().iter().chain(&file.users) {
        let rules: Vec<String> = user.rules.iter().map(ToString::to_string).collect();
        let tokens: Vec<&str> = user.tokens.iter().map(|token| token.name.as_str()).collect();
        context.printer.event(&Event::User {
            name: &user.name,
            rules: rules.clone(),
            tokens: tokens.clone(),
            password: user.password.is_some(),
        });
        let password = if user.password.is_some() { ", a password" } else { "" };
        let tokens = if tokens.is_empty() { String::new() } else { format!(", tokens {}", tokens.join(" ")) };
        context.printer.line(format!("{}: {}{password}{tokens}", user.name, rules.join(" ")));
    }
    Ok(())
}

/// A password from the person at the terminal, or from standard input.
fn ask_hash() -> Result<String, CommandError> {
    let password = if std::io::stdin().is_terminal() {
        let first = TerminalPrompt.secret("password");
        let second = TerminalPrompt.secret("the same again");
        match (first, second) {
            (Some(first), Some(second)) if first.expose() == second.expose() => first.expose().to_owned(),
            _ => return Err(CommandError::failed("the two are not the same")),
        }
    } else {
        let mut text = String::new();
        std::io::stdin()
            .take(4096)
            .read_to_string(&mut text)
            .map_err(|error| CommandError::failed(format!("cannot read the password: {error}")))?;
        text.trim_end_matches(['\r', '\n']).to_owned()
    };
    if password.chars().count() < 8 {
        return Err(CommandError::refused("a password has at least eight characters"));
    }
    hash_password(&password).map_err(|error| CommandError::failed(error.to_string()))
}
