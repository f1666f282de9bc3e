/** Shows the engine's state in the status bar, with a menu. */

import * as vscode from "vscode";

/** The engine's state, as the server reports it. `stopped` means that the server itself does not run. */
export interface News {
  state: "starting" | "loading" | "ready" | "lost" | "unreachable" | "failed" | "stopped";
  health: "ok" | "error";
  fraction?: number;
  message?: string;
  /** What the user can do about an error. */
  advice?: string;
  /** Why the user's last request for suggestions got none. */
  nothing?: string;
}

const REASON_MS = 10_000; // how long the reason is shown for which there is no suggestion

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("lacuna", vscode.StatusBarAlignment.Right, 100);
  private news: News = { state: "starting", health: "ok" };
  private line = "";

  constructor() {
    this.item.name = "Lacuna";
    this.item.command = "lacuna.menu";
    this.show(this.news);
    this.item.show();
  }

  show(news: News): void {
    const { enabled, automatic } = vscode.workspace.getConfiguration("lacuna");
    this.news = news;
    const failing = news.health === "error";
    const icon = failing ? "error" : news.state !== "ready" ? "loading~spin" : enabled ? "sparkle" : "circle-slash";
    const share = news.state === "loading" ? ` ${Math.round(100 * (news.fraction ?? 0))} %` : "";
    this.item.text = `$(${icon}) Lacuna${share}`;
    const how = enabled ? (automatic ? "suggesting while you type" : "suggesting on request") : "not suggesting";
    this.line = `Lacuna: ${[news.state, news.message, how].filter(Boolean).join(", ")}`;
    this.item.tooltip = news.advice ? `${this.line}. What to do: ${news.advice}.` : this.line;
    if (news.nothing)
      void vscode.window.setStatusBarMessage(`Lacuna: nothing to suggest here: ${news.nothing}`, REASON_MS);
    this.item.backgroundColor = failing ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
  }

  /** Shows the state with the current settings. */
  refresh(): void {
    this.show({ ...this.news, nothing: "" });
  }

  async menu(): Promise<void> {
    const { enabled, automatic } = vscode.workspace.getConfiguration("lacuna");
    const entries = [
      { label: enabled ? "Turn suggestions off" : "Turn suggestions on", command: "lacuna.toggle" },
      {
        label: automatic ? "Suggest only on request" : "Suggest while typing",
        command: "lacuna.toggleAutomatic",
      },
      { label: "Restart language server", command: "lacuna.restart" },
      { label: "Set up", command: "lacuna.setup" },
      this.news.state === "stopped"
        ? { label: "Show output", command: "lacuna.showOutput" }
        : { label: "Open log", command: "lacuna.showLog" },
      { label: "Settings", command: "lacuna.openSettings" },
    ];
    const chosen = await vscode.window.showQuickPick(entries, {
      title: this.line,
      placeHolder: this.news.advice ?? "",
    });
    if (chosen) await vscode.commands.executeCommand(chosen.command);
  }

  dispose(): void {
    this.item.dispose();
  }
}

/** Toggles a boolean setting: in the workspace if it is set there, otherwise for the user. */
export async function toggle(name: "enabled" | "automatic"): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("lacuna");
  const here = configuration.inspect(name)?.workspaceValue !== undefined;
  await configuration.update(name, !configuration.get(name), !here);
}
