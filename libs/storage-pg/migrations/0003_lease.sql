-- A worker may ask for another lease than the policy's; it holds for this claim. Callers that do not know of it go on.

ALTER TABLE history.turns ADD COLUMN asked_lease_ms bigint;

CREATE OR REPLACE FUNCTION history.lease_end(t history.turns, p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT least(p_now + coalesce((t).asked_lease_ms, (t).lease_ms), (t).claimed + (t).max_turn_ms)
$$;

DROP FUNCTION history.claim(uuid, bigint, uuid, text, text[], bigint);

CREATE FUNCTION history.claim(
    p_tenant uuid, p_now bigint, p_session uuid, p_worker text, p_agents text[], p_offer_ms bigint,
    p_lease_ms bigint DEFAULT NULL)
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
        worker = p_worker, claimed = v_now, expires = v_now + v_lease, confirmed = false, head_at_claim = v_head,
        asked_lease_ms = p_lease_ms
    WHERE tenant = p_tenant AND id = t.id;
    UPDATE history.sessions SET fence = s.fence + 1, version = version + 1 WHERE tenant = p_tenant AND id = p_session;
    SELECT json_agg(json_build_array(i.id, history.body_json(i.message)) ORDER BY i.ord) INTO v_messages
    FROM history.inbox i
    WHERE i.tenant = p_tenant AND i.turn = t.id AND (i.steer IS NULL OR i.steer <= t.steer_acked);
    RETURN json_build_object('turn', json_build_object('turn', t.id, 'key', s.key, 'label', s.label, 'agent', s.agent,
        'transcript', t.transcript, 'branch', t.branch, 'head', v_head, 'fence', s.fence + 1, 'attempt', t.attempt + 1,
        'lane', t.lane, 'policy', t.policy, 'limits', json_build_object('lease_ms', coalesce(p_lease_ms, t.lease_ms),
            'max_attempts', t.max_attempts, 'max_turn_ms', t.max_turn_ms, 'max_concurrent', t.max_concurrent,
            'retry_ms', t.retry_ms, 'resume_continue', t.resume_continue),
        'route', history.body_json(t.route), 'preface', t.preface, 'messages', coalesce(v_messages, '[]'),
        'lease_left_ms', v_lease));
END $$;
