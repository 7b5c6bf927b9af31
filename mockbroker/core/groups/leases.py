"""Session deadlines of many members behind one timer.

A heartbeat only writes its member's deadline; nothing moves in the heap. An entry that comes up too
early is put back at the deadline its member has by then, so that each member costs one heap
operation per session timeout, however often it heartbeats. The heap's first time is therefore a
lower bound.
"""

from __future__ import annotations

import heapq


class Lease:
    """Something that ends unless it is renewed: a member, or a member id given out but not used
    yet.
    """

    __slots__ = ("deadline_ms", "member_id", "queued_ms")

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.deadline_ms: int | None = None  # None: does not end by itself
        self.queued_ms: int | None = None  # where its live heap entry stands


class LeaseHeap:
    """Leases by deadline."""

    __slots__ = ("_heap", "_seq")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Lease]] = []
        self._seq = 0

    def arm(self, lease: Lease, deadline_ms: int) -> None:
        """Let the lease end at `deadline_ms` instead of whatever was set before."""
        lease.deadline_ms = deadline_ms
        queued_ms = lease.queued_ms
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(lease, deadline_ms)

    def postpone(self, lease: Lease, by_ms: int) -> None:
        """Let a lease that ends by itself end that much later."""
        if lease.deadline_ms is not None:
            lease.deadline_ms += by_ms

    def cancel(self, lease: Lease) -> None:
        """Forget the lease; its heap entry goes when it comes up."""
        lease.deadline_ms = None

    def next_ms(self) -> int | None:
        """A time before which no lease ends, or None."""
        heap = self._heap
        while heap and (heap[0][2].deadline_ms is None or heap[0][2].queued_ms != heap[0][0]):
            self._pop()
        return heap[0][0] if heap else None

    def pop_ended(self, now_ms: int) -> Lease | None:
        """The first lease that has ended by `now_ms`, or None. It is cancelled by that."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            at_ms, lease = heap[0][0], heap[0][2]
            live = lease.queued_ms == at_ms
            self._pop()
            if not live or lease.deadline_ms is None:
                continue
            if lease.deadline_ms > now_ms:
                self._push(lease, lease.deadline_ms)
                continue
            lease.deadline_ms = None
            return lease
        return None

    def _push(self, lease: Lease, at_ms: int) -> None:
        self._seq += 1
        lease.queued_ms = at_ms
        heapq.heappush(self._heap, (at_ms, self._seq, lease))

    def _pop(self) -> None:
        at_ms, _, lease = heapq.heappop(self._heap)
        if lease.queued_ms == at_ms:
            lease.queued_ms = None
