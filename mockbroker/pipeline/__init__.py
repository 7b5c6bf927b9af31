"""The journal as tables, and the jobs that judge the fate of every record.

Nouns: a *run* is the life of one cluster, from start to end; its journal becomes *tables* of
Parquet files. A *job* (`mockbroker.pipeline.spark`) is a PySpark program over the tables of one or
more runs. A *finding* is one case of an *anomaly*, with its *verdict* and the evidence for it.

Nothing here needs a broker but `mockbroker.pipeline.convert`, so that the jobs also run on a Spark
cluster elsewhere. Importing this package costs nothing; pyarrow, DuckDB and PySpark are imported
when they are used.
"""
