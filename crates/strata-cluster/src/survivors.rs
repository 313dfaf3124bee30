//! Control planes that still hold data of etcd, with a majority or without. Each must say itself that it has none; one that
//! cannot be asked, or whose answer is an error, may have some.

use strata_engine::{OperationContext, ProviderError};
use strata_talos::EtcdDatabase;

use crate::bootstrap::is_early;
use crate::cluster::{Cluster, NodePlace};
use crate::machine::is_passing;
use crate::node::Contact;
use crate::wait::{Seen, until};

/// What a control plane says about data of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holding {
    /// Its data directory is empty.
    Nothing,
    Data,
    /// Nobody can tell, and why. Later somebody may.
    Unknown(String),
    /// The same, and waiting does not help.
    Refused(String),
}

/// What all control planes say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Survey {
    /// Those with data.
    pub(crate) survivors: Vec<NodePlace>,
    /// Those that did not say whether they have data, and why.
    pub(crate) unknown: Vec<(NodePlace, String)>,
    /// Those of them that answer, and whose answer says nothing.
    pub(crate) refused: Vec<(NodePlace, String)>,
}

impl Survey {
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.survivors.iter().map(|one| one.name.as_str()).collect();
        format!("`{}`", names.join("`, `"))
    }

    /// Whether those that hold data could be a majority again. Nobody who could tell how many there are is asked: the databases are.
    pub(crate) fn may_recover(&self, databases: &[EtcdDatabase], control_planes: usize) -> bool {
        let voters = databases.iter().map(|database| database.voters().count()).max();
        let voters = voters.filter(|count| *count > 0).unwrap_or(control_planes);
        self.survivors.len() > voters / 2
    }
}

impl Cluster {
    pub(crate) async fn holding(&self, node: &NodePlace) -> Result<Holding, ProviderError> {
        match self.contact(&node.address).await? {
            Contact::Running(_) => {}
            Contact::Maintenance => {
                return Ok(Holding::Refused("it is in maintenance mode, without a configuration".to_owned()));
            }
            Contact::Unmanaged(who) => return Ok(Holding::Refused(who)),
            Contact::Unreachable(why) => return Ok(Holding::Unknown(why)),
        }
        let client = self.talos(&node.address)?;
        // A member that runs has data, whatever its directory is called.
        if client.etcd_status().await.is_ok() {
            return Ok(Holding::Data);
        }
        Ok(match client.holds_etcd_data().await {
            Ok(true) => Holding::Data,
            Ok(false) => Holding::Nothing,
            Err(error) if is_passing(&error) || is_early(&error) => Holding::Unknown(error.to_string()),
            Err(error) => Holding::Refused(error.to_string()),
        })
    }

    /// Asks every control plane, of the source and of the state.
    pub(crate) async fn survey(&self) -> Result<Survey, ProviderError> {
        let looks = self.control_planes().into_iter().map(|node| async move {
            let holding = self.holding(&node).await?;
            Ok::<_, ProviderError>((node, holding))
        });
        let mut survey = Survey::default();
        for (node, holding) in futures::future::try_join_all(looks).await? {
            match holding {
                Holding::Nothing => {}
                Holding::Data => survey.survivors.push(node),
                Holding::Unknown(why) => survey.unknown.push((node, why)),
                Holding::Refused(why) => {
                    survey.unknown.push((node.clone(), why.clone()));
                    survey.refused.push((node, why));
                }
            }
        }
        Ok(survey)
    }

    /// Waits until every control plane has said whether it has data: one that was just switched on needs a while until it can. After
    /// that time, what is not known stays unknown.
    pub(crate) async fn complete_survey(
        &self,
        context: &dyn OperationContext,
    ) -> Result<Survey, ProviderError> {
        let waiting_for = "every control plane to show whether it holds data of etcd";
        let waited = until(context, waiting_for, self.options.deadlines.boot, || async {
            let survey = self.survey().await?;
            Ok(match survey.unknown.first() {
                Some((node, why)) if survey.refused.is_empty() => {
                    self.hang_up(&node.address);
                    Seen::NotYet(format!("`{}`: {why}", node.name))
                }
                _ => Seen::Done(survey),
            })
        });
        match waited.await {
            Err(error) if error.class == strata_engine::ErrorClass::Unreachable => self.survey().await,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use strata_talos::DatabaseMember;

    use super::*;

    fn survey(survivors: usize) -> Survey {
        let node = |number: usize| NodePlace {
            name: format!("cp-{number}"),
            address: String::new(),
            control_plane: true,
            lease: None,
            pin: None,
        };
        Survey { survivors: (0..survivors).map(node).collect(), ..Survey::default() }
    }

    fn database(voters: usize, learners: usize) -> EtcdDatabase {
        let member = |is_learner| DatabaseMember { name: String::new(), peer_urls: Vec::new(), is_learner };
        let members = (0..voters).map(|_| member(false)).chain((0..learners).map(|_| member(true)));
        EtcdDatabase { members: members.collect(), ..EtcdDatabase::default() }
    }

    #[test]
    fn a_majority_of_those_that_were_members_may_recover() {
        assert!(!survey(1).may_recover(&[database(3, 0)], 3));
        assert!(survey(2).may_recover(&[database(3, 0)], 3));
        assert!(!survey(2).may_recover(&[database(5, 0)], 3), "members that left the source count");
        assert!(survey(1).may_recover(&[database(1, 1)], 3), "a learner has no vote");
        assert!(survey(1).may_recover(&[database(1, 0)], 1), "the only one");
        assert!(!survey(2).may_recover(&[database(4, 0)], 3), "a half is no majority");
        assert!(!survey(1).may_recover(&[database(0, 1)], 3), "a list without voters says nothing");
        assert!(!survey(1).may_recover(&[], 3) && survey(2).may_recover(&[], 3));
        assert!(!survey(1).may_recover(&[database(1, 0), database(3, 0)], 3), "an old list is not believed");
    }
}
