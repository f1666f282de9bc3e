/** Shows an edit of one place as a diff, which the user accepts or discards. VS Code lists those of several places. */

import * as vscode from "vscode";
import type { TextEdit, WorkspaceMiddleware } from "vscode-languageclient";
import { TextDocumentEdit } from "vscode-languageclient";
import type { Client } from "./client";

type Apply = NonNullable<WorkspaceMiddleware["handleApplyEdit"]>;

const SCHEME = "lacuna-edit";
const HOW = "Lacuna: Ctrl+Enter accepts the change, Escape discards it";

export class Review implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private readonly texts = new Map<string, string>();
  private number = 0;
  /** Ends the review that is under way. */
  private end: (accepted: boolean) => void = () => {};

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

  accept(): void {
    this.end(true);
  }

  discard(): void {
    this.end(false);
  }

  /** Handles closed tabs: without its diff, an edit is discarded. */
  closed({ closed }: vscode.TabChangeEvent): void {
    if (closed.some(isDiff)) this.end(false);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** Shows a document before and after an edit; returns whether the user accepts it. */
  private async show(document: vscode.TextDocument, edit: TextEdit, label: string): Promise<boolean> {
    this.end(false);
    const before = document.getText();
    const range = this.client().protocol2CodeConverter.asRange(edit.range);
    const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
    const old = await this.open(document, "before", before);
    const changed = await this.open(document, "after", before.slice(0, start) + edit.newText + before.slice(end));
    const decided = new Promise<boolean>((resolve) => {
      this.end = resolve;
    });
    this.context(true);
    const said = vscode.window.setStatusBarMessage(HOW);
    const selection = new vscode.Range(range.start, range.start);
    await vscode.commands.executeCommand("vscode.diff", old, changed, label, { preview: false, selection });
    const accepted = await decided;
    said.dispose();
    this.context(false);
    await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.filter(isDiff)));
    this.texts.clear();
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

function isDiff({ input }: vscode.Tab): boolean {
  return input instanceof vscode.TabInputTextDiff && input.modified.scheme === SCHEME;
}

/** An edit that needs no confirmation. */
function plain({ range, newText }: TextEdit): TextEdit {
  return { range, newText };
}

function none(): vscode.CancellationToken {
  return new vscode.CancellationTokenSource().token;
}
