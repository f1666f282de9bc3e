"""The examples that newcomers meet first come out as they should: the shortest with the default model, too.

CI fetches only the small model; with the default one, the tests are skipped where it is not downloaded.
"""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lacuna_model.core import context
from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import EditLines, InfillRequest, Region
from lacuna_model.core.regions import at_cursor
from lacuna_model.engine import Engine
from lacuna_model.hub import models
from lacuna_model.languages.registry import require_language
from lacuna_server import files
from lacuna_server.cli.fill import DEFAULT_TOKENS
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.refactoring import by_structure, places

ROOT = Path(__file__).parents[2]
PLAYGROUND = ROOT / "server/lacuna_server/playground"
LIST_EXAMPLES = f"""
import {{ EXAMPLES, parse }} from "{PLAYGROUND}/examples.js";
import {{ regionsOf }} from "{PLAYGROUND}/connection.js";
const filled = EXAMPLES.map(({{ name, language, code }}) => {{
  const {{ text, gaps }} = parse(code);
  return {{ name, language, text, regions: regionsOf(text, gaps, {{ max_tokens: 24 }}) }};
}});
console.log(JSON.stringify(filled));
"""
# The fills of the playground's examples, by their names.
FILLS = {
    "Python: vectors": ("self.x - other.x, self.y - other.y", "self.x * factor, self.y * factor", "-self.x, -self.y"),
    "Python: an account": ("self.balance < amount", "-= amount", '"withdraw", amount', "-1"),
    "JavaScript: arithmetic": ("a - b", "a * b", "'Cannot divide by zero'", "a / b"),
    "Go: a slice of numbers": ("value > largest", "value == wanted"),
    "Rust: points": (
        "x: self.x - other.x, y: self.y - other.y",
        "x: self.x * factor, y: self.y * factor",
        "self.y * self.y",
    ),
}
# What one of the models writes in place of these, and says the same.
SAME = {
    "amount > self.balance": "self.balance < amount",
    "'Cannot divide by zero.'": "'Cannot divide by zero'",
}
DEMO = ("self.x - other.x, self.y - other.y", "self.x * factor, self.y * factor", "-self.x, -self.y")


@pytest.fixture(scope="module")
def small(coder_path: Path) -> Engine:
    """An engine with the small model."""
    return Engine.load(models.SMALL_MODEL)


@pytest.fixture(scope="module", params=[models.SMALL_MODEL, models.LARGE_MODEL])
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine with one of the models."""
    if request.param == models.SMALL_MODEL:
        loaded: Engine = request.getfixturevalue("small")
        return loaded
    try:
        models.weights(request.param)
    except LacunaError as error:
        pytest.skip(f"the example is not filled with {request.param}: {error}")
    return Engine.load(request.param)


def test_the_examples_of_the_playground(small: Engine) -> None:
    node = shutil.which("node")
    assert node is not None, "node reads the examples"
    listed = subprocess.run(
        [node, "--input-type=module", "-e", LIST_EXAMPLES], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = {}
    for example in json.loads(listed.stdout):
        regions = msgspec.convert(example["regions"], tuple[Region, ...])
        request = InfillRequest(example["text"], regions, path="playground:code", language=example["language"])
        result = context.finished(small.stream(request, document=example["name"]))
        fills = (fill.strip() for fill in result.fills)
        found[example["name"]] = tuple(SAME.get(fill, fill) for fill in fills)
    assert found == FILLS


def test_the_demo(engine: Engine) -> None:
    document = files.read(ROOT / "tests/data/demo/vector.py")
    regions = tuple(files.marked(document, DEFAULT_TOKENS))
    result = engine.fill(InfillRequest(document.text, regions, path=str(document.path)))
    assert result.fills == DEMO


INSTRUCTION = "add a docstring"


@pytest.mark.parametrize(
    ("before", "code"),
    [
        ("import math\n\n\n", "def average(numbers):\n    return sum(numbers) / len(numbers)\n"),
        ("", "def area(w, h):\n    return w * h\n"),
    ],
)
def test_the_instruction_of_the_documents(engine: Engine, before: str, code: str) -> None:
    text = before + code
    region = Region(len(before), len(text), max_tokens=512)
    result = engine.fill(InfillRequest(text, (region,), EditLines(INSTRUCTION), path="code.py"))
    assert result.status == "ok", result.message
    (function,) = ast.parse(result.fills[0]).body
    assert isinstance(function, ast.FunctionDef)
    assert ast.get_docstring(function)
    assert ast.unparse(function.body[1:]) == ast.unparse(ast.parse(code).body[0].body)  # type: ignore[attr-defined]


def test_the_refactor_of_the_readme(engine: Engine) -> None:
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"^lacuna refactor --lang python '(.+?)' '(.+?)' src/$", readme, re.MULTILINE)
    assert command is not None
    text = "import requests\n\n\ndef page(url):\n    return requests.get(url).text\n"
    source = Source("page.py", text, require_language("python"))
    ((_, rewrites),) = places(by_structure(*command.groups()), [source])[0]
    fill = FileFill(source, rewrites)
    fill_files([fill], engine.fill, lambda count: None)
    rewritten = fill.edits().rewritten(source.data).decode()
    assert re.sub(r"timeout=\d+\)", "timeout=10)", rewritten) == text.replace("get(url)", "get(url, timeout=10)")


@pytest.mark.parametrize("editor", ["vscode", "neovim"])
def test_the_pictures_of_the_editors(engine: Engine, editor: str) -> None:
    """The suggestion in the picture is the model's; the tests of the editors check that they show it so."""
    page = (ROOT / f"editor-clients/{editor}/README.md").read_text()
    picture = re.search(r"```\n(def .*?)\n(?:\w+\.py .*?)?```", page, re.DOTALL)
    assert picture is not None
    if editor == "vscode":
        head, suggested, tail = re.split("[«»]", picture[1].replace("»\n«", "\n"))
    else:
        lines = picture[1].splitlines(keepends=True)
        (index,) = [number for number, line in enumerate(lines) if line.endswith(" 1/3\n")]
        suggested = lines[index].removesuffix(" 1/3\n").lstrip()
        indent = lines[index][: len(lines[index]) - len(lines[index].lstrip())]
        head, tail = "".join(lines[:index]) + indent, "\n" + "".join(lines[index + 1 :])
    at = len(head.encode())
    request = InfillRequest(head + tail, (at_cursor(at, "", 64, 12),), path="area.py", language="python")
    assert engine.fill(request).fills[0].rstrip() == suggested
