"""The language server with an engine on another machine: over TLS, and without access to the client's folders."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from .conftest import _daemon
from .editor import Editor, launched
from .service import Daemon

SHOP = "def open_account(owner, opening):\n    return Account(owner)\n"
WAIT_S = 60


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The certificate of an authority, and one that it has issued for this machine, with its key."""
    ca = trustme.CA()
    issued = ca.issue_cert("127.0.0.1")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    return tmp_path


@pytest.fixture
def secured(authority: Path) -> Iterator[Daemon]:
    yield from _daemon(cert=str(authority / "cert.pem"), key=str(authority / "key.pem"))


def elsewhere(daemon: Daemon, folder: Path, **variables: str) -> dict[str, str]:
    """The environment of a user who is not the service's: the runtime folder, which has its token, is another one."""
    (folder / "run").mkdir(mode=0o700)
    return dict(daemon.environment) | {"XDG_RUNTIME_DIR": str(folder / "run")} | variables


async def snippets_sent(daemon: Daemon, editor: Editor) -> list[dict[str, str]]:
    """Type until the engine gets snippets, and return them."""
    async with asyncio.timeout(WAIT_S):
        while True:
            await editor.suggest(invoked=True)
            request = daemon.requests[-1]
            assert request["workspace"] == ""
            if request["snippets"]:
                return list(request["snippets"])
            editor.type(" ")


async def test_parts_of_other_files_are_sent_to_an_engine_that_cannot_read_them(
    secured: Daemon, authority: Path, tmp_path: Path
) -> None:
    (project := tmp_path / "project").mkdir()
    (project / "shop.py").write_text(SHOP)
    (project / ".env").write_text("open_account = 1\n")
    environment = elsewhere(secured, tmp_path, SSL_CERT_FILE=str(authority / "ca.pem"))
    async with launched(environment, "--engine", secured.running.url) as editor:
        await editor.initialize({"debounce": False}, folder=project)
        main = (project / "main.py").as_uri()
        editor.open("from shop import open_account\n\nmine = open_account(¦\n", uri=main)
        sent = await snippets_sent(secured, editor)
        assert [(one["path"], one["text"]) for one in sent] == [("shop.py", SHOP)]


async def test_no_part_is_sent_where_the_settings_forbid_it(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    async with launched(elsewhere(daemon, tmp_path), "--engine", daemon.running.url) as editor:
        await editor.initialize({"debounce": False, "workspace": False}, folder=tmp_path)
        editor.open("mine = open_account(¦\n", uri=(tmp_path / "main.py").as_uri())
        await editor.suggest(invoked=True)
        assert (daemon.requests[-1]["workspace"], daemon.requests[-1]["snippets"]) == ("", [])


async def test_a_certificate_of_an_unknown_authority_is_refused_in_one_line(secured: Daemon, tmp_path: Path) -> None:
    async with launched(elsewhere(secured, tmp_path), "--engine", secured.running.url) as editor:
        await editor.initialize({}, ready=False)
        async with asyncio.timeout(WAIT_S):
            while not (failed := [one for one in editor.statuses if one.state == "unreachable"]):
                await asyncio.sleep(0.05)
        assert "certificate verify failed" in failed[0].message
        assert "\n" not in failed[0].message
