//! The tables.

/// Made once, whoever comes first; changes to come are further steps after this one.
pub(super) const TABLES: &str = "
create table if not exists states (
    key text primary key,
    serial bigint not null,
    document bytea not null,
    written timestamptz not null default clock_timestamp()
);
create table if not exists versions (
    key text not null,
    serial bigint not null,
    document bytea not null,
    written timestamptz not null default clock_timestamp(),
    primary key (key, serial)
);
create table if not exists journal (
    id bigserial primary key,
    key text not null,
    lines bytea not null
);
create index if not exists journal_of_key on journal (key, id);
create table if not exists locks (
    key text primary key,
    id text not null,
    owner text not null,
    expires timestamptz not null
);
";

/// Two that begin at the same time would both make the tables: this lock keeps the second one waiting.
pub(super) const MAKING: i64 = 0x7374_7261_7461;
