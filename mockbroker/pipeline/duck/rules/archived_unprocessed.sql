-- Records that a share group archived, and that no member of it accepted or rejected.
WITH archived AS (
    SELECT * FROM handled
    WHERE state = 'Archived' AND change <> 'writing'
    QUALIFY row_number() OVER (PARTITION BY k, "group", "offset" ORDER BY seq) = 1
), unprocessed AS (
    SELECT * FROM archived ANTI JOIN (
        SELECT k, "group", "offset" FROM handled
        WHERE state = 'Acknowledged' OR reason = 'rejected'
    ) USING (k, "group", "offset")
), lost AS (
    SELECT u.*, s.append_seq
    FROM unprocessed AS u
    JOIN lasting AS s ON s.k = u.k AND s."offset" = u."offset" AND s.append_seq < u.seq
    WHERE NOT was_removed(s.k, s."offset", s.append_seq, u.seq)
)
SELECT p.run,
       CASE WHEN l.cause IS NOT NULL OR l.reason = 'gap'
                 OR (l.reason = 'delivery_limit' AND l.delivery_count >= l.limit_min)
            THEN 'report' ELSE 'bug' END AS verdict,
       'wire' AS level, p.topic, p.topic_id, p."partition", l."offset", l."group" AS subject,
       l.append_seq AS first_seq, l.seq AS last_seq, l.cause AS rule
FROM lost AS l JOIN places AS p USING (k)
