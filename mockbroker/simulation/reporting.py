"""Reports of simulations: a table of counts, the summary of a plan, a test of a violation."""

from __future__ import annotations

from collections import Counter

from mockbroker.simulation.plan import Plan
from mockbroker.simulation.running import PlanResult

# The rows of the table, with the counts that each row adds up.
SUMMARY_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("requests answered", ("requests answered",)),
    ("batches acknowledged", ("batches acknowledged",)),
    ("batches read", ("batches read",)),
    ("transactions committed", ("transactions committed",)),
    ("transactions aborted", ("transactions aborted",)),
    ("offsets committed", ("offsets committed",)),
    ("assignments taken", ("assignments taken",)),
    ("calls disconnected", ("calls disconnected",)),
    ("calls timed out", ("calls timed out",)),
    ("elections", ("event LeaderChanged",)),
    ("changes of an ISR", ("event IsrChanged",)),
    ("cuts and delays", ("step cut_network", "step delay_network")),
    ("brokers stopped", ("step stop_broker",)),
    ("brokers paused", ("step pause_broker",)),
    ("rules", ("step add_rule",)),
    ("restarts", ("step restart",)),
    ("snapshots restored", ("step restore",)),
)


def table(counts: Counter[str]) -> list[str]:
    """The counts as lines of a table."""
    steps = sum(count for name, count in counts.items() if name.startswith("step "))
    refused = sum(count for name, count in counts.items() if name.startswith("refused "))
    rows = [(name, sum(counts[key] for key in keys)) for name, keys in SUMMARY_ROWS]
    rows += [("steps in all", steps), ("steps that were not possible", refused)]
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {count:>10,}" for name, count in rows]


def pytest_of(outcome: PlanResult, law: str) -> str:
    """The source of a test that fails while the plan violates the law."""
    plan = outcome.plan.to_json().rstrip().replace("\\", "\\\\")
    mode = "" if outcome.mode == "fast" else f', mode="{outcome.mode}"'
    violation = next(each for each in outcome.violations if each.law == law)
    return (
        "import json\n\n"
        "from mockbroker.simulation import parse_plan, run\n\n"
        'PLAN = json.loads("""\n'
        f"{plan}\n"
        '""")\n\n\n'
        f"def test_seed_{outcome.plan.seed}() -> None:\n"
        f'    """{law}.\n\n'
        f"    Seen: {violation.message}.\n"
        '    """\n'
        f"    assert run(parse_plan(PLAN){mode}).violations == []\n"
    )


def summary(plan: Plan) -> str:
    """The summary of a plan in one line."""
    kinds = Counter(client.kind for client in plan.clients)
    clients = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return (
        f"seed {plan.seed}: {plan.settings.brokers} brokers, Kafka {plan.settings.kafka_version}, "
        f"{clients}; {len(plan.steps)} steps"
    )
