/** Shows the progress of a command, with a button that cancels the command. */

import * as vscode from "vscode";
import type { HandleWorkDoneProgressSignature, ProgressToken } from "vscode-languageclient";

type Report = Parameters<HandleWorkDoneProgressSignature>[1];

/** A command that takes less time shows no progress. */
const AT_ONCE_MS = 500;

export class Progress {
  private busy = false;
  private token: ProgressToken | undefined;
  private shown: vscode.Progress<{ message?: string; increment?: number }> | undefined;
  private end = (): void => {};
  private percentage = 0;

  /** Shows progress until the work is done, or until the server reports the end and waits for the user's preview. */
  around<T>(title: string, work: (token: vscode.CancellationToken) => Promise<T>): Promise<T> {
    const options = { location: vscode.ProgressLocation.Notification, title: `Lacuna: ${title}`, cancellable: true };
    const source = new vscode.CancellationTokenSource();
    const working = work(source.token);
    const over = new Promise<void>((resolve) => {
      this.end = resolve;
      working.then(
        () => resolve(),
        () => resolve(),
      );
    });
    const waiting = setTimeout(() => {
      void vscode.window.withProgress(options, (progress, token) => {
        token.onCancellationRequested(() => source.cancel());
        this.shown = progress;
        this.percentage = 0;
        return over;
      });
    }, AT_ONCE_MS);
    this.busy = true;
    this.token = undefined;
    void over.then(() => {
      clearTimeout(waiting);
      this.busy = false;
      this.shown = undefined;
    });
    return working;
  }

  /**
   * Middleware: shows the server's progress reports for a command that runs here, which alone can be cancelled. The
   * client shows all others, such as that of the model's loading.
   */
  readonly handle = (token: ProgressToken, report: Report, next: HandleWorkDoneProgressSignature): void => {
    if (this.busy && report.kind === "begin" && report.cancellable) this.token ??= token;
    const own = this.busy && token === this.token;
    if (own && report.kind === "end") this.end();
    if (!own || report.kind === "end") {
      next(token, report);
      return;
    }
    if (!this.shown) return;
    const percentage = report.percentage ?? this.percentage;
    this.shown.report({ message: report.message ?? "", increment: percentage - this.percentage });
    this.percentage = percentage;
  };
}
