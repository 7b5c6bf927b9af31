"""Free ports that no cluster had lately, so that a client of a stopped one reaches none."""

from __future__ import annotations

import os

from mockbroker.server.network.acceptor import SocketAcceptor, SocketNetwork

# The number of ports that are not used again: an open client may still connect to them.
PORTS_AVOIDED_MAX = 3000
# How many free ports are looked at for one that nobody had. The last one will do.
PORT_TRIES = 100

# The ports of all clusters of this process, the latest last.
_recent_ports: dict[int, None] = {}


def is_for_this_worker(port: int) -> bool:
    """Whether a port is one of those of this worker of pytest-xdist; without workers all are.

    A kernel often gives a free port again that it gave before, to whichever process asks: a client
    of one worker's stopped cluster would reach another's. Linux gives odd ports first.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not (worker.isdecimal() and count.isdecimal() and int(count)):
        return True
    return port // 2 % int(count) == int(worker) % int(count)


class FreshPorts(SocketNetwork):
    """TCP with free ports that no cluster of this process had lately, nor one of another worker.

    The n-th free port is the n-th of `ports`, if there is one; otherwise it is added there.
    """

    def __init__(self, ports: list[int] | None = None) -> None:
        super().__init__()
        self._ports = [] if ports is None else ports
        self._asked = 0

    def listen(self, host: str, port: int) -> SocketAcceptor:
        """As `ListenerNetwork.listen`."""
        if port:
            return super().listen(host, port)
        self._asked += 1
        if self._asked <= len(self._ports):
            return super().listen(host, self._ports[self._asked - 1])
        acceptor = self._listen_afresh(host)
        self._ports.append(acceptor.port)
        return acceptor

    def _listen_afresh(self, host: str) -> SocketAcceptor:
        used: list[SocketAcceptor] = []  # open meanwhile, so that they are not found again
        try:
            for _ in range(PORT_TRIES):
                used.append(super().listen(host, 0))
                if used[-1].port not in _recent_ports and is_for_this_worker(used[-1].port):
                    break
            acceptor = used.pop()
        finally:
            for each in used:
                each.close()
        _recent_ports[acceptor.port] = None
        if len(_recent_ports) > PORTS_AVOIDED_MAX:
            _recent_ports.pop(next(iter(_recent_ports)), None)
        return acceptor
