-- Ids are UUIDs, instants are milliseconds since the Unix epoch, bodies are JSON bytes (any character is legal in
-- them, NUL too, which json and text refuse). The tenant is the first column of every key.
--
-- Roles: `colloquy_app` works under row-level security and owns nothing; `colloquy_sweep` owns the functions that look
-- across tenants and may read ids, lanes, states and times, never content. Roles are the cluster's, so several
-- databases may be made at once: losing that race is fine.

DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['colloquy_app', 'colloquy_sweep'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END $$;

CREATE SCHEMA control;
CREATE SCHEMA history;
CREATE SCHEMA memory;

CREATE SEQUENCE history.delivery_pos;

-- control

CREATE TABLE control.tenants (
    id      uuid PRIMARY KEY NOT NULL,
    name    text NOT NULL UNIQUE,
    created bigint NOT NULL
);
CREATE INDEX tenants_by_creation ON control.tenants (created, id);

CREATE TABLE control.api_keys (
    tenant      uuid NOT NULL,
    id          uuid NOT NULL,
    secret_hash bytea NOT NULL,
    name        text NOT NULL,
    roles       bytea NOT NULL,
    subject     text NOT NULL,
    account     text,
    agents      bytea NOT NULL,
    created     bigint NOT NULL,
    revoked     bigint,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE control.agents (
    tenant       uuid NOT NULL,
    id           text NOT NULL,
    display_name text NOT NULL,
    profile      text NOT NULL,
    overrides    bytea NOT NULL,
    version      bigint NOT NULL,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE control.channel_accounts (
    tenant   uuid NOT NULL,
    id       text NOT NULL UNIQUE, -- across tenants: webhook URLs carry it
    channel  text NOT NULL,
    agent    text NOT NULL,
    name     text NOT NULL,
    secret   text NOT NULL,
    settings bytea NOT NULL,
    created  bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, channel, name)
);

-- history

CREATE TABLE history.policies (
    tenant uuid NOT NULL,
    id     text NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE history.sessions (
    tenant             uuid NOT NULL,
    id                 uuid NOT NULL,
    key                text NOT NULL,
    agent              text NOT NULL,
    channel            text,
    kind               text NOT NULL,
    chat               text,
    label              text NOT NULL DEFAULT '',
    display_name       text NOT NULL DEFAULT '',
    transcript         uuid NOT NULL,
    branch             uuid NOT NULL,
    epoch              bigint NOT NULL DEFAULT 1,
    version            bigint NOT NULL DEFAULT 1,
    fence              bigint NOT NULL DEFAULT 0,
    next_order         bigint NOT NULL DEFAULT 1, -- of turns
    next_message       bigint NOT NULL DEFAULT 1, -- of accepted messages
    input_tokens       bigint NOT NULL DEFAULT 0,
    output_tokens      bigint NOT NULL DEFAULT 0,
    turns              bigint NOT NULL DEFAULT 0,
    compactions        bigint NOT NULL DEFAULT 0,
    last_prompt_tokens bigint,
    context_window     bigint,
    model              text NOT NULL DEFAULT '',
    provider           text NOT NULL DEFAULT '',
    policy             text,
    marker             bigint NOT NULL DEFAULT 0, -- the last number handed out to a compaction
    marker_job         uuid, -- whose compaction runs
    marker_until       bigint,
    compaction_error   text,
    created            bigint NOT NULL,
    updated            bigint NOT NULL,
    last_user_activity bigint,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, key)
);
CREATE INDEX sessions_by_activity ON history.sessions (tenant, updated, id);

CREATE TABLE history.branches (
    tenant          uuid NOT NULL,
    transcript      uuid NOT NULL,
    branch          uuid NOT NULL,
    session         uuid NOT NULL,
    parent          uuid,
    fork_seq        bigint,
    head            bigint NOT NULL DEFAULT 0,
    compaction_seq  bigint,
    first_kept      bigint NOT NULL DEFAULT 1,
    soft            bigint NOT NULL DEFAULT 0,
    hard            bigint NOT NULL DEFAULT 0,
    window_messages bigint NOT NULL DEFAULT 0,
    window_tokens   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, transcript, branch),
    FOREIGN KEY (tenant, session) REFERENCES history.sessions (tenant, id)
);

CREATE TABLE history.entries (
    tenant     uuid NOT NULL,
    transcript uuid NOT NULL,
    branch     uuid NOT NULL,
    seq        bigint NOT NULL,
    id         uuid NOT NULL,
    turn       uuid,
    kind       text NOT NULL,
    body       bytea NOT NULL,
    tokens     bigint NOT NULL,
    tokenizer  text NOT NULL,
    at         bigint NOT NULL,
    PRIMARY KEY (tenant, transcript, branch, seq),
    FOREIGN KEY (tenant, transcript, branch) REFERENCES history.branches (tenant, transcript, branch)
);
CREATE INDEX entries_compactions ON history.entries (tenant, transcript, branch, seq) WHERE kind = 'compaction';

CREATE TABLE history.turns (
    tenant          uuid NOT NULL,
    id              uuid NOT NULL,
    session         uuid NOT NULL,
    transcript      uuid NOT NULL,
    branch          uuid NOT NULL,
    ord             bigint NOT NULL,
    state           text NOT NULL,
    lane            text NOT NULL,
    mode            text NOT NULL,
    merge_key       bytea NOT NULL,
    sender          text,
    opened          bigint NOT NULL,
    due             bigint NOT NULL,
    closed          boolean NOT NULL DEFAULT false,
    attempt         bigint NOT NULL DEFAULT 0,
    fence           bigint NOT NULL DEFAULT 0,
    worker          text NOT NULL DEFAULT '',
    claimed         bigint NOT NULL DEFAULT 0,
    expires         bigint, -- end of the offer, the lease or the stop's deadline; none unless held
    confirmed       boolean NOT NULL DEFAULT false,
    stop_outcome    text,
    policy          text NOT NULL,
    lease_ms        bigint NOT NULL,
    max_attempts    bigint NOT NULL,
    max_turn_ms     bigint NOT NULL,
    max_concurrent  bigint NOT NULL,
    retry_ms        bigint NOT NULL,
    resume_continue boolean NOT NULL,
    route           bytea,
    preface         text NOT NULL DEFAULT '',
    head_at_claim   bigint NOT NULL DEFAULT 0,
    steer_acked     bigint NOT NULL DEFAULT 0,
    commit_hash     bytea,
    commit_answer   bytea,
    error           text NOT NULL DEFAULT '',
    ended           bigint,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, session) REFERENCES history.sessions (tenant, id)
);
CREATE INDEX turns_live ON history.turns (tenant, session, ord) WHERE ended IS NULL;
CREATE INDEX turns_waiting ON history.turns (due) WHERE ended IS NULL AND state = 'waiting';
CREATE INDEX turns_expiry ON history.turns (expires) WHERE expires IS NOT NULL;

CREATE TABLE history.inbox (
    tenant     uuid NOT NULL,
    id         uuid NOT NULL,
    dedupe     text NOT NULL,
    hash       bytea NOT NULL,
    session    uuid NOT NULL,
    transcript uuid NOT NULL,
    turn       uuid,
    ord        bigint NOT NULL, -- in the session, in the order of accepts
    sender     text NOT NULL,
    message    bytea NOT NULL,
    tokens     bigint NOT NULL,
    tokenizer  text NOT NULL,
    route      bytea,
    placement  text NOT NULL,
    position   bigint NOT NULL,
    due        bigint,
    steer      bigint, -- number within the turn it was steered into
    accepted   bigint NOT NULL,
    outcome    text,
    detail     text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, dedupe),
    FOREIGN KEY (tenant, session) REFERENCES history.sessions (tenant, id)
);
CREATE INDEX inbox_by_turn ON history.inbox (tenant, turn, ord);
CREATE INDEX inbox_by_session ON history.inbox (tenant, session, ord);

CREATE TABLE history.staged_entries (
    tenant    uuid NOT NULL,
    turn      uuid NOT NULL,
    fence     bigint NOT NULL,
    n         bigint NOT NULL,
    attempt   bigint NOT NULL,
    id        uuid NOT NULL,
    body      bytea NOT NULL,
    tokens    bigint NOT NULL,
    tokenizer text NOT NULL,
    PRIMARY KEY (tenant, turn, fence, n),
    FOREIGN KEY (tenant, turn) REFERENCES history.turns (tenant, id)
);

CREATE TABLE history.deliveries (
    tenant  uuid NOT NULL,
    id      uuid NOT NULL,
    pos     bigint NOT NULL DEFAULT nextval('history.delivery_pos'), -- in the order of commits
    turn    uuid NOT NULL,
    session uuid NOT NULL,
    account text NOT NULL,
    route   bytea NOT NULL,
    part    integer NOT NULL,
    parts   bytea NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    due     bigint NOT NULL, -- when it may be offered; while it is, the end of the offer
    outcome text,
    detail  text NOT NULL DEFAULT '',
    ended   bigint,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, turn) REFERENCES history.turns (tenant, id)
);
CREATE INDEX deliveries_open ON history.deliveries (tenant, account, route, pos) WHERE ended IS NULL;

CREATE TABLE history.jobs (
    tenant      uuid NOT NULL,
    id          uuid NOT NULL,
    kind        text NOT NULL,
    session     uuid NOT NULL,
    transcript  uuid NOT NULL,
    branch      uuid NOT NULL,
    state       text NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    publish_no  bigint NOT NULL DEFAULT 0,
    due         bigint NOT NULL,
    published   bigint, -- when it was handed to the bus last
    lease_until bigint,
    payload     bytea NOT NULL,
    result      bytea NOT NULL,
    error       text NOT NULL DEFAULT '',
    created     bigint NOT NULL,
    updated     bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, session) REFERENCES history.sessions (tenant, id)
);
CREATE UNIQUE INDEX jobs_active ON history.jobs (tenant, session, kind) WHERE state IN ('queued', 'published', 'running');
CREATE INDEX jobs_due ON history.jobs (due) WHERE state IN ('queued', 'published', 'running');
CREATE INDEX jobs_by_creation ON history.jobs (tenant, created, id);

CREATE TABLE history.compaction_chunks (
    tenant   uuid NOT NULL,
    job      uuid NOT NULL,
    idx      integer NOT NULL,
    from_seq bigint NOT NULL,
    to_seq   bigint NOT NULL,
    summary  bytea NOT NULL,
    PRIMARY KEY (tenant, job, idx),
    FOREIGN KEY (tenant, job) REFERENCES history.jobs (tenant, id)
);

-- memory

CREATE TABLE memory.memories (
    tenant       uuid NOT NULL,
    id           uuid NOT NULL,
    agent        text NOT NULL,
    scope        text NOT NULL,
    owner        text NOT NULL,
    kind         text NOT NULL,
    text         bytea NOT NULL,
    importance   real NOT NULL,
    confidence   real NOT NULL,
    provenance   text NOT NULL,
    sources      bytea NOT NULL,
    valid_from   bigint NOT NULL,
    valid_to     bigint,
    supersedes   uuid,
    recall_count bigint NOT NULL DEFAULT 0,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX memories_by_creation ON memory.memories (tenant, agent, created, id);

CREATE TABLE memory.memory_terms (
    tenant uuid NOT NULL,
    term   text NOT NULL,
    memory uuid NOT NULL,
    PRIMARY KEY (tenant, term, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memory.memories (tenant, id) ON DELETE CASCADE
);
CREATE INDEX memory_terms_by_memory ON memory.memory_terms (tenant, memory);

CREATE TABLE memory.memory_watermarks (
    tenant     uuid NOT NULL,
    transcript uuid NOT NULL,
    branch     uuid NOT NULL,
    strategy   text NOT NULL,
    through    bigint NOT NULL,
    PRIMARY KEY (tenant, transcript, branch, strategy)
);

-- Row-level security: the tenant of the transaction, set by its first statement.

ALTER TABLE control.tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON control.tenants TO colloquy_app
    USING (id = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (id = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE control.api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON control.api_keys TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE control.agents ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON control.agents TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE control.channel_accounts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON control.channel_accounts TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.policies ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.policies TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.sessions TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.branches ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.branches TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.entries TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.turns TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.inbox ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.inbox TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.staged_entries ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.staged_entries TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.deliveries ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.deliveries TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.jobs TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.compaction_chunks ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.compaction_chunks TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE memory.memories ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory.memories TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE memory.memory_terms ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory.memory_terms TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE memory.memory_watermarks ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON memory.memory_watermarks TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);

GRANT USAGE ON SCHEMA control, history, memory TO colloquy_app, colloquy_sweep;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA control, history, memory TO colloquy_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA history TO colloquy_app;

-- What must look across tenants: ids and times only.

CREATE POLICY across_tenants ON history.turns FOR SELECT TO colloquy_sweep USING (true);
GRANT SELECT (tenant, id, session, ord, state, lane, due, expires, ended, max_concurrent) ON history.turns TO colloquy_sweep;
CREATE POLICY across_tenants ON history.sessions FOR SELECT TO colloquy_sweep USING (true);
GRANT SELECT (tenant, id, agent) ON history.sessions TO colloquy_sweep;
CREATE POLICY across_tenants ON history.jobs FOR SELECT TO colloquy_sweep USING (true);
GRANT SELECT (tenant, id, state, due, published, lease_until) ON history.jobs TO colloquy_sweep;
CREATE POLICY across_tenants ON control.channel_accounts FOR SELECT TO colloquy_sweep USING (true);
GRANT SELECT (tenant, id) ON control.channel_accounts TO colloquy_sweep;
CREATE POLICY across_tenants ON control.tenants FOR SELECT TO colloquy_sweep USING (true);
GRANT SELECT (id, name, created) ON control.tenants TO colloquy_sweep;

CREATE FUNCTION history.list_expired(now bigint, most bigint) RETURNS TABLE (tenant uuid, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = history AS $$
    SELECT t.tenant, t.id FROM turns t WHERE t.expires <= now ORDER BY t.expires LIMIT most
$$;

CREATE FUNCTION history.list_runnable(until bigint, most bigint)
RETURNS TABLE (tenant uuid, agent text, session uuid, lane text, due bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = history AS $$
    SELECT t.tenant, s.agent, t.session, t.lane, t.due FROM turns t
    JOIN sessions s ON s.tenant = t.tenant AND s.id = t.session
    WHERE t.ended IS NULL AND t.state = 'waiting' AND t.due <= until
    AND NOT EXISTS (SELECT 1 FROM turns e WHERE e.tenant = t.tenant AND e.session = t.session
        AND e.ended IS NULL AND e.state = 'waiting' AND e.ord < t.ord)
    AND (SELECT count(*) FROM turns r WHERE r.tenant = t.tenant AND r.session = t.session
        AND r.ended IS NULL AND r.state <> 'waiting') < t.max_concurrent
    ORDER BY t.due, t.tenant, t.session LIMIT most
$$;

CREATE FUNCTION history.list_publishable(now bigint, before bigint, per_tenant bigint, most bigint)
RETURNS TABLE (tenant uuid, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = history AS $$
    SELECT p.tenant, p.id FROM (
        SELECT j.tenant, j.id, j.due, row_number() OVER (PARTITION BY j.tenant ORDER BY j.due, j.id) AS place
        FROM jobs j
        WHERE j.state IN ('queued', 'published', 'running')
        AND CASE j.state WHEN 'queued' THEN j.due <= now WHEN 'published' THEN j.published < before
            ELSE j.lease_until <= now END
    ) p WHERE p.place <= per_tenant ORDER BY p.due, p.id LIMIT most
$$;

CREATE FUNCTION control.account_tenant(account text) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = control AS $$
    SELECT a.tenant FROM channel_accounts a WHERE a.id = account
$$;

CREATE FUNCTION control.list_tenants(after_created bigint, after_id uuid, most bigint)
RETURNS TABLE (id uuid, name text, created bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = control AS $$
    SELECT t.id, t.name, t.created FROM tenants t WHERE (t.created, t.id) > (after_created, after_id)
    ORDER BY t.created, t.id LIMIT most
$$;

-- A function belongs to who may create in its schema at that moment; the right is taken back at once.
GRANT colloquy_sweep TO CURRENT_USER;
GRANT CREATE ON SCHEMA control, history TO colloquy_sweep;
ALTER FUNCTION history.list_expired(bigint, bigint) OWNER TO colloquy_sweep;
ALTER FUNCTION history.list_runnable(bigint, bigint) OWNER TO colloquy_sweep;
ALTER FUNCTION history.list_publishable(bigint, bigint, bigint, bigint) OWNER TO colloquy_sweep;
ALTER FUNCTION control.account_tenant(text) OWNER TO colloquy_sweep;
ALTER FUNCTION control.list_tenants(bigint, uuid, bigint) OWNER TO colloquy_sweep;
REVOKE CREATE ON SCHEMA control, history FROM colloquy_sweep;
REVOKE ALL ON FUNCTION history.list_expired(bigint, bigint), history.list_runnable(bigint, bigint),
    history.list_publishable(bigint, bigint, bigint, bigint), control.account_tenant(text),
    control.list_tenants(bigint, uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION history.list_expired(bigint, bigint), history.list_runnable(bigint, bigint),
    history.list_publishable(bigint, bigint, bigint, bigint), control.account_tenant(text),
    control.list_tenants(bigint, uuid, bigint) TO colloquy_app;
