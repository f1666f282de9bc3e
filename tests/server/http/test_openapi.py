"""The description matches the service. Schemathesis sends requests that follow it and requests that violate it."""

import asyncio
import threading
from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

from lacuna_server.http import openapi
from lacuna_server.http.shapes.other import PLAIN
from lacuna_server.http.shapes.table import SHAPES

from .scripted import Script, serving

EXAMPLES = 10


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of a server in a separate thread, because schemathesis blocks until it gets an answer."""
    started, ended, found = threading.Event(), asyncio.Event(), []

    async def serve() -> None:
        async with serving(Script(fills=("one\ntwo", "three"))) as client:
            found.extend([str(client.base_url), asyncio.get_running_loop()])
            started.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    started.wait()
    yield found[0]
    found[1].call_soon_threadsafe(ended.set)
    thread.join()


schema = schemathesis.openapi.from_dict(openapi.document("1.2.3"))


@schema.parametrize()
@hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_every_answer_matches_the_description(case: schemathesis.Case, url: str) -> None:
    # Whether a request can be served also depends on the content of its prompt, which no schema can describe.
    case.call_and_validate(base_url=url, excluded_checks=[positive_data_acceptance])


def test_the_description_is_valid_and_complete() -> None:
    schema.validate()
    document = schema.raw_schema
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {path for shape in SHAPES for path in shape.paths} | {one.path for one in PLAIN}
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
