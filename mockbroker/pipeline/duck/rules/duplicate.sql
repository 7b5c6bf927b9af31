-- One record at two offsets: by its id, and by the sequence number of its batch. Records without an id
-- and with the key and value of another in the topic are counted, because they are undecidable.
WITH topics AS (
    SELECT k, dense_rank() OVER (ORDER BY run, topic_id) AS t FROM places
), twice AS (
    -- By a hash of the id first: few ids are repeated.
    SELECT t, hash(id) AS id_hash
    FROM records JOIN places USING (run, topic_id, "partition") JOIN topics USING (k)
    WHERE id IS NOT NULL
    GROUP BY ALL
    HAVING count(*) > 1
), alike AS (
    SELECT value_hash FROM records WHERE id IS NULL GROUP BY value_hash HAVING count(*) > 1
), candidates AS (
    SELECT p.k, t.t, r.id, r."offset", r.append_seq, r.value_hash
    FROM records AS r JOIN places AS p USING (run, topic_id, "partition") JOIN topics AS t USING (k)
    WHERE (t.t, hash(r.id)) IN (SELECT t, id_hash FROM twice)
       OR r.value_hash IN (SELECT value_hash FROM alike)
), standing AS (
    FROM candidates
    ANTI JOIN aborted USING (k, append_seq)
    ANTI JOIN diverging USING (k, append_seq)
    ANTI JOIN thrown USING (k, append_seq, "offset")
), named AS (
    SELECT k, t, id, "offset", min(append_seq) AS append_seq
    FROM standing WHERE id IS NOT NULL
    GROUP BY ALL
), by_id AS (
    SELECT n.k, n."offset", n.append_seq, 'id:' || n.id AS subject, s.producer_id, s.producer_epoch,
           row_number() OVER same AS number,
           first_value(n.append_seq) OVER same AS first_append,
           first_value(s.producer_id) OVER same AS first_producer,
           first_value(s.producer_epoch) OVER same AS first_epoch,
           lag(n.append_seq) OVER own AS former_append
    FROM named AS n JOIN places AS p USING (k)
    LEFT JOIN sent AS s ON s.k = n.k AND s.append_seq = n.append_seq
    WINDOW same AS (PARTITION BY n.t, n.id ORDER BY n.append_seq, p."partition", n."offset"),
           own AS (
             PARTITION BY n.k, n.id, s.producer_id, s.producer_epoch
             ORDER BY n.append_seq, n."offset"
           )
), by_value AS (
    SELECT t, count(DISTINCT (k, "offset")) - 1 AS copies, min(append_seq) AS first_seq,
           max(append_seq) AS last_seq
    FROM standing WHERE id IS NULL
    GROUP BY t, value_hash
    HAVING copies > 0
), by_sequence AS (
    SELECT k, base_offset AS "offset", append_seq, 'producer:' || producer_id AS subject, producer_id,
           row_number() OVER lowest AS number, first_value(append_seq) OVER lowest AS first_append,
           lag(append_seq) OVER own AS former_append
    FROM sequenced
    WINDOW lowest AS (
        PARTITION BY k, producer_id, producer_epoch, base_sequence ORDER BY base_offset, append_seq
    ), own AS (PARTITION BY k, producer_id, producer_epoch, base_sequence ORDER BY append_seq)
), found AS (
    SELECT k, "offset", subject, append_seq, first_append, producer_id, former_append,
           coalesce(producer_id = first_producer, FALSE)
           AND producer_epoch IS NOT DISTINCT FROM first_epoch AS same_producer
    FROM by_id WHERE number > 1
    UNION ALL
    SELECT k, "offset", subject, append_seq, first_append, producer_id, former_append, TRUE
    FROM by_sequence WHERE number > 1
), judged AS (
    SELECT *, same_producer AND EXISTS (
               SELECT 1 FROM forgotten AS e
               WHERE e.k = f.k AND e.producer_id = f.producer_id
                 AND e.seq > f.former_append AND e.seq < f.append_seq
           ) AS expired
    FROM found AS f
)
SELECT p.run, CASE WHEN same_producer AND NOT expired THEN 'bug' ELSE 'report' END AS verdict,
       'wire' AS level, p.topic, p.topic_id, p."partition", f."offset", f.subject,
       least(f.append_seq, f.first_append) AS first_seq,
       greatest(f.append_seq, f.first_append) AS last_seq,
       CASE WHEN expired THEN 'producer.id.expiration.ms' END AS rule
FROM judged AS f JOIN places AS p USING (k)
UNION ALL
SELECT n.run, 'undecided', 'wire', n.topic, n.topic_id, NULL, NULL,
       'without-id:' || CAST(sum(v.copies) AS BIGINT), min(v.first_seq), max(v.last_seq), NULL
FROM by_value AS v
JOIN (
    SELECT t, run, topic_id, any_value(topic) AS topic
    FROM topics JOIN places USING (k) GROUP BY ALL
) AS n USING (t)
GROUP BY n.run, n.topic, n.topic_id
