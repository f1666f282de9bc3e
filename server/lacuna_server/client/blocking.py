"""An engine for commands: blocking calls to the service, with the methods of an engine in this process."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from lacuna_model.core.context import finished
from lacuna_model.core.params import ChooseSnippets, DecodeOptions, InfillRequest, InfillResult, Region, Snapshot
from lacuna_server.client.client import Client
from lacuna_server.client.lifecycle import Address
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Infill, Open, Progress, Result, ServiceError, Status, Step

GIVE_UP_S = 10.0
POLL_S = 0.1
MAX_DOCUMENT_BYTES = ServerConfig().max_document_bytes


@contextmanager
def connected(locate: Address | Callable[[], Awaitable[Address]]) -> Iterator["ServiceEngine"]:
    """Open a session with the service until the block ends, which cancels its requests.

    ``locate`` and errors are as of ``Client.connect``.
    """
    with asyncio.Runner() as runner:
        client = runner.run(Client.connect(locate, name="lacuna", give_up_s=GIVE_UP_S))
        try:
            yield ServiceEngine(runner, client)
        finally:
            runner.run(client.aclose())


class ServiceEngine:
    """Fills by the service. Ctrl-C during a call cancels the request and raises KeyboardInterrupt."""

    def __init__(self, runner: asyncio.Runner, client: Client) -> None:
        self._runner = runner
        self._client = client

    @property
    def workspaces(self) -> "ServiceEngine":
        """The reader of workspaces."""
        return self

    def status(self) -> Status:
        """Return the state of the service."""
        return self._runner.run(self._client.status())

    def wait(self, report: Callable[[float], None]) -> None:
        """Wait until the model is loaded; ``report`` gets the fraction (0..1). Raises ServiceError where that fails."""
        # The service tries again to load a model that has failed when a document is opened.
        self._client.open(Open("lacuna:", ""))
        self._client.close("lacuna:")
        while (status := self.status()).state != "ready":
            if status.state == "failed":
                raise ServiceError("model_failed", status.detail)
            report(status.fraction)
            time.sleep(POLL_S)

    def read(self, root: str, seconds: float) -> None:
        """Let the service read a workspace, for at most so many seconds; from then on it keeps up with it."""
        options = DecodeOptions(deadline_ms=round(seconds * 1e3))
        self.fill(InfillRequest("", (Region(0, 0),), ChooseSnippets(1), path=root, options=options, workspace=root))

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fill every region and return the result. Raises ServiceError."""
        return finished(self._stream(request))

    def stream(self, request: InfillRequest) -> Generator[Snapshot, None, InfillResult]:
        """Fill every region, yielding a snapshot after each step; the generator's value is the result."""
        return self._stream(request, snapshots=True)

    def _stream(self, request: InfillRequest, *, snapshots: bool = False) -> Generator[Snapshot, None, InfillResult]:
        if len(request.text.encode()) > MAX_DOCUMENT_BYTES:
            limit = f"{MAX_DOCUMENT_BYTES >> 20} MiB"
            raise ServiceError("too_large", f"the service fills files of at most {limit}; use --no-service")
        path, workspace = (str(Path(name).absolute()) if name else "" for name in (request.path, request.workspace))
        uri = f"lacuna:{path}"
        self._client.open(Open(uri, request.text, 0, path, request.language, workspace))
        answers = self._client.infill(
            Infill(
                "",
                uri,
                self._client.documents[uri].version,
                request.regions,
                task=request.task,
                options=request.options,
                snippets=request.snippets,
                diagnostics=request.diagnostics,
                signatures=request.signatures,
                snapshots=snapshots,
            )
        )
        try:
            while not isinstance(answer := self._runner.run(_next(answers)), Result):
                if isinstance(answer, Step):
                    yield answer.snapshot
            return answer.result
        finally:
            self._runner.run(answers.aclose())
            self._client.close(uri)


async def _next(answers: AsyncGenerator[Progress | Step | Result, None]) -> Progress | Step | Result:
    return await anext(answers)
