//! Alarms of etcd: while one is raised no node is disturbed, neither in a plan nor in an apply that was planned before it.

use std::collections::BTreeSet;

use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_state::Action;
use strata_talos_client::{EtcdAlarm, EtcdAlarmKind};

use crate::cluster::Cluster;
use crate::error::guard;
use crate::kinds;

/// An alarm, and the control plane whose member raised it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) kind: EtcdAlarmKind,
    /// None if the member is not known any more.
    pub(crate) node: Option<String>,
}

impl Alarm {
    /// What it means.
    pub(crate) fn meaning(&self) -> String {
        let by = self.node.as_ref().map(|node| format!(" (alarm of `{node}`)")).unwrap_or_default();
        match self.kind {
            EtcdAlarmKind::NoSpace => format!("its database is full, it takes no more writes{by}"),
            EtcdAlarmKind::Corrupt => format!("its members do not agree about their data{by}"),
            EtcdAlarmKind::Other(number) => {
                format!("it raised an alarm that is not known here, number {number}{by}")
            }
        }
    }

    fn way_out(&self, stack: &str) -> String {
        match (self.kind, &self.node) {
            (EtcdAlarmKind::NoSpace, _) => {
                "free space: `talosctl etcd defrag` on one control plane after the other, then `talosctl etcd alarm disarm`; then `strata apply`".to_owned()
            }
            (EtcdAlarmKind::Corrupt, Some(node)) => format!(
                "`strata talos snapshot {stack}` saves etcd; `strata talos reset {stack} {node}` removes the member that differs, `talosctl etcd alarm disarm` ends the alarm, and `strata apply` lets it join again"
            ),
            _ => format!(
                "`strata talos snapshot {stack}` saves etcd; find out what is wrong, then `talosctl etcd alarm disarm` ends the alarm"
            ),
        }
    }
}

impl Cluster {
    /// Every alarm that etcd has raised. Whoever cannot be asked is no proof that there is none.
    pub(crate) async fn alarms(&self) -> Result<Vec<Alarm>, ProviderError> {
        let looks = self.control_planes().into_iter().map(|node| async move {
            let client = self.talos(&node.address)?;
            Ok::<_, ProviderError>((client.etcd_alarms().await, client.etcd_members().await))
        });
        let mut raised: BTreeSet<(u64, i32)> = BTreeSet::new();
        let (mut members, mut asked, mut why) = (Vec::new(), false, String::new());
        for (alarms, list) in futures::future::try_join_all(looks).await? {
            match alarms {
                Ok(alarms) => {
                    asked = true;
                    raised.extend(
                        alarms.iter().map(|EtcdAlarm { member_id, kind }| (*member_id, number(*kind))),
                    );
                }
                Err(error) => why = error.to_string(),
            }
            members.extend(list.unwrap_or_default());
        }
        if !asked {
            let message =
                format!("whether etcd has raised an alarm is not known, as no control plane answers: {why}");
            return Err(ProviderError::new(ErrorClass::Unreachable, message)
                .hint("`strata talos health` shows every node"));
        }
        let named =
            |id: u64| members.iter().find(|member| member.id == id).map(|member| member.hostname.clone());
        Ok(raised.into_iter().map(|(id, kind)| Alarm { kind: kind_of(kind), node: named(id) }).collect())
    }

    /// Refuses to disturb a node while an alarm is raised. One that leaves may be the one whose alarm it is: that is the way out.
    pub(crate) async fn no_alarm(&self, name: &str, leaves: bool) -> Result<(), ProviderError> {
        let alarms = self.alarms().await?;
        let own = |alarm: &&Alarm| {
            leaves && alarm.kind == EtcdAlarmKind::Corrupt && alarm.node.as_deref() == Some(name)
        };
        match alarms.iter().find(|alarm| !own(alarm)) {
            Some(alarm) => Err(self.alarmed(name, alarm)),
            None => Ok(()),
        }
    }

    fn alarmed(&self, name: &str, alarm: &Alarm) -> ProviderError {
        let message = format!("`{name}` is not disturbed: etcd has raised an alarm: {}", alarm.meaning());
        guard(message, alarm.way_out(&self.options.stack))
    }
}

fn number(kind: EtcdAlarmKind) -> i32 {
    match kind {
        EtcdAlarmKind::NoSpace => 1,
        EtcdAlarmKind::Corrupt => 2,
        EtcdAlarmKind::Other(number) => number,
    }
}

fn kind_of(number: i32) -> EtcdAlarmKind {
    match number {
        1 => EtcdAlarmKind::NoSpace,
        2 => EtcdAlarmKind::Corrupt,
        other => EtcdAlarmKind::Other(other),
    }
}

/// Whether an operation is one that an alarm stops, and whether its node leaves by it.
pub(crate) fn disturbs(operation: &Operation) -> Option<bool> {
    match (operation.address.kind(), operation.action) {
        (kinds::MACHINE, Action::Delete) => Some(true),
        (kinds::MACHINE, Action::Create) | (kinds::KUBERNETES, Action::Update) => Some(false),
        (kinds::MACHINE, Action::Update) if operation.restart || operation.touches("version") => Some(false),
        (kinds::VM, Action::Update) if operation.restart || operation.touches("power") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
