"""Nested ignore files, ``.gitignore``, ``.git/info/exclude`` and ``.lacunaignore``, by git's rules, in linear time."""

import codecs
import os
import re
from pathlib import Path

from lacuna_model.files.opening import Mark, find_repository, mark, read_within

# Within the expression of a line, whose characters are in Latin-1.
_STAR, _SLASH = "\ue000", "\ue001"
_NEVER = "(?!)"
_ANY_FOLDERS = r"(?:[^/]++/)*?"
_TOKEN = re.compile(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?+)(?P<members>\]?+(?:\[:\w*:\]|\\.|[^]\\])*+)\]"
    r"|(?P<broken>[\\\[])|(?P<wild>[*?])|(?P<own>.)",
    re.DOTALL,
)
_MEMBER = re.compile(r"\[:(?P<of>\w*):\]|\\?(?P<first>.)(?:-(?!\Z)\\?(?P<last>.))?", re.DOTALL)
# The classes of POSIX, as git knows them, in ASCII.
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\s", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def _bracket(token: re.Match[str]) -> str:
    """The regular expression of a bracket, which matches nothing if it names an unknown class."""
    parts = list[str]()
    for member in _MEMBER.finditer(token["members"]):
        if member["of"] is not None:
            if member["of"] not in _CLASSES:
                return _NEVER
            parts.append(_CLASSES[member["of"]])
        elif member["first"] <= (last := member["last"] or member["first"]):
            parts.append(f"{re.escape(member['first'])}-{re.escape(last)}")
    if not parts:
        return "[^/]" if token["negated"] else _NEVER
    return f"(?!/)[{'^' if token['negated'] else ''}{''.join(parts)}]"


def _one(token: re.Match[str]) -> str:
    """The regular expression of a token, a mark for a slash and a star."""
    if token["members"] is not None:
        return _bracket(token)
    if token["wild"]:
        return _STAR if token["wild"] == "*" else "[^/]"
    character = token["escaped"] or token["own"]
    return _SLASH if character == "/" else re.escape(character)


def _path(expression: str) -> str:
    """The regular expression of a path: runs of names, with any folders between them."""
    names = expression.split(_SLASH)
    if "" in names:
        return _NEVER
    runs: list[list[str]] = [[]]
    for own in names:
        if len(own) > 1 and set(own) == {_STAR}:
            runs.append([])
        else:
            runs[-1].append(_name(own))
    first, *others = ["/".join(run) for run in runs]
    if not others:
        return first
    head = f"{first}/" if first else ""
    inner = "".join(f"(?>{_ANY_FOLDERS}{part}/)" for part in others[:-1] if part)
    return f"{head}{inner}{_ANY_FOLDERS + others[-1] if others[-1] else '.+'}"


def _name(expression: str) -> str:
    """The regular expression of one name."""
    first, *others = expression.split(_STAR)
    if not others:
        return first
    inner = "".join(f"(?>[^/]*?{part})" for part in others[:-1] if part)
    return f"{first}{inner}[^/]*{others[-1]}"


# Later ones outrank earlier ones of the same folder, and all of them the repository's own file. A `.lacunaignore` with
# the line `*` switches a workspace off.
IGNORE_FILES = (".gitignore", ".lacunaignore")
EXCLUDE = "info/exclude"
# A work tree or submodule has a file `.git` that names its repository, which may name another one that it belongs to.
MAX_POINTER_BYTES = 10_000
# A longer ignore file is not read, nor is one that is a link; git does not follow such links either.
MAX_BYTES = 1_000_000
# What the lines with wildcards of a folder and of those above it may cost, since each is tried at every path: their
# characters, and so many more for each. Where they cost more, everything in the folder is ignored.
MAX_COST, COST_OF_A_LINE = 200_000, 100
# Whether a line ignores what it names, after its number: of several lines, the last one counts.
Verdict = tuple[int, bool]
_NONE: Verdict = (-1, False)


class IgnoreRules:
    """The ignore rules of a folder; its own files outrank those of the folders above it."""

    def __init__(self, folder: Path, above: "IgnoreRules | None" = None, link: tuple[str, str] = ("", "")) -> None:
        """``link`` is a workspace as paths name it, and where it really is, from where the folders above are."""
        self._above = above
        self._link: tuple[str, str] = link if above is None else above._link
        self._prefix = self._real(_with_slash(folder))
        self._names: dict[str, Verdict] = {}
        self._paths: dict[str, Verdict] = {}
        self._patterns: list[tuple[re.Pattern[str], bool, bool, Verdict]] = []
        self._cost: int = above._cost if above is not None else 0
        for number, line in enumerate(line for place, name in _files(folder) for line in _lines(place, name)):
            self._add(line, number)
        self._patterns.reverse()

    @classmethod
    def of(cls, root: Path) -> "IgnoreRules":
        """The rules of a workspace, with those of the folders above it up to the root of its repository."""
        above, real = None, Path(os.path.realpath(root))
        for folder in reversed(_from_repository(real)):
            above = cls(folder, above, (_with_slash(root), _with_slash(real)))
        assert above is not None
        return above

    def ignores(self, path: str) -> bool:
        """Whether git would leave out ``path``, absolute with forward slashes; that of a folder ends in a slash.

        The caller must have checked the folders above it: nothing inside an ignored folder can be kept.
        """
        if self._cost > MAX_COST:
            return True
        path = self._real(_as_git(path))
        rules: IgnoreRules | None = self
        while rules is not None:
            number, ignored = rules._verdict(path[len(rules._prefix) :])
            if number >= 0:
                return ignored
            rules = rules._above
        return False

    def _real(self, path: str) -> str:
        named, real = self._link
        return real + path[len(named) :] if named and path.startswith(named) else path

    def _add(self, line: str, number: int) -> None:
        """Take in a line: one without wildcards names a path, or without a slash a name at any depth.

        Comments, and what git takes for no pattern, name nothing.
        """
        bare = line.rstrip(" ")
        is_blank_escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
        line = line[: len(bare) + is_blank_escaped]
        path = line.removeprefix("!")
        folders = path.endswith("/")
        path = path.removesuffix("/")
        anchored = "/" in path  # within a bracket, too
        if self._cost > MAX_COST or line.startswith("#"):
            return
        tokens = list(_TOKEN.finditer(path.removeprefix("/")))
        if not tokens or any(token["broken"] for token in tokens):
            return
        verdict = (number, not line.startswith("!"))
        if all(token["escaped"] or token["own"] for token in tokens):
            known = self._paths if anchored else self._names
            known["".join(token["escaped"] or token["own"] for token in tokens) + "/" * folders] = verdict
            return
        self._cost += len(line) + COST_OF_A_LINE
        if self._cost <= MAX_COST:
            expression = _path("".join(map(_one, tokens)))
            self._patterns.append((re.compile(expression, re.DOTALL), anchored, folders, verdict))

    def _verdict(self, path: str) -> Verdict:
        """The last line that names this very path, given inside the folder; a number below 0 if there is none."""
        bare = path.removesuffix("/")
        name = bare.rpartition("/")[2]
        best = max(self._names.get(name, _NONE), self._paths.get(bare, _NONE))
        if is_folder := bare != path:
            best = max(best, self._names.get(f"{name}/", _NONE), self._paths.get(path, _NONE))
        for pattern, anchored, folders, verdict in self._patterns:
            if verdict < best:
                break
            if (is_folder or not folders) and pattern.fullmatch(bare if anchored else name):
                return verdict
        return best


def _with_slash(folder: Path) -> str:
    return _as_git(folder.as_posix().rstrip("/") + "/")


def is_rules(path: str) -> bool:
    """Whether a file may hold ignore rules, by its name."""
    return os.path.basename(path) in IGNORE_FILES or path.replace(os.sep, "/").endswith(f"/{EXCLUDE}")


def stamps(root: Path) -> tuple[int | Mark, ...]:
    """What changes with the folder at ``root``, and with its ignore files and those of the folders above it."""
    folders = _from_repository(Path(os.path.realpath(root)))
    try:
        own = root.stat().st_ino
    except OSError:
        own = 0
    return (own, *(mark(place / name) for folder in folders for place, name in _files(folder)))


def _from_repository(root: Path) -> list[Path]:
    """``root`` and the folders above it, up to that of its repository."""
    repository = find_repository(root) or root
    return [folder for folder in (root, *root.parents) if folder == repository or repository in folder.parents]


def _files(folder: Path) -> list[tuple[Path, str]]:
    """The places of a folder's ignore files, whether or not they exist: for each a folder, and the path inside it."""
    git = folder / ".git"
    if os.path.isfile(git):
        git = _named_by(_named_by(git, "gitdir: ") / "commondir")
    return [(git, EXCLUDE), *((folder, name) for name in IGNORE_FILES)]


def _named_by(file: Path, key: str = "") -> Path:
    """The folder that the line of a file names; without such a line, the file's own folder."""
    line = os.fsdecode(read_within(file.parent, file, MAX_POINTER_BYTES) or b"").rstrip("\r\n")
    named = line.removeprefix(key) if line.startswith(key) and "\0" not in line else ""
    return Path(os.path.realpath(file.parent / named))


def _lines(folder: Path, name: str) -> list[str]:
    data = read_within(folder, folder / name, MAX_BYTES)
    if data is None:  # most folders have none
        return []
    return [line.removesuffix("\r") for line in data.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")]


def _as_git(path: str) -> str:
    """A path with one character for each of its bytes: git's wildcards match bytes."""
    return os.fsencode(path).decode("latin-1")
