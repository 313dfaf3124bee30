//! Refresh, plan, apply, destroy, drift, journal and recovery, over the traits Provider and Store.
