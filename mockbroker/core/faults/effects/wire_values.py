"""The values that fields of messages can have. A rule with others is refused when it is added."""

from __future__ import annotations

from mockbroker_protocol.declare import Scalar
from mockbroker_protocol.runtime import STRING_BYTES_MAX

_BOUNDS = {
    Scalar.UINT16: (0, (1 << 16) - 1),
    **{
        scalar: (-(1 << bits - 1), (1 << bits - 1) - 1)
        for scalar, bits in (
            (Scalar.INT8, 8),
            (Scalar.INT16, 16),
            (Scalar.INT32, 32),
            (Scalar.INT64, 64),
        )
    },
}


def why_unfit(value: object, scalar: Scalar) -> str:
    """Why a number or a text of the right type does not fit a field; "" if it does."""
    if isinstance(value, str):
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            return f"{value!r} is no text"
        return f"a text has at most {STRING_BYTES_MAX} bytes" if size > STRING_BYTES_MAX else ""
    bounds = _BOUNDS.get(scalar)
    if bounds is None or not isinstance(value, int):
        return ""
    low, high = bounds
    return "" if low <= value <= high else f"{value} is outside {low}..{high}"


def check_int32s(**values: int | None) -> None:
    """Raise ValueError, with its name, for a number that is no int32."""
    for name, value in values.items():
        why = why_unfit(value, Scalar.INT32)
        if why:
            raise ValueError(f"{name}: {why}")


def check_text(name: str, text: str | None) -> None:
    """Raise ValueError for a text that a message cannot carry."""
    why = why_unfit(text, Scalar.STRING)
    if why:
        raise ValueError(f"{name}: {why}")
