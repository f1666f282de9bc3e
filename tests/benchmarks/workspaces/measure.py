"""Measures fills with and without a workspace (index and snippets), on packages that the model has not seen."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq
from tests.benchmarks.held_out.cases import Case, Shape
from tests.benchmarks.tasks.runner import Filler
from tests.benchmarks.workspaces.cases import Held

from lacuna_model.backends.readers import Loaded
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Status
from lacuna_model.core.window import WindowOptions
from lacuna_model.engine import Engine
from lacuna_model.workspace.workspaces import Workspaces

# The longest time for reading a package, in seconds.
PATIENCE = 60.0
ARMS = ("model", "drafts", "drafts and snippets")


class Outcome(msgspec.Struct, frozen=True):
    """One arm's fills of case ``number``; ``exact``, ``similarity`` and ``right`` have one entry per gap.

    ``exact`` ignores trailing white space. ``similarity`` is the normalised Indel similarity, and ``right`` the share
    of the true tokens that the fill contains in their order; both are in 0..1.
    """

    arm: str
    number: int
    status: Status
    shape: Shape
    package: str
    path: str
    fills: tuple[str, ...]
    truths: tuple[str, ...]
    exact: tuple[bool, ...]
    similarity: tuple[float, ...]
    right: tuple[float, ...]
    tokens: int
    nfe: int
    ms: float
    encode_ms: float


class WithWorkspace:
    """An engine as one arm; ``root`` returns the folder of the request's package, or "" for none."""

    def __init__(self, name: str, engine: Engine, root: Callable[[], str], *, prior: bool) -> None:
        self.name = name
        self._engine = engine
        self._root = root
        self._options = DecodeOptions(prior=prior)

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request."""
        return self._engine.fill(msgspec.structs.replace(request, workspace=self._root(), options=self._options))


class Bench:
    """Writes the packages to disk and uses one of them at a time as the workspace of the arms."""

    def __init__(self, model: Loaded, folder: Path) -> None:
        self._folder = folder
        self._tokenizer = model.tokenizer
        self.workspaces = Workspaces(model.tokenizer)
        self.root = ""
        # Each arm has its own engine, so that none reuses a context that another has encoded.
        alone, plain, full = (
            Engine(model, window=WindowOptions(snippets=budget), workspaces=self.workspaces)
            for budget in (0, 0, WindowOptions().snippets)
        )
        self.arms: dict[str, Filler] = {
            "model": WithWorkspace("model", alone, lambda: "", prior=False),
            "drafts": WithWorkspace("drafts", plain, lambda: self.root, prior=True),
            "drafts and snippets": WithWorkspace("drafts and snippets", full, lambda: self.root, prior=True),
        }

    def run(
        self,
        packages: Sequence[Held],
        cases: Sequence[Case],
        arms: Sequence[str],
        done: Collection[tuple[str, int]] = (),
    ) -> Iterator[Outcome]:
        """Yields the results of every arm on every case, in turn; removes the case's file from its workspace meanwhile.

        ``done`` lists the pairs of arm and case number to skip.
        """
        for package in packages:
            _write(package, self._folder / package.name)
        for number, case in sorted(enumerate(cases), key=lambda numbered: numbered[1].package):
            wanted = [arm for arm in arms if (arm, number) not in done]
            if not wanted:
                continue
            self.root = str(self._folder / case.package)
            path = self._folder / case.package / case.path
            text = path.read_bytes()
            path.unlink()
            self.workspaces.read(self.root, PATIENCE)
            request = msgspec.structs.replace(case.request, path=str(path))
            for arm in wanted:
                yield self._outcome(arm, number, case, request)
            path.write_bytes(text)

    def _outcome(self, arm: str, number: int, case: Case, request: InfillRequest) -> Outcome:
        started = time.perf_counter()
        result = self.arms[arm].fill(request)
        ms = (time.perf_counter() - started) * 1000
        encode = self._tokenizer.encode
        pairs = list(zip(result.fills or ("",) * len(case.truths), case.truths, strict=True))
        return Outcome(
            arm=arm,
            number=number,
            status=result.status,
            shape=case.shape,
            package=case.package,
            path=case.path,
            fills=tuple(fill for fill, _ in pairs),
            truths=case.truths,
            exact=tuple(fill.rstrip() == truth.rstrip() for fill, truth in pairs),
            similarity=tuple(round(fuzz.ratio(fill, truth) / 100, 4) for fill, truth in pairs),
            right=tuple(
                round(LCSseq.similarity(encode(fill), encode(truth)) / len(encode(truth)), 4) for fill, truth in pairs
            ),
            tokens=result.stats.tokens,
            nfe=result.stats.nfe,
            ms=round(ms, 2),
            encode_ms=round(result.stats.encode_ms, 2),
        )


def _write(package: Held, folder: Path) -> None:
    for path, text in package.files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
