-- The latency of requests, in microseconds of real time, by API and client.
SELECT run, api, client_id, count(*) AS requests,
       CAST(quantile_cont(elapsed_ns, 0.5) / 1000 AS BIGINT) AS p50_us,
       CAST(quantile_cont(elapsed_ns, 0.9) / 1000 AS BIGINT) AS p90_us,
       CAST(quantile_cont(elapsed_ns, 0.99) / 1000 AS BIGINT) AS p99_us,
       CAST(max(elapsed_ns) / 1000 AS BIGINT) AS max_us,
       count(*) FILTER (WHERE len(errors) > 0) AS with_errors,
       count(*) FILTER (WHERE outcome IS NOT NULL) AS without_answer
FROM requests
WHERE elapsed_ns IS NOT NULL
GROUP BY run, api, client_id
ORDER BY run, api, client_id
