"""What is wrong with a rule, a plan or an argument: the path of the field, and why."""

from __future__ import annotations


class RuleError(Exception):
    """Data that is no rule. `path` names the field, as in `rules[2].match.topik`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class NameTakenError(Exception):
    """A set or rule of this name is there already."""


class UnknownNameError(Exception):
    """There is no set or rule of this name."""
