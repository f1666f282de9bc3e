"""Whatever a text is, the worker process serves its other requests meanwhile: short texts that are nested deeply."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.server.worker.test_process import Noted

from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, Region
from lacuna_model.languages.registry import LANGUAGES
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Done, Ready, Start, Submission

ROOT = Path(__file__).parents[3]
SIZES = (20_000, 200_000)  # bytes
TIMEOUT_S = 60  # of another client's fill, which takes about a second: all cores may be busy
DEADLINE_MS = 300
# What opens another level in each language, and what stands before.
NESTERS = {
    "bash": ("", ('"$(', "if ")),
    "c": ("void f() { ", ("a(", "&match =>")),
    "cpp": ("", ("A<", "a(=?<a>")),
    "csharp": ("class A { void f() { ", ("A<", '$"{')),
    "css": ("", ("a{", "(")),
    "go": ("package a\nfunc f() { ", ("func(){", "[]")),
    "html": ("", ("<a>", "<p><b>")),
    "java": ("class A { void f() { ", ("A<", "=>a(")),
    "javascript": ("", ("`${", "a?")),
    "json": ("", ("[", '{"a":')),
    "kotlin": ("fun f() { ", ("a<", '"${')),
    "lua": ("", ("not ", "{")),
    "php": ("<?php ", ("(", '"${')),
    "python": ("x = ", ("(", "not ")),
    "ruby": ("", ('"#{', "[")),
    "rust": ("fn f() { a", ("<b", "!")),
    "toml": ("a = ", ("[", "{")),
    "tsx": ("", ("<a>{", "A<")),
    "typescript": ("", ("A<", "a=,")),
    "yaml": ("", ("- ", "[")),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[Noted]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests" / "server" / "scripted")]))
        model = Noted(ServerConfig(engine="tiny_engine:load", model="tiny", threads=1, device="cpu", cache_bytes=1))
        model.start()
        try:
            await model.until(lambda one: one.count(Ready))
            yield model
        finally:
            await model.stop()


async def ended(model: Noted, id: int) -> Done:
    """The answer to a request."""
    async with asyncio.timeout(TIMEOUT_S):
        await model.until(lambda one: any(isinstance(said, Done) and said.id == id for said in one.said))
    return next(said for said in model.said if isinstance(said, Done) and said.id == id)


def test_every_language_has_nesters() -> None:
    assert set(NESTERS) == {language.name for language in LANGUAGES}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", sorted(NESTERS))
async def test_another_client_is_served_meanwhile(running: Noted, name: str) -> None:
    begin, nesters = NESTERS[name]
    for nester, is_open, size in zip(nesters, (False, True), SIZES, strict=True):
        id = 2 * sum(isinstance(said, Done) for said in running.said)
        text = begin + nester * (size // len(nester))
        gap = (Region(len(text), len(text), max_tokens=8),)
        options = DecodeOptions(deadline_ms=DEADLINE_MS)
        nested = InfillRequest(text, gap, FillGaps(open=is_open), language=name, options=options)
        other = InfillRequest("x = \ny = 1\n", (Region(4, 4, max_tokens=4),), language="python")
        running.send(Start(id, Submission(nested, "", "nested")))
        running.send(Start(id + 1, Submission(other, "", "other")))
        assert (await ended(running, id + 1)).result.status in ("ok", "no_valid_fill")
        result = (await ended(running, id)).result
        assert result.status in ("ok", "no_valid_fill", "deadline")
        assert result.message or result.status != "no_valid_fill"
    assert not running.crashes
