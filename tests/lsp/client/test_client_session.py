"""What a session says to its user, and which folder a document belongs to."""

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


def test_a_document_belongs_to_the_innermost_folder_around_it() -> None:
    session = ClientSession(print)
    session.folders = ["/work/app", "/work/app/lib", "/other"]
    paths = ("/work/app/main.py", "/work/app/lib/deep/x.py", "/work/application/x.py", "Untitled-1")
    assert [session.workspace(path) for path in paths] == ["/work/app", "/work/app/lib", "", ""]
