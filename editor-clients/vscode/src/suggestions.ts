/** Reports to the server how the user used its suggestions, as far as VS Code's stable API shows this. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient";
import type { Client } from "./client";
import { askServers } from "./signatures";

type Provide = NonNullable<Middleware["provideInlineCompletionItems"]>;

/** The items of one answer, best first. They are shown at `offset`, and `taken` characters have been accepted. */
interface Shown {
  uri: string;
  offset: number;
  taken: number;
  items: vscode.InlineCompletionItem[];
}

/** A Tab on a blank line indents until the suggestion has been there for so many milliseconds: it was meant before. */
const SEEN_MS = 300;

export class Suggestions {
  private unseen: NodeJS.Timeout | undefined;
  private shown: Shown | undefined;
  private ready = false;
  /** The line where the user has typed or asked last while the engine was not ready. */
  private unserved: { uri: string; line: number } | undefined;
  /** The next request is ours: it is to count as one of an editor that asks while the user types. */
  private automatic = false;

  constructor(private readonly client: () => Client) {
    const editor = vscode.window.activeTextEditor;
    // VS Code starts extensions when its first window is there, and the user may have typed by then.
    if (editor && editor.document.version > 1) this.miss(editor.document, editor.selection.active);
  }

  /** Takes the engine's state: what waits for it gets its suggestion when it is ready. */
  told(state: string): void {
    const before = this.ready;
    this.ready = state === "ready";
    if (!this.ready || before || !this.unserved) return;
    const { uri, line } = this.unserved;
    this.unserved = undefined;
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.toString() === uri && editor.selection.active.line === line) void this.suggest(true);
  }

  /** Requests suggestions at the cursor, also again. `automatic`: the user did not ask for them. */
  async suggest(automatic = false): Promise<void> {
    // At a place where VS Code has asked before, it asks again only if the providers are other ones.
    const none = { provideInlineCompletionItems: () => [] };
    const another = vscode.languages.registerInlineCompletionItemProvider({ pattern: "**" }, none);
    this.automatic = automatic;
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    another.dispose();
  }

  /**
   * Passes the server's answer on and counts it as shown. With several cursors there is none: VS Code would insert the
   * text for one place at all of them.
   */
  readonly provide: Provide = async (document, position, context, token, next) => {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document === document && editor.selections.length > 1) return [];
    if (!this.ready) this.miss(document, position);
    const asked = this.automatic ? { ...context, triggerKind: vscode.InlineCompletionTriggerKind.Automatic } : context;
    this.automatic = false;
    if (this.ready) askServers(this.client(), document, position).catch(() => undefined);
    const answer = await next(document, position, asked, token);
    if (token.isCancellationRequested) return answer;
    const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
    const before = this.shown?.items[0];
    this.shown = { uri: document.uri.toString(), offset: document.offsetAt(position), taken: 0, items };
    // While the user types a suggestion, its rest arrives as a new item of the same origin.
    if (items[0] && origin(items[0]) !== (before && origin(before))) {
      this.tell("didShowCompletion", items[0]);
      const head = document.lineAt(position).text.slice(0, position.character);
      if (asked.triggerKind === vscode.InlineCompletionTriggerKind.Automatic && !head.trim()) this.hasJustCome();
    }
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
    const isActive = document === vscode.window.activeTextEditor?.document;
    if (change && isActive && !this.ready) {
      this.miss(document, document.positionAt(change.rangeOffset + change.text.length));
    }
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

  /** Lets Tab indent until the suggestion was seen. */
  private hasJustCome(): void {
    clearTimeout(this.unseen);
    const tell = (indents: boolean) => vscode.commands.executeCommand("setContext", "lacuna.tabIndents", indents);
    void tell(true);
    this.unseen = setTimeout(() => void tell(false), SEEN_MS);
  }

  private miss(document: vscode.TextDocument, { line }: vscode.Position): void {
    this.unserved = { uri: document.uri.toString(), line };
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
