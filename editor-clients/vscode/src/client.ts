/** The language server as a child process, and how it is spoken to. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  type CancellationToken,
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  type InitializeParams,
  LanguageClient,
  type Middleware,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";

export class Client extends LanguageClient {
  constructor(command: readonly string[], output: vscode.LogOutputChannel, middleware: Middleware) {
    const [program = "", ...args] = command;
    // Not started in the workspace: what lies there must not pass for the server.
    const server = { command: program, args, options: { cwd: homedir() } };
    super("lacuna", "Lacuna", server, {
      documentSelector: ["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({ scheme })),
      initializationOptions: settings(),
      initializationFailedHandler: () => false,
      outputChannel: output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware,
    });
  }

  /** To the output only. What the user has to know is said in one line, by the server or where the client is used. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  /** That we show how the engine is, which LSP has no word for: as rust-analyzer's client says it. */
  protected override fillInitializeParams(params: InitializeParams): void {
    super.fillInitializeParams(params);
    params.capabilities.experimental = { serverStatusNotification: true };
  }

  /** Run one of the server's commands. */
  execute<T>(command: string, argument?: unknown, token?: CancellationToken): Promise<T> {
    const params = { command, arguments: argument === undefined ? [] : [argument] };
    return this.sendRequest(ExecuteCommandRequest.type, params, token);
  }

  /** Tell the server of its settings. */
  configure(): Promise<void> {
    return this.sendNotification(DidChangeConfigurationNotification.type, { settings: settings() });
  }
}

/** All settings but how the server is started, which is no business of the server's. */
function settings(): Record<string, unknown> {
  const { command, ...rest } = vscode.workspace.getConfiguration().get<Record<string, unknown>>("lacuna", {});
  return rest;
}
