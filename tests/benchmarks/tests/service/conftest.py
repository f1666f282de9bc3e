from tests.server.conftest import scripted_engine

__all__ = ["scripted_engine"]
