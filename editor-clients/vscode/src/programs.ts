/** Finds programs on the path: a language server of the user's own, and a Python to install one with. */

import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const WINDOWS = process.platform === "win32";
const OLDEST = "3.11";
const PYTHONS = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];

/** The path of a program on the path; a program that is given by its path is itself. */
export function find(program: string): string | undefined {
  const { PATH = "", PATHEXT = ".EXE" } = process.env;
  const folders = /[/\\]/.test(program) ? [""] : PATH.split(delimiter);
  const endings = WINDOWS ? ["", ...PATHEXT.split(";")] : [""];
  const files = folders.flatMap((folder) => endings.map((ending) => join(folder, program + ending)));
  return files.find(runs);
}

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The command that runs a Python that is new enough: one on the path, else one that uv gets. */
export async function python(): Promise<string[] | undefined> {
  const check = `import sys; sys.exit(sys.version_info < (${OLDEST.replace(".", ", ")}))`;
  for (const found of PYTHONS.map(find)) {
    try {
      if (found) await promisify(execFile)(found, ["-I", "-c", check]);
      if (found) return [found];
    } catch {
      // It is older, or it is Windows' link to a shop.
    }
  }
  const uv = find("uv");
  return uv ? [uv, "run", "--no-project", "--python", `>=${OLDEST}`, "python"] : undefined;
}
