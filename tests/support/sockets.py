"""Ends of connections."""

from __future__ import annotations

import socket
import struct


def close_with_rst(sock: socket.socket) -> None:
    """Close with RST, as a crashing process does."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
