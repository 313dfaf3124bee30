//! What a session needs of those who know kinds and reach remotes. It names no kind itself.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_blueprint::placement::Homes;
use strata_blueprint::{Blueprint, ClusterPlan};
use strata_engine::Providers;
use strata_resource::{Address, ResourceGraph};
use strata_secret::DigestKey;
use strata_source::EffectiveStack;
use strata_source::stack::Layer;
use strata_state::StateDocument;
use strata_talos::SecretsBundle;

use crate::connections::Connections;
use crate::error::SessionError;
use crate::stack_session::{HeldState, Purpose};
use crate::workspace::Workspace;

/// All providers of a program. Each question comes at its phase of a session: targets, keys, the drawn graph, the stack's own providers.
#[async_trait]
pub trait ProviderSet: Send + Sync {
    /// Finds what is wrong with the targets of stacks as far as no server has to be asked: what the source left open, secrets that are
    /// missing. It comes before a state is read or locked.
    fn check(&self, workspace: &Workspace, stacks: &[&EffectiveStack]) -> Result<(), SessionError>;

    /// Connects what the environment of the stack names and what nobody tried to connect yet. What cannot be connected is noted in the
    /// connections: it concerns the stacks that need it.
    async fn connect(&self, workspace: &Workspace, stack: &EffectiveStack, connections: &mut Connections);

    /// The keys that the machines of a stack run with, where it has such. They are made only under the lock.
    async fn keys(
        &self,
        workspace: &Workspace,
        stack: &EffectiveStack,
        purpose: &Purpose,
        state: &mut HeldState,
    ) -> Result<Option<SecretsBundle>, SessionError>;

    /// Places for those of a drawing whose source leaves that open and that have none yet.
    async fn place(&self, drawn: &Blueprint) -> Result<Homes, SessionError>;

    /// Completes what was drawn with what only files of the repository tell, and has its secrets redacted from now on.
    fn complete(&self, workspace: &Workspace, drawn: &mut Blueprint);

    /// Gives a stack the providers that are its own, beside the targets that it shares with others.
    async fn attach(
        &self,
        workspace: &Workspace,
        drawn: DrawnStack<'_>,
        providers: &mut Providers,
    ) -> Result<(), SessionError>;

    /// The same for a stack that left the source: nothing of it is wanted.
    fn attach_removed(&self, stack: &EffectiveStack, providers: &mut Providers);

    /// What the hypervisors of the connected targets have, by their addresses; nothing where one of them does not say.
    async fn capacity(&self) -> BTreeMap<String, Capacity> {
        BTreeMap::new()
    }

    /// The layer of a stack of which only addresses are left.
    fn layer_of(&self, addresses: &[&Address]) -> Layer;
}

/// What there is of something, and how much of it is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    pub total: i64,
    pub taken: i64,
}

/// What hypervisors have: memory and disk in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capacity {
    pub cores: Measure,
    pub memory: Measure,
    pub disk: Measure,
}

/// A stack between drawing and planning.
pub struct DrawnStack<'a> {
    pub stack: &'a EffectiveStack,
    pub purpose: &'a Purpose,
    /// With its secrets in the clear: they are digested after this.
    pub graph: &'a ResourceGraph,
    pub cluster: Option<(ClusterPlan, SecretsBundle)>,
    pub state: &'a StateDocument,
    pub key: Option<&'a DigestKey>,
}
