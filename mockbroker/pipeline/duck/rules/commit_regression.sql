-- Committed offsets that decreased without a reset.
SELECT p.run, 'report' AS verdict, 'commits' AS level, p.topic, p.topic_id, p."partition",
       c."offset", c."group" AS subject, c.former_seq AS first_seq, c.seq AS last_seq, NULL AS rule
FROM applied AS c JOIN places AS p USING (k)
WHERE c."offset" < c.former_offset AND NOT c.reset
