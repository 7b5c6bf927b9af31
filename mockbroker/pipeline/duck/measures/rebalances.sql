-- A rebalance begins when the group leaves a stable state. It ends when the group is stable again and
-- the last member has its first answered Fetch of its new partitions or, without any, its assignment.
WITH steps AS (
    SELECT *,
           sum(CASE WHEN former IN ('Stable', 'Empty') AND state NOT IN ('Stable', 'Empty', 'Dead')
                    THEN 1 ELSE 0 END) OVER (PARTITION BY run, "group" ORDER BY seq) AS number
    FROM groups
), spans AS (
    SELECT run, "group", number, min(protocol) AS protocol, min(seq) AS start_seq,
           min(virtual_ms) AS start_ms, min_by(reason, seq) AS cause,
           min(seq) FILTER (WHERE state IN ('Stable', 'Empty', 'Dead')) AS stable_seq,
           min(virtual_ms) FILTER (WHERE state IN ('Stable', 'Empty', 'Dead')) AS stable_ms,
           min_by(generation, seq) FILTER (WHERE state IN ('Stable', 'Empty', 'Dead')) AS generation,
           min_by(members, seq) FILTER (WHERE state IN ('Stable', 'Empty', 'Dead')) AS members,
           greatest(count(*) FILTER (WHERE state = 'PreparingRebalance') - 1, 0) AS restarts
    FROM steps WHERE number > 0
    GROUP BY ALL
), bounded AS (
    SELECT *, lead(start_seq) OVER (PARTITION BY run, "group" ORDER BY number) AS next_seq
    FROM spans
), given AS (
    SELECT *, lag(member) OVER (
             PARTITION BY run, "group", topic_id, "partition" ORDER BY seq) AS former_member
    FROM assignments
), of_span AS (
    SELECT b.run, b."group", b.number, g.member, g.seq, g.virtual_ms, g.former_member, b.next_seq
    FROM bounded AS b JOIN given AS g
      ON g.run = b.run AND g."group" = b."group" AND g.seq >= b.start_seq
     AND (b.next_seq IS NULL OR g.seq < b.next_seq)
), returns AS (
    SELECT a.run, a."group", a.number, a.member, min(a.virtual_ms) AS assigned_ms,
           min(f.virtual_ms) AS fetched_ms
    FROM (
        SELECT run, "group", number, member, min(seq) AS seq, min(virtual_ms) AS virtual_ms,
               min(next_seq) AS next_seq
        FROM of_span GROUP BY ALL
    ) AS a
    LEFT JOIN fetches AS f
      ON f.run = a.run AND f."group" = a."group" AND f.member = a.member AND f.response_seq > a.seq
     AND (a.next_seq IS NULL OR f.response_seq < a.next_seq) AND f.error IS NULL
    GROUP BY ALL
), moved AS (
    SELECT run, "group", number,
           count(*) FILTER (WHERE former_member IS DISTINCT FROM member) AS moved,
           count(*) AS partitions
    FROM of_span GROUP BY ALL
), back AS (
    SELECT run, "group", number, max(coalesce(fetched_ms, assigned_ms)) AS back_ms
    FROM returns GROUP BY ALL
), whole AS (
    SELECT b.*, k.back_ms, greatest(b.stable_ms, k.back_ms) AS end_ms
    FROM bounded AS b LEFT JOIN back AS k USING (run, "group", number)
), pulse AS (
    -- Between two of these rows no Fetch of a member was answered.
    SELECT run, "group", number, start_ms AS at_ms FROM whole
    UNION
    SELECT run, "group", number, end_ms FROM whole
    UNION
    SELECT w.run, w."group", w.number, f.virtual_ms
    FROM whole AS w JOIN fetches AS f
      ON f.run = w.run AND f."group" = w."group" AND f.virtual_ms BETWEEN w.start_ms AND w.end_ms
), still AS (
    SELECT run, "group", number, max(at_ms - before_ms) AS stopped_ms
    FROM (
        SELECT *, lag(at_ms) OVER (PARTITION BY run, "group", number ORDER BY at_ms) AS before_ms
        FROM pulse WHERE at_ms IS NOT NULL
    )
    GROUP BY ALL
)
SELECT w.run, w."group", w.protocol, w.generation, w.cause, w.start_seq, w.start_ms, w.stable_ms,
       w.back_ms, w.end_ms - w.start_ms AS took_ms, coalesce(s.stopped_ms, 0) AS stopped_ms,
       w.restarts, w.members, coalesce(m.partitions, 0) AS partitions, coalesce(m.moved, 0) AS moved
FROM whole AS w
LEFT JOIN moved AS m USING (run, "group", number)
LEFT JOIN still AS s USING (run, "group", number)
ORDER BY w.run, w."group", w.start_seq
