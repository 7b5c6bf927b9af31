"""The PySpark jobs over the tables of one or more runs.

Nouns: `Inputs` are the tables of runs as DataFrames. A *job* is a function from `Inputs` to a
DataFrame: the audit (`audit/`), lag, rebalances, latency, the effect of faults, skew, ISRs. Each
module is also a program (`program`), for Spark clusters elsewhere::

    spark-submit --py-files mockbroker.zip mockbroker/pipeline/spark/lag.py <directory>

Nothing here needs a broker. Of mockbroker the jobs import only
`mockbroker.pipeline.{tables,findings,store}` and `mockbroker.spark`.
"""
