"""`mockbroker fault`: break a running cluster by rules, and see what they did."""

from __future__ import annotations

from typing import Any

import click

from mockbroker.cli.admin_client import (
    AdminClient,
    admin_command,
    milliseconds,
    read_data,
    read_documents,
)
from mockbroker.cli.common import json_option
from mockbroker.cli.output import Cell, print_json, print_table


@click.group(no_args_is_help=True)
def fault() -> None:
    """Add rules to a running cluster: match, when, do. They are data: YAML or JSON."""


@fault.command()
@click.argument("plan")
@click.option("--name", help="What to call the set; otherwise as the plan says, or fault-1, …")
@admin_command
def add(api: AdminClient, plan: str, name: str | None) -> None:
    """Add PLAN, a file (- is standard input) or the rule itself in braces.

    \b
    mockbroker fault add '{match: {api: Produce}, when: {times: 1}, do: {drop_reply: {}}}'
    """
    sets = read_documents(plan)
    if name is not None:
        if len(sets) != 1:
            raise click.UsageError("--name is for one set; the file holds several")
        sets[0]["name"] = name
    for data in sets:
        click.echo(api.post("/v1/faults", data)["name"])


@fault.command("list")
@json_option
@admin_command
def list_faults(api: AdminClient, as_json: bool) -> None:
    """List the rules in force, with their hits."""
    sets = api.get("/v1/faults")
    if as_json:
        print_json(sets)
        return
    rows = [_row(rule) for each in sets for rule in each["rules"]]
    print_table(("set", "rule", "hits", "left", "why"), rows)


def _row(rule: dict[str, Any]) -> tuple[Cell, ...]:
    left = "-" if rule["left"] is None else rule["left"]
    return rule["set"], rule["name"], rule["hits"], left, rule["why"]


@fault.command()
@click.argument("name")
@admin_command
def show(api: AdminClient, name: str) -> None:
    """Print a set as YAML, as it can be added again."""
    from msgspec import yaml

    click.echo(yaml.encode(api.get(f"/v1/faults/{name}")["plan"]), nl=False)


@fault.command()
@click.option("--yaml", "format_", flag_value="yaml", default=True, help="For `fault add`.")
@click.option("--python", "format_", flag_value="python", help="For a test.")
@admin_command
def export(api: AdminClient, format_: str) -> None:
    """Print all rules in force, so that they can be added again."""
    click.echo(api.read(f"/v1/export/faults?format={format_}"), nl=False)


@fault.command()
@click.argument("name")
@click.option("--hits", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--timeout", default="10s", show_default=True, help="Real time: 250ms, 10s, 5m.")
@admin_command
def wait(api: AdminClient, name: str, hits: int, timeout: str) -> None:
    """Wait until a rule has fired; otherwise say why it has not, and exit with 1."""
    timeout_ms = milliseconds(timeout)
    body = {"hits": hits, "timeout_ms": timeout_ms}
    click.echo(api.post(f"/v1/faults/{name}/wait", body, wait_s=timeout_ms / 1000)["why"])


@fault.command()
@click.argument("name")
@admin_command
def remove(api: AdminClient, name: str) -> None:
    """Take a set or a rule away. What it holds goes on."""
    api.delete(f"/v1/faults/{name}")


@fault.command()
@admin_command
def clear(api: AdminClient) -> None:
    """Take all rules away. What they hold goes on."""
    api.delete("/v1/faults")


@fault.command()
@admin_command
def held(api: AdminClient) -> None:
    """Print what rules hold just now, as JSON."""
    print_json(api.get("/v1/held"))


@fault.command()
@click.argument("held_id", type=int, metavar="ID")
@click.option("--edit", help="Change fields first: {path: value}.")
@click.option("--answer", metavar="ERROR", help="Answer with this error instead.")
@click.option("--drop", "verdict", flag_value="drop", help="Never answer it.")
@click.option("--close", "verdict", flag_value="close", help="End the connection.")
@click.option("--reset", "verdict", flag_value="reset", help="End it with a reset.")
@admin_command
def release(
    api: AdminClient, held_id: int, edit: str | None, answer: str | None, verdict: str | None
) -> None:
    """Let go what is held under this number."""
    if answer is not None and verdict is not None:
        raise click.UsageError("--answer goes without --drop, --close and --reset")
    body: dict[str, Any] = {"verdict": "answer" if answer is not None else verdict or "release"}
    if answer is not None:
        body["error"] = int(answer) if answer.lstrip("-").isdigit() else answer
    if edit is not None:
        body["edit"] = read_data(edit)
    api.post(f"/v1/held/{held_id}", body)
