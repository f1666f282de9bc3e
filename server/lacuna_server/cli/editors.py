"""The editors on this machine, and what to paste into the settings of each so that it uses this installation."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

import lacuna_server

# Not lacuna-lsp: the folder of an installation's commands may not be on the path.
LANGUAGE_SERVER = (sys.executable, "-I", "-m", "lacuna_lsp")
VS_CODES = {
    "code": "VS Code",
    "code-insiders": "VS Code Insiders",
    "codium": "VSCodium",
    "cursor": "Cursor",
    "windsurf": "Windsurf",
}


class EditorProgram(msgspec.Struct, frozen=True):
    """An editor: its program, the file of its settings, the text to paste there, and what else to do ("": nothing)."""

    name: str
    program: str
    file: str
    paste: str
    also: str = ""


def found(url: str) -> list[EditorProgram]:
    """The editors on the path, for a service at ``url``."""
    programs = [(name, shutil.which(name)) for name in (*VS_CODES, *OTHERS)]
    return [
        _vs_code(name, program) if name in VS_CODES else OTHERS[name](program, url)
        for name, program in programs
        if program is not None
    ]


def neovim_plugin() -> Path:
    """The folder of the plugin for Neovim: a part of the wheel, or of the clone that is installed."""
    package = Path(lacuna_server.__file__).parent
    return next(
        folder for folder in (package / "neovim", package.parents[1] / "editor-clients/neovim") if folder.is_dir()
    )


def _vs_code(name: str, program: str) -> EditorProgram:
    paste = f'"lacuna.command": {json.dumps(LANGUAGE_SERVER)}'
    also = "install the extension, the .vsix of this platform, by Extensions: Install from VSIX..."
    return EditorProgram(VS_CODES[name], program, "settings.json", paste, also)


def _neovim(program: str, url: str) -> EditorProgram:
    command = ", ".join(map(_lua, LANGUAGE_SERVER))
    paste = (
        f"vim.opt.runtimepath:append({_lua(str(neovim_plugin()))})\n"
        f"vim.lsp.config('lacuna', {{ cmd = {{ {command} }} }})\n"
        "vim.lsp.enable('lacuna')"
    )
    return EditorProgram("Neovim", program, "~/.config/nvim/init.lua", paste)


def _vim(program: str, url: str) -> EditorProgram:
    paste = f"let g:llama_config = {{ 'endpoint_fim': '{url}/infill' }}"
    return EditorProgram("Vim", program, "~/.vimrc", paste, "install llama.vim, which asks this service")


def _zed(program: str, url: str) -> EditorProgram:
    service = {"api_url": f"{url}/v1/completions", "model": "lacuna", "prompt_format": "qwen"}
    settings = {"provider": "open_ai_compatible_api", "open_ai_compatible_api": service}
    return EditorProgram("Zed", program, "settings.json", f'"edit_predictions": {json.dumps(settings)}')


def _lua(text: str) -> str:
    """A string of Lua."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


OTHERS: dict[str, Callable[[str, str], EditorProgram]] = {"nvim": _neovim, "vim": _vim, "zed": _zed}
