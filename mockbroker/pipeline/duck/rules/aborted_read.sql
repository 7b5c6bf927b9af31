-- Aborted records that were delivered to a read_committed consumer.
WITH suspects AS (
    SELECT a.k, a.run, a.connection, a.response_seq, d."offset"
    FROM (SELECT k, append_seq, "offset" FROM stored SEMI JOIN aborted USING (k, append_seq)) AS s
    JOIN brought AS d USING (k, "offset")
    JOIN answers AS a ON a.k = d.k AND a.response_seq = d.response_seq AND a.committed_only
    GROUP BY ALL
), there AS (
    -- The record at the offset at the time of the answer: the last one that does not diverge.
    SELECT f.k, f.connection, f.response_seq, f."offset", max(s.append_seq) AS append_seq
    FROM suspects AS f
    JOIN (FROM stored ANTI JOIN diverging USING (k, append_seq)) AS s USING (k, "offset")
    WHERE s.append_seq < f.response_seq
      AND NOT was_removed(f.k, f."offset", s.append_seq, f.response_seq)
    GROUP BY ALL
)
SELECT p.run, 'bug' AS verdict, 'wire' AS level, p.topic, p.topic_id, p."partition", t."offset",
       'connection:' || t.connection AS subject,
       t.append_seq AS first_seq, t.response_seq AS last_seq, NULL AS rule
FROM there AS t SEMI JOIN aborted USING (k, append_seq) JOIN places AS p USING (k)
