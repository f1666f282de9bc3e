"""What a session says to its user, and which folder a document belongs to."""

import pytest

from lacuna_lsp.client.client_session import REMEMBERED, ClientSession


def test_a_line_is_said_once_and_only_the_last_ones_are_remembered() -> None:
    said = list[str]()
    session = ClientSession(said.append)
    for number in (1, 1, 2, 1):
        session.say_once(f"outage {number}")
    assert said == ["outage 1", "outage 2"]
    for number in range(REMEMBERED):
        session.say_once(f"another {number}")
    session.say_once("outage 1")
    assert said.count("outage 1") == 2


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
    session = ClientSession(print)
    session.folders = ["/work/app", "/work/app/lib", "/other"]
    assert session.workspace(path) == workspace
