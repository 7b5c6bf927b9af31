"""The cookbook as data for the console: what each recipe on the pages adds and does.

A recipe's name, its first sentences, its rules and its actions are read from its section and the
code in it, so that page and console cannot differ. Names of topics, groups and brokers in the code
become places to fill in. What the code computes is left out.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mockbroker.api.aio import cluster, members, topics
from mockbroker.core.actions import ACTIONS, parse_action
from mockbroker.core.faults.rules import parse_plan
from mockbroker.core.validation import ValidationError, struct_fields

PAGES = Path(__file__).resolve().parents[1] / "cookbook"
ORDER = ("clients", "cluster", "queues")
_SECTION = re.compile(r"^### (\d+)\. (.+?)\n(.*?)(?=^### |^## |\Z)", re.MULTILINE | re.DOTALL)
_CHAPTER = re.compile(r"^## (.+)$", re.MULTILINE)
_CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
SENTENCE_CHARS_MAX = 320

# Names in the code of the pages -> places.
PLACES = {"orders": "{topic}", "billing": "{group}", "shop": "{client}"}
# Handles, their class, what they fill in, and the word that an action has more than their method.
HANDLES: tuple[tuple[str, type, dict[str, str], str], ...] = (
    (".broker(", members.AsyncBroker, {"node": "{broker}"}, "broker"),
    (".partition(", topics.AsyncPartition, {"topic": "{topic}", "partition": "{partition}"}, ""),
    (".topic(", topics.AsyncTopic, {"topic": "{topic}"}, "topic"),
    (".group(", members.AsyncGroup, {"group": "{group}"}, "group"),
    (
        ".transaction(",
        members.AsyncTransaction,
        {"transactional_id": "{transactional_id}"},
        "transaction",
    ),
)
PLACE_NAMES = ("topic", "group", "client", "transactional_id", "broker", "partition")
SAMPLES: dict[str, object] = {"{broker}": 1, "{partition}": 0}
# An action that ends another one is left out: a recipe begins a failure.
ENDINGS = ("start_", "heal_", "resume_")


def text() -> str:
    """The recipes as JSON."""
    return json.dumps(list(recipes()), indent=1, ensure_ascii=False) + "\n"


def recipes() -> Iterator[dict[str, Any]]:
    """All recipes, by number."""
    for page in ORDER:
        found = (PAGES / f"{page}.md").read_text(encoding="utf-8")
        chapters = [(match.start(), match.group(1)) for match in _CHAPTER.finditer(found)]
        for match in _SECTION.finditer(found):
            number, name, body = match.groups()
            before = [title for at, title in chapters if at < match.start()]
            yield _recipe(int(number), name, body, before[-1] if before else page, page)


def _recipe(number: int, name: str, body: str, chapter: str, page: str) -> dict[str, Any]:
    rules, actions = _done("\n".join(_CODE.findall(body)))
    plan = None
    if rules:
        slug = f"recipe-{number}"
        named = [
            {**rule, "name": slug if len(rules) == 1 else f"{slug}-{at}"}
            for at, rule in enumerate(rules, 1)
        ]
        plan = named[0] if len(named) == 1 else {"name": slug, "rules": named}
    said = json.dumps([plan, actions])
    return {
        "number": number,
        "id": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "name": name.replace("`", ""),
        "sentence": _sentence(body),
        "chapter": chapter,
        "page": f"cookbook/{page}.md",
        "plan": plan,
        "actions": actions,
        "needs": [place for place in PLACE_NAMES if "{" + place + "}" in said],
    }


def _sentence(body: str) -> str:
    """The first paragraph, or its first sentences."""
    plain = " ".join(body.strip().split("\n\n")[0].split())
    plain = _LINK.sub(r"\1", plain).replace("`", "").replace("*", "")
    while len(plain) > SENTENCE_CHARS_MAX and ". " in plain[:-1]:
        plain = plain[: plain[:-1].rindex(". ") + 1]
    return plain


def _done(code: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rules that code adds, and the actions that it carries out, each once."""
    tree = ast.parse(code)
    constants: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            constants |= {
                each.id: node.value for each in node.targets if isinstance(each, ast.Name)
            }
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".parametrize"):
            constants |= _parameters(node)
    rules: list[dict[str, Any]] = []
    actions: list[dict[str, Any]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = ast.unparse(node.func.value)
        if node.func.attr == "add" and owner.endswith(".faults"):
            rule = _rule(node, constants)
            if rule is not None and rule not in rules:
                rules.append(rule)
            continue
        action = _action(node.func.attr, owner, node)
        if action is not None and action not in actions:
            actions.append(action)
    return rules, actions


def _parameters(call: ast.Call) -> dict[str, ast.expr]:
    """The first values of a parametrized test."""
    names, values = call.args[0], call.args[1]
    if not isinstance(names, ast.Constant) or not isinstance(values, ast.List) or not values.elts:
        return {}
    return {str(names.value): values.elts[0]}


class _Inlined(ast.NodeTransformer):
    """Puts the values of names in their places."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._constants.get(node.id, node)


def _rule(call: ast.Call, constants: Mapping[str, ast.expr]) -> dict[str, Any] | None:
    """The rule of a call of `faults.add`; None if the code computes a part of it."""
    try:
        rule: dict[str, Any] = {}
        inlined = _Inlined(constants)
        for given in call.args:
            rule |= ast.literal_eval(inlined.visit(given))
        rule |= {
            each.arg: ast.literal_eval(inlined.visit(each.value))
            for each in call.keywords
            if each.arg
        }
        parse_plan(rule, "recipe")
    except (ValueError, KeyError, TypeError, ValidationError):
        return None
    rule.pop("name", None)
    return {name: _placed(value) for name, value in rule.items()}


def _action(method: str, owner: str, call: ast.Call) -> dict[str, Any] | None:
    """The action of a call; None if it is none, or the code computes a part of it."""
    found: tuple[str, type, dict[str, str]] | None = None
    if owner in ("mock_kafka", "kafka"):
        if method == "act" and call.args and isinstance(call.args[0], ast.Constant):
            named = str(call.args[0].value)
            found = named, object, {}
            call = ast.Call(call.func, call.args[1:], call.keywords)
        elif method in ACTIONS:
            found = method, cluster.AsyncCluster, {}
    else:
        for sign, kind, filled, word in HANDLES:
            names = [each for each in (f"{method}_{word}", method) if each in ACTIONS]
            if sign in owner and names:
                found = names[0], kind, filled
                break
    if found is None or found[0].startswith(ENDINGS):
        return None
    name, kind, filled = found
    known = struct_fields(ACTIONS[name].arguments)
    try:
        given = {key: place for key, place in filled.items() if key in known}
        given |= _arguments(call, getattr(kind, method, None))
        parse_action(name, _sampled(given))
    except (ValueError, AttributeError, TypeError, KeyError, ValidationError):
        return None
    return {name: given}


def _arguments(call: ast.Call, method: Any) -> dict[str, Any]:
    """The arguments of a call by name, with places. Raises ValueError for a computed one."""
    names: list[str] = []
    if method is not None:
        names = [each for each in inspect.signature(method).parameters if each != "self"]
    given = [*zip(names, call.args, strict=False)]
    given += [(each.arg, each.value) for each in call.keywords if each.arg]
    found: dict[str, Any] = {}
    for name, value in given:
        if name in ("node", "nodes"):
            found[name] = "{broker}"
        elif name == "partition":
            found[name] = "{partition}"
        else:
            found[name] = _placed(ast.literal_eval(value))
    return found


def _sampled(value: Any) -> Any:
    """A value with samples in its places."""
    if isinstance(value, str):
        return SAMPLES.get(value, value)
    if isinstance(value, dict):
        return {key: _sampled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_sampled(each) for each in value]
    return value


def _placed(value: Any) -> Any:
    """A value with places instead of the names of the page."""
    if isinstance(value, str):
        return PLACES.get(value, value)
    if isinstance(value, dict):
        return {
            key: "{broker}" if key in ("node", "nodes") and isinstance(each, int) else _placed(each)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_placed(each) for each in value]
    return value
