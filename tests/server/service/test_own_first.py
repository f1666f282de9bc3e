"""The event loop serves own clients first, strangers one at a time and for a part of the time."""

import asyncio
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from selectors import EVENT_READ

import pytest
from tests.server.conftest import Serve
from tests.server.live_service import fill

from lacuna_server.client.client import Address, Client
from lacuna_server.service.own_first import BURST_S, PRESENT_S, READING_BURST_S, READING_SHARE, SHARE, OwnFirst, Turns
from lacuna_server.wire.protocol import Open

NUM_STRANGERS = 50


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Ends:
    """Connected pairs of sockets; the near end of each is registered in the selector."""

    def __init__(self, selector: OwnFirst, stack: ExitStack) -> None:
        self._selector = selector
        self._stack = stack
        self.far: dict[int, socket.socket] = {}

    def add(self, note: Callable[[int], None] = lambda descriptor: None) -> int:
        """Connect a pair whose far end has sent something; ``note`` says whose it is."""
        near, far = socket.socketpair()
        descriptor = self._stack.enter_context(near).fileno()
        self.far[descriptor] = self._stack.enter_context(far)
        self._selector.register(descriptor, EVENT_READ)
        note(descriptor)
        far.send(b"x")
        return descriptor

    def stranger(self) -> int:
        return self.add(self._selector.set_apart)

    def own(self) -> int:
        return self.add(self._selector.prefer)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def selector(clock: Clock) -> Iterator[OwnFirst]:
    selector = OwnFirst(clock)
    yield selector
    selector.close()


@pytest.fixture
def ends(selector: OwnFirst) -> Iterator[Ends]:
    with ExitStack() as stack:
        yield Ends(selector, stack)


def ready(selector: OwnFirst, timeout: float = 1.0) -> list[int]:
    return [key.fd for key, _ in selector.select(timeout)]


def test_a_turn_has_all_own_descriptors_and_one_of_strangers(selector: OwnFirst, ends: Ends) -> None:
    strangers = [ends.stranger() for _ in range(NUM_STRANGERS)]
    own = [ends.own(), ends.own(), ends.add()]
    turns = [ready(selector) for _ in range(2 * NUM_STRANGERS)]
    assert all(set(own) <= set(turn) and len(turn) == len(own) + 1 for turn in turns)
    served = [(set(turn) - set(own)).pop() for turn in turns]
    assert set(served[:NUM_STRANGERS]) == set(served[NUM_STRANGERS:]) == set(strangers)  # in turn


def test_strangers_have_a_part_of_the_time_while_an_own_client_is_there(
    selector: OwnFirst, ends: Ends, clock: Clock
) -> None:
    strangers = {ends.stranger(), ends.stranger()}
    own = ends.own()
    ends.far[own].recv(0)
    assert len(strangers & set(ready(selector))) == 1
    clock.now += 1.0  # the turn took a second
    assert ready(selector) == [own]
    clock.now += (1.0 - BURST_S * SHARE) / SHARE - 0.1
    assert ready(selector) == [own]
    clock.now += 0.2
    assert len(strangers & set(ready(selector))) == 1
    selector.forget(own)
    selector.unregister(own)
    for _ in range(10):
        clock.now += 1.0
        (found,) = ready(selector)
        assert found in strangers


def test_what_follows_from_a_strangers_message_is_its_time_too(selector: OwnFirst, ends: Ends, clock: Clock) -> None:
    stranger, own = ends.stranger(), ends.own()
    assert set(ready(selector)) == {stranger, own}
    selector.unregister(stranger)
    for _ in range(10):  # the loop goes on with what has become ready
        clock.now += 0.1
        assert ready(selector, 0) == [own]
    selector.register(stranger, EVENT_READ)
    assert ready(selector) == [own]
    clock.now += 10 * 0.1 / SHARE
    assert set(ready(selector)) == {stranger, own}


def test_nothing_is_left_of_a_descriptor_when_the_next_one_has_its_number(selector: OwnFirst) -> None:
    classes = (selector.set_apart, selector.prefer)
    for before, after in [(old, new) for old in classes for new in classes]:
        for forgotten_first in (True, False):
            near, far = socket.socketpair()
            with near, far:
                before(number := near.fileno())
                selector.register(number, EVENT_READ)
                if forgotten_first:
                    selector.forget(number)
                selector.unregister(number)
                selector.forget(number)
            near, far = socket.socketpair()
            with near, far:
                assert near.fileno() == number
                after(number)
                selector.register(number, EVENT_READ)
                far.send(b"x")
                assert ready(selector) == [number]
                selector.unregister(number)
                selector.forget(number)


def test_an_event_loop_reads_an_own_message_before_the_next_one_of_strangers() -> None:
    selector = OwnFirst()
    read: list[str] = []

    class Reader(asyncio.Protocol):
        """Notes each message of the far end, which then sends the next one if it is a stranger."""

        def __init__(self, far: socket.socket, name: str) -> None:
            self._far = far
            self._name = name

        def data_received(self, data: bytes) -> None:
            read.append(self._name)
            if self._name == "stranger":
                self._far.send(b"x")

    async def connect(stack: ExitStack, name: str) -> socket.socket:
        near, far = socket.socketpair()
        stack.enter_context(far)
        (selector.prefer if name == "own" else selector.set_apart)(near.fileno())
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: Reader(far, name), sock=near)
        stack.callback(transport.abort)
        return far

    async def crowd() -> None:
        with ExitStack() as stack:
            for _ in range(NUM_STRANGERS):
                (await connect(stack, "stranger")).send(b"x")
            own = await connect(stack, "own")
            async with asyncio.timeout(30):
                for number in range(1, 20):
                    before = len(read)
                    own.send(b"x")
                    while read.count("own") < number:
                        await asyncio.sleep(0)
                    assert read[before:].index("own") <= 1
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(crowd())


async def test_own_clients_have_a_private_socket_and_the_address_where_it_is_gone(serve: Serve) -> None:
    address = serve("load")
    path = Path(address.socket)
    assert path.is_socket()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for where in (Address("http://127.0.0.1:9", address.token, address.socket), address):
        async with await Client.connect(where) as client:
            assert client.reads_workspaces
            client.open(Open("a", "text", 1))
            await fill(client)
        path.unlink(missing_ok=True)


async def test_strangers_take_a_small_part_of_the_time_while_an_own_client_is_there() -> None:
    clock = Clock()
    turns = Turns(clock)
    async with turns.turn(trusted=False):
        clock.now += 5
    assert turns.wait_s() <= 0  # nobody else is there
    async with turns.turn(trusted=True):
        clock.now += 1
    async with turns.turn(trusted=False):
        clock.now += READING_BURST_S * READING_SHARE / 2
    assert turns.wait_s() <= 0  # a little at once is free
    async with turns.turn(trusted=False):
        clock.now += 0.5
    assert turns.wait_s() > 0.5 / READING_SHARE - READING_BURST_S
    clock.now += 0.5 / READING_SHARE
    assert turns.wait_s() <= 0
    async with turns.turn(trusted=True):  # never waits, and spends nothing of the strangers' time
        clock.now += 5
    assert turns.wait_s() <= 0
    async with turns.turn(trusted=False):
        clock.now += 1
    assert turns.wait_s() > 0
    clock.now += PRESENT_S
    assert turns.wait_s() <= 0
