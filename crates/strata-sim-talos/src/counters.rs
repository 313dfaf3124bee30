//! Counts what must not happen: more than one control plane down at once, a majority lost.

use crate::world::World;

impl World<'_> {
    /// Looks at every etcd cluster and remembers the worst that was seen.
    pub fn keep_count(&mut self) {
        let seen: Vec<(String, usize, usize, bool)> = self
            .talos
            .etcd
            .values()
            .map(|cluster| {
                let voters = cluster.voters().count();
                let down = cluster.voters().filter(|member| !self.etcd_up(cluster, member)).count();
                (cluster.talos.clone(), voters, down, self.has_quorum(cluster))
            })
            .collect();
        for (talos, voters, down, quorum) in seen {
            let counters = self.talos.counters.entry(talos).or_default();
            counters.was_healthy |= voters > 0 && down == 0;
            counters.had_quorum |= quorum;
            if counters.was_healthy {
                counters.most_down = counters.most_down.max(down as u64);
            }
            counters.quorum_lost |= counters.had_quorum && voters > 1 && !quorum;
        }
    }
}
