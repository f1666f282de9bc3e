from tests.server.refactor.conftest import state

__all__ = ["state"]
