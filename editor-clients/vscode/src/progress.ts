/** A command's progress, with a button to cancel it. */

import * as vscode from "vscode";
import type { HandleWorkDoneProgressSignature, ProgressToken } from "vscode-languageclient";

type Report = Parameters<HandleWorkDoneProgressSignature>[1];

export class Progress {
  private shown: vscode.Progress<{ message?: string; increment?: number }> | undefined;
  private percentage = 0;

  around<T>(title: string, work: (token: vscode.CancellationToken) => Promise<T>): Promise<T> {
    const options = { location: vscode.ProgressLocation.Notification, title: `Lacuna: ${title}`, cancellable: true };
    const running = vscode.window.withProgress(options, async (progress, token) => {
      this.shown = progress;
      this.percentage = 0;
      try {
        return await work(token);
      } finally {
        this.shown = undefined;
      }
    });
    return Promise.resolve(running);
  }

  /** Middleware: what the server reports of a command that runs here is shown here; all else by the client itself. */
  readonly handle = (token: ProgressToken, report: Report, next: HandleWorkDoneProgressSignature): void => {
    if (!this.shown || report.kind === "end") {
      next(token, report);
      return;
    }
    const percentage = report.percentage ?? this.percentage;
    this.shown.report({ message: report.message ?? "", increment: percentage - this.percentage });
    this.percentage = percentage;
  };
}
