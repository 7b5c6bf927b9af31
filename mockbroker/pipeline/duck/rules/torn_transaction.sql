-- Complete transactions with a commit marker in some of their partitions only.
WITH states AS (
    SELECT run, transaction, max(seq) AS seq, max_by(state, seq) AS state
    FROM transactions WHERE transaction IS NOT NULL
    GROUP BY ALL
), parts AS (
    SELECT s.run, s.transaction, s.k, min(s.append_seq) AS append_seq,
           EXISTS (SELECT 1 FROM deleted AS d WHERE d.k = s.k) AS deleted,
           EXISTS (
             SELECT 1 FROM marked AS m
             WHERE m.k = s.k AND m.transaction = s.transaction AND m.committed
           ) AS committed
    FROM sent AS s
    WHERE s.append_seq IS NOT NULL AND s.transaction IS NOT NULL
    GROUP BY ALL
), torn AS (
    SELECT run, transaction, min(append_seq) AS append_seq
    FROM parts
    GROUP BY ALL
    HAVING count(*) FILTER (WHERE committed AND NOT deleted) > 0
       AND count(*) FILTER (WHERE NOT committed AND NOT deleted) > 0
)
SELECT run, 'bug' AS verdict, 'wire' AS level, NULL AS topic, NULL AS topic_id,
       NULL AS "partition", NULL AS "offset", transaction AS subject, append_seq AS first_seq,
       greatest(states.seq, (
         SELECT max(m.seq) FROM marked AS m
         WHERE m.run = torn.run AND m.transaction = torn.transaction
       )) AS last_seq,
       NULL AS rule
FROM torn JOIN states USING (run, transaction)
WHERE states.state IN ('CompleteCommit', 'CompleteAbort')
