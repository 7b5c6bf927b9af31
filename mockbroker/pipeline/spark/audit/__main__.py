"""The audit as a program."""

from __future__ import annotations

from mockbroker.pipeline.spark.audit import audit
from mockbroker.pipeline.spark.program import main

if __name__ == "__main__":
    main(audit)
