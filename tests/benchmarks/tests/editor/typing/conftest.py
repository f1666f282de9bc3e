from tests.lsp.conftest import daemon, shared_daemon

__all__ = ["daemon", "shared_daemon"]
