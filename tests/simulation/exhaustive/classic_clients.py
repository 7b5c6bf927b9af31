"""The clients of a classic group, with their requests."""

from __future__ import annotations

NO_GENERATION = -1


class WaitingRequest:
    """One request. The group returns this object with the answer."""

    __slots__ = ("client", "generation", "member_id")

    def __init__(self, client: int, member_id: str, generation: int) -> None:
        self.client = client
        self.member_id = member_id
        self.generation = generation


class ClassicGroupClient:
    """One client. `callback` is its pending request."""

    __slots__ = (
        "callback",
        "generation",
        "instance_id",
        "knows_id",
        "listing",
        "lives",
        "member_id",
        "offer",
        "step",
    )

    def __init__(self, instance_id: str | None, *, knows_id: bool) -> None:
        self.instance_id = instance_id
        self.knows_id = knows_id  # it uses JoinGroup v4: the first join returns an id (KIP-394)
        self.lives = 0  # member ids drawn for it
        self.offer = 0
        self.callback: WaitingRequest | None = None
        self.forget()

    def forget(self) -> None:
        """Reset the client: its process is new, or its member id is unknown."""
        self.member_id = ""
        self.generation = NO_GENERATION
        self.step = "join"  # its next request
        self.listing: tuple[str, ...] = ()
