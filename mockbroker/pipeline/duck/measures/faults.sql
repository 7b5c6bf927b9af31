-- The effects of each rule: hits, requests, retries of clients, and the longest time, on the cluster's
-- clock, until an affected client got an answer of that API without an error.
WITH hits AS (
    SELECT f.run, unnest(f.rules) AS "rule", f.seq, f.virtual_ms, f.change, f.kind,
           coalesce(f.request_seq, f.seq) AS at_seq, r.api, r.client_id, r.connection
    FROM faults AS f LEFT JOIN requests AS r ON r.run = f.run AND r.seq = f.request_seq
    UNION ALL
    SELECT run, NULL, seq, virtual_ms, change, kind, coalesce(request_seq, seq), NULL, NULL, NULL
    FROM faults WHERE len(rules) = 0 OR rules IS NULL
), hit_requests AS (
    -- A request with several effects counts as hit once, by the first of them.
    SELECT run, "rule", at_seq, api, client_id, min(virtual_ms) AS virtual_ms
    FROM hits WHERE client_id IS NOT NULL AND api IS NOT NULL
    GROUP BY ALL
), good AS (
    SELECT run, api, client_id, seq, virtual_ms
    FROM requests
    WHERE outcome IS NULL AND coalesce(len(errors), 0) = 0 AND coalesce(len(rules), 0) = 0
), recovery AS (
    SELECT h.run, h."rule", h.at_seq, h.virtual_ms, h.api, h.client_id,
           min(g.seq) AS good_seq, min(g.virtual_ms) AS good_ms
    FROM hit_requests AS h
    LEFT JOIN good AS g ON g.run = h.run AND g.api = h.api AND g.client_id = h.client_id
                       AND g.seq > h.at_seq
    GROUP BY ALL
), recovered AS (
    SELECT run, "rule", count(good_seq) AS recovered, max(good_ms - virtual_ms) AS recovery_ms
    FROM recovery GROUP BY ALL
), again AS (
    -- The retries of clients, up to the successful one.
    SELECT c.run, c."rule", count(DISTINCT r.seq) AS retries
    FROM recovery AS c JOIN requests AS r
      ON r.run = c.run AND r.api = c.api AND r.client_id = c.client_id
     AND r.seq > c.at_seq AND r.seq <= c.good_seq
    GROUP BY ALL
)
SELECT h.run, h."rule", string_agg(DISTINCT h.change, ', ' ORDER BY h.change) AS effects,
       count(DISTINCT (h.seq, h.change)) AS times, count(DISTINCT h.at_seq) FILTER (WHERE h.api IS NOT NULL) AS requests,
       coalesce(string_agg(DISTINCT h.api, ', ' ORDER BY h.api), '') AS apis,
       min(h.virtual_ms) AS first_ms, max(h.virtual_ms) AS last_ms,
       coalesce(max(a.retries), 0) AS retries, coalesce(max(c.recovered), 0) AS recovered,
       max(c.recovery_ms) AS recovery_ms
FROM hits AS h
LEFT JOIN recovered AS c ON c.run = h.run AND c."rule" IS NOT DISTINCT FROM h."rule"
LEFT JOIN again AS a ON a.run = h.run AND a."rule" IS NOT DISTINCT FROM h."rule"
GROUP BY h.run, h."rule"
ORDER BY h.run, first_ms
