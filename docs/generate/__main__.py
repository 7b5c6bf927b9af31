"""Write, or with `--check` compare, every generated file of the project.

    PYTHONPATH=. python docs/generate [--check]

Each page is a function from nothing to text; what it reads is the code itself, or data committed in
`docs/_data`. Exit code 1 if `--check` finds a file that differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import admin_api
import api_code
import api_coverage
import authorization
import checklist
import command_line
import configs
import cookbook
import definitions
import exhaustive
import fault_tests
import group_states
import journal_reference
import laws
import overview
import planted_bugs
import python_api
import rules
import share_states
import state_machines
import transaction_states
import trust

from mockbroker_protocol import generate as protocol

DOCS = Path(__file__).resolve().parents[1]
REFERENCE = DOCS / "reference"
APPENDIX = DOCS / "appendix"
ADMIN = DOCS.parent / "mockbroker" / "admin" / "v1"
REPORT = DOCS.parent / "mockbroker" / "pipeline" / "report"

PAGES: dict[Path, Callable[[], str]] = {
    **api_code.modules(),
    DOCS / "overview.svg": overview.picture,
    APPENDIX / "api-coverage.md": api_coverage.page,
    APPENDIX / "authorization.md": authorization.page,
    REFERENCE / "classic-group.svg": group_states.picture,
    REFERENCE / "command-line.md": command_line.page,
    REFERENCE / "configs.md": configs.page,
    APPENDIX / "exhaustive.md": exhaustive.page,
    REFERENCE / "http.md": admin_api.page,
    REFERENCE / "journal.md": journal_reference.page,
    APPENDIX / "planted-bugs.md": planted_bugs.page,
    REFERENCE / "python-api.md": python_api.page,
    REFERENCE / "rules.md": rules.page,
    REFERENCE / "share-record.svg": share_states.picture,
    REFERENCE / "state-machines.md": state_machines.page,
    REFERENCE / "transactional-id.svg": transaction_states.picture,
    APPENDIX / "checklist.md": checklist.page,
    APPENDIX / "fault-tests.md": fault_tests.page,
    APPENDIX / "laws.md": laws.page,
    DOCS / "explanation" / "trust.md": trust.page,
    REPORT / "definitions.md": definitions.text,
    ADMIN / "cookbook.json": cookbook.text,
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
    messages = ["--docs", str(APPENDIX / "messages.md")]
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
