-- Records at or above the last stable offset of the answer that delivered them with read_committed.
SELECT p.run, 'bug' AS verdict, 'wire' AS level, p.topic, p.topic_id, p."partition", d."offset",
       'connection:' || a.connection AS subject,
       a.response_seq AS first_seq, a.response_seq AS last_seq, NULL AS rule
FROM answers AS a
JOIN brought AS d USING (k, response_seq)
JOIN places AS p USING (k)
WHERE a.committed_only AND a.highest >= a.last_stable_offset
  AND d."offset" >= a.last_stable_offset
