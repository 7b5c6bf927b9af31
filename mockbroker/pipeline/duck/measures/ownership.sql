-- The owners of each partition over time, until the next assignment or the end of the group.
WITH given AS (
    SELECT run, "group", generation, member, client_id, topic, "partition", seq,
           virtual_ms AS from_ms,
           lead(seq) OVER owners AS next_seq, lead(virtual_ms) OVER owners AS next_ms
    FROM assignments
    WINDOW owners AS (PARTITION BY run, "group", topic_id, "partition" ORDER BY seq)
), ends AS (
    SELECT run, "group", seq, virtual_ms FROM groups WHERE state IN ('Empty', 'Dead')
)
SELECT g.run, g."group", g.topic, g."partition", g.member, g.client_id, g.generation, g.from_ms,
       coalesce((
         SELECT min(e.virtual_ms) FROM ends AS e
         WHERE e.run = g.run AND e."group" = g."group" AND e.seq > g.seq
           AND (g.next_seq IS NULL OR e.seq < g.next_seq)
       ), g.next_ms) AS to_ms
FROM given AS g
ORDER BY g.run, g."group", g.topic, g."partition", g.from_ms
