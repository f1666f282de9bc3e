"""Which folder a document belongs to."""

from lacuna_lsp.client.client_session import ClientSession


def test_a_document_belongs_to_the_innermost_folder_around_it() -> None:
    session = ClientSession(print)
    session.folders = ["/work/app", "/work/app/lib", "/other"]
    paths = ("/work/app/main.py", "/work/app/lib/deep/x.py", "/work/application/x.py", "Untitled-1")
    assert [session.workspace(path) for path in paths] == ["/work/app", "/work/app/lib", "", ""]
