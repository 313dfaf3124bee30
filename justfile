# The commands of a working day. `just` lists them.

default:
    @just --list --unsorted

# Formatting, clippy and tests, as CI runs them
check:
    bash .ci/run

# The book of the crates: each one's first page says what it is for, and shows its use
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --open

# The tests of one crate, and of these those with a name: `just test strata-engine planner`
test crate *filter:
    cargo test -p {{crate}} -- {{filter}}

# The integration tests of one crate, built with the features of the whole workspace, as `cargo test --workspace` left them: `just it strata layer0`
it crate *options:
    tests/it {{crate}} {{options}}

# Advisories, licences and sources of every dependency (needs cargo-deny)
audit:
    cargo deny --all-features check

# The documentation as a site, in target/book (needs mdbook)
book:
    mdbook build

# The whole story on the simulated datacenter
demo:
    cargo run --release -- demo

# Kills the process after and before the answer of every single request of an apply
kill-test:
    cargo test --release -p strata --test it -- --ignored --nocapture kill_all

# Refuses, delays and loses the answer of every single request of an apply; also with another source afterwards, with half-true answers,
# and with somebody else acting after each read
fault-test:
    cargo test --release -p strata --test it -- --ignored --nocapture fault_all

# The same over cold boots of clusters, Talos and Kubernetes calls included. `STRATA_PART=2/4` runs the second quarter, for several processes
cluster-kill-test:
    cargo test --release -p strata --test it -- --ignored --nocapture kill_cold

cluster-fault-test:
    cargo test --release -p strata --test it -- --ignored --nocapture fault_cold

# Random histories of a cluster, with kills, alarms, dead nodes, lost states and a second environment: `STRATA_SEED=7 STRATA_COUNT=100 just cluster-histories`
cluster-histories:
    cargo test --release -p strata --test it -- --ignored --nocapture histories_from_a_seed

# The tests of what was proven wrong once, on the binary of another commit: `just findings-on a281163`. Those that fail show what that commit lacks
findings-on commit:
    git worktree add --force --detach target/at-{{commit}} {{commit}}
    cargo build --manifest-path target/at-{{commit}}/Cargo.toml --target-dir target/of-{{commit}} -p strata
    STRATA_TEST_BINARY="$PWD/target/of-{{commit}}/debug/strata" cargo test -p strata --test it -- findings::

# Kills the apply of an approved plan at every request
review-kill-test:
    cargo test --release -p strata --test it -- --ignored --nocapture kill_all_requests_of_an_approved_apply

# Random stories of requests: pushes, rebases, merges, drift, changed and swapped plans, old approvals, two runners, kills: `STRATA_SEED=7 STRATA_COUNT=100 just review-stories`
review-stories:
    cargo test --release -p strata --test it -- --ignored --nocapture review_stories_from_a_seed

# Adopts a datacenter that people made by hand, killed at each request; then every verb on ten of its guests, killed at each request
adopt-kill-test:
    cargo test --release -p strata --test it -- --ignored --nocapture adopt_kill

# Random lives of guests: renamed, moved, adopted, promoted, replaced, changed by others, with refusals and kills: `STRATA_SEED=7 STRATA_COUNT=100 just lives`
lives:
    cargo test --release -p strata --test it -- --ignored --nocapture lives_from_a_seed

# Requests, time, processor time and memory of a plan of 10 to 10,000 guests; then the state server
bench: && bench-server
    cargo build --release
    cargo test --release -p strata --test it -- --ignored --nocapture bench_
    cargo test --release -p strata-review --test it -- --ignored --nocapture bench_

# How long the OpenTofu projects of 100 clusters of 10 nodes take to render
bench-render:
    cargo test --release -p strata-tofu --test it -- --ignored --nocapture bench_render

# The same beside OpenTofu with bpg/proxmox, for 10 to 1,000 guests on the same simulator
bench-peers:
    bash tests/interop/run bench-peers

# Lock, read, write and unlock of 1 to 128 clients with states of 10 kB to 20 MB, beside the rate of the disk's syncs
bench-server:
    cargo test --release -p strata-server --test it -- --ignored --nocapture bench_server

# Kills the state server at random while many clients work on it
linear-test:
    cargo test --release -p strata-server --test it -- --ignored --nocapture linear_all

# OpenTofu with bpg/proxmox on the simulator; the real sops, age, ansible-vault, talosctl, kubectl, databases and buckets against ours. Names of parts run these alone
interop *parts:
    bash tests/interop/run {{parts}}

# The stores on a real server: `just stores postgres`, `minio` or `moto`; `postgres-kills` and `minio-kills` kill a runner at each request
stores server:
    server={{server}}; case $server in *-kills) export STRATA_STORES=kills ;; esac; bash tests/interop/run store-${server%-kills}

# What an import of a folder comes to, for whoever writes a fixture
show-import folder:
    STRATA_SHOW={{folder}} cargo test -p strata-import --test it -- --ignored --nocapture findings::show

# The simulator beside recorded answers of a real server, which STRATA_TEST_RECORDINGS names or which stand beside the repository
replay:
    cargo test -p strata-sim --test it -- --ignored replay::

# The simulator's parameter tables beside the published schema of Proxmox' API, which STRATA_TEST_SCHEMA names or which stands beside the repository
schema:
    cargo test -p strata-sim-proxmox --test it -- --ignored schema::

# The table of a call, written from that schema, to paste into an endpoint: `just sim-table POST '/nodes/{node}/qemu'`
sim-table method path:
    STRATA_SHOW='{{method}} {{path}}' cargo test -p strata-sim-proxmox --test it -- --ignored --nocapture write::write

# Random disasters of etcd: resets, lost data, alarms, lost states: `STRATA_SEED=7 STRATA_COUNT=100 just etcd-disasters`
etcd-disasters:
    cargo test --release -p strata --test it -- --ignored --nocapture disasters_from_a_seed

# Changes one decision at a time and runs the tests of its crate (needs cargo-mutants). All of it takes a day: `just mutants -f crates/strata-storage/src/rules.rs`,
# `just mutants --in-diff my.diff` or `just mutants --shard 1/20` do a part
mutants *options:
    cargo mutants {{options}}
