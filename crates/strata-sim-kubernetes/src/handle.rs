//! From a request to its answer: who may ask, what is asked for, which verb carries it out.

use serde_json::{Value, json};

use super::cluster::{Cluster, Moment};
use super::failure::{Failure, Outcome, not_allowed, not_found, unauthorized, unavailable, unknown_path};
use super::object::{list, text};
use super::request::{Request, ResourcePath, User};
use super::resource::Resource;
use super::watch::Watch;
use super::{delete, discovery, evict, read, scale, table, write};

/// What is answered.
#[derive(Debug)]
pub enum Reply {
    Object(u16, Value),
    Text(u16, String),
    Watch(Box<Watch>),
}

impl Reply {
    pub fn from_outcome(outcome: Outcome<Self>) -> Self {
        outcome.unwrap_or_else(|failure| Self::Object(failure.code, failure.to_json()))
    }
}

/// A request for one type, with all that its verb needs.
pub struct Ask<'a> {
    pub request: &'a Request,
    pub place: &'a ResourcePath,
    pub resource: Resource,
    /// Empty for all of them, and for types without.
    pub namespace: String,
    pub moment: Moment,
}

impl Ask<'_> {
    pub fn name(&self) -> &str {
        self.place.name.as_deref().unwrap_or_default()
    }

    pub fn key(&self) -> String {
        self.resource.key(&self.namespace, self.name())
    }

    /// The object that is asked for.
    pub fn object<'c>(&self, cluster: &'c Cluster) -> Outcome<&'c Value> {
        cluster.store.get(&self.key()).ok_or_else(|| not_found(&self.resource, self.name()))
    }

    /// An object as it is shown under the version that was asked for.
    pub fn shown(&self, mut object: Value) -> Value {
        if let Value::Object(map) = &mut object {
            map.insert("apiVersion".to_owned(), json!(self.resource.api_version()));
        }
        object
    }
}

pub fn handle(cluster: &mut Cluster, request: &Request, moment: Moment) -> Reply {
    Reply::from_outcome(answer(cluster, request, moment))
}

fn answer(cluster: &mut Cluster, request: &Request, moment: Moment) -> Outcome<Reply> {
    let user = request.user.as_ref().ok_or_else(unauthorized)?;
    if let Some(reply) = discovery::answer(cluster, request) {
        return reply;
    }
    let place = ResourcePath::parse(&request.path).ok_or_else(unknown_path)?;
    let found = cluster.resource(&place.group, &place.version, &place.plural);
    let resource = found.ok_or_else(unknown_path)?;
    let verb = verb(request, &place);
    authorize(user, &resource, &place, verb)?;
    if !cluster.facts.api_up {
        return Err(unavailable());
    }
    let namespace = place.namespace_for(&resource)?.to_owned();
    if let Some(sub) = &place.sub
        && !resource.subresources.contains(sub)
    {
        return Err(unknown_path());
    }
    let ask = Ask { request, place: &place, resource, namespace, moment };
    if ask.resource.is_review() {
        return if verb == "create" { review(user, request) } else { Err(not_allowed()) };
    }
    match (verb, place.sub.as_deref()) {
        ("create", Some("eviction")) => evict::evict(cluster, &ask),
        (verb, Some("scale")) => scale::answer(cluster, &ask, verb),
        ("get", None) if request.wants_table() => {
            let object = ask.shown(ask.object(cluster)?.clone());
            let columns = table::columns(cluster, &ask.resource);
            Ok(Reply::Object(200, table::single(&columns, object, request.include(), &ask.moment)))
        }
        ("get", Some("log")) => logs(cluster, &ask),
        ("get", _) => ask.object(cluster).map(|object| Reply::Object(200, ask.shown(object.clone()))),
        ("list", _) => read::list(cluster, &ask),
        ("watch", _) => read::watch(cluster, &ask),
        ("create", None) if ask.place.name.is_none() => write::create(cluster, &ask),
        ("update", _) => write::update(cluster, &ask),
        ("patch", _) => write::patch(cluster, &ask),
        ("delete", None) => delete::delete(cluster, &ask),
        ("deletecollection", None) => delete::delete_collection(cluster, &ask),
        _ => Err(not_allowed()),
    }
}

/// The verb as authorization names it.
fn verb(request: &Request, place: &ResourcePath) -> &'static str {
    match (request.method.as_str(), place.name.is_some()) {
        ("GET" | "HEAD", _) if request.query.flag("watch") => "watch",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", true) => "update",
        ("PATCH", true) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "unknown",
    }
}

/// Masters may do everything; nobody else anything but to look around.
fn authorize(user: &User, resource: &Resource, place: &ResourcePath, verb: &str) -> Outcome<()> {
    if user.groups.iter().any(|group| group == "system:masters") || resource.is_review() {
        return Ok(());
    }
    let scope = match &place.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let what = match &place.name {
        Some(name) => format!("{} \"{name}\"", resource.qualified()),
        None => resource.qualified(),
    };
    let message = format!(
        "{what} is forbidden: User {:?} cannot {verb} resource {:?} in API group {:?} {scope}",
        user.name, resource.plural, resource.group
    );
    let mut failure = Failure::new(403, "Forbidden", message);
    failure.details = Some(json!({ "name": place.name, "group": resource.group, "kind": resource.plural }));
    Err(failure)
}

/// What a container wrote, which is not much.
fn logs(cluster: &Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let pod = ask.object(cluster)?;
    let containers = list(pod, "/spec/containers");
    let wanted = ask.request.query.get("container");
    let found = containers.iter().find(|c| wanted.is_none_or(|wanted| c["name"] == wanted));
    let Some(container) = found else {
        let message = format!("container {} is not valid for pod {}", wanted.unwrap_or_default(), ask.name());
        return Err(super::failure::bad_request(message));
    };
    let statuses = list(pod, "/status/containerStatuses");
    let since =
        statuses.iter().find(|s| s["name"] == container["name"]).map(|s| text(s, "/state/running/startedAt"));
    match since.filter(|since| !since.is_empty()) {
        Some(since) => Ok(Reply::Text(200, format!("{since} {} started\n", text(container, "/image")))),
        None => {
            let (name, container) = (ask.name(), text(container, "/name"));
            let message =
                format!("container {container:?} in pod {name:?} is waiting to start: ContainerCreating");
            Err(super::failure::bad_request(message))
        }
    }
}

/// What the client may do, or who it is.
fn review(user: &User, request: &Request) -> Outcome<Reply> {
    let mut object = request.object("application/json, application/yaml")?;
    object["status"] = if object["kind"] == "SelfSubjectReview" {
        json!({ "userInfo": { "username": user.name, "groups": user.groups } })
    } else {
        json!({ "allowed": user.groups.iter().any(|group| group == "system:masters") })
    };
    Ok(Reply::Object(201, object))
}
