//! What a route demands of its caller before its parameters are even looked at.

use super::answer::{Refusal, forbidden, no};
use super::args::Args;
use super::format;
use crate::world::World;
use crate::world::access::normal_path;

/// The permission a route declares.
#[derive(Debug, Clone)]
pub enum Perm {
    /// Also without a login.
    World,
    /// Everyone who is logged in; the endpoint filters or checks by itself.
    Anyone,
    /// root@pam with a ticket. It is what a route gets that declares nothing.
    Root,
    Check(Check),
}

/// A declared check. Paths contain `{param}`.
#[derive(Debug, Clone)]
pub enum Check {
    /// All of these privileges.
    All(&'static str, &'static [&'static str]),
    /// One of these privileges.
    Any(&'static str, &'static [&'static str]),
    /// As `All`, and only if that parameter was given.
    If(&'static str, &'static str, &'static [&'static str]),
    And(Vec<Check>),
    Or(Vec<Check>),
    /// One of these privileges on all groups, or on a group that `userid` is in (or is put in).
    UserGroups {
        privs: &'static [&'static str],
        creating: bool,
        groups_param: bool,
    },
    /// The caller is `userid`.
    UserSelf,
    /// Realm.AllocateUser on the realm of `userid`.
    UserRealm,
    /// May change permissions on that path.
    Modify(&'static str),
}

/// The shorthand that most routes use.
pub fn on(path: &'static str, privs: &'static [&'static str]) -> Perm {
    Perm::Check(Check::All(path, privs))
}

/// The shorthand for one of several privileges.
pub fn on_any(path: &'static str, privs: &'static [&'static str]) -> Perm {
    Perm::Check(Check::Any(path, privs))
}

impl Perm {
    /// `user` is a user or token id, or none without a login.
    pub fn check(&self, world: &World, user: Option<&str>, args: &Args) -> Result<(), Refusal> {
        let Some(user) = user else {
            return match self {
                Self::World => Ok(()),
                _ => Err(forbidden("user != null")),
            };
        };
        if user == "root@pam" {
            return Ok(());
        }
        match self {
            Self::World => Err(forbidden("")),
            Self::Anyone => Ok(()),
            Self::Root => Err(forbidden("user != root@pam")),
            Self::Check(check) => check.run(world, user, args),
        }
    }
}

/// Replaces `{param}` by its value; a missing one becomes empty.
fn fill(template: &str, args: &Args) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let Some(close) = rest[open..].find('}') else { break };
        out.push_str(args.text(&rest[open + 1..open + close]).unwrap_or_default());
        rest = &rest[open + close + 1..];
    }
    out + rest
}

impl Check {
    pub fn run(&self, world: &World, user: &str, args: &Args) -> Result<(), Refusal> {
        match self {
            Self::All(path, privs) => {
                let path = normal_path(&fill(path, args));
                world.access_check(user, path.as_deref(), privs, false)
            }
            Self::Any(path, privs) => {
                let path = normal_path(&fill(path, args));
                world.access_check(user, path.as_deref(), privs, true)
            }
            Self::If(param, path, privs) => {
                if !args.has(param) {
                    return Err(forbidden(""));
                }
                Self::All(path, privs).run(world, user, args)
            }
            Self::And(checks) => checks.iter().try_for_each(|c| c.run(world, user, args)),
            Self::Or(checks) => {
                if checks.iter().any(|c| c.run(world, user, args).is_ok()) {
                    return Ok(());
                }
                Err(forbidden(""))
            }
            Self::UserSelf => {
                let userid = user_param(args)?;
                require_user(world, userid)?;
                if user == userid { Ok(()) } else { Err(forbidden("")) }
            }
            Self::UserRealm => {
                let userid = user_param(args)?;
                let realm = userid.rsplit('@').next().unwrap_or_default();
                world.access_check(
                    user,
                    Some(&format!("/access/realm/{realm}")),
                    &["Realm.AllocateUser"],
                    false,
                )
            }
            Self::Modify(path) => match normal_path(&fill(path, args)) {
                Some(path) => world.check_modify(user, &path),
                None => Err(forbidden("")),
            },
            Self::UserGroups { privs, creating, groups_param } => {
                self.user_groups(world, user, args, privs, *creating, *groups_param)
            }
        }
    }

    fn user_groups(
        &self,
        world: &World,
        user: &str,
        args: &Args,
        privs: &'static [&'static str],
        creating: bool,
        groups_param: bool,
    ) -> Result<(), Refusal> {
        let userid = args.text("userid").unwrap_or_default();
        if !creating {
            require_user(world, userid)?;
        }
        if world.access_check(user, Some("/access/groups"), privs, true).is_ok() {
            return Ok(());
        }
        let may = |group: &str| {
            world.access_check(user, Some(&format!("/access/groups/{group}")), privs, true).is_ok()
        };
        if groups_param {
            let wanted = args.list("groups");
            if wanted.is_empty() {
                return Err(forbidden(format!("/access/groups, {}", privs.join("|"))));
            }
            if let Some(group) = wanted.iter().find(|g| !may(g)) {
                return Err(forbidden(format!("/access/groups/{group}, {}", privs.join("|"))));
            }
        }
        let member_of_mine =
            world.access.groups.iter().any(|(name, g)| g.users.contains(userid) && may(name));
        if !creating && !member_of_mine {
            return Err(forbidden(""));
        }
        Ok(())
    }
}

fn user_param(args: &Args) -> Result<&str, Refusal> {
    let userid = args.text("userid").unwrap_or_default();
    format::user_id(userid).map_err(|text| no(text.trim_end()))?;
    Ok(userid)
}

fn require_user(world: &World, userid: &str) -> Result<(), Refusal> {
    if world.access.users.contains_key(userid) {
        return Ok(());
    }
    Err(no(format!("no such user ('{userid}')")))
}
