//! Gitea's API, version 1, which Forgejo has too.

use serde_json::{Value, json};

use super::github_api::{self, Words, one, statuses};
use super::world::{Call, Pull, Reply, World, time};

const WORDS: Words = Words { user, pull, state: "status", creator: "created_by", longest: usize::MAX };

pub(super) fn answer(world: &mut World, call: &Call) -> Reply {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let method = call.method.as_str();
    let rest = match (method, &path[..]) {
        ("GET", ["api", "v1", "user"]) => return Reply::ok(user(world, &call.who)),
        (_, ["api", "v1", "repos", "ops", "infra", rest @ ..]) => rest,
        _ => return Reply::missing(),
    };
    match (method, rest) {
        ("GET", ["pulls"]) => {
            let listed = world.pulls.iter().filter(|pull| pull.is_open);
            Reply::ok(listed.map(|one| pull(world, one)).collect())
        }
        // The merged one alone.
        ("GET", ["commits", sha, "pull"]) => {
            let merged = world.pulls.iter().find(|pull| pull.merge_commit.as_deref() == Some(*sha));
            one(merged.map(|one| pull(world, one)))
        }
        ("GET", ["statuses", sha]) => statuses(world, sha, &WORDS),
        ("GET", ["pulls", of, "reviews"]) => {
            let found = world.pulls.iter().find(|pull| pull.number.to_string() == *of).unwrap();
            let row = |review: &super::world::Review| {
                json!({"user": user(world, &review.by), "state": if review.approves { "APPROVED" } else { "REQUEST_CHANGES" },
                    "commit_id": review.head, "stale": review.head != found.head(), "dismissed": review.is_withdrawn,
                    "official": world.named(&review.by).may_write, "submitted_at": time(review.at)})
            };
            Reply::ok(found.reviews.iter().map(row).collect())
        }
        _ => github_api::answer(world, call, rest, &WORDS),
    }
}

fn user(world: &World, name: &str) -> Value {
    let user = world.named(name);
    // Users of Gitea's own making have negative numbers.
    let id = i64::try_from(user.id).unwrap();
    json!({"login": user.name, "id": if user.is_bot { -id } else { id }})
}

fn pull(world: &World, pull: &Pull) -> Value {
    let mut row = github_api::pull(pull, user(world, &pull.author));
    row["merged"] = pull.merge_commit.is_some().into();
    row["merge_commit_sha"] = json!(pull.merge_commit);
    row
}
