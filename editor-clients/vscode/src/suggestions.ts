/** Tells the server what became of its suggestions, as far as VS Code's stable API lets an extension know. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient";
import type { Client } from "./client";

type Provide = NonNullable<Middleware["provideInlineCompletionItems"]>;

/** What is shown: the items of one answer, best first, at an offset of a document, and how much of them was taken. */
interface Shown {
  uri: string;
  offset: number;
  taken: number;
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
    this.shown = { uri: document.uri.toString(), offset: document.offsetAt(position), taken: 0, items };
    // While it is typed through, the rest of a suggestion comes as an item of the same origin.
    if (items[0] && origin(items[0]) !== (before && origin(before))) this.tell("didShowCompletion", items[0]);
    return answer;
  };

  /** A suggestion was taken whole. */
  accepted(): void {
    this.shown = undefined;
  }

  /** What appears at once of a suggestion, longer than a key types, was accepted in part; VS Code asks no new ones. */
  changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const { shown } = this;
    const [change, another] = contentChanges;
    if (!change || another || change.rangeLength > 0 || shown?.uri !== document.uri.toString()) return;
    if (change.rangeOffset !== shown.offset + shown.taken) return;
    const item = shown.items.find(({ insertText }) => text(insertText).startsWith(change.text, shown.taken));
    if (!item) return;
    shown.taken += change.text.length;
    if (change.text.length > 1 && shown.taken < text(item.insertText).length) {
      this.tell("didPartiallyAcceptCompletion", item, { acceptedLength: shown.taken });
    }
  }

  /** Hides what is shown, and tells that it was not wanted if it is ours. */
  async dismiss(): Promise<void> {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.hide");
    const editor = vscode.window.activeTextEditor;
    if (this.shown === undefined || this.shown.uri !== editor?.document.uri.toString()) return;
    if (this.shown.offset + this.shown.taken !== editor.document.offsetAt(editor.selection.active)) return;
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
