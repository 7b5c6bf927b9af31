-- Records with several operations `processed` of a group.
SELECT run, 'report' AS verdict, 'application' AS level, topic, NULL AS topic_id, "partition",
       "offset", "group" AS subject, NULL AS first_seq, NULL AS last_seq, NULL AS rule
FROM operations AS o
WHERE op = 'processed' AND "offset" IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM ambiguous AS a WHERE a.run = o.run AND a.topic = o.topic)
GROUP BY ALL
HAVING count(*) > 1
