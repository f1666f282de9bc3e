"""Compares a cluster of two replicas with one process on a real model: the fills must be equal; both are timed.

python -m tests.server.cluster.same_fills --cursors 24
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

from tests.benchmarks.service import cluster_load, local_cluster
from tests.benchmarks.service.cluster_load import Shape

from lacuna_model.core.params import Region
from lacuna_server.client.client import Address, Client
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Infill, Open, Result

SOURCES = sorted((Path(__file__).parents[3] / "server/lacuna_server").rglob("*.py"))
AT_ONCE = 4
BYTES = 3000


def cursors(number: int, seed: int) -> list[tuple[str, int]]:
    """Texts of this project with an offset at the end of a line's indentation."""
    drawn, found = random.Random(seed), list[tuple[str, int]]()
    while len(found) < number:
        text = drawn.choice(SOURCES).read_text()[:BYTES]
        lines = text.splitlines(keepends=True)
        line = drawn.randrange(5, len(lines)) if len(lines) > 6 else 0
        if text.isascii() and line and lines[line].strip():
            before = "".join(lines[:line]) + lines[line][: len(lines[line]) - len(lines[line].lstrip())]
            found.append((before + "".join(lines[line + 1 :]), len(before)))
    return found


async def fill_all(url: str, cases: list[tuple[str, int]]) -> tuple[list[str], float]:
    """Fill every case, some at the same time; return the fills and the seconds."""
    turns = asyncio.Semaphore(AT_ONCE)
    async with await Client.connect(Address(url, ""), give_up_s=120) as client:
        while (await client.status()).state != "ready":
            await asyncio.sleep(0.1)

        async def fill(number: int, text: str, at: int) -> str:
            async with turns:
                uri = f"file:///case_{number}.py"
                client.open(Open(uri, text, 1, path=uri))
                region = Region(at, at, max_tokens=24, single_line=True)
                async for answer in client.infill(Infill("", uri, 1, (region,))):
                    if isinstance(answer, Result):
                        return answer.result.fills[0]
            raise AssertionError("no result")

        began = time.monotonic()
        fills = await asyncio.gather(*(fill(number, *case) for number, case in enumerate(cases)))
        return list(fills), time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cursors", type=int, default=24)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    options = parser.parse_args()
    cases = cursors(options.cursors, seed=0)
    shape = Shape(ServerConfig().engine, options.model, workers=1, replicas=2, ingresses=1, threads=1)
    with (
        tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp") as name,
        cluster_load.serving_one_machine(shape, Path(name)) as url,
    ):
        alone, alone_s = asyncio.run(fill_all(url, cases))
    with tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp") as name:
        folder = Path(name)
        with local_cluster.running(1, folder) as cluster, cluster_load.serving(shape, cluster, folder) as url:
            spread, spread_s = asyncio.run(fill_all(url, cases))
    equal = sum(one == other for one, other in zip(alone, spread, strict=True))
    print(f"{equal} of {len(cases)} fills equal; one process {alone_s:.1f} s, two replicas {spread_s:.1f} s")


if __name__ == "__main__":
    main()
