"""Wakes everybody who waits now. Who waits from then on waits for the next time."""

import anyio


class Bell:
    """`next` is set at the next ringing: who takes it before a look misses nothing that comes after it."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = anyio.Event()

    def ring(self) -> None:
        self.next.set()
        self.next = anyio.Event()

    async def wait(self) -> None:
        await self.next.wait()
