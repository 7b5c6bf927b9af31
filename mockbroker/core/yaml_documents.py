"""YAML of people and files, as plain data.

An alias repeats a node without repeating its text: nine lines can stand for a billion nodes. A
document is measured as if each alias were written out, before anybody walks it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# An escape can name half of a character, which no encoding has.
_SURROGATE = re.compile("[\ud800-\udfff]")
NODES_MAX = 1_000_000
DEPTH_MAX = 100


class YamlError(ValueError):
    """Text that is no YAML, or a document of too many nodes; the message is one line."""


@cache
def _loader() -> Any:
    """PyYAML's safe loader for documents that do not nest without end.

    It looks at every open bracket for every token: 4 KiB of brackets would take seconds.
    """
    import yaml  # type: ignore[import-untyped]

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803
            if self.flow_level >= DEPTH_MAX:
                raise YamlError(f"line {self.line + 1}: the document is nested too deeply")
            super().fetch_flow_collection_start(TokenClass)

    return Loader


def read_yaml(text: str) -> list[Any]:
    """The documents in `text`. Raises YamlError."""
    documents: list[Any] = []
    try:
        loader = _loader()(text)
        while loader.check_node():
            node = loader.get_node()
            _measure(node, {})
            documents.append(loader.construct_document(node))
        return documents
    except YamlError:
        raise
    except RecursionError:
        raise YamlError("the document is nested too deeply") from None
    except Exception as error:  # PyYAML raises any for a scalar that its tag does not fit
        raise YamlError(" ".join(str(error).split()) or type(error).__name__) from None


def _measure(node: Any, measured: dict[int, int]) -> int:
    """The nodes below `node`, itself included; `measured` has them by node, 0 within itself."""
    known = measured.get(id(node))
    if known == 0:
        raise YamlError(f"line {node.start_mark.line + 1}: a node contains itself")
    if known is not None:
        return known
    measured[id(node)] = 0
    count = 1
    if isinstance(node.value, str) and _SURROGATE.search(node.value):
        raise YamlError(f"line {node.start_mark.line + 1}: half of a character, which is no text")
    if isinstance(node.value, list):
        for entry in node.value:
            for child in entry if isinstance(entry, tuple) else (entry,):
                count += _measure(child, measured)
    if count > NODES_MAX:
        where = f"line {node.start_mark.line + 1}"
        raise YamlError(f"{where}: more than {NODES_MAX} nodes once its aliases are written out")
    measured[id(node)] = count
    return count
