-- Skipped records: within an answer, or from one answer to the next.
SELECT p.run,
       CASE WHEN f.jumped AND r.what = 'pair' THEN 'report' ELSE 'bug' END AS verdict,
       'wire' AS level, p.topic, p.topic_id, p."partition", min(m."offset") AS "offset",
       'connection:' || f.connection AS subject,
       coalesce(r.first_seq, r.at_seq) AS first_seq, r.at_seq AS last_seq, NULL AS rule
FROM missing AS m
JOIN ranges AS r USING (n)
JOIN pairs AS f ON f.k = r.k AND f.response_seq = r.at_seq
JOIN places AS p ON p.k = r.k
WHERE r.what IN ('answer', 'pair')
GROUP BY ALL
