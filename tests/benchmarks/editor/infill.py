"""Times the endpoint of llama.vim: the same typed text is sent to two servers in turn, as that plugin sends it."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.request import ProxyHandler, Request, build_opener

import msgspec
from tests.benchmarks.editor.figures import percentile
from tests.benchmarks.editor.typing.stretches import Stretch

# llama.vim's window: lines before and after the cursor's.
LINES_BEFORE, LINES_AFTER = 256, 64
MAX_TOKENS = 32
TIMEOUT_S = 120.0
OPENER = build_opener(ProxyHandler({}))  # the servers are on this machine
_PASSES = re.compile(r"^lacuna_fill_nfe_sum (\S+)$", re.MULTILINE)


class Asked(msgspec.Struct, frozen=True):
    """One request to one server: its time in milliseconds, the tokens that were predicted, and the text."""

    server: str
    ms: float
    tokens: int
    text: str


class Times(msgspec.Struct, frozen=True):
    """The answers of one server: times in milliseconds, and the tokens of a pass of the model.

    ``texts`` counts the answers that hold more than blanks.
    """

    server: str
    requests: int
    texts: int
    p50: float
    p95: float
    tokens: int
    tokens_a_pass: float


def requests(stretch: Stretch, every: int) -> Iterator[dict[str, object]]:
    """Yields what llama.vim sends after ``every`` so many characters of the lines of a stretch."""
    for row, line in enumerate(stretch.lines):
        indentation = len(line) - len(line.lstrip())
        for column in range(indentation, len(line), every):
            above = [*stretch.above, *stretch.lines[:row]][-LINES_BEFORE:]
            yield {
                "input_prefix": "".join(f"{one}\n" for one in above),
                "prompt": line[:column],
                "input_suffix": "\n" + "".join(f"{one}\n" for one in stretch.below[:LINES_AFTER]),
                "n_predict": MAX_TOKENS,
                "stop": ["\n"],
                "temperature": 0.0,
                "top_k": 1,
                "samplers": ["top_k"],
                "cache_prompt": True,
                "n_indent": indentation,
            }


def ask_all(
    stretches: Sequence[Stretch], every: int, servers: dict[str, str], advance: Callable[[str], None]
) -> list[Asked]:
    """Sends every request to each of the ``servers`` (their addresses by name), one after the other."""
    found = []
    for stretch in stretches:
        for body in requests(stretch, every):
            for name, address in servers.items():
                start = time.perf_counter()
                answer = msgspec.json.decode(_sent(f"{address}/infill", msgspec.json.encode(body)))
                ms = (time.perf_counter() - start) * 1e3
                found.append(Asked(name, ms, answer["tokens_predicted"], answer["content"]))
        advance(stretch.path.name)
    return found


def _sent(url: str, body: bytes | None = None) -> bytes:
    with OPENER.open(Request(url, body, {"Content-Type": "application/json"}), timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


def passes(address: str) -> float:
    """The forward passes that a Lacuna service has made for fills."""
    said = _PASSES.search(_sent(f"{address}/metrics").decode())
    return float(said[1]) if said else 0.0


def summary(asked: Sequence[Asked], made: dict[str, float]) -> list[Times]:
    """The times by server; ``made`` are the passes of those that count them, the others have one for each token."""
    rows = []
    for name in dict.fromkeys(one.server for one in asked):
        own = [one for one in asked if one.server == name]
        tokens = sum(one.tokens for one in own)
        p50, p95 = (percentile([one.ms for one in own], share) for share in (50, 95))
        each = tokens / made.get(name, tokens) if tokens else 0.0
        rows.append(Times(name, len(own), sum(bool(one.text.strip()) for one in own), p50, p95, tokens, each))
    return rows
