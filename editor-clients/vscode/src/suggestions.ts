/** Tells the server what became of its suggestions, as far as VS Code's stable API lets an extension know. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient";
import type { Client } from "./client";

type Provide = NonNullable<Middleware["provideInlineCompletionItems"]>;

/** What is shown: the items of one answer, best first, at an offset of a document. */
interface Shown {
  uri: string;
  offset: number;
  items: vscode.InlineCompletionItem[];
}

export class Suggestions {
  private shown: Shown | undefined;

  constructor(private readonly client: () => Client) {}

  /** Passes the server's answer on, and takes it as shown. */
  readonly provide: Provide = async (document, position, context, token, next) => {
    const answer = await next(document, position, context, token);
    if (token.isCancellationRequested) return answer;
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    const before = this.shown?.items[0];
    this.shown = { uri: document.uri.toString(), offset: document.offsetAt(position), items };
    // While it is typed through, the rest of a suggestion comes as an item of the same origin.
    if (items[0] && origin(items[0]) !== (before && origin(before))) this.tell("didShowCompletion", items[0]);
    return answer;
  };

  /** A suggestion was taken whole. */
  accepted(): void {
    this.shown = undefined;
  }

  /** Takes the beginning of a suggestion appearing at once, longer than a key types, as accepted in part. */
  changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const [change, another] = contentChanges;
    if (!change || another || change.text.length < 2 || change.rangeLength > 0) return;
    if (this.shown?.uri !== document.uri.toString() || this.shown.offset !== change.rangeOffset) return;
    const item = this.shown.items.find(
      ({ insertText }) => text(insertText).startsWith(change.text) && text(insertText) !== change.text,
    );
    if (item) this.tell("didPartiallyAcceptCompletion", item, { acceptedLength: change.text.length });
  }

  /** Hides what is shown, and tells that it was not wanted if it is ours. */
  async dismiss(): Promise<void> {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    const editor = vscode.window.activeTextEditor;
    if (this.shown === undefined || this.shown.uri !== editor?.document.uri.toString()) return;
    if (this.shown.offset !== editor.document.offsetAt(editor.selection.active)) return;
    for (const item of this.shown.items) this.tell("didRejectCompletion", item);
    this.shown = undefined;
  }

  private tell(what: string, item: vscode.InlineCompletionItem, more: object = {}): void {
    const client = this.client();
    const { range, command } = item;
    const plain = {
      insertText: text(item.insertText),
      ...(range && { range: client.code2ProtocolConverter.asRange(range) }),
      ...(command && { command: client.code2ProtocolConverter.asCommand(command) }),
    };
    void client.sendNotification(`textDocument/${what}`, { item: plain, ...more });
  }
}

function text(inserted: string | vscode.SnippetString): string {
  return typeof inserted === "string" ? inserted : inserted.value;
}

/** Which fill of the engine an item is of, as its command says. */
function origin(item: vscode.InlineCompletionItem): string {
  return JSON.stringify(item.command?.arguments);
}
