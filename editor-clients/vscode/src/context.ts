/** A page with the snippets of other files that the model would read, and the reason for each. */

import * as vscode from "vscode";

const SCHEME = "lacuna-context";

export interface ContextReport {
  budget: number;
  tokens: number;
  snippets: { path: string; reason: string; score: number; tokens: number; text: string }[];
}

export class ContextPage implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly uri = vscode.Uri.from({ scheme: SCHEME, path: "Read of other files.md" });
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private text = "";
  readonly onDidChange = this.changed.event;

  async show(report: ContextReport): Promise<void> {
    this.text = page(report);
    this.changed.fire(this.uri);
    await vscode.window.showTextDocument(this.uri, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true });
  }

  provideTextDocumentContent(): string {
    return this.text;
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

function page({ budget, tokens, snippets }: ContextReport): string {
  const head = `${tokens} of ${budget} tokens, from ${snippets.length} place${snippets.length === 1 ? "" : "s"}\n`;
  const parts = snippets.map(
    (one) =>
      `\n## ${one.path}\n\n${one.reason} (score ${one.score.toFixed(2)}, ${one.tokens} tokens)\n\n~~~\n${one.text}~~~\n`,
  );
  return head + parts.join("");
}
