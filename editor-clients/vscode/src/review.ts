/** Shows an edit of one place as a diff, which the user accepts or discards. VS Code lists those of several places. */

import * as vscode from "vscode";
import type { TextEdit, WorkspaceMiddleware } from "vscode-languageclient";
import { TextDocumentEdit } from "vscode-languageclient";
import type { Client } from "./client";

type Apply = NonNullable<WorkspaceMiddleware["handleApplyEdit"]>;

const SCHEME = "lacuna-edit";
const HOW = "Lacuna: ✓ accepts the change, ✕ or Escape discards it";

/** The review under way. */
interface Shown {
  changed: vscode.Uri;
  decide: (accepted: boolean) => void;
}

export class Review implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private readonly texts = new Map<string, string>();
  private number = 0;
  private shown: Shown | undefined;

  constructor(private readonly client: () => Client) {}

  /** Middleware: applies the server's edits; one that needs confirmation, and is alone, after a review. */
  readonly apply: Apply = async (params, next) => {
    const { documentChanges = [], changeAnnotations } = params.edit;
    const [change, another] = documentChanges;
    if (!changeAnnotations || !change || another || !TextDocumentEdit.is(change)) return next(params, none());
    const [edit, more] = change.edits;
    if (!edit || more || !("newText" in edit)) return next(params, none());
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(change.textDocument.uri));
    if (!(await this.show(document, edit, params.label ?? ""))) return { applied: false };
    return next({ ...params, edit: { documentChanges: [{ ...change, edits: [plain(edit)] }] } }, none());
  };

  decide(accepted: boolean): void {
    this.shown?.decide(accepted);
  }

  /** Handles closed tabs: without its diff, an edit is discarded. */
  closed({ closed }: vscode.TabChangeEvent): void {
    const { shown } = this;
    if (shown && closed.some((tab) => shows(tab, shown.changed))) shown.decide(false);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** Shows a document before and after an edit; returns whether the user accepts it. */
  private async show(document: vscode.TextDocument, edit: TextEdit, label: string): Promise<boolean> {
    this.decide(false);
    const before = document.getText();
    const range = this.client().protocol2CodeConverter.asRange(edit.range);
    const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
    const old = await this.open(document, "before", before);
    const changed = await this.open(document, "after", before.slice(0, start) + edit.newText + before.slice(end));
    const decided = new Promise<boolean>((decide) => {
      this.shown = { changed, decide };
    });
    this.context(true);
    const said = vscode.window.setStatusBarMessage(HOW);
    const selection = new vscode.Range(range.start, range.start);
    await vscode.commands.executeCommand("vscode.diff", old, changed, label, { preview: false, selection });
    const accepted = await decided;
    said.dispose();
    for (const side of [old, changed]) this.texts.delete(side.toString());
    if (this.shown?.changed === changed) {
      this.shown = undefined;
      this.context(false);
    }
    const open = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.filter((tab) => shows(tab, changed)));
    await vscode.window.tabGroups.close(open);
    if (document.uri.scheme !== "vscode-notebook-cell") await vscode.window.showTextDocument(document);
    return accepted;
  }

  /** Opens a text under a name of its own, in the language of a document. */
  private async open({ uri, languageId }: vscode.TextDocument, side: string, text: string): Promise<vscode.Uri> {
    this.number += 1;
    const own = vscode.Uri.from({ scheme: SCHEME, path: uri.path, query: `${side} ${this.number}` });
    this.texts.set(own.toString(), text);
    const opened = await vscode.workspace.openTextDocument(own);
    if (opened.languageId !== languageId) await vscode.languages.setTextDocumentLanguage(opened, languageId);
    return own;
  }

  private context(reviewing: boolean): void {
    void vscode.commands.executeCommand("setContext", "lacuna.reviewing", reviewing);
  }
}

function shows({ input }: vscode.Tab, changed: vscode.Uri): boolean {
  return input instanceof vscode.TabInputTextDiff && input.modified.toString() === changed.toString();
}

/** An edit that needs no confirmation. */
function plain({ range, newText }: TextEdit): TextEdit {
  return { range, newText };
}

function none(): vscode.CancellationToken {
  return new vscode.CancellationTokenSource().token;
}
