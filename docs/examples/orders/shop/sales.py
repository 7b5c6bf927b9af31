"""Sales: a Spark job that adds up the bills by drink.

Spark runs a batch again if it fails before its end is in the checkpoint. So the table notes the
number of each batch in the transaction that adds it, and refuses a number that it has.
"""

import sqlite3

FIELDS = "id INT, drink STRING, cents INT, number INT"
SCHEMA = """
CREATE TABLE IF NOT EXISTS sales (id INT, drink TEXT, cents INT);
CREATE TABLE IF NOT EXISTS batches (number INT PRIMARY KEY);
"""


class Table:
    def __init__(self, path):
        self.path = path
        with sqlite3.connect(path) as database:
            database.executescript(SCHEMA)

    def write(self, frame, batch):
        rows = [tuple(row) for row in frame.select("id", "drink", "cents").collect()]
        if self.has(batch):
            return
        with sqlite3.connect(self.path) as database:  # one transaction
            database.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
            database.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch,))

    def has(self, batch):
        return bool(self.select("SELECT 1 FROM batches WHERE number = ?", batch))

    def ids(self):
        return [number for (number,) in self.select("SELECT id FROM sales ORDER BY id")]

    def totals(self):
        return dict(self.select("SELECT drink, sum(cents) FROM sales GROUP BY drink"))

    def select(self, query, *values):
        with sqlite3.connect(self.path) as database:
            return database.execute(query, values).fetchall()


def bills(spark, options, isolation="read_committed"):
    """The bills that count, as a stream. (Spark's default is `read_uncommitted`.)"""
    reader = spark.readStream.format("kafka").options(**options)
    stream = reader.option("kafka.isolation.level", isolation).load()
    return stream.selectExpr(f"from_json(CAST(value AS STRING), '{FIELDS}') AS bill").select(
        "bill.*"
    )


def start(stream, write, checkpoint):
    """Add up what there is now, and end."""
    writer = stream.writeStream.option("checkpointLocation", str(checkpoint))
    return writer.foreachBatch(write).trigger(availableNow=True).start()
