-- What builds did, and how far counts are off.

CREATE TABLE history.receipts (
    tenant   uuid NOT NULL,
    turn     uuid NOT NULL,
    build    bigint NOT NULL, -- from 1
    session  uuid NOT NULL,
    fence    bigint NOT NULL,
    body     bytea NOT NULL,
    reported bigint, -- prompt tokens by the provider
    at       bigint NOT NULL,
    PRIMARY KEY (tenant, turn, build),
    FOREIGN KEY (tenant, turn) REFERENCES history.turns (tenant, id)
);
CREATE INDEX receipts_session ON history.receipts (tenant, session, at, build);
CREATE INDEX receipts_reported ON history.receipts (tenant, session, at, build) WHERE reported IS NOT NULL;

CREATE TABLE history.calibrations (
    tenant    uuid NOT NULL,
    model     text NOT NULL,
    tokenizer text NOT NULL,
    version   bigint NOT NULL,
    state     bytea NOT NULL,
    PRIMARY KEY (tenant, model, tokenizer)
);

ALTER TABLE history.receipts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.receipts TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
ALTER TABLE history.calibrations ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON history.calibrations TO colloquy_app
    USING (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid)
    WITH CHECK (tenant = nullif(current_setting('colloquy.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON history.receipts, history.calibrations TO colloquy_app;

-- A receipt does not wait for the disk: the commit of its turn does, and what was written before goes along.
CREATE FUNCTION history.keep_receipt(
    p_tenant uuid, p_now bigint, p_turn uuid, p_fence bigint, p_soft bigint, p_hard bigint, p_body bytea)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t history.turns;
    v_now bigint;
    v_build bigint;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    t := history.hold_turn(p_tenant, p_turn);
    IF history.refusal(t, p_fence) IS NOT NULL THEN
        RETURN history.refusal(t, p_fence);
    END IF;
    v_now := coalesce(p_now, history.now_ms());
    PERFORM history.confirm(t, v_now);
    PERFORM history.move_marks(t, p_soft, p_hard);
    SELECT coalesce(max(build), 0) + 1 INTO v_build FROM history.receipts WHERE tenant = p_tenant AND turn = p_turn;
    INSERT INTO history.receipts (tenant, turn, build, session, fence, body, at)
    VALUES (p_tenant, p_turn, v_build, t.session, p_fence, p_body, v_now);
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN json_build_object('held', v_build);
END $$;

-- What the provider counted is the size of the last request.
CREATE FUNCTION history.note_reported(p_tenant uuid, p_turn uuid, p_tokens bigint)
RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE history.receipts SET reported = p_tokens
    WHERE p_tokens > 0 AND tenant = p_tenant AND turn = p_turn
        AND build = (SELECT max(build) FROM history.receipts WHERE tenant = p_tenant AND turn = p_turn)
$$;

CREATE OR REPLACE FUNCTION history.commit_turn(
    p_tenant uuid, p_now bigint, p_turn uuid, p_fence bigint, p_hash bytea, p_outcome text, p_steer_through bigint,
    p_open bytea, p_ids uuid[], p_kinds text[], p_bodies bytea[], p_tokens bigint[], p_tokenizers text[],
    p_soft bigint, p_hard bigint, p_delivery_ids uuid[], p_accounts text[], p_routes bytea[], p_parts integer[],
    p_part_bodies bytea[], p_usage json, p_extract uuid, p_extract_delay bigint, p_compact uuid,
    p_compact_messages bigint, p_compact_tokens bigint)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s history.sessions;
    t history.turns;
    b history.branches;
    v_now bigint;
    v_acked bigint;
    v_rows bigint;
    v_messages bigint;
    v_tokens bigint;
    v_answer json;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    t := history.hold_turn(p_tenant, p_turn);
    CASE
        WHEN t.id IS NULL THEN RETURN '"not_found"';
        WHEN t.fence <> p_fence OR t.state NOT IN ('running', 'stopping', 'committed') THEN RETURN '"fenced"';
        WHEN t.state = 'stopping' THEN RETURN '"cancelled"';
        WHEN t.state = 'committed' AND t.commit_hash = p_hash THEN
            RETURN json_build_object('replayed', history.body_json(t.commit_answer));
        WHEN t.state = 'committed' THEN RETURN '"mismatch"';
        ELSE NULL;
    END CASE;
    v_acked := history.acknowledged(t, p_steer_through);
    IF EXISTS (SELECT 1 FROM history.inbox i WHERE i.tenant = p_tenant AND i.turn = p_turn AND i.steer > v_acked)
        OR (NOT t.resume_continue AND EXISTS (SELECT 1 FROM history.staged_entries x
            WHERE x.tenant = p_tenant AND x.turn = p_turn AND x.fence <> p_fence)) THEN
        RETURN '"rare"';
    END IF;
    v_now := coalesce(p_now, history.now_ms());
    PERFORM history.move_marks(t, p_soft, p_hard);

    SELECT * INTO b FROM history.branches
    WHERE tenant = p_tenant AND transcript = t.transcript AND branch = t.branch;
    INSERT INTO history.entries (tenant, transcript, branch, seq, id, turn, kind, body, tokens, tokenizer, at)
    SELECT p_tenant, t.transcript, t.branch, b.head + row_number() OVER (ORDER BY e.part, e.major, e.minor), e.id,
        p_turn, e.kind, e.body, e.tokens, e.tokenizer, v_now
    FROM (
        SELECT 1 AS part, i.ord AS major, 0::bigint AS minor, gen_random_uuid() AS id, 'message' AS kind,
            p_open || substring(i.message FROM 2) AS body, i.tokens, i.tokenizer
        FROM history.inbox i WHERE i.tenant = p_tenant AND i.turn = p_turn
        UNION ALL
        SELECT 2, x.fence, x.n, x.id, x.kind, x.body, x.tokens, x.tokenizer
        FROM history.staged_entries x WHERE x.tenant = p_tenant AND x.turn = p_turn
        UNION ALL
        SELECT 3, n.place, 0, n.id, n.kind, n.body, n.tokens, n.tokenizer
        FROM unnest(p_ids, p_kinds, p_bodies, p_tokens, p_tokenizers) WITH ORDINALITY
            AS n (id, kind, body, tokens, tokenizer, place)
    ) e;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    SELECT count(*), coalesce(sum(e.tokens), 0)::bigint INTO v_messages, v_tokens FROM history.entries e
    WHERE e.tenant = p_tenant AND e.transcript = t.transcript AND e.branch = t.branch AND e.seq > b.head
        AND e.kind IN ('message', 'custom_message');
    UPDATE history.branches SET head = head + v_rows, window_messages = window_messages + v_messages,
        window_tokens = window_tokens + v_tokens
    WHERE tenant = p_tenant AND transcript = t.transcript AND branch = t.branch RETURNING * INTO b;

    UPDATE history.inbox SET outcome = CASE WHEN steer IS NULL THEN p_outcome ELSE 'STEERED' END
    WHERE tenant = p_tenant AND turn = p_turn AND outcome IS NULL;
    UPDATE history.sessions SET version = version + 1, updated = v_now WHERE tenant = p_tenant AND id = t.session
    RETURNING * INTO s;
    -- A reset has zeroed the counters for another transcript since.
    IF s.transcript = t.transcript THEN
        UPDATE history.sessions SET turns = turns + 1, input_tokens = input_tokens + (p_usage->>'input_tokens')::bigint,
            output_tokens = output_tokens + (p_usage->>'output_tokens')::bigint,
            last_prompt_tokens = coalesce(nullif((p_usage->>'context_tokens')::bigint, 0), last_prompt_tokens),
            context_window = coalesce(nullif((p_usage->>'window_tokens')::bigint, 0), context_window),
            provider = coalesce(nullif(p_usage->>'provider', ''), provider),
            model = coalesce(nullif(p_usage->>'model', ''), model)
        WHERE tenant = p_tenant AND id = t.session RETURNING * INTO s;
    END IF;

    PERFORM history.note_reported(p_tenant, p_turn, (p_usage->>'context_tokens')::bigint);
    INSERT INTO history.deliveries (tenant, id, turn, session, account, route, part, parts, due)
    SELECT p_tenant, d.id, p_turn, t.session, d.account, d.route, d.part, d.parts, v_now
    FROM unnest(p_delivery_ids, p_accounts, p_routes, p_parts, p_part_bodies) WITH ORDINALITY
        AS d (id, account, route, part, parts, place) ORDER BY d.place;
    IF p_extract IS NOT NULL THEN
        PERFORM history.enqueue_job(t, v_now, 'memory_extract', p_extract, p_extract_delay);
    END IF;
    IF p_compact IS NOT NULL AND s.transcript = t.transcript
        AND (b.window_messages > p_compact_messages OR b.window_tokens > p_compact_tokens) THEN
        PERFORM history.enqueue_job(t, v_now, 'compaction', p_compact, 0);
    END IF;

    v_answer := json_build_object('session', 'ses_' || replace(t.session::text, '-', ''), 'head', b.head,
        'window_messages', b.window_messages, 'window_tokens', b.window_tokens, 'input_tokens', s.input_tokens,
        'output_tokens', s.output_tokens, 'compacting', EXISTS (SELECT 1 FROM history.jobs j
            WHERE j.tenant = p_tenant AND j.session = t.session AND j.kind = 'compaction'
            AND j.state IN ('queued', 'published', 'running')),
        'next_due', (SELECT w.due FROM history.turns w WHERE w.tenant = p_tenant AND w.session = t.session
            AND w.ended IS NULL AND w.state = 'waiting' ORDER BY w.ord LIMIT 1),
        'replayed', false);
    UPDATE history.turns SET state = 'committed', expires = NULL, commit_hash = p_hash,
        commit_answer = convert_to(v_answer::text, 'UTF8'), ended = v_now
    WHERE tenant = p_tenant AND id = p_turn;
    DELETE FROM history.staged_entries WHERE tenant = p_tenant AND turn = p_turn;
    RETURN json_build_object('committed', v_answer);
END $$;

REVOKE ALL ON FUNCTION history.keep_receipt(uuid, bigint, uuid, bigint, bigint, bigint, bytea),
    history.note_reported(uuid, uuid, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION history.keep_receipt(uuid, bigint, uuid, bigint, bigint, bigint, bytea),
    history.note_reported(uuid, uuid, bigint) TO colloquy_app;
