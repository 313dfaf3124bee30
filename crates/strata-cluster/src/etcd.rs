//! The members of etcd: who votes, who is healthy, and what the cluster can bear to lose.

use std::collections::BTreeSet;

use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_talos_client::EtcdMember;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, talos};
use crate::wait::permit;

/// Etcd as its own members see it.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    pub(crate) members: Vec<EtcdMember>,
    /// Members that follow a leader right now.
    pub(crate) healthy: BTreeSet<u64>,
}

impl Membership {
    fn voters(&self) -> impl Iterator<Item = &EtcdMember> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    pub(crate) fn of(&self, name: &str) -> Option<&EtcdMember> {
        self.members.iter().find(|member| member.hostname == name)
    }

    /// Whether a node is certainly no member: etcd has a majority, and everybody in its list is known. One that joins has no name until it has started.
    pub(crate) fn certainly_without(&self, name: &str) -> bool {
        let unnamed = self.members.iter().any(|member| member.hostname.is_empty());
        self.of(name).is_none() && !unnamed && self.may_rebuild(&[]).is_ok()
    }

    /// Members that must agree before anything is written.
    fn quorum(voters: usize) -> usize {
        voters / 2 + 1
    }

    fn well_besides(&self, name: &str) -> usize {
        self.voters().filter(|member| member.hostname != name && self.healthy.contains(&member.id)).count()
    }

    /// Voters that do not follow, by name.
    pub(crate) fn unhealthy(&self) -> Vec<&str> {
        self.voters()
            .filter(|member| !self.healthy.contains(&member.id))
            .map(|member| member.hostname.as_str())
            .collect()
    }

    /// Whether a control plane may be away for a while. The only one may: with it, everything is away.
    pub(crate) fn may_pause(&self, name: &str, allow_even: bool) -> Result<(), ProviderError> {
        let voters = self.voters().count();
        let unhealthy: Vec<&str> = self.unhealthy().into_iter().filter(|other| *other != name).collect();
        if !unhealthy.is_empty() {
            let message = format!(
                "`{name}` cannot be disturbed: etcd's member on `{}` is unhealthy",
                unhealthy.join("`, `")
            );
            return Err(guard(
                message,
                "two control planes are never down at once; bring the other one back first",
            ));
        }
        if voters > 1 && self.well_besides(name) < Self::quorum(voters) && !allow_even {
            let message = format!(
                "`{name}` cannot be disturbed: of {voters} voting members of etcd {} would be left, and {} are needed",
                self.well_besides(name),
                Self::quorum(voters)
            );
            return Err(guard(message, "add a control plane first; an odd number can bear to lose one"));
        }
        Ok(())
    }

    /// Whether members whose machines are gone can be removed and made again: the others must be a majority.
    /// Otherwise says how many there are.
    pub(crate) fn may_rebuild(&self, gone: &[&str]) -> Result<(), String> {
        let others = |member: &&EtcdMember| !gone.contains(&member.hostname.as_str());
        let well = self.voters().filter(others).filter(|member| self.healthy.contains(&member.id)).count();
        let voters = self.voters().count();
        if well >= Self::quorum(voters) {
            return Ok(());
        }
        Err(format!("{well} of its {voters} voting members are healthy"))
    }

    /// The same without a member.
    pub(crate) fn without(&self, name: &str) -> Self {
        let members = self.members.iter().filter(|member| member.hostname != name).cloned();
        Self { members: members.collect(), healthy: self.healthy.clone() }
    }

    /// Whether a member may leave for good.
    pub(crate) fn may_leave(&self, name: &str) -> Result<(), ProviderError> {
        self.of(name).map_or(Ok(()), |member| self.may_remove(member))
    }

    /// The same of one of several with one name.
    fn may_remove(&self, member: &EtcdMember) -> Result<(), ProviderError> {
        let name = &member.hostname;
        let left = self.voters().filter(|voter| voter.id != member.id).count();
        if left == 0 {
            let message = format!("`{name}` is the last member of etcd: without it the cluster is gone");
            return Err(guard(message, "`strata destroy` takes down a whole cluster"));
        }
        // While the change is voted on, the old majority counts; after it, the new one.
        let others = self.voters().filter(|other| other.id != member.id);
        let well = others.filter(|other| self.healthy.contains(&other.id)).count();
        // A learner has no vote to lose: for it both majorities are the same.
        let itself = usize::from(self.healthy.contains(&member.id));
        let before = Self::quorum(self.voters().count());
        if well < Self::quorum(left) || well + itself < before {
            let message = format!(
                "removing `{name}` would leave etcd without a majority: {well} of {left} other voting members are healthy"
            );
            return Err(guard(message, "bring the other control planes back first"));
        }
        Ok(())
    }
}

/// Etcd decides nothing any more, and cannot be helped by new members.
pub(crate) fn no_majority(cluster: &Cluster, why: &str) -> ProviderError {
    let message = format!("the etcd of `{}` has no majority: {why}", cluster.name());
    let stack = &cluster.options.stack;
    guard(
        message,
        format!(
            "bring the other control planes back; where they are lost for good, `strata talos snapshot {stack}` saves what is left, and `strata talos restore {stack} --snapshot FILE` begins again from a snapshot"
        ),
    )
}

impl Cluster {
    /// Asks the control planes. None: nobody has an etcd with a leader. That says nothing about data that they hold.
    pub(crate) async fn membership(&self) -> Result<Option<Membership>, ProviderError> {
        let looks = self.control_planes().into_iter().map(|node| async move {
            let client = self.talos(&node.address)?;
            let members = client.etcd_members().await;
            let status = client.etcd_status().await;
            Ok::<_, ProviderError>((members, status))
        });
        let mut answers = Vec::new();
        for answer in futures::future::join_all(looks).await {
            answers.push(answer?);
        }
        let well = answers
            .iter()
            .filter_map(|(_, status)| status.as_ref().ok())
            .filter(|status| status.leader != 0 && !status.is_learner)
            .map(|status| status.member_id)
            .collect();
        let lists =
            answers.into_iter().filter_map(|(members, _)| members.ok()).filter(|members| !members.is_empty());
        // A member that was cut off may have an old list; the longest-lived majority has the one with most healthy members.
        let best = lists.max_by_key(|members| {
            members.iter().filter(|member| BTreeSet::contains(&well, &member.id)).count()
        });
        Ok(best.map(|members| Membership { members: self.named(members), healthy: well }))
    }

    /// A member that was added and has not started has no name: its address tells whose it is. One that never starts keeps others from joining.
    fn named(&self, mut members: Vec<EtcdMember>) -> Vec<EtcdMember> {
        let nodes = self.control_planes();
        for member in members.iter_mut().filter(|member| member.hostname.is_empty()) {
            let is_at = |node: &&NodePlace| {
                let places = [format!("//{}:", node.address), format!("//[{}]:", node.address)];
                member.peer_urls.iter().any(|url| places.iter().any(|place| url.contains(place)))
            };
            if let Some(node) = nodes.iter().find(is_at) {
                member.hostname.clone_from(&node.name);
            }
        }
        members
    }

    /// The membership of a cluster that must have one.
    pub(crate) async fn etcd(&self) -> Result<Membership, ProviderError> {
        self.membership().await?.ok_or_else(|| {
            ProviderError::new(ErrorClass::Unreachable, "no control plane answers for etcd")
                .hint("`strata talos health` shows every node; with an etcd snapshot, `strata talos restore` brings it back")
        })
    }

    /// What keeps a control plane from voting; nothing if it does.
    pub(crate) async fn voter_trouble(&self, node: &NodePlace) -> Result<Option<String>, ProviderError> {
        let client = self.talos(&node.address)?;
        let status = match client.etcd_status().await {
            Ok(status) => status,
            Err(error) => return Ok(Some(format!("etcd: {error}"))),
        };
        if status.is_learner {
            return Ok(Some("etcd: it is still learning".to_owned()));
        }
        if status.leader == 0 {
            return Ok(Some("etcd: there is no leader".to_owned()));
        }
        Ok((!status.errors.is_empty()).then(|| format!("etcd: {}", status.errors.join(", "))))
    }

    /// Removes every member of a machine that is gone, by way of healthy ones. There may be two: one that it was, and one as which it did not
    /// get to start.
    pub(crate) async fn remove_member(
        &self,
        name: &str,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let mut removed = BTreeSet::new();
        loop {
            let etcd = self.etcd().await?;
            let mut own = etcd.members.iter().filter(|member| member.hostname == name);
            let Some(member) = own.find(|member| !removed.contains(&member.id)) else { return Ok(()) };
            etcd.may_remove(member)?;
            self.remove_member_by_id(name, member.id, context).await?;
            removed.insert(member.id);
        }
    }

    async fn remove_member_by_id(
        &self,
        name: &str,
        id: u64,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let helpers = self.control_planes().into_iter().filter(|node| node.name != name);
        let mut last = None;
        for helper in helpers {
            let permit = permit(context)?;
            context.progress(&format!("removes `{name}` from etcd"));
            match self.talos(&helper.address)?.etcd_remove_member(&permit, id).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(
            || guard("no other control plane is left to ask", "restore etcd from a copy"),
            talos,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etcd(members: &[(&str, bool, bool)]) -> Membership {
        let member = |(id, (name, learner, _)): (u64, &(&str, bool, bool))| EtcdMember {
            id,
            hostname: (*name).to_owned(),
            peer_urls: Vec::new(),
            client_urls: Vec::new(),
            is_learner: *learner,
        };
        let well = (1..).zip(members).filter(|(_, (_, _, well))| *well).map(|(id, _)| id).collect();
        Membership { members: (1..).zip(members).map(member).collect(), healthy: well }
    }

    #[test]
    fn one_of_three_may_pause_and_never_two() {
        let all = [("a", false, true), ("b", false, true), ("c", false, true)];
        assert!(etcd(&all).may_pause("a", false).is_ok());
        let one_down = [("a", false, true), ("b", false, false), ("c", false, true)];
        assert!(etcd(&one_down).may_pause("a", false).is_err());
        assert!(etcd(&one_down).may_pause("b", false).is_ok());
        assert_eq!(etcd(&one_down).unhealthy(), ["b"]);
        assert!(etcd(&all).unhealthy().is_empty());
        let learning = [("a", false, true), ("b", true, false)];
        assert!(etcd(&learning).unhealthy().is_empty(), "one that learns has no vote that could be missing");
        assert!(etcd(&[("a", false, true)]).may_pause("a", false).is_ok());
        let two = [("a", false, true), ("b", false, true)];
        assert!(etcd(&two).may_pause("a", false).is_err());
        assert!(etcd(&two).may_pause("a", true).is_ok());
    }

    #[test]
    fn only_a_majority_rebuilds_the_rest() {
        let one_gone = [("a", false, false), ("b", false, true), ("c", false, true)];
        assert!(etcd(&one_gone).may_rebuild(&["a"]).is_ok());
        let two_gone = [("a", false, false), ("b", false, false), ("c", false, true)];
        assert!(etcd(&two_gone).may_rebuild(&["a", "b"]).is_err());
        assert!(etcd(&[("a", false, false)]).may_rebuild(&["a"]).is_err());
    }

    #[test]
    fn nobody_leaves_without_a_majority() {
        let all = [("a", false, true), ("b", false, true), ("c", false, true)];
        assert!(etcd(&all).may_leave("a").is_ok());
        let dead = [("a", false, false), ("b", false, true), ("c", false, true)];
        assert!(etcd(&dead).may_leave("a").is_ok(), "the dead one is taken out");
        assert!(etcd(&dead).may_leave("b").is_err(), "of b and c one would be left, beside a dead one");
        assert!(etcd(&[("a", false, true)]).may_leave("a").is_err());
        assert!(etcd(&all).may_leave("d").is_ok(), "it is no member");
        let half = [("a", false, true), ("b", false, false), ("c", true, true)];
        assert!(
            etcd(&half).may_leave("c").is_err(),
            "without a majority nobody is let go, a learner neither"
        );
        let learning = [("a", false, true), ("b", true, true)];
        assert!(etcd(&learning).may_leave("b").is_ok() && etcd(&learning).may_leave("a").is_err());
    }

    #[test]
    fn a_member_that_has_not_started_is_known_by_its_address() {
        let cluster = crate::testing::cluster(|_| {});
        let member = |url: &str| EtcdMember {
            id: 7,
            hostname: String::new(),
            peer_urls: vec![url.to_owned()],
            client_urls: Vec::new(),
            is_learner: true,
        };
        let name = |url: &str| cluster.named(vec![member(url)]).remove(0).hostname;
        assert_eq!(name("https://192.0.2.2:2380"), "cp-2");
        assert_eq!(name("https://192.0.2.22:2380"), "", "another address that begins so");
        assert_eq!(name("https://192.0.2.11:2380"), "", "a worker is no member");
    }

    #[test]
    fn a_node_is_certainly_no_member_only_of_an_etcd_that_decides_and_whose_members_are_known() {
        let all = [("a", false, true), ("b", false, true)];
        assert!(etcd(&all).certainly_without("c"));
        assert!(!etcd(&all).certainly_without("a"));
        assert!(!etcd(&[("a", false, true), ("b", false, false)]).certainly_without("c"), "no majority");
        assert!(!etcd(&[("a", false, true), ("", true, false)]).certainly_without("c"), "it may be the one");
    }

    #[test]
    fn of_two_members_with_one_name_the_one_without_a_vote_may_go() {
        let both = etcd(&[("a", false, true), ("b", false, true), ("b", true, false)]);
        assert!(both.may_remove(&both.members[2]).is_ok());
        assert!(both.may_remove(&both.members[1]).is_ok(), "one of two stays");
        let last = etcd(&[("b", false, true), ("b", true, false)]);
        assert!(last.may_remove(&last.members[1]).is_ok());
        assert!(last.may_remove(&last.members[0]).is_err(), "the last that votes");
    }
}
