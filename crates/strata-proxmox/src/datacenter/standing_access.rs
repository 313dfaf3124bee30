//! Who has which access, as the server says; and what of it would fall with an object that a plan deletes.

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{Finding, Operation, ProviderError, Review};
use strata_resource::{Kind, Spec};
use strata_state::Action;

use super::family::{Family, LiveObject, spec_text};
use super::own_access::texts;
use super::{access, acl, own_access, token};
use crate::client::{CallError, Client};
use crate::kinds;

/// All of it, by key.
pub(super) struct StandingAccess {
    pub(super) entries: BTreeMap<String, LiveObject>,
    pub(super) users: BTreeMap<String, LiveObject>,
    pub(super) tokens: BTreeMap<String, LiveObject>,
}

impl StandingAccess {
    async fn read(client: &Client) -> Result<Self, CallError> {
        Ok(Self {
            entries: acl::ACL.list(client, &[]).await?,
            users: access::USER.list(client, &[]).await?,
            tokens: token::TOKEN.list(client, &[]).await?,
        })
    }

    /// The entries of a kind that the plan does not take away by itself.
    fn entries_of<'s>(
        &'s self,
        going: &'s Going<'_>,
        is: impl Fn(&Spec) -> bool + 's,
    ) -> impl Iterator<Item = String> + 's {
        let stays = self.entries.iter().filter(|(key, _)| !going.has(kinds::ACL, key));
        stays.filter(move |(_, entry)| is(&entry.spec)).map(|(key, _)| format!("`{key}`"))
    }
}

/// The entries of the access control that the source or the state knows, as a look at them showed.
fn known_entries(review: Review<'_>) -> BTreeSet<String> {
    let entries = review.observed().filter(|(address, _)| address.kind() == kinds::ACL);
    entries.filter_map(|(_, observed)| acl::ACL.key(&observed.spec)).collect()
}

/// What of the operations would take access from somebody who was not meant.
pub(super) async fn preconditions(
    client: &Client,
    review: Review<'_>,
) -> Result<Vec<Finding>, ProviderError> {
    let operations = review.operations;
    let concerns = |operation: &Operation| {
        let kind = operation.address.kind();
        matches!(kind, kinds::ROLE | kinds::GROUP | kinds::USER | kinds::TOKEN | kinds::ACL)
            && operation.action != Action::Create
    };
    if !operations.iter().any(concerns) {
        return Ok(Vec::new());
    }
    let standing = StandingAccess::read(client).await;
    let standing = standing.map_err(|error| error.explain("look who has which access"))?;
    let mut found = own_access::preconditions(client.identity(), &standing, operations);
    found.extend(fallen(&standing, operations));
    found.extend(token::preconditions(&standing, operations, &known_entries(review)));
    Ok(found)
}

/// What a plan takes away or changes by itself.
struct Going<'o> {
    operations: &'o [Operation],
}

impl Going<'_> {
    /// Whether the plan deletes an object.
    fn has(&self, kind: Kind, key: &str) -> bool {
        let family = super::family_of(kind);
        self.operations.iter().any(|operation| {
            operation.action == Action::Delete
                && operation.address.kind() == kind
                && family.and_then(|family| family.key(&operation.spec)).as_deref() == Some(key)
        })
    }

    /// Whether the plan takes a user out of a group.
    fn leaves(&self, user: &str, group: &str) -> bool {
        self.operations.iter().any(|operation| {
            operation.action == Action::Update
                && operation.address.kind() == kinds::USER
                && spec_text(&operation.spec, "user") == user
                && operation.touches("groups")
                && !texts(&operation.spec, "groups").contains(group)
        })
    }
}

/// Proxmox deletes with an object whatever refers to it, without a word.
fn fallen(standing: &StandingAccess, operations: &[Operation]) -> Vec<Finding> {
    let going = &Going { operations };
    let deletes = operations.iter().filter(|operation| operation.action == Action::Delete);
    deletes
        .filter_map(|operation| {
            let spec = &operation.spec;
            let (what, falls): (String, Vec<String>) = match operation.address.kind() {
                kinds::ROLE => {
                    let role = spec_text(spec, "role");
                    let grants = move |entry: &Spec| spec_text(entry, "grants") == role;
                    (format!("role `{role}`"), standing.entries_of(going, grants).collect())
                }
                kinds::GROUP => {
                    let group = spec_text(spec, "group");
                    let mut falls: Vec<String> = standing.entries_of(going, is_for("group", group)).collect();
                    let members = standing.users.iter().filter(|(name, user)| {
                        texts(&user.spec, "groups").contains(group)
                            && !going.has(kinds::USER, name)
                            && !going.leaves(name, group)
                    });
                    falls.extend(members.map(|(name, _)| format!("the membership of `{name}`")));
                    (format!("group `{group}`"), falls)
                }
                kinds::USER => {
                    let user = spec_text(spec, "user");
                    let mut falls: Vec<String> = standing.entries_of(going, is_for("user", user)).collect();
                    let own = |token: &str| token.split_once('!').is_some_and(|(owner, _)| owner == user);
                    let tokens = standing.tokens.keys().filter(|token| own(token));
                    let tokens = tokens.filter(|token| !going.has(kinds::TOKEN, token));
                    falls.extend(tokens.map(|token| format!("the token `{token}`")));
                    (format!("user `{user}`"), falls)
                }
                kinds::TOKEN => {
                    let token = spec_text(spec, "token");
                    (format!("token `{token}`"), standing.entries_of(going, is_for("token", token)).collect())
                }
                _ => return None,
            };
            (!falls.is_empty()).then(|| {
                Finding::precondition(
                    operation,
                    format!(
                        "with the {what} Proxmox would drop what the plan says nothing of: {}",
                        falls.join(", ")
                    ),
                    "take that away first, or leave this in the source",
                )
            })
        })
        .collect()
}

/// Entries for one user, group or token.
fn is_for<'s>(kind: &'s str, subject: &'s str) -> impl Fn(&Spec) -> bool + 's {
    move |entry| spec_text(entry, "subject_type") == kind && spec_text(entry, "subject") == subject
}
