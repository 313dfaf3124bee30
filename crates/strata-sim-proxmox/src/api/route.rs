//! One endpoint: verb, path template, permission, parameters and the function that answers.

use std::collections::HashMap;

use strata_sim_core::Verb;

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::call::Call;
use super::check::check_args;
use super::param::Param;
use super::permission::Perm;

pub type Reply = Result<Answer, Refusal>;
pub type Handler = fn(&mut Call<'_>) -> Reply;

/// An endpoint. `{name}` in the template is a parameter of one segment, `{name*}` takes the rest of the path.
#[derive(Debug)]
pub struct Route {
    pub verb: Verb,
    pub template: &'static str,
    pub perm: Perm,
    pub params: Vec<Param>,
    names: HashMap<String, usize>,
    pub run: Handler,
    /// Refused to API tokens.
    pub ticket_only: bool,
    /// Answered by the node in the path, which must therefore exist before anything is checked.
    pub on_node: bool,
}

fn route(verb: Verb, template: &'static str, perm: Perm, params: Vec<Param>, run: Handler) -> Route {
    let names = params.iter().enumerate().map(|(i, p)| (p.name.to_string(), i)).collect();
    let on_node = template.starts_with("/nodes/{node}/");
    Route { verb, template, perm, params, names, run, ticket_only: false, on_node }
}

pub fn get(template: &'static str, perm: Perm, params: Vec<Param>, run: Handler) -> Route {
    route(Verb::Get, template, perm, params, run)
}

pub fn post(template: &'static str, perm: Perm, params: Vec<Param>, run: Handler) -> Route {
    route(Verb::Post, template, perm, params, run)
}

pub fn put(template: &'static str, perm: Perm, params: Vec<Param>, run: Handler) -> Route {
    route(Verb::Put, template, perm, params, run)
}

pub fn delete(template: &'static str, perm: Perm, params: Vec<Param>, run: Handler) -> Route {
    route(Verb::Delete, template, perm, params, run)
}

impl Route {
    #[must_use]
    pub fn ticket_only(mut self) -> Self {
        self.ticket_only = true;
        self
    }

    /// Answered by whichever node was asked, although the path names one.
    #[must_use]
    pub fn anywhere(mut self) -> Self {
        self.on_node = false;
        self
    }

    /// All violations of the parameter table at once.
    pub fn validate(&self, args: &mut Args) -> Result<(), Refusal> {
        let errors = check_args(&self.params, |name| self.names.get(name).copied(), args);
        if errors.is_empty() { Ok(()) } else { Err(super::answer::wrong_many(errors)) }
    }
}
