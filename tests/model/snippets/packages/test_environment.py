from pathlib import Path

import pytest

from lacuna_model.snippets.imports import Import
from lacuna_model.snippets.packages import environment, index
from lacuna_model.snippets.packages.index import PackageIndex

FILES = {
    "project/go.mod": (
        "module me\n\nrequire (\n\texample.com/Shop/till v1.2.0 // indirect\n)\nrequire example.com/one v0.1.0\n"
    ),
    "project/inner/main.go": "package main\n",
    "project/vendor/example.com/paper/paper.go": "package paper\nfunc Glue(a int) {}\n",
    "go/pkg/mod/example.com/!shop/till@v1.2.0/desk/desk.go": "package desk\nfunc Open(rate int) error {\n",
    "go/pkg/mod/example.com/!shop/till@v1.2.0/desk/more.go": "package desk\nfunc Shut() {\n",
    "go/pkg/mod/example.com/!shop/till@v1.2.0/desk/desk_test.go": "package desk\nfunc Tested() {\n",
    "go/pkg/mod/example.com/!shop/till@v1.1.0/desk/desk.go": "package desk\nfunc Older() {\n",
    "goroot/src/fmt/print.go": "package fmt\nfunc Println(a ...any) (n int, err error) {\n",
    "project/Cargo.lock": '[[package]]\nname = "paper-shop"\nversion = "1.0.2"\n',
    "project/vendor/glue/src/lib.rs": "pub fn stick(a: u8) {}\n",
    "cargo/registry/src/index-1/paper-shop-1.0.2/src/lib.rs": "pub use crate::sheets::Sheet;\npub mod sheets;\n",
    "cargo/registry/src/index-1/paper-shop-1.0.2/src/sheets.rs": (
        "pub use self::fold::*;\npub struct Sheet {\n    pub size: u8,\n}\n"
    ),
    "cargo/registry/src/index-1/paper-shop-1.0.2/src/sheets/fold.rs": "pub fn fold(times: u8) -> u8 {\n",
    "rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/lib.rs": "pub mod io;\n",
    "rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/io/mod.rs": "pub fn stdin() -> Stdin {\n",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("GOPATH", str(tmp_path / "go"))
    monkeypatch.setenv("GOROOT", str(tmp_path / "goroot"))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "rustup"))
    monkeypatch.delenv("GOMODCACHE", raising=False)
    return tmp_path


def signature(home: Path, language: str, module: str, name: str, folder: str = "inner") -> str | None:
    found = PackageIndex(home / "project").named(Import(module, name), language, folder)
    return found.signature if found is not None else None


@pytest.mark.parametrize(
    ("language", "module", "name", "expected"),
    [
        ("go", "example.com/paper", "Glue", "func Glue(a int)"),
        ("go", "example.com/Shop/till/desk", "Open", "func Open(rate int) error"),
        ("go", "example.com/Shop/till/desk", "Shut", "func Shut()"),
        ("go", "example.com/Shop/till/desk", "Tested", None),
        ("go", "example.com/Shop/till/desk", "Older", None),
        ("go", "fmt", "Println", "func Println(a ...any) (n int, err error)"),
        ("go", "example.com/other", "Println", None),
        ("rust", "glue", "stick", "fn stick(a: u8)"),
        ("rust", "paper_shop", "Sheet", "type Sheet { size: u8 }"),
        ("rust", "paper_shop/sheets", "fold", "fn fold(times: u8) -> u8"),
        ("rust", "std/io", "stdin", "fn stdin() -> Stdin"),
        ("rust", "other", "stick", None),
    ],
)
def test_go_and_rust_have_packages(home: Path, language: str, module: str, name: str, expected: str | None) -> None:
    assert signature(home, language, module, name) == expected


def test_what_a_package_of_go_lacks_is_known(home: Path) -> None:
    packages = PackageIndex(home / "project")
    assert packages.offers(Import("fmt", "Print"), "go", "") is False
    assert packages.offers(Import("example.com/other", "Print"), "go", "") is None
    assert "stick" in packages.names(Import("glue"), "rust", "")


@pytest.mark.parametrize(
    "module",
    ["../secret", "a/../../secret", "/secret", "..", "", "a//b", "a\0b", "x" * 1_000_000, "a/" * 100_000],
    ids=lambda module: module[:15],
)
def test_no_name_leads_out_of_the_places_of_packages(home: Path, module: str) -> None:
    (home / "secret").mkdir()
    (home / "secret" / "secret.go").write_text("package secret\nfunc Stolen() {\n")
    (home / "secret" / "lib.rs").write_text("pub fn Stolen() {\n")
    assert signature(home, "go", module, "Stolen") is None
    assert signature(home, "rust", module, "Stolen") is None


def test_links_that_lead_out_are_not_followed(home: Path) -> None:
    outside = home / "outside"
    (outside / "src").mkdir(parents=True)
    (outside / "stolen.go").write_text("package stolen\nfunc Stolen() {\n")
    (outside / "src" / "lib.rs").write_text("pub fn stolen() {}\n")
    vendor = home / "project" / "vendor"
    (vendor / "stolen").symlink_to(outside)
    (vendor / "beside").mkdir()
    (vendor / "beside" / "own.go").write_text("package beside\nfunc Own() {\n")
    (vendor / "beside" / "link.go").symlink_to(outside / "stolen.go")
    assert signature(home, "go", "stolen", "Stolen") is None
    assert signature(home, "go", "beside", "Own") is None  # not all of it is known
    assert signature(home, "rust", "stolen", "stolen") is None
    (home / "linked").mkdir()
    (home / "linked" / "vendor").symlink_to(vendor)
    assert PackageIndex(home / "linked").named(Import("glue", "stick"), "rust", "") is None


def test_large_packages_are_not_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = home / "project" / "vendor"
    monkeypatch.setattr(index, "MAX_FILE", 100)
    (vendor / "huge").mkdir()
    (vendor / "huge" / "one.go").write_text("package huge\nfunc One() {\n")
    assert signature(home, "go", "huge", "One") == "func One()"
    (vendor / "huge" / "two.go").write_text(f"package huge\n// {'x' * 100}\nfunc Two() {{\n")
    assert signature(home, "go", "huge", "One") is None
    monkeypatch.setattr(environment, "_MAX_FILES", 1)
    monkeypatch.setattr(index, "MAX_FILE", 10_000)
    assert signature(home, "go", "huge", "One") is None


def test_crates_that_name_each_other_end(home: Path) -> None:
    source = home / "project" / "vendor" / "one" / "src"
    source.mkdir(parents=True)
    (source / "lib.rs").write_text("pub use crate::*;\npub use one::*;\nmod lib;\n")
    assert signature(home, "rust", "one", "nothing") is None
