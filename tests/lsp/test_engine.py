import pytest

from lacuna_lsp.engine import Engine
from lacuna_server.client import Address


async def nowhere() -> Address:
    raise ConnectionError


@pytest.mark.parametrize(
    ("path", "workspace"),
    [
        ("/work/app/main.py", "/work/app"),
        ("/work/app/lib/deep/x.py", "/work/app/lib"),
        ("/work/application/x.py", ""),
        ("Untitled-1", ""),
    ],
)
def test_a_document_belongs_to_the_innermost_folder_around_it(path: str, workspace: str) -> None:
    engine = Engine(nowhere, list, lambda news: None)
    engine.folders = ["/work/app", "/work/app/lib", "/other"]
    assert engine.workspace(path) == workspace
