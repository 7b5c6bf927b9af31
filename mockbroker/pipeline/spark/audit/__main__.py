"""The audit as a program; `--anomaly` selects one and may be repeated."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import ANOMALIES
from mockbroker.pipeline.spark import audit as rules
from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--anomaly", action="append", choices=list(ANOMALIES))
    asked, rest = parser.parse_known_args()

    def audit(inputs: Inputs) -> DataFrame:
        """Findings of the selected anomalies, or of all."""
        return rules.audit(inputs, asked.anomaly or tuple(ANOMALIES))

    main(audit, argv=rest)
