"""Write, or with `--check` compare, every generated file of the project.

    python docs/generate [--check]

Each page is a function from nothing to text; what it reads is the code itself, or data committed in
`docs/_data`. Exit code 1 if `--check` finds a file that differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import api_coverage
import authorization
import broker_life
import checklist
import command_line
import configs
import consumer_group_states
import error_codes
import exhaustive
import fault_rules
import faults
import group_states
import laws
import planted_bugs
import replica_fetcher
import sasl_states
import tables
import transaction_states

from mockbroker_protocol import generate as protocol

DOCS = Path(__file__).resolve().parents[1]
REFERENCE = DOCS / "reference"

PAGES: dict[Path, Callable[[], str]] = {
    REFERENCE / "api-coverage.md": api_coverage.page,
    REFERENCE / "authorization.md": authorization.page,
    REFERENCE / "broker-life.md": broker_life.page,
    REFERENCE / "checklist.md": checklist.page,
    REFERENCE / "classic-group.md": group_states.page,
    REFERENCE / "classic-group.svg": group_states.picture,
    REFERENCE / "consumer-group.md": consumer_group_states.page,
    REFERENCE / "command-line.md": command_line.page,
    REFERENCE / "configs.md": configs.page,
    REFERENCE / "error-codes.md": error_codes.page,
    REFERENCE / "exhaustive.md": exhaustive.page,
    REFERENCE / "faults.md": faults.page,
    REFERENCE / "fault-rules.md": fault_rules.page,
    REFERENCE / "laws.md": laws.page,
    REFERENCE / "planted-bugs.md": planted_bugs.page,
    REFERENCE / "replica-fetcher.md": replica_fetcher.page,
    REFERENCE / "sasl-connection.md": sasl_states.page,
    REFERENCE / "tables.md": tables.page,
    REFERENCE / "transactional-id.md": transaction_states.page,
    REFERENCE / "transactional-id.svg": transaction_states.picture,
}


def stale_pages() -> list[tuple[Path, str]]:
    """The pages whose committed text is not what the code says, with the right text."""
    found = []
    for path, page in PAGES.items():
        text = page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            found.append((path, text))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="docs/generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    messages = ["--docs", str(REFERENCE / "messages.md")]
    code = protocol.main([*messages, "--check"] if check else messages)
    for path, text in stale_pages():
        sys.stdout.write(f"{'differs' if check else 'writing'}: {path.relative_to(DOCS.parent)}\n")
        if check:
            code = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and code:
        sys.stdout.write("`make generate` brings them up to date\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
