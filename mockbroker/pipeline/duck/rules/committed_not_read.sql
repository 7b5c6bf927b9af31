-- Committed beyond what the member had been sent.
SELECT p.run, 'report' AS verdict, 'commits' AS level, p.topic, p.topic_id, p."partition",
       m."offset", r."group" AS subject, r.first_seq, r.at_seq AS last_seq, NULL AS rule
FROM missing AS m JOIN ranges AS r USING (n) JOIN places AS p USING (k)
WHERE r.what = 'commit'
