/** Reports to the server how the user used its suggestions, as far as VS Code's stable API shows this. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient";
import type { Client } from "./client";

type Provide = NonNullable<Middleware["provideInlineCompletionItems"]>;

/** The items of one answer, best first. They are shown at `offset`, and `taken` characters have been accepted. */
interface Shown {
  uri: string;
  offset: number;
  taken: number;
  items: vscode.InlineCompletionItem[];
}

export class Suggestions {
  private shown: Shown | undefined;

  constructor(private readonly client: () => Client) {}

  /**
   * Passes the server's answer on and counts it as shown. With several cursors there is none: VS Code would insert the
   * text for one place at all of them.
   */
  readonly provide: Provide = async (document, position, context, token, next) => {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document === document && editor.selections.length > 1) return [];
    const answer = await next(document, position, context, token);
    if (token.isCancellationRequested) return answer;
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    const before = this.shown?.items[0];
    this.shown = { uri: document.uri.toString(), offset: document.offsetAt(position), taken: 0, items };
    // While the user types a suggestion, its rest arrives as a new item of the same origin.
    if (items[0] && origin(items[0]) !== (before && origin(before))) this.tell("didShowCompletion", items[0]);
    return answer;
  };

  /** Handles a suggestion that the user has accepted completely. */
  accepted(): void {
    this.shown = undefined;
  }

  /** Counts an insertion of several characters of a suggestion as a partial acceptance. VS Code reports none. */
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

  /** Hides the suggestion, and reports it as rejected if it is Lacuna's. */
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

/** Identifies the engine's fill of an item, by the arguments of the item's command. */
function origin(item: vscode.InlineCompletionItem): string {
  return JSON.stringify(item.command?.arguments);
}
