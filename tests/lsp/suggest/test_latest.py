import asyncio

import pytest

from lacuna_lsp.suggest.latest import Latest


async def slow(answer: str) -> str:
    await asyncio.sleep(60)
    return answer


async def quick(answer: str) -> str:
    return answer


async def test_a_newer_request_supersedes_the_older_one() -> None:
    latest = Latest()
    older = asyncio.ensure_future(latest.run("a", slow("old"), "superseded"))
    await asyncio.sleep(0)
    assert await latest.run("a", quick("new"), "superseded") == "new"
    assert await older == "superseded"


async def test_requests_for_different_documents_are_independent() -> None:
    latest = Latest()
    other = asyncio.ensure_future(latest.run("b", slow("old"), "superseded"))
    await asyncio.sleep(0)
    assert await latest.run("a", quick("new"), "superseded") == "new"
    assert not other.done()
    latest.cancel_others("a")
    assert await other == "superseded"


async def test_a_cancellation_by_the_client_is_passed_on() -> None:
    latest = Latest()
    request = asyncio.ensure_future(latest.run("a", slow("old"), "superseded"))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    latest.cancel("a")
