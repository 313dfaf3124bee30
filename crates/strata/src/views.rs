//! What is printed while something happens. What a plan, drift or a graph looks like is in `strata-views`.

pub(crate) mod planned;
pub(crate) mod session_events;
pub(crate) mod tofu;

pub(crate) use strata_views::{
    columns, counts, drift, driven, explained, graph, health, plan, recovered, saved, text,
};
