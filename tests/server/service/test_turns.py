from lacuna_server.service.turns import BURST_S, PRESENT_S, SHARE, Turns


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_strangers_take_a_small_part_of_the_time_while_an_own_client_is_there() -> None:
    clock = Clock()
    turns = Turns(clock)
    async with turns.turn(trusted=True):
        pass
    async with turns.turn(trusted=False):
        clock.now += BURST_S * SHARE / 2
    assert turns.wait_s() <= 0  # a little at once is free
    async with turns.turn(trusted=False):
        clock.now += 0.5
    assert turns.wait_s() > 0.5 / SHARE - BURST_S
    clock.now += 0.5 / SHARE
    assert turns.wait_s() <= 0
    async with turns.turn(trusted=True):  # never waits, and spends nothing of the strangers' time
        clock.now += 5
    assert turns.wait_s() <= 0


async def test_strangers_have_all_the_time_while_nobody_else_is_there() -> None:
    clock = Clock()
    turns = Turns(clock)
    async with turns.turn(trusted=False):
        clock.now += 5
    assert turns.wait_s() <= 0
    async with turns.turn(trusted=True):
        clock.now += 1
    async with turns.turn(trusted=False):
        clock.now += 1
    assert turns.wait_s() > 0
    clock.now += PRESENT_S
    assert turns.wait_s() <= 0
