/**
 * Runs without VS Code after the extension was removed: stops the service, and removes what the setup has installed and
 * what Lacuna keeps. It runs no Python, because VS Code removes the storage of the extension, with its programs, at the
 * same time.
 */

import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KEPT, type Kept } from "./kept";
import { find } from "./programs";

const STOP_MS = 30_000;
const POLL_MS = 100;
const COPIED = "copied";
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

/** Whether a service listens on its socket; one that was killed leaves both its files. */
function listens(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });
}

/** Ends the service that a file announces. It removes the file when its last request has ended. */
async function stop(announced: string): Promise<void> {
  if (!existsSync(announced)) return;
  const { pid, socket } = JSON.parse(readFileSync(announced, "utf8")) as { pid: number; socket: string };
  if (!socket || !(await listens(socket))) return;
  process.kill(pid, "SIGTERM");
  for (const end = Date.now() + STOP_MS; existsSync(announced) && Date.now() < end; ) await sleep(POLL_MS);
}

function remove({ storage, keeps = [] }: Kept): void {
  const wanted = isUsed() ? [storage] : [storage, ...keeps];
  for (const one of wanted) rmSync(one, { recursive: true, force: true, maxRetries: 3 });
  // Longer paths first, so that a folder comes before the one that has it.
  for (const folder of [...new Set(wanted.slice(1).map(dirname))].sort().reverse()) {
    try {
      rmdirSync(folder);
    } catch {
      // It is not empty, or was not there.
    }
  }
}

async function main(): Promise<void> {
  const file = join(__dirname, basename(KEPT));
  if (!existsSync(file)) return;
  if (process.argv.at(-1) !== COPIED) {
    // VS Code ends a hook after a few seconds and removes its file, so a copy does the work.
    const folder = mkdtempSync(join(tmpdir(), "lacuna-"));
    for (const one of [__filename, file]) copyFileSync(one, join(folder, basename(one)));
    const args = [join(folder, basename(__filename)), COPIED];
    return spawn(process.execPath, args, { detached: true, stdio: "ignore" }).unref();
  }
  const kept = JSON.parse(readFileSync(file, "utf8")) as Kept;
  try {
    if (kept.announced) await stop(kept.announced);
  } finally {
    remove(kept);
    rmSync(__dirname, { recursive: true, force: true });
  }
}

void main();
