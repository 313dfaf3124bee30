//! Where states outlive the runner: `strata serve` and a small GitLab inside of the test, and servers that are there already, which
//! variables name: STRATA_TEST_S3_ENDPOINT (with STRATA_TEST_S3_BUCKET and the usual AWS_… variables, and
//! STRATA_TEST_DYNAMODB_ENDPOINT with STRATA_TEST_DYNAMODB_TABLE for the locks) and STRATA_TEST_POSTGRES.

use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::gitlab_server::{GitLabServer, USER};
use crate::state_server::{StateServer, TOKEN};
use crate::world::{BINARY, STACK};

pub(crate) enum Place {
    Serve(StateServer),
    /// A server that answers as GitLab does, at this address for as long as the runtime lives.
    GitLab {
        url: String,
        _runtime: tokio::runtime::Runtime,
    },
    /// A server that is there already, as settings of strata.yaml without the braces.
    Elsewhere(String),
}

impl Place {
    pub(crate) fn serve() -> Self {
        Self::Serve(StateServer::start())
    }

    pub(crate) fn gitlab() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = runtime.block_on(GitLabServer::default().start());
        Self::GitLab { url, _runtime: runtime }
    }

    pub(crate) fn s3(name: &str) -> Self {
        let variable = |name| std::env::var(name).ok();
        let endpoint = variable("STRATA_TEST_S3_ENDPOINT").expect("STRATA_TEST_S3_ENDPOINT is set");
        let bucket = variable("STRATA_TEST_S3_BUCKET").unwrap_or_else(|| "strata".into());
        let table = variable("STRATA_TEST_DYNAMODB_ENDPOINT").zip(variable("STRATA_TEST_DYNAMODB_TABLE"));
        let table = table.map_or_else(String::new, |(endpoint, name)| {
            format!(", lockTable: {{name: {name}, endpoint: \"{endpoint}\"}}")
        });
        let prefix = unique(name);
        Self::Elsewhere(format!(
            "backend: s3, endpoint: \"{endpoint}\", bucket: {bucket}, prefix: {prefix}{table}"
        ))
    }

    pub(crate) fn postgres(name: &str) -> Self {
        let connection = std::env::var("STRATA_TEST_POSTGRES").expect("STRATA_TEST_POSTGRES is set");
        let schema = unique(name);
        Self::Elsewhere(format!("backend: postgres, connection: \"{connection}\", schema: {schema}"))
    }

    pub(crate) fn settings(&self) -> String {
        match self {
            Self::Serve(server) => server.settings(),
            Self::GitLab { url, .. } => {
                let user = USER.0;
                format!(
                    "{{backend: http, url: \"{url}\", username: {user}, password: {{file: gitlab-token}}}}"
                )
            }
            Self::Elsewhere(settings) => format!("{{{settings}}}"),
        }
    }
}

/// Names that no other run and no other test has.
fn unique(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{name}_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A fresh checkout of the repository, on a machine that has never seen it.
pub(crate) fn machine(sim: &TestSim, settings: &str) -> Repo {
    let repo = Repo::on(sim);
    let general = repo.read("strata.yaml");
    repo.write("strata.yaml", &format!("{general}state: {settings}\n"));
    repo.write("state-token", TOKEN);
    repo.write("gitlab-token", USER.1);
    repo.write("stacks/web/stack.yaml", STACK);
    repo.write("stacks/web/own.yaml", "#cloud-config\npackages: [postgresql]\n");
    repo
}

pub(crate) fn strata(repo: &Repo) -> Strata {
    strata_as(BINARY, repo)
}

pub(crate) fn strata_as(binary: &str, repo: &Repo) -> Strata {
    let mut strata = Strata::new(binary, repo).env("APP_PASSWORD", "correct-horse-battery");
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        if let Ok(value) = std::env::var(name) {
            strata = strata.env(name, &value);
        }
    }
    strata
}

pub(crate) fn datacenter() -> TestSim {
    TestSim::with(SimOptions { pace: Pace::FAST, ..SimOptions::default() })
}
