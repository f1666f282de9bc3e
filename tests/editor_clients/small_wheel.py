"""A small wheel in place of Lacuna's own, for the tests of what installs it."""

import zipfile
from pathlib import Path

WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
SERVER = """
import json, sys
def main():
    print(json.dumps({"stage": "fetching", "done": 1, "total": 2}))
    print(json.dumps({"model": " ".join(sys.argv[1:])}))
if __name__ == "__main__":
    main()
"""


def make_wheel(folder: Path, server: str = SERVER, requires: str = "") -> Path:
    """A wheel with the name of Lacuna's, whose command line tells its arguments."""
    version, needs = "0.1.0", f"Requires-Dist: {requires}\n" if requires else ""
    about = f"lacuna_code-{version}.dist-info"
    files = {
        "lacuna_server/__init__.py": "",
        "lacuna_server/__main__.py": server,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: lacuna-code\nVersion: {version}\n{needs}",
        f"{about}/WHEEL": WHEEL,
        f"{about}/entry_points.txt": "[console_scripts]\nlacuna-lsp = lacuna_server.__main__:main\n",
    }
    return _wheel(folder / f"lacuna_code-{version}-py3-none-any.whl", about, files)


def make_path_wheel(folder: Path, *paths: str) -> Path:
    """A wheel ``tests-path`` that adds folders with packages to the environment that it is installed into."""
    about = "tests_path-1.dist-info"
    files = {
        "tests_path.pth": "".join(f"import site; site.addsitedir({path!r})\n" for path in paths),
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: tests-path\nVersion: 1\n",
        f"{about}/WHEEL": WHEEL,
    }
    return _wheel(folder / "tests_path-1-py3-none-any.whl", about, files)


def make_program_wheel(folder: Path, name: str, script: str) -> Path:
    """A wheel whose only file is a program, a script in Python."""
    about = f"{name}-1.dist-info"
    files = {
        f"{name}-1.data/scripts/{name}": f"#!python\n{script}",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{about}/WHEEL": WHEEL,
    }
    return _wheel(folder / f"{name}-1-py3-none-any.whl", about, files)


def _wheel(file: Path, about: str, files: dict[str, str]) -> Path:
    record = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(file, "w") as wheel:
        for name, text in {**files, f"{about}/RECORD": record}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            wheel.writestr(info, text)
    return file
