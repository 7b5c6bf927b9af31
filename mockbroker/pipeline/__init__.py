"""The journal as tables, and the jobs that audit every record.

Nouns: a *run* is the life of one cluster, from start to end; its journal becomes *tables* of
Parquet files. A *job* (`mockbroker.pipeline.spark`) is a PySpark program over the tables of one or
more runs. A *finding* is one case of an *anomaly*, with its *verdict* and evidence.

Only `mockbroker.pipeline.convert` needs a broker, so the jobs also run on a Spark cluster
elsewhere. Importing this package costs nothing; pyarrow, DuckDB and PySpark are imported at their
first use.
"""
