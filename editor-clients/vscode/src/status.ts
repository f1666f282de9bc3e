/** Shows the engine's state in the status bar, with a menu. */

import * as vscode from "vscode";
import { isSet } from "./setup";

/** The engine's state, as the server reports it. The last three mean that the server itself does not run. */
export interface News {
  state: "starting" | "loading" | "ready" | "lost" | "unreachable" | "failed" | "stopped" | "not set up" | "setting up";
  health: "ok" | "error";
  fraction?: number;
  message?: string;
  /** What the user can do about an error. */
  advice?: string;
  /** Why the user's last request for suggestions got none. */
  nothing?: string;
  /** How many suggestions for the cursor's place were held back as unsure. */
  held?: number;
  /** The settings as they hold for the server, also from files. */
  enabled?: boolean;
  automatic?: boolean;
  /** For how many seconds nothing is suggested without a request, as of this message. */
  snoozedS?: number;
}

interface Entry extends vscode.QuickPickItem {
  command: string;
  argument?: object;
}

type Toggled = "enabled" | "automatic";

/** What the user reads in place of the name of a state. */
const WORDS: Partial<Record<News["state"], string>> = { lost: "connection lost", unreachable: "no engine" };
const ASK = "Alt+\\";
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
    this.news = news;
    const [enabled, automatic] = [this.isOn("enabled"), this.isOn("automatic")];
    const failing = news.health === "error";
    const ready = news.snoozedS ? "bell-slash" : "sparkle";
    const icon = failing ? "error" : !enabled ? "circle-slash" : news.state === "ready" ? ready : "loading~spin";
    this.item.text = `$(${icon}) Lacuna: ${inShort(news, enabled, automatic)}`;
    const unasked = news.snoozedS ? "snoozed" : automatic ? "suggesting while you type" : "suggesting on request";
    const how = enabled ? unasked : "not suggesting";
    this.line = `Lacuna: ${[news.state, news.message, how].filter(Boolean).join(", ")}`;
    const held = news.held ? `. A suggestion for this place was held back as unsure; ${ASK} shows it.` : "";
    this.item.tooltip = news.advice ? `${this.line}. What to do: ${news.advice}.` : this.line + held;
    if (news.nothing)
      void vscode.window.setStatusBarMessage(`Lacuna: nothing to suggest here: ${news.nothing}`, REASON_MS);
    this.item.backgroundColor = failing ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
  }

  /** Shows the state with the current settings. */
  refresh(): void {
    this.show({ ...this.news, nothing: "" });
  }

  async menu(): Promise<void> {
    const { suggest } = vscode.workspace.getConfiguration("lacuna");
    const runs = !["starting", "stopped", "not set up", "setting up"].includes(this.news.state);
    const snooze = this.news.snoozedS
      ? { label: "Suggest again", command: "lacuna.snooze", argument: { minutes: 0 } }
      : { label: "Snooze suggestions for ten minutes", command: "lacuna.snooze" };
    const entries: Entry[] = [
      ...(this.news.held ? [{ label: `Show what was held back as unsure (${ASK})`, command: "lacuna.suggest" }] : []),
      { label: this.isOn("enabled") ? "Turn suggestions off" : "Turn suggestions on", command: "lacuna.toggle" },
      {
        label: this.isOn("automatic") ? "Suggest only on request" : "Suggest while typing",
        command: "lacuna.toggleAutomatic",
      },
      { label: `Suggest less or more (${suggest})`, command: "lacuna.dial" },
      ...(runs ? [snooze] : []),
      { label: "Restart language server", command: "lacuna.restart" },
      { label: "Set up", command: "lacuna.setup" },
      runs ? { label: "Open log", command: "lacuna.showLog" } : { label: "Show output", command: "lacuna.showOutput" },
      { label: "Settings", command: "lacuna.openSettings" },
    ];
    const chosen = await vscode.window.showQuickPick(entries, {
      title: this.line,
      placeHolder: this.news.advice ?? "",
    });
    if (chosen) await vscode.commands.executeCommand(chosen.command, ...(chosen.argument ? [chosen.argument] : []));
  }

  /** Toggles a setting: in the workspace if it is set there, otherwise for the user. */
  async toggle(name: Toggled): Promise<void> {
    const configuration = vscode.workspace.getConfiguration("lacuna");
    const here = configuration.inspect(name)?.workspaceValue !== undefined;
    await configuration.update(name, !this.isOn(name), !here);
  }

  dispose(): void {
    this.item.dispose();
  }

  /** Whether a setting is on: the user's own, or else what the server knows of files with settings. */
  private isOn(name: Toggled): boolean {
    const own = vscode.workspace.getConfiguration("lacuna").get(name, true);
    return isSet(name) ? own : (this.news[name] ?? own);
  }
}

/** The state in a word or two. An error comes before the user's settings, and these before all else. */
function inShort({ state, health, fraction, held, snoozedS }: News, enabled: boolean, automatic: boolean): string {
  if (health === "ok" && !enabled) return "off";
  if (state === "loading") return `loading ${Math.round(100 * (fraction ?? 0))} %`;
  if (state !== "ready") return WORDS[state] ?? state;
  if (snoozedS) return "snoozed";
  return held ? `${held} held back` : automatic ? "ready" : "on request";
}

const PLACES = ["quiet", "normal", "bold"];

/** Asks how much is to be shown without a request, and changes the setting where it is set already. */
export async function turnDial(): Promise<void> {
  const configuration = vscode.workspace.getConfiguration("lacuna");
  const place = await vscode.window.showQuickPick(PLACES, { placeHolder: `now: ${configuration.get("suggest")}` });
  if (place)
    await configuration.update("suggest", place, configuration.inspect("suggest")?.workspaceValue === undefined);
}
