/** A command's progress, with a button to cancel it. */

import * as vscode from "vscode";
import type { HandleWorkDoneProgressSignature, ProgressToken } from "vscode-languageclient";

type Report = Parameters<HandleWorkDoneProgressSignature>[1];

export class Progress {
  private shown: vscode.Progress<{ message?: string; increment?: number }> | undefined;
  private end = (): void => {};
  private percentage = 0;

  /** Shows progress until the work is done, or the server says so: a preview is then for the user to end. */
  around<T>(title: string, work: (token: vscode.CancellationToken) => Promise<T>): Promise<T> {
    const options = { location: vscode.ProgressLocation.Notification, title: `Lacuna: ${title}`, cancellable: true };
    return new Promise<T>((resolve, reject) => {
      void vscode.window.withProgress(options, (progress, token) => {
        const working = work(token);
        working.then(resolve, reject);
        this.shown = progress;
        this.percentage = 0;
        return new Promise<void>((end) => {
          this.end = () => {
            this.shown = undefined;
            end();
          };
          working.then(this.end, this.end);
        });
      });
    });
  }

  /** Middleware: what the server reports of a command that runs here is shown here; all else by the client itself. */
  readonly handle = (token: ProgressToken, report: Report, next: HandleWorkDoneProgressSignature): void => {
    if (report.kind === "end") this.end();
    if (!this.shown || report.kind === "end") {
      next(token, report);
      return;
    }
    const percentage = report.percentage ?? this.percentage;
    this.shown.report({ message: report.message ?? "", increment: percentage - this.percentage });
    this.percentage = percentage;
  };
}
