//! Gitea, and Forgejo, whose API is the same.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;

use crate::api::{Api, encoded};
use crate::github_api::{Dialect, GitHubApi, Pull, Repository, StatusRow, User};
use crate::{Approval, ChangeRequest, ForgeError, Kind};

pub(crate) struct Gitea;

#[derive(Deserialize)]
struct Review {
    user: Option<User>,
    state: String,
    commit_id: String,
    /// Something was pushed since.
    stale: bool,
    /// Its author may approve here.
    official: bool,
    dismissed: bool,
    submitted_at: Timestamp,
}

impl Gitea {
    /// A repository there.
    pub(crate) fn open(api: Api, repository: &str) -> GitHubApi<Self> {
        GitHubApi { repository: Repository::new(api, "/api/v1/repos", repository), dialect: Self }
    }
}

#[async_trait]
impl Dialect for Gitea {
    const KIND: Kind = Kind::Gitea;

    async fn me(&self, repository: &Repository) -> Result<String, ForgeError> {
        Ok(repository.api.get::<User>("/api/v1/user").await?.login)
    }

    /// It finds the merged one by itself; of open ones it has nothing but the listing.
    async fn pulls_with(&self, repository: &Repository, commit: &str) -> Result<Vec<Pull>, ForgeError> {
        let merged = repository.path(&format!("/commits/{}/pull", encoded(commit)));
        let merged: Option<Pull> = repository.api.find(&merged).await?;
        let open: Vec<Pull> = repository.api.list(&repository.path("/pulls"), "state=open").await?;
        Ok(merged.into_iter().chain(open).collect())
    }

    fn statuses_of(&self, commit: &str) -> String {
        format!("/statuses/{}", encoded(commit))
    }

    fn sort(&self, statuses: &mut [StatusRow]) {
        statuses.sort_by_key(|row| row.id);
    }

    async fn approvals(
        &self,
        repository: &Repository,
        request: &ChangeRequest,
    ) -> Result<Vec<Approval>, ForgeError> {
        let path = repository.path(&format!("/pulls/{}/reviews", request.number));
        let reviews: Vec<Review> = repository.api.list(&path, "").await?;
        let mut last: BTreeMap<String, Review> = BTreeMap::new();
        for review in reviews {
            if let ("APPROVED" | "REQUEST_CHANGES", Some(user)) = (review.state.as_str(), &review.user) {
                let is_newer =
                    last.get(&user.login).is_none_or(|other| other.submitted_at <= review.submitted_at);
                if is_newer {
                    last.insert(user.login.clone(), review);
                }
            }
        }
        // A stale one is of another head, by which it is told apart.
        let is_good = |review: &Review| {
            review.state == "APPROVED"
                && !review.dismissed
                && !(review.stale && review.commit_id == request.head)
        };
        let good = last.into_iter().filter(|(_, review)| is_good(review));
        let approval = |(by, review): (String, Review)| Approval {
            by,
            is_bot: review.user.is_none_or(|user| user.id < 0),
            may_write: review.official,
            head: review.commit_id,
            at: review.submitted_at,
        };
        Ok(good.map(approval).collect())
    }

    fn issues_by(&self, login: &str) -> String {
        format!("state=open&type=issues&created_by={login}")
    }
}
