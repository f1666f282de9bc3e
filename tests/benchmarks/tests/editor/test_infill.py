"""The requests behind llama.vim, and what two servers answer in turn."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.benchmarks.editor.infill import LINES_BEFORE, ask_all, passes, requests, summary
from tests.benchmarks.editor.typing.stretches import Stretch
from tests.benchmarks.service.llama_server import llama_server

from lacuna_model.core.errors import RequestError

STRETCH = Stretch(Path("a.py"), tuple(f"v{n} = {n}" for n in range(400)), ("if x:", "    return x"), ("", "end()"))


def test_each_line_is_typed_between_what_stands_above_and_below() -> None:
    found = list(requests(STRETCH, 4))
    assert [one["prompt"] for one in found] == ["", "if x", "    ", "    retu"]
    first, last = found[0], found[-1]
    assert str(first["input_prefix"]).count("\n") == LINES_BEFORE
    assert str(last["input_prefix"]).endswith("v399 = 399\nif x:\n")
    assert first["input_suffix"] == "\n\nend()\n"


@contextmanager
def answering(text: str) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that answers every infill with a text, and its address with the bodies that it got."""
    bodies: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._say(json.dumps({"content": text, "tokens_predicted": 3}))

        def do_GET(self) -> None:
            self._say("# HELP\nlacuna_fill_nfe_sum 12.0\n")

        def _say(self, body: str) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()
            thread.join()


def test_two_servers_answer_the_same_requests() -> None:
    with answering("x") as (one, bodies), answering(" ") as (other, others):
        asked = ask_all([STRETCH], 4, {"one": one, "other": other}, lambda line: None)
        assert bodies == others == list(requests(STRETCH, 4))
        rows = summary(asked, {"one": passes(one)})
    assert [(row.server, row.requests, row.texts, row.tokens) for row in rows] == [
        ("one", len(bodies), len(bodies), 3 * len(bodies)),
        ("other", len(bodies), 0, 3 * len(bodies)),
    ]
    assert rows[0].tokens_a_pass == 3 * len(bodies) / 12
    assert rows[1].tokens_a_pass == 1


async def test_a_server_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"does not start with nothing\.gguf"):
        async with llama_server(str(tmp_path / "nothing.gguf"), 1, 1):
            pass
