"""What waits to be sent to one client: answers in their order and bounded, of progress and steps only the latest."""

import asyncio
from collections import OrderedDict, deque

from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import Progress, ServerMessage, ServiceError, Step
from lacuna_server.wire.shares import UNBOUNDED, Share


class Outbox:
    """Outgoing messages of one connection, encoded for its subprotocol.

    An answer is never dropped: where the client reads none, or ``share`` has no room for more, ``full`` becomes true
    and the connection has to end.
    """

    def __init__(self, subprotocol: str, max_bytes: int, share: Share | None = None) -> None:
        self._share = share or UNBOUNDED.share()
        self._has_room = True
        self._being_sent = 0
        self._subprotocol = subprotocol
        self._max_bytes = max_bytes
        self._answers: deque[str | bytes] = deque()
        self._num_bytes = 0
        self._latest: OrderedDict[tuple[str, ...], Progress | Step] = OrderedDict()
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether more than ``max_bytes`` of answers wait, or more than there is room for."""
        return self._num_bytes > self._max_bytes or not self._has_room

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._answers and not self._latest

    def put(self, message: ServerMessage) -> None:
        """Add a message; a step or progress takes the place of the one before of the same request and document."""
        if isinstance(message, Progress | Step):
            kind = ("step", message.id, message.uri) if isinstance(message, Step) else ("progress", message.id)
            self._latest[kind] = message
        else:
            self._flush(getattr(message, "id", ""))
            self._append(message)
        self._changed.set()

    async def take(self) -> str | bytes:
        """The next frame, answers first; the one before has been sent by then."""
        self._share.take(-self._being_sent)
        self._being_sent = 0
        while self.empty:
            self._changed.clear()
            await self._changed.wait()
        if self._answers:
            frame = self._answers.popleft()
            self._num_bytes -= len(frame)
            if self._has_room:
                self._being_sent = len(frame)
            return frame
        return self._encode(self._latest.popitem(last=False)[1])

    def close(self) -> None:
        """Hold nothing of the share, and nothing from here on."""
        self._has_room = False
        self._being_sent = 0
        self._share.give_back()

    def _flush(self, id: str) -> None:
        """Put a request's last steps in front of its answer, and forget its progress."""
        for kind in [kind for kind in self._latest if id and kind[1] == id]:
            message = self._latest.pop(kind)
            if isinstance(message, Step):
                self._append(message)

    def _append(self, message: ServerMessage) -> None:
        frame = self._encode(message)
        self._answers.append(frame)
        self._num_bytes += len(frame)
        if self._has_room:
            try:
                self._share.take(len(frame))
            except ServiceError:
                self.close()

    def _encode(self, message: ServerMessage) -> str | bytes:
        return protocol.encode(message, self._subprotocol)
