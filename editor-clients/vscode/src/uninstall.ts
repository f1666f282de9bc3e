/** Runs without VS Code after the extension was removed: removes what it has installed, and the models. */

import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { find } from "./programs";

const TURNS = 4;
const NEOVIM = ["nvim/lacuna", "nvim-data/lacuna"];
const { XDG_DATA_HOME, LOCALAPPDATA } = process.env;
const DATA = [XDG_DATA_HOME, join(homedir(), ".local/share"), LOCALAPPDATA];

/** Whether another installation uses the models: one on the path, or that of the plugin for Neovim. */
function isUsed(): boolean {
  const folders = DATA.filter((folder) => folder !== undefined);
  return (
    find("lacuna-lsp") !== undefined || folders.some((folder) => NEOVIM.some((name) => existsSync(join(folder, name))))
  );
}

/** Removes an installation, and what `lacuna uninstall` removes unless another one uses it. */
function remove(storage: string): void {
  const python = join(storage, "venv", process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
  const end = isUsed() ? ["stop"] : ["uninstall", "--yes"];
  // A service that is still answering ends after the command has stopped waiting for it.
  for (let turn = 0; find(python) && turn < TURNS; turn++)
    if (spawnSync(python, ["-I", "-m", "lacuna_server", ...end]).status === 0) break;
  rmSync(storage, { recursive: true, force: true });
}

const [copy, storage] = process.argv.slice(2);
const pointer = join(__dirname, "storage");
if (copy && storage) {
  remove(storage);
  rmSync(copy, { recursive: true, force: true });
} else if (existsSync(pointer)) {
  // VS Code ends a hook after a few seconds and removes its file, so a copy does the work.
  const folder = mkdtempSync(join(tmpdir(), "lacuna-"));
  copyFileSync(__filename, join(folder, "uninstall.js"));
  const args = [join(folder, "uninstall.js"), folder, readFileSync(pointer, "utf8")];
  spawn(process.execPath, args, { detached: true, stdio: "ignore" }).unref();
}
