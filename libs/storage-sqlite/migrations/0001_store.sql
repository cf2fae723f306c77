-- Ids are 16 bytes, instants are milliseconds since the Unix epoch, bodies are JSON bytes (any character is legal
-- in them). The tenant is the first column of every key.

-- control

CREATE TABLE tenants (
    id      BLOB PRIMARY KEY NOT NULL,
    name    TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX tenants_by_creation ON tenants (created, id);

CREATE TABLE api_keys (
    tenant      BLOB NOT NULL,
    id          BLOB NOT NULL,
    secret_hash BLOB NOT NULL,
    name        TEXT NOT NULL,
    roles       BLOB NOT NULL,
    subject     TEXT NOT NULL,
    account     TEXT,
    agents      BLOB NOT NULL,
    created     INTEGER NOT NULL,
    revoked     INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE agents (
    tenant       BLOB NOT NULL,
    id           TEXT NOT NULL,
    display_name TEXT NOT NULL,
    profile      TEXT NOT NULL,
    overrides    BLOB NOT NULL,
    version      INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE channel_accounts (
    tenant   BLOB NOT NULL,
    id       TEXT NOT NULL UNIQUE, -- across tenants: webhook URLs carry it
    channel  TEXT NOT NULL,
    agent    TEXT NOT NULL,
    name     TEXT NOT NULL,
    secret   TEXT NOT NULL,
    settings BLOB NOT NULL,
    created  INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, channel, name)
) STRICT;

-- history

CREATE TABLE policies (
    tenant BLOB NOT NULL,
    id     TEXT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE sessions (
    tenant             BLOB NOT NULL,
    id                 BLOB NOT NULL,
    key                TEXT NOT NULL,
    agent              TEXT NOT NULL,
    channel            TEXT,
    kind               TEXT NOT NULL,
    chat               TEXT,
    label              TEXT NOT NULL DEFAULT '',
    display_name       TEXT NOT NULL DEFAULT '',
    transcript         BLOB NOT NULL,
    branch             BLOB NOT NULL,
    epoch              INTEGER NOT NULL DEFAULT 1,
    version            INTEGER NOT NULL DEFAULT 1,
    fence              INTEGER NOT NULL DEFAULT 0,
    next_order         INTEGER NOT NULL DEFAULT 1, -- of turns
    next_message       INTEGER NOT NULL DEFAULT 1, -- of accepted messages
    input_tokens       INTEGER NOT NULL DEFAULT 0,
    output_tokens      INTEGER NOT NULL DEFAULT 0,
    turns              INTEGER NOT NULL DEFAULT 0,
    compactions        INTEGER NOT NULL DEFAULT 0,
    last_prompt_tokens INTEGER,
    context_window     INTEGER,
    model              TEXT NOT NULL DEFAULT '',
    provider           TEXT NOT NULL DEFAULT '',
    policy             TEXT,
    marker             INTEGER NOT NULL DEFAULT 0, -- the last number handed out to a compaction
    marker_job         BLOB, -- whose compaction runs
    marker_until       INTEGER,
    compaction_error   TEXT,
    created            INTEGER NOT NULL,
    updated            INTEGER NOT NULL,
    last_user_activity INTEGER,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, key)
) STRICT;
CREATE INDEX sessions_by_activity ON sessions (tenant, updated, id);

CREATE TABLE branches (
    tenant          BLOB NOT NULL,
    transcript      BLOB NOT NULL,
    branch          BLOB NOT NULL,
    session         BLOB NOT NULL,
    parent          BLOB,
    fork_seq        INTEGER,
    head            INTEGER NOT NULL DEFAULT 0,
    compaction_seq  INTEGER,
    first_kept      INTEGER NOT NULL DEFAULT 1,
    soft            INTEGER NOT NULL DEFAULT 0,
    hard            INTEGER NOT NULL DEFAULT 0,
    window_messages INTEGER NOT NULL DEFAULT 0,
    window_tokens   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, transcript, branch),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id)
) STRICT;

CREATE TABLE entries (
    tenant     BLOB NOT NULL,
    transcript BLOB NOT NULL,
    branch     BLOB NOT NULL,
    seq        INTEGER NOT NULL,
    id         BLOB NOT NULL,
    turn       BLOB,
    kind       TEXT NOT NULL,
    body       BLOB NOT NULL,
    tokens     INTEGER NOT NULL,
    tokenizer  TEXT NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (tenant, transcript, branch, seq),
    FOREIGN KEY (tenant, transcript, branch) REFERENCES branches (tenant, transcript, branch)
) STRICT;
CREATE INDEX entries_compactions ON entries (tenant, transcript, branch, seq) WHERE kind = 'compaction';

CREATE TABLE turns (
    tenant          BLOB NOT NULL,
    id              BLOB NOT NULL,
    session         BLOB NOT NULL,
    transcript      BLOB NOT NULL,
    branch          BLOB NOT NULL,
    ord             INTEGER NOT NULL,
    state           TEXT NOT NULL,
    lane            TEXT NOT NULL,
    mode            TEXT NOT NULL,
    merge_key       BLOB NOT NULL,
    sender          TEXT,
    opened          INTEGER NOT NULL,
    due             INTEGER NOT NULL,
    closed          INTEGER NOT NULL DEFAULT 0,
    attempt         INTEGER NOT NULL DEFAULT 0,
    fence           INTEGER NOT NULL DEFAULT 0,
    worker          TEXT NOT NULL DEFAULT '',
    claimed         INTEGER NOT NULL DEFAULT 0,
    expires         INTEGER, -- end of the offer, the lease or the stop's deadline; none unless held
    confirmed       INTEGER NOT NULL DEFAULT 0,
    stop_outcome    TEXT,
    policy          TEXT NOT NULL,
    lease_ms        INTEGER NOT NULL,
    max_attempts    INTEGER NOT NULL,
    max_turn_ms     INTEGER NOT NULL,
    max_concurrent  INTEGER NOT NULL,
    retry_ms        INTEGER NOT NULL,
    resume_continue INTEGER NOT NULL,
    route           BLOB,
    preface         TEXT NOT NULL DEFAULT '',
    head_at_claim   INTEGER NOT NULL DEFAULT 0,
    steer_acked     INTEGER NOT NULL DEFAULT 0,
    commit_hash     BLOB,
    commit_answer   BLOB,
    error           TEXT NOT NULL DEFAULT '',
    ended           INTEGER,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id)
) STRICT;
CREATE INDEX turns_live ON turns (tenant, session, ord) WHERE ended IS NULL;
CREATE INDEX turns_expiry ON turns (expires) WHERE expires IS NOT NULL;

CREATE TABLE inbox (
    tenant     BLOB NOT NULL,
    id         BLOB NOT NULL,
    dedupe     TEXT NOT NULL,
    hash       BLOB NOT NULL,
    session    BLOB NOT NULL,
    transcript BLOB NOT NULL,
    turn       BLOB,
    ord        INTEGER NOT NULL, -- in the session, in the order of accepts
    sender     TEXT NOT NULL,
    message    BLOB NOT NULL,
    tokens     INTEGER NOT NULL,
    tokenizer  TEXT NOT NULL,
    route      BLOB,
    placement  TEXT NOT NULL,
    position   INTEGER NOT NULL,
    due        INTEGER,
    steer      INTEGER, -- number within the turn it was steered into
    accepted   INTEGER NOT NULL,
    outcome    TEXT,
    detail     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, dedupe),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id)
) STRICT;
CREATE INDEX inbox_by_turn ON inbox (tenant, turn, ord);
CREATE INDEX inbox_by_session ON inbox (tenant, session, ord);

CREATE TABLE staged_entries (
    tenant    BLOB NOT NULL,
    turn      BLOB NOT NULL,
    fence     INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    id        BLOB NOT NULL,
    body      BLOB NOT NULL,
    tokens    INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    PRIMARY KEY (tenant, turn, fence, n),
    FOREIGN KEY (tenant, turn) REFERENCES turns (tenant, id)
) STRICT;

CREATE TABLE deliveries (
    tenant  BLOB NOT NULL,
    id      BLOB NOT NULL,
    pos     INTEGER NOT NULL, -- in the tenant, in the order of commits
    turn    BLOB NOT NULL,
    session BLOB NOT NULL,
    account TEXT NOT NULL,
    route   BLOB NOT NULL,
    part    INTEGER NOT NULL,
    parts   BLOB NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    due     INTEGER NOT NULL, -- when it may be offered; while it is, the end of the offer
    outcome TEXT,
    detail  TEXT NOT NULL DEFAULT '',
    ended   INTEGER,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, pos),
    FOREIGN KEY (tenant, turn) REFERENCES turns (tenant, id)
) STRICT;
CREATE INDEX deliveries_open ON deliveries (tenant, account, route, pos) WHERE ended IS NULL;

CREATE TABLE jobs (
    tenant      BLOB NOT NULL,
    id          BLOB NOT NULL,
    kind        TEXT NOT NULL,
    session     BLOB NOT NULL,
    transcript  BLOB NOT NULL,
    branch      BLOB NOT NULL,
    state       TEXT NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    publish_no  INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL,
    published   INTEGER, -- when it was handed to the bus last
    lease_until INTEGER,
    payload     BLOB NOT NULL,
    result      BLOB NOT NULL,
    error       TEXT NOT NULL DEFAULT '',
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, session) REFERENCES sessions (tenant, id)
) STRICT;
CREATE UNIQUE INDEX jobs_active ON jobs (tenant, session, kind) WHERE state IN ('queued', 'published', 'running');
CREATE INDEX jobs_due ON jobs (due) WHERE state IN ('queued', 'published', 'running');
CREATE INDEX jobs_by_creation ON jobs (tenant, created, id);

CREATE TABLE compaction_chunks (
    tenant   BLOB NOT NULL,
    job      BLOB NOT NULL,
    idx      INTEGER NOT NULL,
    from_seq INTEGER NOT NULL,
    to_seq   INTEGER NOT NULL,
    summary  BLOB NOT NULL,
    PRIMARY KEY (tenant, job, idx),
    FOREIGN KEY (tenant, job) REFERENCES jobs (tenant, id)
) STRICT;

-- memory

CREATE TABLE memories (
    tenant       BLOB NOT NULL,
    id           BLOB NOT NULL,
    agent        TEXT NOT NULL,
    scope        TEXT NOT NULL,
    owner        TEXT NOT NULL,
    kind         TEXT NOT NULL,
    text         BLOB NOT NULL,
    importance   REAL NOT NULL,
    confidence   REAL NOT NULL,
    provenance   TEXT NOT NULL,
    sources      BLOB NOT NULL,
    valid_from   INTEGER NOT NULL,
    valid_to     INTEGER,
    supersedes   BLOB,
    recall_count INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX memories_by_creation ON memories (tenant, agent, created, id);

CREATE TABLE memory_terms (
    tenant BLOB NOT NULL,
    term   TEXT NOT NULL,
    memory BLOB NOT NULL,
    PRIMARY KEY (tenant, term, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_terms_by_memory ON memory_terms (tenant, memory);

CREATE TABLE memory_watermarks (
    tenant     BLOB NOT NULL,
    transcript BLOB NOT NULL,
    branch     BLOB NOT NULL,
    strategy   TEXT NOT NULL,
    through    INTEGER NOT NULL,
    PRIMARY KEY (tenant, transcript, branch, strategy)
) STRICT;
