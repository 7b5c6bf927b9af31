-- One offset with two values, over acknowledged records and all deliveries.
--
-- First come offsets that may be so, without a group for each offset there is: those with several
-- records (counted by a bit for each of 64 neighbours), and those where a delivery differs from the
-- record or has none.
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
), reported AS (
    SELECT s.k, s."offset", s.append_seq AS seq, s.value_hash
    FROM stored AS s JOIN suspects USING (k, "offset")
    WHERE EXISTS (
        SELECT 1 FROM acknowledged AS a
        WHERE a.k = s.k AND a.append_seq = s.append_seq
          AND s."offset" BETWEEN a.first_offset AND a.last_offset
    )
    UNION ALL
    SELECT d.k, d."offset", d.response_seq, d.value_hash
    FROM brought AS d JOIN suspects USING (k, "offset")
)
SELECT p.run, 'bug' AS verdict, 'wire' AS level, p.topic, p.topic_id, p."partition", t."offset",
       NULL AS subject, min(t.seq) AS first_seq, max(t.seq) AS last_seq, NULL AS rule
FROM reported AS t JOIN places AS p USING (k)
GROUP BY ALL
HAVING count(DISTINCT t.value_hash) > 1
