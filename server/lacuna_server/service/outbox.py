"""Messages that wait to be sent to one client: all answers in order, but only the latest progress and steps."""

import asyncio
from collections import OrderedDict, deque

from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import Progress, ServerMessage, ServiceError, Step
from lacuna_server.wire.shares import UNBOUNDED, Share


class Outbox:
    """Outgoing messages of one connection, encoded for its subprotocol.

    Answers are never dropped. Where the client does not read them, or ``share`` has no room for more, ``full`` becomes
    true and the connection has to end.
    """

    def __init__(self, subprotocol: str, max_bytes: int, share: Share | None = None) -> None:
        self._share = share or UNBOUNDED.share()
        self._has_room = True
        self._being_sent = 0
        self._subprotocol = subprotocol
        self._max_bytes = max_bytes
        self._answers: deque[str | bytes] = deque()
        self._num_bytes = 0
        self._latest: OrderedDict[tuple[type, str], Progress | Step] = OrderedDict()
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether more than ``max_bytes`` bytes of answers wait, or more than the share has room for."""
        return self._num_bytes > self._max_bytes or not self._has_room

    @property
    def empty(self) -> bool:
        """Whether no message waits."""
        return not self._answers and not self._latest

    def put(self, message: ServerMessage) -> None:
        """Add a message. A step, or progress, replaces an unsent one of its request."""
        if isinstance(message, Progress | Step):
            self._latest[type(message), message.id] = message
        else:
            self._flush(getattr(message, "id", ""))
            self._append(message)
        self._changed.set()

    async def take(self) -> str | bytes:
        """Wait for the next frame and return it, answers first. The caller has sent the previous frame by then."""
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
        """Give the share back, and take nothing of it from now on."""
        self._has_room = False
        self._being_sent = 0
        self._share.give_back()

    def _flush(self, id: str) -> None:
        """Put a request's last steps before its answer, and drop its progress."""
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
