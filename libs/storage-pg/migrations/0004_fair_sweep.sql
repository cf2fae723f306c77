-- The sweep takes a number from each agent's sessions, not the oldest of all: a tenant's backlog that nobody works on must
-- not keep the sessions of others from the schedule. Where even the first of every agent are too many, a throw of the
-- dice decides, so that the next sweep finds others.

CREATE FUNCTION history.list_runnable(own uuid, until bigint, per_agent bigint, most bigint)
RETURNS TABLE (tenant uuid, agent text, session uuid, lane text, due bigint)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = history AS $$
    SELECT r.tenant, r.agent, r.session, r.lane, r.due FROM (
        SELECT t.tenant, s.agent, t.session, t.lane, t.due,
            row_number() OVER (PARTITION BY t.tenant, s.agent ORDER BY t.due, t.session) AS place
        FROM turns t JOIN sessions s ON s.tenant = t.tenant AND s.id = t.session
        WHERE t.ended IS NULL AND t.state = 'waiting' AND t.due <= until AND t.tenant = coalesce(own, t.tenant)
        AND NOT EXISTS (SELECT 1 FROM turns e WHERE e.tenant = t.tenant AND e.session = t.session
            AND e.ended IS NULL AND e.state = 'waiting' AND e.ord < t.ord)
        AND (SELECT count(*) FROM turns x WHERE x.tenant = t.tenant AND x.session = t.session
            AND x.ended IS NULL AND x.state <> 'waiting') < t.max_concurrent
    ) r WHERE r.place <= per_agent ORDER BY r.place, random() LIMIT most
$$;

GRANT colloquy_sweep TO CURRENT_USER;
GRANT CREATE ON SCHEMA history TO colloquy_sweep;
ALTER FUNCTION history.list_runnable(uuid, bigint, bigint, bigint) OWNER TO colloquy_sweep;
REVOKE CREATE ON SCHEMA history FROM colloquy_sweep;
REVOKE ALL ON FUNCTION history.list_runnable(uuid, bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION history.list_runnable(uuid, bigint, bigint, bigint) TO colloquy_app;
