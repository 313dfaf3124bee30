//! Finds the route of a path. Literal segments win over parameters; empty segments do not count.

use std::collections::HashMap;

use strata_sim_core::Verb;

use super::route::Route;

#[derive(Debug, Default)]
struct RouteNode {
    literal: HashMap<&'static str, RouteNode>,
    /// The parameter that any other segment fills.
    param: Option<(&'static str, Box<RouteNode>)>,
    /// The parameter that takes everything from here on.
    rest: Option<(&'static str, HashMap<Verb, usize>)>,
    routes: HashMap<Verb, usize>,
}

/// All routes of the API.
#[derive(Debug)]
pub struct Router {
    routes: Vec<Route>,
    root: RouteNode,
}

/// A route and the values that the path gave to its parameters.
#[derive(Debug)]
pub struct MatchedRoute<'r> {
    pub route: &'r Route,
    pub path_args: Vec<(&'static str, String)>,
}

impl Router {
    pub fn new(routes: Vec<Route>) -> Self {
        let mut root = RouteNode::default();
        for (index, route) in routes.iter().enumerate() {
            let mut place = &mut root;
            let mut taken = false;
            for segment in route.template.split('/').filter(|s| !s.is_empty()) {
                let name = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
                match name {
                    Some(name) if name.ends_with('*') => {
                        let rest =
                            place.rest.get_or_insert_with(|| (name.trim_end_matches('*'), HashMap::new()));
                        rest.1.insert(route.verb, index);
                        taken = true;
                        break;
                    }
                    Some(name) => place = &mut place.param.get_or_insert_with(|| (name, Box::default())).1,
                    None => place = place.literal.entry(segment).or_default(),
                }
            }
            if !taken {
                let before = place.routes.insert(route.verb, index);
                debug_assert!(before.is_none(), "two routes for {} {}", route.verb.name(), route.template);
            }
        }
        Self { routes, root }
    }

    /// Every route.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    pub fn find(&self, verb: Verb, path: &str) -> Option<MatchedRoute<'_>> {
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        let mut place = &self.root;
        let mut path_args = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            if let Some(next) = place.literal.get(segment) {
                place = next;
            } else if let Some((name, next)) =
                place.param.as_ref().filter(|_| !segment.contains(char::is_whitespace))
            {
                path_args.push((*name, (*segment).to_owned()));
                place = next;
            } else if let Some((name, routes)) = &place.rest {
                path_args.push((*name, segments[at..].join("/")));
                return Some(MatchedRoute { route: &self.routes[*routes.get(&verb)?], path_args });
            } else {
                return None;
            }
        }
        Some(MatchedRoute { route: &self.routes[*place.routes.get(&verb)?], path_args })
    }
}
