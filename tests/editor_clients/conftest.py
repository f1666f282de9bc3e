from tests.lsp.conftest import daemon, own_daemon, shared_daemon

__all__ = ["daemon", "own_daemon", "shared_daemon"]
