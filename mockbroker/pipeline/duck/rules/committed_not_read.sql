-- Committed offsets above the member's deliveries.
SELECT p.run, 'report' AS verdict, 'commits' AS level, p.topic, p.topic_id, p."partition",
       m."offset", r."group" AS subject, r.first_seq, r.at_seq AS last_seq, NULL AS rule
FROM missing AS m JOIN ranges AS r USING (n) JOIN places AS p USING (k)
WHERE r.what = 'commit'
UNION ALL
-- Other members may have had the answers that brought it.
SELECT p.run, 'undecided', 'commits', any_value(p.topic), p.topic_id, NULL, NULL,
       'unattributed:' || r."group", min(r.first_seq), max(r.at_seq), NULL
FROM missing AS m JOIN ranges AS r USING (n) JOIN places AS p USING (k)
WHERE r.what = 'unattributed'
GROUP BY p.run, p.topic_id, r."group"
