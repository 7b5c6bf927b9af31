"""Errors about the name of a rule or a plan."""

from __future__ import annotations


class NameTakenError(Exception):
    """A plan or rule of this name is in force."""


class UnknownNameError(Exception):
    """No plan or rule of this name is in force."""
