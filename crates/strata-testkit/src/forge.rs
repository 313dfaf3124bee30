//! A forge on the loopback: GitHub, GitLab or Gitea, as far as a review asks it.
//!
//! Written from the forges' published API documentation (docs.github.com/rest, docs.gitlab.com/api, Gitea's OpenAPI document), not from the client: it
//! shares no type with it. Where a test and a real forge disagree, the forge is right; `tests/interop/run gitea` asks a real one.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::oneshot;

mod gitea;
mod github;
mod github_api;
mod gitlab;
mod world;

use world::{Call, Reply, World};

/// Whose API it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    GitHub,
    GitLab,
    Gitea,
}

impl Dialect {
    pub const ALL: [Self; 3] = [Self::GitHub, Self::GitLab, Self::Gitea];
}

/// What goes wrong with the next request.
#[derive(Debug, Clone)]
pub struct Fault {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    /// The request is done all the same.
    pub is_done: bool,
}

/// A forge with one repository, `ops/infra`.
pub struct FakeForge {
    url: String,
    world: Arc<Mutex<World>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeForge {
    /// With nobody in it and nothing requested.
    pub fn start(dialect: Dialect) -> Self {
        let world = Arc::new(Mutex::new(World::new(dialect)));
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::clone(&world);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let app = Router::new().fallback(answer).with_state(served);
                tokio::select! {
                    served = async { axum::serve(listener, app).await } => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { url, world, stop: Some(stop), thread: Some(thread) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Somebody, and their token.
    pub fn user(&self, name: &str, may_write: bool, is_bot: bool) -> String {
        self.world.lock().unwrap().user(name, may_write, is_bot)
    }

    /// A request of a branch of the same repository.
    pub fn open(&self, author: &str, head: &str) -> u64 {
        self.world.lock().unwrap().open(author, head, false)
    }

    /// A request of somebody's fork.
    pub fn open_fork(&self, author: &str, head: &str) -> u64 {
        self.world.lock().unwrap().open(author, head, true)
    }

    pub fn push(&self, number: u64, head: &str) {
        self.world.lock().unwrap().push(number, head);
    }

    pub fn approve(&self, number: u64, who: &str) {
        self.world.lock().unwrap().review(number, who, true);
    }

    /// Asks for changes, where a forge has that.
    pub fn object(&self, number: u64, who: &str) {
        self.world.lock().unwrap().review(number, who, false);
    }

    /// The approval is dismissed, or taken back.
    pub fn withdraw(&self, number: u64, who: &str) {
        self.world.lock().unwrap().withdraw(number, who);
    }

    pub fn merge(&self, number: u64, commit: &str) {
        self.world.lock().unwrap().merge(number, commit);
    }

    pub fn comment(&self, number: u64, who: &str, text: &str) {
        self.world.lock().unwrap().comment(number, who, text);
    }

    /// Somebody who may edits what another one wrote: author and place stay.
    pub fn rewrite(&self, number: u64, place: usize, text: &str) {
        self.world.lock().unwrap().rewrite(number, place, text);
    }

    /// Author and text, the oldest first.
    pub fn comments(&self, number: u64) -> Vec<(String, String)> {
        self.world.lock().unwrap().texts(number)
    }

    pub fn post_status(&self, commit: &str, who: &str, context: &str, description: &str) {
        self.world.lock().unwrap().post_status(commit, who, context, "success", description);
    }

    /// Author, context, state and description, the oldest first.
    pub fn statuses(&self, commit: &str) -> Vec<[String; 4]> {
        self.world.lock().unwrap().posted(commit)
    }

    /// Title, text and whether it is open.
    pub fn issues(&self) -> Vec<(String, String, bool)> {
        self.world.lock().unwrap().issue_texts()
    }

    pub fn issue(&self, who: &str, title: &str, text: &str) {
        self.world.lock().unwrap().open_issue(who, title, text);
    }

    /// The next request, or the one after the faults before.
    pub fn fault(&self, fault: Fault) {
        self.world.lock().unwrap().faults.push_back(fault);
    }

    /// After so many more requests every one is refused; without a number none any more.
    pub fn break_after(&self, requests: Option<usize>) {
        let mut world = self.world.lock().unwrap();
        world.broken_from = requests.map(|requests| world.log.len() + requests);
    }

    /// What was asked: `GET /repos/ops/infra/pulls/1`.
    pub fn log(&self) -> Vec<String> {
        self.world.lock().unwrap().log.clone()
    }
}

impl Drop for FakeForge {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn answer(State(world): State<Arc<Mutex<World>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 22).await.unwrap();
    let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    let mut world = world.lock().unwrap();
    world.log.push(format!("{} {}", head.method, head.uri));
    let query = head.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let mut call = Call {
        method: head.method.to_string(),
        path: head.uri.path().split('/').skip(1).map(decoded).collect(),
        query: query.map(|(name, value)| (name.to_owned(), decoded(value))).collect(),
        body,
        who: String::new(),
    };
    let is_broken = world.broken_from.is_some_and(|from| world.log.len() > from);
    let broken = || Fault { status: 500, headers: Vec::new(), is_done: false };
    let fault = if is_broken { Some(broken()) } else { world.faults.pop_front() };
    let reply = match &fault {
        Some(fault) if !fault.is_done => Reply::error(fault.status, "not now"),
        _ => match world.signed_in(&head.headers) {
            Some(who) => {
                call.who = who;
                match world.dialect {
                    Dialect::GitHub => github::answer(&mut world, &call),
                    Dialect::GitLab => gitlab::answer(&mut world, &call),
                    Dialect::Gitea => gitea::answer(&mut world, &call),
                }
            }
            None => Reply::error(401, "Bad credentials"),
        },
    };
    let (rows, headers) = world.paged(&call, head.uri.path(), reply.body);
    let status = fault.as_ref().map_or(reply.status, |fault| fault.status);
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    for (name, value) in fault.iter().flat_map(|fault| &fault.headers) {
        response = response.header(*name, value);
    }
    let body = if rows.is_null() { Body::empty() } else { Body::from(rows.to_string()) };
    response.body(body).unwrap()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        let hex = (*first == b'%')
            .then(|| u8::from_str_radix(std::str::from_utf8(&more[..2]).unwrap(), 16).unwrap());
        bytes.push(hex.unwrap_or(*first));
        rest = if hex.is_some() { &more[2..] } else { more };
    }
    String::from_utf8(bytes).unwrap()
}
