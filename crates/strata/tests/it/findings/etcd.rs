//! Etcd that must never be bootstrapped twice, wiped while it is healthy, or restored from another cluster's snapshot.
