-- Records in another order than sent: by sequence numbers, and by the application's operations.
WITH by_sequence AS (
    SELECT k, producer_id, base_offset, base_sequence, append_seq,
           lag(base_sequence) OVER sends AS former_sequence,
           lag(records) OVER sends AS former_records,
           lag(append_seq) OVER sends AS former_append
    FROM sequenced
    WINDOW sends AS (PARTITION BY k, producer_id, producer_epoch ORDER BY base_offset, append_seq)
), first_sends AS (
    SELECT run, process, topic, id, min(seq) AS seq
    FROM operations AS o
    WHERE op = 'send' AND id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM ambiguous AS a WHERE a.run = o.run AND a.topic = o.topic)
    GROUP BY ALL
), placed AS (
    SELECT p.k, r.run, r.topic, r.id, min(r."offset") AS "offset", min_by(r.append_seq, r."offset") AS append_seq
    FROM (
        SELECT * FROM records
        SEMI JOIN first_sends USING (run, topic, id)
    ) AS r
    JOIN places AS p USING (run, topic_id, "partition")
    ANTI JOIN aborted USING (k, append_seq)
    ANTI JOIN diverging USING (k, append_seq)
    ANTI JOIN thrown USING (k, append_seq, "offset")
    GROUP BY ALL
), by_word AS (
    SELECT l.k, f.process, f.seq, l."offset", l.append_seq, s.producer_id,
           lag(f.seq) OVER sends AS former_seq, lag(l.append_seq) OVER sends AS former_append,
           lag(s.producer_id) OVER sends AS former_producer
    FROM placed AS l
    JOIN first_sends AS f USING (run, topic, id)
    LEFT JOIN sent AS s ON s.k = l.k AND s.append_seq = l.append_seq
    WINDOW sends AS (PARTITION BY l.k, f.process ORDER BY l."offset")
), found AS (
    SELECT k, 'bug' AS verdict, 'wire' AS level, base_offset AS "offset",
           'producer:' || producer_id AS subject, append_seq, former_append,
           EXISTS (
             SELECT 1 FROM forgotten AS e
             WHERE e.k = b.k AND e.producer_id = b.producer_id
               AND e.seq > b.former_append AND e.seq < b.append_seq
           ) AS expired
    FROM by_sequence AS b
    WHERE base_sequence < former_sequence
      AND CAST(former_sequence AS BIGINT) + former_records < 2147483648
    UNION ALL
    SELECT k, CASE WHEN producer_id IS NULL OR former_producer IS NULL THEN 'report' ELSE 'bug' END,
           'application', "offset", process, append_seq, former_append, FALSE
    FROM by_word
    WHERE seq < former_seq
)
SELECT p.run, CASE WHEN f.expired THEN 'report' ELSE f.verdict END AS verdict, f.level, p.topic, p.topic_id, p."partition", f."offset", f.subject,
       least(f.append_seq, f.former_append) AS first_seq,
       greatest(f.append_seq, f.former_append) AS last_seq,
       CASE WHEN f.expired THEN 'producer.id.expiration.ms' END AS rule
FROM found AS f JOIN places AS p USING (k)
