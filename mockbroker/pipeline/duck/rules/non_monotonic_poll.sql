-- Decreasing offsets: within an answer, or from one answer to the next.
SELECT p.run, 'bug' AS verdict, 'wire' AS level, p.topic, p.topic_id, p."partition", l."offset",
       'connection:' || a.connection AS subject,
       a.response_seq AS first_seq, a.response_seq AS last_seq, NULL AS rule
FROM leaps AS l JOIN answers AS a USING (k, response_seq) JOIN places AS p USING (k)
WHERE l."offset" <= l.former
UNION ALL
SELECT p.run, CASE WHEN f.jumped THEN 'report' ELSE 'bug' END, 'wire', p.topic, p.topic_id,
       p."partition", f.lowest, 'connection:' || f.connection, f.former_seq, f.response_seq, NULL
FROM pairs AS f JOIN places AS p USING (k)
WHERE f.lowest < f.former_next
