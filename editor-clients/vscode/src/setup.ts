/** Installs the language server and the model where there is none, into the extension's own storage. */

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as vscode from "vscode";
import { KEPT, type Kept } from "./kept";
import { find, python } from "./programs";

/** A line of the installer: what Lacuna keeps on this machine, its progress, or, as the last one, the chosen model. */
interface Said extends Omit<Kept, "storage"> {
  stage?: string;
  done?: number;
  total?: number;
  model?: string;
}

const PROGRAMS = "its programs (0.3 GB to fetch, more with CUDA; 1 GB on disk)";
const MODEL = "a model (0.5 to 1.6 GB to fetch; 1.1 to 3.3 GB on disk)";
const INSTALL = "Install";
const NOT_NOW = "Not Now";
const DECLINED = "setup.declined";

export class Setup {
  private readonly folder: string;
  private readonly wheels: string;
  private readonly installer: string;
  private running = false;
  private offered = false;

  /** `changed` is called when the setup begins, and when it has ended. */
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly output: vscode.LogOutputChannel,
    private readonly changed: (running: boolean) => void,
  ) {
    this.folder = context.globalStorageUri.fsPath;
    this.wheels = context.asAbsolutePath("dist/wheels");
    this.installer = context.asAbsolutePath("dist/install.py");
    this.tell(existsSync(this.kept) ? readFileSync(this.kept, "utf8") : JSON.stringify({ storage: this.folder }));
  }

  /** Tells the hook that runs when the extension is removed, which knows nothing but the extension's own folder. */
  private tell(kept: string): void {
    writeQuietly(this.context.asAbsolutePath(KEPT), kept);
  }

  /** Where that is kept for other versions of the extension. */
  private get kept(): string {
    return join(this.folder, "kept.json");
  }

  /** The command that starts the language server, or undefined if there is none yet. */
  command(): string[] | undefined {
    const given = vscode.workspace.getConfiguration("lacuna").get<unknown>("command", []);
    const configured = (Array.isArray(given) ? given : [given]).map(String); // a text is a program without arguments
    if (isSet("command") || find(configured[0] ?? "")) return configured;
    return this.isDone() ? [this.own(), "-I", "-m", "lacuna_lsp"] : undefined;
  }

  /** Once: goes on with a setup that was interrupted or is of another version, or asks whether to begin one. */
  async begin(): Promise<void> {
    if (this.running) return this.changed(true);
    if (this.offered) return;
    this.offered = true;
    if (existsSync(this.begun)) return this.run();
    if (!this.context.globalState.get(DECLINED)) await this.ask();
  }

  /** Asks, and sets up. */
  async ask(): Promise<void> {
    if (this.running) return;
    const line = `Lacuna runs on this machine, and two things are missing here: ${PROGRAMS} and ${MODEL}. Install them?`;
    const chosen = await vscode.window.showInformationMessage(line, INSTALL, NOT_NOW);
    if (chosen) await this.context.globalState.update(DECLINED, chosen === NOT_NOW);
    if (chosen === INSTALL) await this.run();
  }

  /** Sets up the installation that there is, or makes one, after a question. */
  async byHand(): Promise<void> {
    const command = this.command();
    if (!command) return this.ask();
    const own = commandLine(command);
    if (!own) {
      void vscode.window.showWarningMessage(`Lacuna: ${command.join(" ")} is not an installation that can be set up.`);
      return;
    }
    const line = `Lacuna fetches the model that suits this machine, if it is not here: ${MODEL}.`;
    const chosen = await vscode.window.showInformationMessage(line, INSTALL, NOT_NOW);
    if (chosen === INSTALL) await this.run(command[0] === this.own() ? undefined : own);
  }

  private get begun(): string {
    return join(this.folder, "begun");
  }

  /** The Python of the extension's own installation. */
  private own(): string {
    return join(this.folder, process.platform === "win32" ? "venv/Scripts/python.exe" : "venv/bin/python");
  }

  /** What the wheel of this extension is known by. */
  private version(): string {
    if (!existsSync(this.wheels)) return "";
    return readdirSync(this.wheels)
      .sort()
      .map((name) => `${name} ${statSync(join(this.wheels, name)).size}`)
      .join("\n");
  }

  private isDone(): boolean {
    const done = join(this.folder, "done");
    return find(this.own()) !== undefined && existsSync(done) && readFileSync(done, "utf8") === this.version();
  }

  /** Runs a setup with progress: the installer, or the command line of an installation. */
  private async run(command?: string[]): Promise<void> {
    if (this.running) return;
    this.running = true;
    this.changed(true);
    let problem: string | undefined;
    try {
      const where = { location: vscode.ProgressLocation.Notification, title: "Lacuna", cancellable: true };
      const steps = command ? [...command, "setup", "--yes", "--json"] : await this.installation();
      await vscode.window.withProgress(where, (progress, token) => this.follow(steps, progress, token));
    } catch (error) {
      problem = error instanceof Error ? error.message : `${error}`;
    }
    this.running = false;
    this.changed(false);
    if (problem !== undefined) await this.failed(problem, command);
  }

  /** The command that installs, from the wheel of the extension. */
  private async installation(): Promise<string[]> {
    const found = await python();
    if (!found) throw new Error("neither Python 3.11 or newer nor uv is on the path: install one of them");
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(this.begun, "");
    const given = ["--wheels", this.wheels, "--into", this.folder, "--done", this.version()];
    return [...found, "-I", this.installer, ...given];
  }

  /** Shows the progress that a command prints. The installer ends with its stdin, also if VS Code is killed. */
  private follow(
    command: string[],
    progress: vscode.Progress<{ message?: string; increment?: number }>,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const [program = "", ...args] = command;
    const child = spawn(program, args, { cwd: this.context.extensionPath, env: { ...process.env, ...proxies() } });
    let shown = 0;
    let last = "";
    token.onCancellationRequested(() => {
      rmSync(this.begun, { force: true });
      if (args.includes(this.installer)) child.stdin.end();
      else child.kill();
    });
    createInterface(child.stdout).on("line", (line) => {
      const { stage, done = 0, total = 0, model, keeps, announced } = JSON.parse(line) as Said;
      if (keeps && announced && args.includes(this.installer)) {
        const kept: Kept = { storage: this.folder, keeps, announced };
        writeQuietly(this.kept, JSON.stringify(kept));
        this.tell(JSON.stringify(kept));
      }
      if (model) this.output.info(`set up with ${model}`);
      if (!stage) return;
      const share = total ? (100 * done) / total : 0;
      progress.report({ message: message(stage, done, total), increment: total ? Math.max(share - shown, 0) : 0 });
      shown = Math.max(share, shown);
    });
    createInterface(child.stderr).on("line", (line) => {
      last = line.replace(/^lacuna: /, "");
      this.output.error(line);
    });
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => {
        if (code === 0 || token.isCancellationRequested) resolve();
        else reject(new Error(last || `the setup ended with code ${code}`));
      });
    });
  }

  private async failed(problem: string, command?: string[]): Promise<void> {
    const line = `Lacuna: setup: ${problem.replace(/\.$/, "")}. It goes on from there.`;
    const chosen = await vscode.window.showWarningMessage(line, "Try Again", "Show Output");
    if (chosen === "Try Again") await this.run(command);
    else if (chosen) this.output.show();
  }
}

/** Whether the user has set a setting of Lacuna. */
export function isSet(name: string): boolean {
  const { globalValue, workspaceValue, workspaceFolderValue } =
    vscode.workspace.getConfiguration("lacuna").inspect(name) ?? {};
  return (globalValue ?? workspaceValue ?? workspaceFolderValue) !== undefined;
}

/** The command line that belongs to a language server, if that runs on this machine. */
function commandLine(server: string[]): string[] | undefined {
  const last = server.length - 1;
  if (server[last] === "lacuna_lsp") return [...server.slice(0, last), "lacuna_server"];
  const program = server[last]?.replace(/lacuna-lsp(\.exe)?$/, "lacuna$1");
  return program === server[last] ? undefined : [...server.slice(0, last), program ?? ""];
}

function message(stage: string, done: number, total: number): string {
  const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6).toLocaleString("en")} MB`;
  return total ? `${stage}, ${megabytes(done)} of ${megabytes(total)}` : done ? `${stage}, ${megabytes(done)}` : stage;
}

/** The proxy of VS Code's settings, for pip and uv. */
function proxies(): Record<string, string> {
  const proxy = vscode.workspace.getConfiguration("http").get<string>("proxy");
  return proxy ? { HTTPS_PROXY: proxy, HTTP_PROXY: proxy } : {};
}

function writeQuietly(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch {
    // The extension's folder belongs to the system: what it has installed is then removed by hand.
  }
}
