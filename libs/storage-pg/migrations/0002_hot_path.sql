-- The operations that every message takes, each one round trip: a function that sets the tenant first and then works
-- under row-level security, as its caller. They are VOLATILE, so each statement sees what was committed before the
-- lock was taken. Locks are taken in the order session, turn, the rest.
--
-- `p_now` is the instant of the operation; none means the database's clock. Answers are JSON with one key that says what
-- happened. A stored body goes into an answer as it is: nothing here reads its text, where NUL is legal.

-- What is counted in a window has to be known without reading the body.
ALTER TABLE history.staged_entries ADD COLUMN kind text NOT NULL DEFAULT 'message';

CREATE FUNCTION history.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
$$;

CREATE FUNCTION history.body_json(body bytea) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_from(body, 'UTF8')::json
$$;

-- accept

-- The first answer for a known dedupe key, else the state to decide on. The version is read before the queue, so a
-- change in between is a miss of the apply.
CREATE FUNCTION history.accept_load(p_tenant uuid, p_now bigint, p_key text, p_dedupe text)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := coalesce(p_now, history.now_ms());
    v_session uuid;
    v_answer json;
    v_turns json;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    SELECT json_build_object('id', i.id, 'session', i.session, 'transcript', i.transcript, 'turn', i.turn,
        'placement', i.placement, 'position', i.position, 'due', i.due, 'outcome', i.outcome,
        'hash', encode(i.hash, 'hex'), 'now', v_now)
    INTO v_answer FROM history.inbox i WHERE i.tenant = p_tenant AND i.dedupe = p_dedupe;
    IF FOUND THEN
        RETURN json_build_object('duplicate', v_answer);
    END IF;
    SELECT s.id, json_build_object('session', s.id, 'version', s.version, 'transcript', s.transcript,
        'branch', s.branch, 'epoch', s.epoch, 'head', b.head, 'last_user_activity', s.last_user_activity)
    INTO v_session, v_answer FROM history.sessions s
    JOIN history.branches b ON b.tenant = s.tenant AND b.transcript = s.transcript AND b.branch = s.branch
    WHERE s.tenant = p_tenant AND s.key = p_key;
    IF FOUND THEN
        SELECT json_agg(json_build_object('turn', t.id, 'order', t.ord, 'state', t.state, 'lane', t.lane,
            'mode', t.mode, 'merge', history.body_json(t.merge_key), 'sender', t.sender, 'opened', t.opened,
            'due', t.due, 'closed', t.closed, 'attempt', t.attempt, 'fence', t.fence, 'claimed', t.claimed,
            'expires', t.expires, 'messages', (
                SELECT coalesce(json_agg(i.id ORDER BY i.ord), '[]') FROM history.inbox i
                WHERE i.tenant = p_tenant AND i.turn = t.id AND (i.steer IS NULL OR i.steer <= t.steer_acked)
            )) ORDER BY t.ord)
        INTO v_turns FROM history.turns t WHERE t.tenant = p_tenant AND t.session = v_session AND t.ended IS NULL;
    END IF;
    RETURN json_build_object('state',
        json_build_object('now', v_now, 'session', v_answer, 'turns', coalesce(v_turns, '[]')));
END $$;

CREATE FUNCTION history.start_transcript(
    p_tenant uuid, p_now bigint, p_session uuid, p_transcript uuid, p_branch uuid, p_entry uuid, p_body bytea)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO history.branches (tenant, transcript, branch, session, head)
    VALUES (p_tenant, p_transcript, p_branch, p_session, 1);
    INSERT INTO history.entries (tenant, transcript, branch, seq, id, kind, body, tokens, tokenizer, at)
    VALUES (p_tenant, p_transcript, p_branch, 1, p_entry, 'reset', p_body, 0, '', p_now);
    UPDATE history.sessions SET transcript = p_transcript, branch = p_branch, epoch = epoch + 1, input_tokens = 0,
        output_tokens = 0, turns = 0, compactions = 0, last_prompt_tokens = NULL, context_window = NULL,
        marker_job = NULL, marker_until = NULL, compaction_error = NULL
    WHERE tenant = p_tenant AND id = p_session;
END $$;

-- Ends a waiting turn of the session; its messages get the outcome and stay readable.
CREATE FUNCTION history.end_waiting(p_tenant uuid, p_now bigint, p_session uuid, p_turn uuid, p_outcome text)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE history.turns SET state = CASE p_outcome WHEN 'FAILED' THEN 'failed' ELSE 'cancelled' END, ended = p_now
    WHERE tenant = p_tenant AND id = p_turn AND session = p_session AND state = 'waiting';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE history.inbox SET outcome = p_outcome, detail = ''
    WHERE tenant = p_tenant AND turn = p_turn AND outcome IS NULL;
    DELETE FROM history.staged_entries WHERE tenant = p_tenant AND turn = p_turn;
    RETURN true;
END $$;

-- `p_now` is the instant of the decision, `p_clock` what a load would be given.
-- Applies a plan when the session is still at the version it was made on (none: when it is not there yet), else answers
-- with the state as it is now. A plan is made on the state it is applied to, so a step that fits no row is an error.
CREATE FUNCTION history.accept_apply(
    p_tenant uuid, p_now bigint, p_clock bigint, p_key text, p_dedupe text, p_version bigint, p_new_session json,
    p_message_id uuid, p_hash bytea, p_message bytea, p_tokens bigint, p_tokenizer text, p_sender text, p_user boolean,
    p_route bytea, p_merge bytea, p_placement text, p_position bigint, p_policy text, p_policy_body bytea,
    p_limits json, p_steps json)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s history.sessions;
    step json;
    v_turn uuid;
    v_due bigint;
    v_outcome text;
    v_dropped text;
    m_turn uuid; -- what the message's row will say
    m_steer bigint;
    m_due bigint;
    m_transcript uuid;
    m_outcome text;
    v_finished text;
    v_stopping uuid[] := '{}';
    v_fits boolean;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    IF p_version IS NULL THEN
        INSERT INTO history.sessions (tenant, id, key, agent, channel, kind, chat, transcript, branch, created, updated)
        VALUES (p_tenant, (p_new_session->>'id')::uuid, p_key, p_new_session->>'agent', p_new_session->>'channel',
            p_new_session->>'kind', p_new_session->>'chat', (p_new_session->>'transcript')::uuid,
            (p_new_session->>'branch')::uuid, p_now, p_now)
        ON CONFLICT (tenant, key) DO NOTHING RETURNING * INTO s;
        IF NOT FOUND THEN
            RETURN history.accept_load(p_tenant, p_clock, p_key, p_dedupe);
        END IF;
        INSERT INTO history.branches (tenant, transcript, branch, session)
        VALUES (p_tenant, s.transcript, s.branch, s.id);
    ELSE
        SELECT * INTO s FROM history.sessions WHERE tenant = p_tenant AND key = p_key FOR UPDATE;
        IF s.version IS DISTINCT FROM p_version THEN
            RETURN history.accept_load(p_tenant, p_clock, p_key, p_dedupe);
        END IF;
    END IF;
    IF s.policy IS DISTINCT FROM p_policy THEN
        INSERT INTO history.policies (tenant, id, body) VALUES (p_tenant, p_policy, p_policy_body)
        ON CONFLICT DO NOTHING;
    END IF;

    FOR step IN SELECT value FROM json_array_elements(p_steps) LOOP
        v_turn := (step->>'turn')::uuid;
        v_due := (step->>'due')::bigint;
        v_outcome := step->>'outcome';
        v_fits := true;
        CASE step->>'effect'
        WHEN 'open_turn' THEN
            INSERT INTO history.turns (tenant, id, session, transcript, branch, ord, state, lane, mode, merge_key,
                sender, opened, due, policy, lease_ms, max_attempts, max_turn_ms, max_concurrent, retry_ms,
                resume_continue, route)
            VALUES (p_tenant, v_turn, s.id, s.transcript, s.branch, s.next_order, 'waiting', step->>'lane',
                step->>'mode', p_merge, p_sender, p_now, v_due, p_policy, (p_limits->>'lease_ms')::bigint,
                (p_limits->>'max_attempts')::bigint, (p_limits->>'max_turn_ms')::bigint,
                (p_limits->>'max_concurrent')::bigint, (p_limits->>'retry_ms')::bigint,
                (p_limits->>'resume_continue')::boolean, p_route);
            s.next_order := s.next_order + 1;
            m_turn := v_turn; m_steer := NULL; m_due := v_due; m_transcript := s.transcript;
        WHEN 'join_turn' THEN
            UPDATE history.turns SET due = v_due, sender = CASE WHEN sender = p_sender THEN sender END
            WHERE tenant = p_tenant AND id = v_turn AND session = s.id AND state = 'waiting'
            RETURNING transcript INTO m_transcript;
            v_fits := FOUND;
            m_turn := v_turn; m_steer := NULL; m_due := v_due;
        WHEN 'close_turn' THEN
            UPDATE history.turns SET closed = true
            WHERE tenant = p_tenant AND id = v_turn AND session = s.id AND state = 'waiting';
            v_fits := FOUND;
        WHEN 'move_due' THEN
            UPDATE history.turns SET due = v_due
            WHERE tenant = p_tenant AND id = v_turn AND session = s.id AND state = 'waiting';
            v_fits := FOUND;
        WHEN 'end_turn' THEN
            v_fits := history.end_waiting(p_tenant, p_now, s.id, v_turn, v_outcome);
            IF v_turn = m_turn THEN
                m_outcome := v_outcome;
            END IF;
        WHEN 'summarize_turn' THEN
            SELECT preface INTO v_dropped FROM history.turns
            WHERE tenant = p_tenant AND id = v_turn AND session = s.id AND state = 'waiting';
            -- What leads the dropped turn goes along: its lines are older than its own.
            UPDATE history.turns
            SET preface = concat_ws(E'\n', nullif(preface, ''), nullif(v_dropped, ''), nullif(step->>'line', ''))
            WHERE tenant = p_tenant AND id = (step->>'into')::uuid AND session = s.id AND state = 'waiting';
            v_fits := FOUND AND history.end_waiting(p_tenant, p_now, s.id, v_turn, 'SUMMARIZED');
            IF v_turn = m_turn THEN
                m_outcome := 'SUMMARIZED';
            END IF;
        WHEN 'stop_turn' THEN
            UPDATE history.turns SET state = 'stopping', stop_outcome = v_outcome, expires = (step->>'deadline')::bigint
            WHERE tenant = p_tenant AND id = v_turn AND session = s.id AND state = 'running';
            IF FOUND THEN
                v_stopping := v_stopping || v_turn;
            END IF;
        WHEN 'steer' THEN
            SELECT transcript INTO m_transcript FROM history.turns
            WHERE tenant = p_tenant AND id = v_turn AND session = s.id AND state = 'running';
            v_fits := FOUND;
            SELECT coalesce(max(steer), 0) + 1 INTO m_steer FROM history.inbox
            WHERE tenant = p_tenant AND turn = v_turn;
            m_turn := v_turn;
        WHEN 'reset' THEN
            s.transcript := (step->>'transcript')::uuid;
            s.branch := (step->>'branch')::uuid;
            PERFORM history.start_transcript(p_tenant, p_now, s.id, s.transcript, s.branch, (step->>'entry')::uuid,
                convert_to(step->>'body', 'UTF8'));
        WHEN 'finish' THEN
            m_outcome := v_outcome;
            v_finished := v_outcome;
        END CASE;
        IF NOT v_fits THEN
            RAISE EXCEPTION 'the turn of a step (%) is not in the state the plan was made on', step->>'effect'
                USING ERRCODE = 'data_exception';
        END IF;
    END LOOP;

    INSERT INTO history.inbox (tenant, id, dedupe, hash, session, transcript, turn, ord, sender, message, tokens,
        tokenizer, route, placement, position, due, steer, accepted, outcome)
    VALUES (p_tenant, p_message_id, p_dedupe, p_hash, s.id, coalesce(m_transcript, s.transcript), m_turn,
        s.next_message, p_sender, p_message, p_tokens, p_tokenizer, p_route, p_placement, p_position, m_due, m_steer,
        p_now, m_outcome);
    UPDATE history.sessions SET version = version + 1, next_message = next_message + 1, next_order = s.next_order,
        updated = p_now, policy = p_policy,
        last_user_activity = CASE WHEN p_user THEN p_now ELSE last_user_activity END
    WHERE tenant = p_tenant AND id = s.id;
    RETURN json_build_object('applied', json_build_object('session', s.id,
        'transcript', coalesce(m_transcript, s.transcript), 'due', m_due, 'outcome', v_finished,
        'stopping', v_stopping));
END $$;

-- claim

CREATE FUNCTION history.claim(
    p_tenant uuid, p_now bigint, p_session uuid, p_worker text, p_agents text[], p_offer_ms bigint)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s history.sessions;
    t history.turns;
    v_now bigint;
    v_running bigint;
    v_lease bigint;
    v_head bigint;
    v_messages json;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    SELECT * INTO s FROM history.sessions WHERE tenant = p_tenant AND id = p_session FOR UPDATE;
    IF NOT FOUND OR (cardinality(p_agents) > 0 AND s.agent <> ALL (p_agents)) THEN
        RETURN '"nothing"';
    END IF;
    v_now := coalesce(p_now, history.now_ms());
    SELECT * INTO t FROM history.turns WHERE tenant = p_tenant AND session = p_session AND ended IS NULL
        AND state = 'waiting' ORDER BY ord LIMIT 1;
    IF NOT FOUND THEN
        RETURN '"nothing"';
    END IF;
    SELECT count(*) INTO v_running FROM history.turns
    WHERE tenant = p_tenant AND session = p_session AND ended IS NULL AND state <> 'waiting';
    IF v_running >= t.max_concurrent THEN
        RETURN '"nothing"';
    END IF;
    IF t.due > v_now THEN
        RETURN json_build_object('later', t.due);
    END IF;

    v_lease := least(p_offer_ms, t.max_turn_ms);
    SELECT head INTO v_head FROM history.branches
    WHERE tenant = p_tenant AND transcript = t.transcript AND branch = t.branch;
    UPDATE history.turns SET state = 'running', closed = true, attempt = t.attempt + 1, fence = s.fence + 1,
        worker = p_worker, claimed = v_now, expires = v_now + v_lease, confirmed = false, head_at_claim = v_head
    WHERE tenant = p_tenant AND id = t.id;
    UPDATE history.sessions SET fence = s.fence + 1, version = version + 1 WHERE tenant = p_tenant AND id = p_session;
    SELECT json_agg(json_build_array(i.id, history.body_json(i.message)) ORDER BY i.ord) INTO v_messages
    FROM history.inbox i
    WHERE i.tenant = p_tenant AND i.turn = t.id AND (i.steer IS NULL OR i.steer <= t.steer_acked);
    RETURN json_build_object('turn', json_build_object('turn', t.id, 'key', s.key, 'label', s.label, 'agent', s.agent,
        'transcript', t.transcript, 'branch', t.branch, 'head', v_head, 'fence', s.fence + 1, 'attempt', t.attempt + 1,
        'lane', t.lane, 'policy', t.policy, 'limits', json_build_object('lease_ms', t.lease_ms,
            'max_attempts', t.max_attempts, 'max_turn_ms', t.max_turn_ms, 'max_concurrent', t.max_concurrent,
            'retry_ms', t.retry_ms, 'resume_continue', t.resume_continue),
        'route', history.body_json(t.route), 'preface', t.preface, 'messages', coalesce(v_messages, '[]'),
        'lease_left_ms', v_lease));
END $$;

-- holding a turn

-- The turn, with its session locked.
CREATE FUNCTION history.hold_turn(p_tenant uuid, p_turn uuid) RETURNS history.turns LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_session uuid;
    t history.turns;
BEGIN
    SELECT session INTO v_session FROM history.turns WHERE tenant = p_tenant AND id = p_turn;
    PERFORM 1 FROM history.sessions WHERE tenant = p_tenant AND id = v_session FOR UPDATE;
    SELECT * INTO t FROM history.turns WHERE tenant = p_tenant AND id = p_turn;
    RETURN t;
END $$;

-- Why the turn cannot be written under the fence; none when it can.
CREATE FUNCTION history.refusal(t history.turns, p_fence bigint) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN (t).id IS NULL THEN '"not_found"'::json
        WHEN (t).fence <> p_fence OR (t).state NOT IN ('running', 'stopping') THEN '"fenced"'::json END
$$;

-- Where a lease given now ends: never behind the longest turn.
CREATE FUNCTION history.lease_end(t history.turns, p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT least(p_now + (t).lease_ms, (t).claimed + (t).max_turn_ms)
$$;

-- Steers up to this number are the turn's own: acknowledged before, or now.
CREATE FUNCTION history.acknowledged(t history.turns, p_through bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest((t).steer_acked, least(p_through, (SELECT coalesce(max(i.steer), 0) FROM history.inbox i
        WHERE i.tenant = (t).tenant AND i.turn = (t).id)))
$$;

-- Watermarks move forward only, and not when a compaction behind the claim has cleared what they were made from.
CREATE FUNCTION history.move_marks(t history.turns, p_soft bigint, p_hard bigint)
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF p_soft IS NOT NULL THEN
        UPDATE history.branches SET soft = greatest(soft, p_soft), hard = greatest(hard, p_hard)
        WHERE tenant = t.tenant AND transcript = t.transcript AND branch = t.branch
            AND coalesce(compaction_seq, 0) <= t.head_at_claim;
    END IF;
END $$;

CREATE FUNCTION history.confirm(t history.turns, p_now bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT t.confirmed THEN
        UPDATE history.turns SET confirmed = true,
            expires = CASE t.state WHEN 'running' THEN history.lease_end(t, p_now) ELSE t.expires END
        WHERE tenant = t.tenant AND id = t.id;
    END IF;
END $$;

CREATE FUNCTION history.renew(p_tenant uuid, p_now bigint, p_turn uuid, p_fence bigint, p_steer_through bigint)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t history.turns;
    v_now bigint;
    v_expires bigint;
    v_acked bigint;
    v_steer json;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    t := history.hold_turn(p_tenant, p_turn);
    IF history.refusal(t, p_fence) IS NOT NULL THEN
        RETURN history.refusal(t, p_fence);
    END IF;
    v_now := coalesce(p_now, history.now_ms());
    -- A stopping turn keeps its deadline, however alive its worker is.
    v_expires := CASE t.state WHEN 'running' THEN history.lease_end(t, v_now) ELSE coalesce(t.expires, v_now) END;
    v_acked := history.acknowledged(t, p_steer_through);
    UPDATE history.turns SET confirmed = true, expires = v_expires, steer_acked = v_acked
    WHERE tenant = p_tenant AND id = p_turn;
    SELECT json_agg(json_build_array(i.steer, i.id, history.body_json(i.message)) ORDER BY i.ord) INTO v_steer
    FROM history.inbox i WHERE i.tenant = p_tenant AND i.turn = p_turn AND i.steer > v_acked;
    RETURN json_build_object('held', json_build_object('lease_left_ms', greatest(v_expires - v_now, 0),
        'state', t.state, 'stop', t.stop_outcome, 'steer', coalesce(v_steer, '[]')));
END $$;

-- Only the reading that confirms an offer takes the lock.
CREATE FUNCTION history.view(p_tenant uuid, p_now bigint, p_turn uuid, p_fence bigint)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s history.sessions;
    t history.turns;
    v_messages json;
    v_staged json;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    SELECT * INTO t FROM history.turns WHERE tenant = p_tenant AND id = p_turn;
    IF NOT t.confirmed THEN
        t := history.hold_turn(p_tenant, p_turn);
    END IF;
    IF history.refusal(t, p_fence) IS NOT NULL THEN
        RETURN history.refusal(t, p_fence);
    END IF;
    PERFORM history.confirm(t, coalesce(p_now, history.now_ms()));
    SELECT * INTO s FROM history.sessions WHERE tenant = p_tenant AND id = t.session;
    SELECT json_agg(json_build_array(i.id, history.body_json(i.message), i.tokens) ORDER BY i.ord) INTO v_messages
    FROM history.inbox i
    WHERE i.tenant = p_tenant AND i.turn = p_turn AND (i.steer IS NULL OR i.steer <= t.steer_acked);
    SELECT json_agg(json_build_array(e.body, e.tokens) ORDER BY e.fence, e.n) INTO v_staged
    FROM (SELECT history.body_json(x.body) AS body, x.tokens, x.fence, x.n FROM history.staged_entries x
        WHERE x.tenant = p_tenant AND x.turn = p_turn AND (x.fence = t.fence OR t.resume_continue)) e;
    RETURN json_build_object('held', json_build_object('session', t.session, 'key', s.key, 'agent', s.agent,
        'transcript', t.transcript, 'branch', t.branch, 'epoch', s.epoch, 'head', t.head_at_claim,
        'attempt', t.attempt, 'state', t.state, 'policy', t.policy, 'route', history.body_json(t.route),
        'preface', t.preface, 'messages', coalesce(v_messages, '[]'), 'staged', coalesce(v_staged, '[]')));
END $$;

CREATE FUNCTION history.stage(
    p_tenant uuid, p_now bigint, p_turn uuid, p_fence bigint, p_first bigint, p_ids uuid[], p_kinds text[],
    p_bodies bytea[], p_tokens bigint[], p_tokenizers text[], p_soft bigint, p_hard bigint)
RETURNS json LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t history.turns;
    v_highest bigint;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    t := history.hold_turn(p_tenant, p_turn);
    IF history.refusal(t, p_fence) IS NOT NULL THEN
        RETURN history.refusal(t, p_fence);
    END IF;
    SELECT coalesce(max(n), 0) INTO v_highest FROM history.staged_entries
    WHERE tenant = p_tenant AND turn = p_turn AND fence = p_fence;
    IF p_first < 1 OR p_first > v_highest + 1 THEN
        RETURN json_build_object('gap', v_highest + 1);
    END IF;
    PERFORM history.confirm(t, coalesce(p_now, history.now_ms()));
    INSERT INTO history.staged_entries (tenant, turn, fence, n, attempt, id, kind, body, tokens, tokenizer)
    SELECT p_tenant, p_turn, p_fence, p_first + e.place - 1, t.attempt, e.id, e.kind, e.body, e.tokens, e.tokenizer
    FROM unnest(p_ids, p_kinds, p_bodies, p_tokens, p_tokenizers) WITH ORDINALITY
        AS e (id, kind, body, tokens, tokenizer, place)
    ON CONFLICT DO NOTHING;
    PERFORM history.move_marks(t, p_soft, p_hard);
    RETURN json_build_object('held', greatest(v_highest, p_first - 1 + cardinality(p_ids)));
END $$;

-- commit

-- Unless one is active for the session.
CREATE FUNCTION history.enqueue_job(t history.turns, p_now bigint, p_kind text, p_job uuid, p_delay_ms bigint)
RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO history.jobs (tenant, id, kind, session, transcript, branch, state, due, payload, result, created, updated)
    VALUES ((t).tenant, p_job, p_kind, (t).session, (t).transcript, (t).branch, 'queued', p_now + p_delay_ms, '{}', '{}',
        p_now, p_now)
    ON CONFLICT (tenant, session, kind) WHERE state IN ('queued', 'published', 'running') DO NOTHING
$$;

-- `rare` says that lost attempts or open steers make the block an unusual one; nothing is changed then.
-- `p_open`, in the place of a message's opening brace, makes an entry's body of it.
CREATE FUNCTION history.commit_turn(
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

-- window

-- The branch in the first row, then the summary's entry, if any, and what is kept behind it up to `p_up_to`. `rare` when a
-- compaction came behind that place: what the window was then is said by the body of an older summary.
CREATE FUNCTION history.read_window(p_tenant uuid, p_transcript uuid, p_branch uuid, p_up_to bigint)
RETURNS TABLE (line json, rare boolean, seq bigint, id uuid, turn uuid, body bytea, tokens bigint, tokenizer text, at bigint)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b history.branches;
    v_up_to bigint;
BEGIN
    PERFORM set_config('colloquy.tenant', p_tenant::text, true);
    SELECT * INTO b FROM history.branches x
    WHERE x.tenant = p_tenant AND x.transcript = p_transcript AND x.branch = p_branch;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_up_to := least(coalesce(p_up_to, b.head), b.head);
    line := json_build_object('transcript', b.transcript, 'branch', b.branch, 'epoch',
        (SELECT s.epoch FROM history.sessions s WHERE s.tenant = p_tenant AND s.id = b.session),
        'head', b.head, 'compaction_seq', b.compaction_seq, 'first_kept', b.first_kept, 'soft', b.soft, 'hard', b.hard,
        'window_messages', b.window_messages, 'window_tokens', b.window_tokens);
    rare := coalesce(b.compaction_seq > v_up_to, false);
    RETURN NEXT;
    IF rare THEN
        RETURN;
    END IF;
    -- Without a pointer the planner would choose a scan that never starts, and start workers for it.
    IF b.compaction_seq IS NOT NULL THEN
        RETURN QUERY SELECT NULL::json, false, e.seq, e.id, e.turn, e.body, e.tokens, e.tokenizer, e.at FROM history.entries e
        WHERE e.tenant = p_tenant AND e.transcript = p_transcript AND e.branch = p_branch AND e.seq = b.compaction_seq;
    END IF;
    RETURN QUERY SELECT NULL::json, false, e.seq, e.id, e.turn, e.body, e.tokens, e.tokenizer, e.at FROM history.entries e
    WHERE e.tenant = p_tenant AND e.transcript = p_transcript AND e.branch = p_branch
        AND e.seq BETWEEN b.first_kept AND v_up_to AND e.seq IS DISTINCT FROM b.compaction_seq
    ORDER BY e.seq;
END $$;

DO $$
DECLARE f regprocedure;
BEGIN
    FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'history' AND NOT p.prosecdef LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO colloquy_app', f);
    END LOOP;
END $$;
