-- One offset with two values, over acknowledged records and all deliveries.
--
-- Candidates come first, without a group for each offset: offsets with several records (counted by a
-- bit for each of 64 neighbours), and offsets where a delivery differs from the record or has none.
WITH crowded AS (
    SELECT k, "offset" // 64 AS bucket
    FROM stored
    GROUP BY ALL
    HAVING bit_count(bit_or(CAST(1 AS UBIGINT) << CAST("offset" % 64 AS UBIGINT))) <> count(*)
), suspects AS (
    SELECT s.k, s."offset"
    FROM stored AS s JOIN crowded AS c ON c.k = s.k AND c.bucket = s."offset" // 64
    UNION
    SELECT d.k, d."offset"
    FROM brought AS d LEFT JOIN stored AS s ON s.k = d.k AND s."offset" = d."offset"
    WHERE s.value_hash IS NULL OR s.value_hash <> d.value_hash
), forgiven AS (
    -- Excused losses. A delivered record is promised, also with acks=1.
    SELECT e.k, e."offset", e.append_seq, e.excuse, s.value_hash, e.excuse <> 'acks=1' AS delivered
    FROM excused AS e JOIN suspects USING (k, "offset")
    JOIN stored AS s USING (k, "offset", append_seq)
), reported AS (
    SELECT s.k, s."offset", s.append_seq AS seq, s.value_hash, f.k IS NOT NULL AS forgiven
    FROM stored AS s JOIN suspects USING (k, "offset")
    LEFT JOIN forgiven AS f ON f.k = s.k AND f."offset" = s."offset"
         AND f.append_seq = s.append_seq
    WHERE EXISTS (
        SELECT 1 FROM acknowledged AS a
        WHERE a.k = s.k AND a.append_seq = s.append_seq
          AND s."offset" BETWEEN a.first_offset AND a.last_offset
    )
    UNION ALL
    SELECT d.k, d."offset", d.response_seq, d.value_hash,
           EXISTS (
             SELECT 1 FROM forgiven AS f
             WHERE f.delivered AND f.k = d.k AND f."offset" = d."offset"
               AND f.value_hash = d.value_hash
           )
    FROM brought AS d JOIN suspects USING (k, "offset")
), found AS (
    SELECT k, "offset", min(seq) AS first_seq, max(seq) AS last_seq,
           count(DISTINCT value_hash) FILTER (WHERE NOT forgiven) > 1 AS is_bug
    FROM reported
    GROUP BY ALL
    HAVING count(DISTINCT value_hash) > 1
), excuses AS (
    SELECT k, "offset", min_by(excuse, append_seq) AS excuse FROM forgiven GROUP BY ALL
)
SELECT p.run, CASE WHEN t.is_bug THEN 'bug' ELSE 'report' END AS verdict, 'wire' AS level,
       p.topic, p.topic_id, p."partition", t."offset", NULL AS subject, t.first_seq, t.last_seq,
       CASE WHEN NOT t.is_bug THEN e.excuse END AS rule
FROM found AS t JOIN places AS p USING (k)
LEFT JOIN excuses AS e ON e.k = t.k AND e."offset" = t."offset"
