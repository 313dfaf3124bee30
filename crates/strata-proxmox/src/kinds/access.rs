//! Who has which access, as the server says; and what of it would fall with an object that a plan deletes.

mod own;

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{Finding, Operation, ProviderError, Review};
use strata_resource::{Kind, Spec};
use strata_state::Action;

pub(super) use self::own::{OwnAccess, expires, lost, texts};
use super::{acl, token, user};
use crate::client::{CallError, Client};
use crate::datacenter::{Family, LiveObject, spec_text};
use crate::kinds;

/// All of it, by key.
pub(crate) struct StandingAccess {
    pub(crate) entries: BTreeMap<String, LiveObject>,
    pub(crate) users: BTreeMap<String, LiveObject>,
    pub(crate) tokens: BTreeMap<String, LiveObject>,
}

impl StandingAccess {
    async fn read(client: &Client) -> Result<Self, CallError> {
        Ok(Self {
            entries: acl::Entries.list(client, &[]).await?,
            users: user::ROWS.list(client, &[]).await?,
            tokens: token::Tokens.list(client, &[]).await?,
        })
    }

    /// The entries of a kind that the plan does not take away by itself.
    pub(crate) fn entries_of<'s>(
        &'s self,
        going: &'s Going<'_>,
        is: impl Fn(&Spec) -> bool + 's,
    ) -> impl Iterator<Item = String> + 's {
        let stays = self.entries.iter().filter(|(key, _)| !going.has(acl::KIND, key));
        stays.filter(move |(_, entry)| is(&entry.spec)).map(|(key, _)| format!("`{key}`"))
    }
}

/// What a kind that says who may do what has to answer before anything of it is changed.
pub(crate) trait AccessKind: Sync {
    /// What an operation would do to the access that Strata works with itself; none if it leaves that as it is.
    fn harm(&self, own: &OwnAccess<'_>, operation: &Operation) -> Option<String>;

    /// What Proxmox deletes together with an object and the plan says nothing of.
    fn falls(&self, _standing: &StandingAccess, _going: &Going<'_>, _spec: &Spec) -> Vec<String> {
        Vec::new()
    }

    /// What else must hold; `known` are the entries of the access control that the source or the state knows.
    fn precondition(
        &self,
        _standing: &StandingAccess,
        _operation: &Operation,
        _known: &BTreeSet<String>,
    ) -> Option<Finding> {
        None
    }
}

fn access_of(operation: &Operation) -> Option<&'static dyn AccessKind> {
    kinds::of(operation.address.kind())?.access()
}

/// What of the operations would take access from somebody who was not meant.
pub(crate) async fn preconditions(
    client: &Client,
    review: Review<'_>,
) -> Result<Vec<Finding>, ProviderError> {
    let operations = review.operations;
    let concerns =
        |operation: &Operation| operation.action != Action::Create && access_of(operation).is_some();
    if !operations.iter().any(concerns) {
        return Ok(Vec::new());
    }
    let standing = StandingAccess::read(client).await;
    let standing = standing.map_err(|error| error.explain("look who has which access"))?;
    let mut found = own::preconditions(client.identity(), &standing, operations);
    found.extend(fallen(&standing, operations));
    let known = acl::known(review);
    let own = |operation: &Operation| access_of(operation)?.precondition(&standing, operation, &known);
    found.extend(operations.iter().filter_map(own));
    Ok(found)
}

/// What a plan takes away or changes by itself.
pub(crate) struct Going<'o> {
    pub(crate) operations: &'o [Operation],
}

impl Going<'_> {
    /// Whether the plan deletes an object.
    pub(crate) fn has(&self, kind: Kind, key: &str) -> bool {
        let family = kinds::family_of(kind);
        self.operations.iter().any(|operation| {
            operation.action == Action::Delete
                && operation.address.kind() == kind
                && family.and_then(|family| family.key(&operation.spec)).as_deref() == Some(key)
        })
    }
}

/// Proxmox deletes with an object whatever refers to it, without a word.
fn fallen(standing: &StandingAccess, operations: &[Operation]) -> Vec<Finding> {
    let going = &Going { operations };
    let deletes = operations.iter().filter(|operation| operation.action == Action::Delete);
    deletes
        .filter_map(|operation| {
            let falls = access_of(operation)?.falls(standing, going, &operation.spec);
            let family = kinds::family_of(operation.address.kind())?;
            let what = format!("{} `{}`", family.word(), family.key(&operation.spec)?);
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
pub(crate) fn is_for<'s>(kind: &'s str, subject: &'s str) -> impl Fn(&Spec) -> bool + 's {
    move |entry| spec_text(entry, "subject_type") == kind && spec_text(entry, "subject") == subject
}
