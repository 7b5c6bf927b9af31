"""The clients of a classic group: what each of them knows, and the requests it has sent."""

from __future__ import annotations

NO_GENERATION = -1


class WaitingRequest:
    """One request. The group gives the very object back."""

    __slots__ = ("client", "generation", "member_id")

    def __init__(self, client: int, member_id: str, generation: int) -> None:
        self.client = client
        self.member_id = member_id
        self.generation = generation


class Client:
    """What one client knows. `callback` is the request whose answer it waits for."""

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
        self.knows_id = knows_id  # it speaks JoinGroup v4: a first join gives it an id (KIP-394)
        self.lives = 0  # member ids drawn for it
        self.offer = 0
        self.callback: WaitingRequest | None = None
        self.forget()

    def forget(self) -> None:
        """The process is a new one, or was told that nobody knows it."""
        self.member_id = ""
        self.generation = NO_GENERATION
        self.step = "join"  # its duty
        self.listing: tuple[str, ...] = ()
