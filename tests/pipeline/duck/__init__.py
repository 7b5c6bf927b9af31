"""The rules as SQL in DuckDB: each by hand, and all of them against the oracle."""
