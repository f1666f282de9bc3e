/** The language server as a child process, and the client that talks to it. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  type CancellationToken,
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  type InitializeParams,
  LanguageClient,
  type MessageTransports,
  type Middleware,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";
import { isSet } from "./setup";

export class Client extends LanguageClient {
  private ended = false;

  constructor(command: readonly string[], output: vscode.LogOutputChannel, middleware: Middleware) {
    const [program = "", ...args] = command;
    // The server does not start in the workspace, so that no file there can be mistaken for the server.
    const server = { command: program, args, options: { cwd: homedir() } };
    super("lacuna", "Lacuna", server, {
      documentSelector: ["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({ scheme })),
      initializationOptions: settings, // read at each start, also after a crash
      initializationFailedHandler: () => false,
      outputChannel: output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware,
    });
  }

  /** Logs an error only to the output. The server and the callers show the user one line about it. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** Ends the server for good, also one that hangs in its start: `dispose` alone ends only one that runs. */
  async end(): Promise<void> {
    this.ended = true;
    if (this.state === State.Starting) this.serverProcess?.kill();
    await this.dispose();
  }

  protected override async createMessageTransports(encoding: string): Promise<MessageTransports> {
    const transports = await super.createMessageTransports(encoding);
    if (this.ended) this.serverProcess?.kill();
    return transports;
  }

  /** Declares that we show the engine's state. LSP has no capability for this, so we use that of rust-analyzer. */
  protected override fillInitializeParams(params: InitializeParams): void {
    super.fillInitializeParams(params);
    params.capabilities.experimental = { serverStatusNotification: true, lacunaInstructions: true };
  }

  /** Runs one of the server's commands. */
  execute<T>(command: string, argument?: unknown, token?: CancellationToken): Promise<T> {
    const params = { command, arguments: argument === undefined ? [] : [argument] };
    return this.sendRequest(ExecuteCommandRequest.type, params, token);
  }

  /** Sends the settings to the server. */
  configure(): Promise<void> {
    return this.sendNotification(DidChangeConfigurationNotification.type, { settings: settings() });
  }
}

/** What the user has set, so that everything else comes from the files with settings; but not the server's command. */
function settings(): Record<string, unknown> {
  const lacuna = vscode.workspace.getConfiguration("lacuna");
  const names = Object.keys(vscode.workspace.getConfiguration().get<object>("lacuna", {}));
  const set = names.filter((name) => name !== "command" && isSet(name));
  return Object.fromEntries(set.map((name) => [name, lacuna.get(name)]));
}
