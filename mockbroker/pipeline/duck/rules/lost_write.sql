-- Acknowledged records that were removed, or that by the application's operations never were in the log.
WITH lost AS (
    SELECT t.k, t."offset", t.append_seq, t.seq, e.excuse
    FROM thrown AS t LEFT JOIN excused AS e USING (k, append_seq, "offset")
    WHERE EXISTS (
        SELECT 1 FROM acknowledged AS a
        WHERE a.k = t.k AND a.append_seq = t.append_seq
          AND t."offset" BETWEEN a.first_offset AND a.last_offset
          AND a.since_seq < t.seq  -- a later retry found the record again
    ) AND NOT EXISTS (
        SELECT 1 FROM gone_near AS g
        WHERE g.k = t.k AND g.wanted AND g.bucket = t."offset" // 1024
          AND t."offset" BETWEEN g.first_offset AND g.last_offset
          AND g.seq > t.append_seq AND g.seq < t.seq
    )
), claims AS (
    SELECT run, topic, "partition", "offset", id, process
    FROM operations AS o
    WHERE op = 'acked' AND ("offset" IS NOT NULL OR id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM ambiguous AS a WHERE a.run = o.run AND a.topic = o.topic)
), kept AS (
    -- Few operations are joined with many records.
    SELECT run, topic, "partition", "offset", id
    FROM records
    SEMI JOIN (SELECT DISTINCT run, topic FROM claims) USING (run, topic)
), broken_claims AS (
    SELECT * FROM claims ANTI JOIN (
        SELECT * FROM kept SEMI JOIN claims USING (run, topic, "partition", "offset")
    ) USING (run, topic, "partition", "offset")
    WHERE "offset" IS NOT NULL
    UNION ALL
    SELECT * FROM claims ANTI JOIN (
        SELECT * FROM kept SEMI JOIN claims USING (run, topic, id)
    ) USING (run, topic, id)
    WHERE "offset" IS NULL
)
SELECT p.run, CASE WHEN l.excuse IS NULL THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       p.topic, p.topic_id, p."partition", l."offset",
       'client:' || coalesce(s.client_id, '') AS subject,
       l.append_seq AS first_seq, l.seq AS last_seq, l.excuse AS rule
FROM lost AS l JOIN places AS p USING (k) JOIN sent AS s USING (k, append_seq)
UNION ALL
SELECT run, CASE WHEN run IN (SELECT run FROM gaps) THEN 'undecided' ELSE 'bug' END,
       'application', topic, NULL, "partition", "offset", process, NULL, NULL, NULL
FROM broken_claims
