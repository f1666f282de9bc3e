/** Holds the objects that live as long as the extension. It starts and stops the language server. */

import * as vscode from "vscode";
import { ShowMessageNotification, State } from "vscode-languageclient";
import { Client } from "./client";
import { Commands } from "./commands";
import { ContextPage } from "./context";
import { NextEdit } from "./nextEdit";
import { Review } from "./review";
import { Setup } from "./setup";
import { type News, Status } from "./status";
import { Suggestions } from "./suggestions";

const STARTED_AGAIN_MS = 1000;

export class Lacuna implements vscode.Disposable {
  readonly output = vscode.window.createOutputChannel("Lacuna", { log: true });
  readonly status = new Status();
  private readonly contextPage = new ContextPage();
  // These use the client only to handle events of a client, so that there is one.
  readonly suggestions = new Suggestions(() => this.client as Client);
  readonly nextEdit = new NextEdit(() => this.client as Client);
  readonly review = new Review(() => this.client as Client);
  private readonly commands = new Commands(() => this.client as Client, this.contextPage);
  private client: Client | undefined;
  private watching: vscode.Disposable | undefined;
  private ran = false;
  private turn: Promise<void> = Promise.resolve();
  readonly setup: Setup;

  constructor(context: vscode.ExtensionContext) {
    this.setup = new Setup(context, this.output, (running) => {
      if (running) this.show({ state: "setting up", health: "ok" });
      else void this.restart();
    });
  }

  /** Starts the server, or restarts it. Several calls run one after the other, also behind one that failed. */
  restart(): Promise<void> {
    this.turn = this.turn
      .catch(() => undefined)
      .then(() => this.changed(State.Starting)) // the old server's state no longer counts
      .then(() => this.end())
      .then(() => this.start());
    return this.turn;
  }

  stop(): Promise<void> {
    this.turn = this.turn.catch(() => undefined).then(() => this.end());
    return this.turn;
  }

  /** Applies changed settings. */
  configure(event: vscode.ConfigurationChangeEvent): void {
    if (event.affectsConfiguration("lacuna.command")) void this.restart();
    else if (event.affectsConfiguration("lacuna")) {
      if (this.client?.isRunning()) void this.client.configure();
      this.status.refresh();
    }
  }

  /** Notifies the server that the user moved to another document or position. */
  focus(editor: vscode.TextEditor | undefined): void {
    if (!editor || !this.client?.isRunning()) return;
    void this.client.sendNotification("textDocument/didFocus", {
      textDocument: { uri: editor.document.uri.toString() },
      position: this.client.code2ProtocolConverter.asPosition(editor.selection.active),
    });
  }

  dispose(): void {
    this.status.dispose();
    this.contextPage.dispose();
    this.nextEdit.dispose();
    this.review.dispose();
    this.output.dispose();
  }

  private start(): void {
    const command = this.setup.command();
    if (!command) {
      this.absent();
      return;
    }
    const client = new Client(command, this.output, {
      provideInlineCompletionItems: this.suggestions.provide,
      executeCommand: (name, given, next) => {
        if (name === "lacuna.accepted") this.suggestions.accepted();
        return this.commands.execute(name, given, next);
      },
      handleWorkDoneProgress: this.commands.progress.handle,
      workspace: { handleApplyEdit: this.review.apply },
    });
    client.onNotification("experimental/serverStatus", (news: News) => this.show(news));
    client.onNotification(ShowMessageNotification.type, ({ message }) => {
      void offer(message, "Open Log", "lacuna.showLog");
    });
    this.client = client;
    this.ran = false;
    this.watching = client.onDidChangeState(({ newState }) => this.changed(newState));
    void this.answered(client, command);
  }

  /** Waits for the answer of a server that starts. A restart does not wait for it: it may never come. */
  private async answered(client: Client, command: string[]): Promise<void> {
    try {
      await client.start();
    } catch (error) {
      if (client !== this.client) return; // a restart has ended it
      const name = command.join(" ");
      if (/ENOENT/.test(`${error}`)) {
        const line = `Lacuna: ${name} was not found. Mend lacuna.command, or remove it, so that Lacuna is set up anew.`;
        void offer(line, "Settings", "lacuna.openSettings");
      } else void offer(`Lacuna: ${name} did not start as a language server.`, "Show Output", "lacuna.showOutput");
    }
  }

  /** There is no language server: set one up, if the user wants that. */
  private absent(): void {
    this.client = undefined;
    void vscode.commands.executeCommand("setContext", "lacuna.running", false);
    const advice = "run the command Lacuna: Set Up";
    this.show({ state: "not set up", health: "error", advice });
    void this.setup.begin();
  }

  private show(news: News): void {
    this.status.show(news);
    this.suggestions.told(news.state);
  }

  private changed(state: State): void {
    void vscode.commands.executeCommand("setContext", "lacuna.running", state === State.Running);
    this.ran ||= state === State.Running;
    if (state === State.Starting) this.show({ state: "starting", health: "ok" });
    else if (state !== State.Running)
      this.show({
        state: "stopped",
        health: "error",
        message: "the language server does not run",
        advice: "see the output, then restart the language server",
      });
    // The client starts a server again that has crashed, unless it stopped each time. `start` reports one that never ran.
    const { client } = this;
    const tell = () => {
      if (client === this.client && client?.state === State.Stopped)
        void offer("Lacuna: the language server stopped.", "Restart", "lacuna.restart");
    };
    if (state === State.Stopped && this.ran) setTimeout(tell, STARTED_AGAIN_MS);
  }

  private async end(): Promise<void> {
    this.watching?.dispose();
    try {
      await this.client?.end();
    } catch {
      // The client did not start, or it has already stopped.
    }
  }
}

/** Shows one line with a button that runs a command. */
async function offer(line: string, button: string, command: string): Promise<void> {
  if (await vscode.window.showWarningMessage(line, button)) await vscode.commands.executeCommand(command);
}
