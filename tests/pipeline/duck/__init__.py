"""The rules as SQL in DuckDB: each on a handmade journal, and all compared with the oracle."""
