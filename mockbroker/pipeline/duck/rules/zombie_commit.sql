-- Commits by members of old generations, applied or refused. Each coordinator has a state of its own.
WITH eras AS (
    SELECT run, broker, "group", protocol, generation, state, seq,
           lead(seq) OVER (PARTITION BY run, broker, "group" ORDER BY seq) AS next_seq
    FROM groups
), taken AS (
    SELECT c.*, (
             SELECT min(g.seq) FROM groups AS g
             WHERE g.run = c.run AND g."group" = c."group" AND g.generation > c.generation
               AND g.broker IS NOT DISTINCT FROM c.broker
           ) AS first_seq
    FROM applied AS c
    JOIN eras AS e ON e.run = c.run AND e."group" = c."group"
         AND e.broker IS NOT DISTINCT FROM c.broker
    WHERE c.generation IS NOT NULL
      AND e.seq < c.seq AND (e.next_seq IS NULL OR e.next_seq >= c.seq)
      AND e.protocol = 'classic' AND e.state <> 'Dead' AND e.generation > c.generation
)
SELECT p.run, 'bug' AS verdict, 'commits' AS level, p.topic, p.topic_id, p."partition",
       t."offset", t."group" AS subject, t.first_seq, t.seq AS last_seq, NULL AS rule
FROM taken AS t JOIN places AS p USING (k)
UNION ALL
SELECT run, 'report', 'commits', topic, topic_id, "partition", "offset", "group", seq, seq, NULL
FROM commits
WHERE error IN ('ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID',
                'FENCED_MEMBER_EPOCH', 'STALE_MEMBER_EPOCH')
