"""`mockbroker action`, `clock`, `snapshot`, `settle` and `reset`: control a running cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from mockbroker.cli.admin_client import AdminClient, admin_command, milliseconds, named_values
from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json, print_table


@click.command()
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]…")
@json_option
@admin_command
def action(api: AdminClient, name: str | None, arguments: tuple[str, ...], as_json: bool) -> None:
    """Carry out the action NAME. Without a name, list all actions.

    \b
    mockbroker action stop_broker node=2 how=unclean
    mockbroker action move_leader topic=orders partition=0 node=3
    """
    if name is None:
        _list_actions(as_json=as_json)
        return
    done = api.post("/v1/actions", {name: named_values(arguments)})
    if as_json:
        print_json(done)


def _list_actions(*, as_json: bool) -> None:
    """Each action with its arguments and one line; this needs no cluster."""
    import inspect

    from mockbroker.core.actions import ACTIONS
    from mockbroker.core.validation import struct_fields

    rows = []
    for name in sorted(ACTIONS):
        found = ACTIONS[name]
        fields = struct_fields(found.arguments)
        description = (inspect.getdoc(found.carry_out) or "").partition("\n\n")[0]
        rows.append(
            {
                "name": name,
                "required": [key for key, (_, _, required) in fields.items() if required],
                "optional": [key for key, (_, _, required) in fields.items() if not required],
                "help": " ".join(description.split()).partition(". ")[0].rstrip("."),
            }
        )
    if as_json:
        print_json(rows)
        return
    print_table(
        ("ACTION", "ARGUMENTS", "WHAT IT DOES"),
        [
            (
                str(row["name"]),
                " ".join([*row["required"], *(f"[{key}]" for key in row["optional"])]),
                str(row["help"]),
            )
            for row in rows
        ],
    )


@click.group(no_args_is_help=True)
def clock() -> None:
    """Show, freeze and advance the cluster's clock."""


@clock.command()
@json_option
@admin_command
def show(api: AdminClient, as_json: bool) -> None:
    """Print the cluster's time and its rate."""
    _print(api.get("/v1/clock"), as_json=as_json)


@clock.command()
@json_option
@admin_command
def freeze(api: AdminClient, as_json: bool) -> None:
    """Freeze the clock."""
    _print(api.post("/v1/clock", {"freeze": True}), as_json=as_json)


@clock.command()
@json_option
@admin_command
def thaw(api: AdminClient, as_json: bool) -> None:
    """Follow real time again."""
    _print(api.post("/v1/clock", {"freeze": False}), as_json=as_json)


@clock.command()
@click.argument("rate", type=float)
@json_option
@admin_command
def rate(api: AdminClient, rate: float, as_json: bool) -> None:
    """Run RATE seconds for each second of real time."""
    _print(api.post("/v1/clock", {"rate": rate}), as_json=as_json)


@clock.command()
@click.argument("duration")
@click.option(
    "--only",
    metavar="PART",
    help="Advance only retention, compaction, groups, group:ID, locks or transactions.",
)
@click.option(
    "--extend-sessions/--no-extend-sessions",
    default=True,
    show_default=True,
    help="Extend the sessions of connected members, so that they do not expire.",
)
@json_option
@admin_command
def advance(
    api: AdminClient, duration: str, only: str | None, extend_sessions: bool, as_json: bool
) -> None:
    """Advance the clock by DURATION (45s, 2h, 7d) and run due timers in order."""
    body: dict[str, Any] = {
        "advance_ms": milliseconds(duration),
        "extend_sessions": extend_sessions,
    }
    if only is not None:
        body["only"] = only
    _print(api.post("/v1/clock", body, wait_s=120), as_json=as_json)


def _print(clock: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(clock)
        return
    at = datetime.fromtimestamp(clock["now_ms"] / 1000, UTC)
    state = "frozen" if clock["rate"] == 0 else f"rate {clock['rate']:g}"
    click.echo(f"{at.isoformat(timespec='milliseconds')} {clock['now_ms']} {state}")


@click.group(no_args_is_help=True)
def snapshot() -> None:
    """Take and restore snapshots of a running cluster, which end with it."""


@snapshot.command()
@click.argument("name", default="default")
@admin_command
def take(api: AdminClient, name: str) -> None:
    """Take a snapshot with the name NAME."""
    api.post("/v1/snapshot", {"name": name})


@snapshot.command("list")
@json_option
@admin_command
def list_snapshots(api: AdminClient, as_json: bool) -> None:
    """Print the names of the snapshots."""
    found = api.get("/v1/snapshots")
    if as_json:
        print_json(found)
        return
    for each in found:
        click.echo(each["name"])


@snapshot.command()
@click.argument("name", default="default")
@click.option(
    "--producers",
    type=click.Choice(["keep", "resume"]),
    default="keep",
    show_default=True,
    help="Refuse idempotent producers that are ahead of the snapshot, or let them resume.",
)
@admin_command
def restore(api: AdminClient, name: str, producers: str) -> None:
    """Restore snapshot NAME. Connections stay open."""
    api.post("/v1/restore", {"name": name, "producers": producers})


@click.command()
@click.option("--timeout", default="30s", show_default=True, help="Timeout.")
@admin_command
def settle(api: AdminClient, timeout: str) -> None:
    """Wait until the cluster is at rest; exit with 1 on a timeout.

    Then every replica is in sync, every partition's preferred leader leads, and every group is
    stable or empty.
    """
    wait_ms = milliseconds(timeout)
    api.post("/v1/settle", {"timeout_ms": wait_ms}, wait_s=wait_ms / 1000)


@click.command()
@admin_command
def reset(api: AdminClient) -> None:
    """Reset the cluster to its start: initial topics, no rules."""
    api.post("/v1/reset", {})
