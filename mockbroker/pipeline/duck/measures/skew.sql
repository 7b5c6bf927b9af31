-- The distribution of records over the partitions of a topic; `skew` 1 is an even share.
WITH counted AS (
    SELECT run, topic, topic_id, "partition", count(*) AS records,
           count(DISTINCT key_hash) AS keys, count(*) - count(key_hash) AS without_key
    FROM records
    GROUP BY ALL
), hottest AS (
    SELECT run, topic_id, "partition", max(records) AS hottest_key
    FROM (
        SELECT run, topic_id, "partition", key_hash, count(*) AS records
        FROM records WHERE key_hash IS NOT NULL
        GROUP BY ALL
    )
    GROUP BY ALL
)
SELECT c.run, c.topic, c.topic_id, c."partition", c.records,
       round(c.records / sum(c.records) OVER of_topic, 4) AS share,
       round(c.records / avg(c.records) OVER of_topic, 2) AS skew,
       c.keys, h.hottest_key AS records_of_hottest_key, c.without_key
FROM counted AS c LEFT JOIN hottest AS h USING (run, topic_id, "partition")
WINDOW of_topic AS (PARTITION BY c.run, c.topic_id)
ORDER BY c.run, c.topic, c."partition"
