"""Wakes everybody who waits now. Who waits from then on waits for the next time."""

import anyio


class Bell:
    """`next` is set at the next ringing: who takes it before a look misses nothing that comes after it."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    @property
    def next(self) -> anyio.Event:
        # Made for who asks: most ringings are heard by nobody.
        if self._next is None:
            self._next = anyio.Event()
        return self._next

    def ring(self) -> None:
        if self._next is not None:
            self._next.set()
            self._next = None

    async def wait(self) -> None:
        await self.next.wait()
