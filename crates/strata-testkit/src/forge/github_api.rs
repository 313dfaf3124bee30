//! What GitHub and Gitea answer alike: below a repository, comments, statuses that are posted, and issues.

use serde_json::{Value, json};

use super::world::{Call, Pull, Reply, World, time};

/// How a forge writes what its answers are made of.
pub(super) struct Words {
    pub(super) user: fn(&World, &str) -> Value,
    pub(super) pull: fn(&World, &Pull) -> Value,
    /// The key of a status that is listed.
    pub(super) state: &'static str,
    /// The parameter by which issues are asked for that somebody opened.
    pub(super) creator: &'static str,
    /// How many characters a status may say.
    pub(super) longest: usize,
}

/// The answer to a request for `rest` of the repository.
pub(super) fn answer(world: &mut World, call: &Call, rest: &[&str], words: &Words) -> Reply {
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    match (call.method.as_str(), rest) {
        ("GET", ["pulls", of]) => {
            one(world.pulls.iter().find(|pull| pull.number == number(of)).map(|one| (words.pull)(world, one)))
        }
        ("GET", ["issues", of, "comments"]) => {
            let found = world.pulls.iter().find(|pull| pull.number == number(of)).unwrap();
            let row = |one: &super::world::Comment| json!({"id": one.id, "user": (words.user)(world, &one.by), "body": one.text});
            Reply::ok(found.comments.iter().map(row).collect())
        }
        ("POST", ["issues", of, "comments"]) => {
            let id = world.comment(number(of), &call.who, &call.text("body"));
            Reply::made(json!({"id": id}))
        }
        ("PATCH", ["issues", "comments", id]) => {
            let found = world.edit_comment(number(id), &call.text("body"));
            one(found.then(|| json!({"id": number(id)})))
        }
        ("POST", ["statuses", sha]) => {
            let description = call.text("description");
            if description.chars().count() > words.longest {
                let told = format!("description is too long (maximum is {} characters)", words.longest);
                return Reply::error(422, &told);
            }
            world.post_status(sha, &call.who, &call.text("context"), &call.text("state"), &description);
            Reply::made(json!({"state": call.text("state")}))
        }
        ("GET", ["issues"]) => {
            let by = call.query.get(words.creator);
            let own = world.issues.iter().filter(|one| one.is_open && Some(&one.by) == by);
            let row = |one: &super::world::Issue| json!({"number": one.number, "user": (words.user)(world, &one.by), "title": one.title, "body": one.text});
            Reply::ok(own.map(row).collect())
        }
        ("POST", ["issues"]) => {
            let number = world.open_issue(&call.who, &call.text("title"), &call.text("body"));
            Reply::made(json!({"number": number}))
        }
        ("PATCH", ["issues", of]) => {
            let (title, text) = (call.text("title"), call.text("body"));
            let found = world.edit_issue(number(of), &title, &text, call.text("state") == "closed");
            if found { Reply::made(json!({"number": number(of)})) } else { Reply::missing() }
        }
        _ => Reply::missing(),
    }
}

/// One thing, or the answer that there is none.
pub(super) fn one(found: Option<Value>) -> Reply {
    found.map_or_else(Reply::missing, Reply::ok)
}

/// The statuses of a commit, the newest first.
pub(super) fn statuses(world: &World, sha: &str, words: &Words) -> Reply {
    let own = world.statuses.iter().rev().filter(|status| status.commit == sha);
    let row = |one: &super::world::Status| {
        json!({"id": one.id, words.state: one.state, "context": one.context, "description": one.description,
            "created_at": time(one.at), "creator": (words.user)(world, &one.by)})
    };
    Reply::ok(own.map(row).collect())
}

/// What both say of a request; how each says that it is merged comes on top.
pub(super) fn pull(pull: &Pull, user: Value) -> Value {
    let owner = if pull.is_fork { pull.author.as_str() } else { "ops" };
    json!({
        "number": pull.number,
        "state": if pull.is_open { "open" } else { "closed" },
        "user": user,
        "head": {"sha": pull.head(), "ref": "request", "repo": {"full_name": format!("{owner}/infra")}},
        "base": {"sha": "0", "ref": "main", "repo": {"full_name": "ops/infra"}},
    })
}
