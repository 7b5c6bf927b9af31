-- One record at two offsets: by its id, and by the sequence number of its batch.
WITH twice AS (
    -- By a hash of the id first: that several records have it is rare.
    SELECT k, hash(id) AS id_hash
    FROM records JOIN places USING (run, topic_id, "partition")
    WHERE id IS NOT NULL
    GROUP BY ALL
    HAVING count(*) > 1
), named AS (
    SELECT p.k, r.id, r."offset", min(r.append_seq) AS append_seq
    FROM records AS r JOIN places AS p USING (run, topic_id, "partition")
    JOIN twice AS t ON t.k = p.k AND t.id_hash = hash(r.id)
    WHERE NOT EXISTS (SELECT 1 FROM aborted AS a WHERE a.k = p.k AND a.append_seq = r.append_seq)
      AND NOT EXISTS (SELECT 1 FROM diverging AS d WHERE d.k = p.k AND d.append_seq = r.append_seq)
      AND NOT EXISTS (
        SELECT 1 FROM thrown AS t
        WHERE t.k = p.k AND t.append_seq = r.append_seq AND t."offset" = r."offset"
      )
    GROUP BY ALL
), by_id AS (
    SELECT n.k, n."offset", n.append_seq, 'id:' || n.id AS subject, s.producer_id,
           first_value(n."offset") OVER lowest AS lowest_offset,
           first_value(n.append_seq) OVER lowest AS lowest_append,
           first_value(s.producer_id) OVER lowest AS lowest_producer
    FROM named AS n LEFT JOIN sent AS s ON s.k = n.k AND s.append_seq = n.append_seq
    WINDOW lowest AS (PARTITION BY n.k, n.id ORDER BY n."offset")
), by_sequence AS (
    SELECT k, base_offset AS "offset", append_seq, 'producer:' || producer_id AS subject,
           row_number() OVER lowest AS number, first_value(append_seq) OVER lowest AS lowest_append
    FROM sequenced
    WINDOW lowest AS (
        PARTITION BY k, producer_id, producer_epoch, base_sequence ORDER BY base_offset, append_seq
    )
), found AS (
    SELECT k, "offset", subject, append_seq, lowest_append,
           CASE WHEN producer_id = lowest_producer THEN 'bug' ELSE 'report' END AS verdict
    FROM by_id WHERE "offset" > lowest_offset
    UNION ALL
    SELECT k, "offset", subject, append_seq, lowest_append, 'bug' FROM by_sequence WHERE number > 1
)
SELECT p.run, f.verdict, 'wire' AS level, p.topic, p.topic_id, p."partition", f."offset", f.subject,
       least(f.append_seq, f.lowest_append) AS first_seq,
       greatest(f.append_seq, f.lowest_append) AS last_seq, NULL AS rule
FROM found AS f JOIN places AS p USING (k)
