/** Shows the one place that would follow the last change: as a hint, and as an edit once the cursor is there. */

import * as vscode from "vscode";
import type { Range } from "vscode-languageclient";
import type { Client } from "./client";

const WAIT_MS = 300; // without an edit, before the server is asked
const SHOWN_CHARACTERS = 120;

/** An edit of `textDocument/copilotInlineEdit`. */
interface Offered {
  text: string;
  range: Range;
  textDocument: { uri: string };
  command: { command: string; arguments: unknown[] };
}

interface Shown {
  offered: Offered;
  uri: vscode.Uri;
  range: vscode.Range;
  version: number;
}

export class NextEdit implements vscode.Disposable {
  private readonly hint = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorGhostText.foreground"), margin: "0 0 0 2ch" },
  });
  private readonly old = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
  });
  private shown: Shown | undefined;
  private waiting: NodeJS.Timeout | undefined;
  private turn = 0;

  constructor(private readonly client: () => Client) {}

  /** Handles a change of the text: asks once the user pauses. What undo and redo bring back is no change of theirs. */
  changed({ document, contentChanges, reason }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length === 0 || document !== vscode.window.activeTextEditor?.document) return;
    this.clear();
    if (reason === undefined) this.waiting = setTimeout(() => void this.request(), WAIT_MS);
  }

  /** Handles a move of the cursor, or to another editor. */
  moved(editor: vscode.TextEditor | undefined): void {
    if (this.shown && editor) this.draw(editor);
  }

  /** Handles closed tabs: nothing is offered in a file that the user has closed. */
  closed({ closed }: vscode.TabChangeEvent): void {
    const { shown } = this;
    if (!shown) return;
    if (closed.some(({ input }) => input instanceof vscode.TabInputText && isIn(input.uri, shown))) this.clear();
  }

  /** Goes to the edit; there, makes it, and asks for the one after it. */
  async accept(): Promise<void> {
    const { shown } = this;
    const editor = vscode.window.activeTextEditor;
    if (!shown || !editor) return;
    if (!isAt(editor, shown)) return this.goTo(shown);
    this.clear();
    if (editor.document.version !== shown.version) return;
    const made = await editor.edit((edit) => edit.replace(shown.range, shown.offered.text));
    if (!made) return;
    const lines = shown.offered.text.split("\n");
    const end = new vscode.Position(shown.range.start.line + lines.length - 1, lines.at(-1)?.length ?? 0);
    editor.selection = new vscode.Selection(end, end);
    clearTimeout(this.waiting); // the next place is asked for at once
    await this.request();
  }

  /** Dismisses the edit, which is not offered again, and a request that is still to come. */
  dismiss(): void {
    if (this.shown) {
      const item = { command: { title: "", ...this.shown.offered.command } };
      void this.client().sendNotification("textDocument/didRejectInlineEdit", { item });
    }
    this.clear();
  }

  dispose(): void {
    this.clear();
    this.hint.dispose();
    this.old.dispose();
  }

  private async request(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.client();
    if (!editor || !client?.isRunning()) return;
    const { document, selection } = editor;
    this.turn += 1;
    const mine = this.turn;
    const diagnostics = client.code2ProtocolConverter.asDiagnostics(vscode.languages.getDiagnostics(document.uri));
    const answer = await client
      .sendRequest<{ edits: Offered[] }>("textDocument/copilotInlineEdit", {
        textDocument: { uri: document.uri.toString(), version: document.version },
        position: client.code2ProtocolConverter.asPosition(selection.active),
        context: { triggerKind: 2, otherDocuments: true, diagnostics: await diagnostics },
      })
      .catch(() => undefined); // the document has changed meanwhile
    const offered = answer?.edits[0];
    if (mine !== this.turn || !offered) return;
    const target = await vscode.workspace.openTextDocument(vscode.Uri.parse(offered.textDocument.uri));
    if (mine !== this.turn || editor !== vscode.window.activeTextEditor) return;
    this.show(editor, offered, target);
  }

  private show(editor: vscode.TextEditor, offered: Offered, { uri, version }: vscode.TextDocument): void {
    const range = this.client().protocol2CodeConverter.asRange(offered.range);
    this.shown = { offered, uri, range, version };
    this.draw(editor);
  }

  private async goTo({ uri, range }: Shown): Promise<void> {
    const editor = await vscode.window.showTextDocument(uri);
    const line = editor.document.lineAt(range.start.line);
    const start = line.range.start.translate(0, line.firstNonWhitespaceCharacterIndex);
    editor.selection = new vscode.Selection(start, start);
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    this.draw(editor);
  }

  private draw(editor: vscode.TextEditor): void {
    const { shown } = this;
    if (!shown) return;
    const { line } = editor.selection.active;
    const here = isIn(editor.document.uri, shown);
    if (here && editor.document.version !== shown.version) {
      this.clear();
      return;
    }
    const there = isAt(editor, shown);
    const hints: vscode.DecorationOptions[] = [];
    if (there) hints.push(after(editor, shown.range.end.line, preview(shown.offered.text), hover(shown)));
    else {
      if (here) hints.push(after(editor, shown.range.start.line, "⇥ next edit"));
      if (!here) hints.push(after(editor, line, `⇥ next edit in ${vscode.workspace.asRelativePath(shown.uri)}`));
      else if (!editor.visibleRanges.some((range) => range.contains(shown.range.start)))
        hints.push(after(editor, line, `⇥ next edit in line ${shown.range.start.line + 1}`));
    }
    editor.setDecorations(this.hint, hints);
    editor.setDecorations(this.old, there ? [shown.range] : []);
    // In the indentation of another line, Tab indents.
    const indents = editor.document.lineAt(line).firstNonWhitespaceCharacterIndex >= editor.selection.active.character;
    this.context(true, there || !indents);
  }

  private clear(): void {
    clearTimeout(this.waiting);
    this.turn += 1;
    if (!this.shown) return;
    this.shown = undefined;
    this.context(false, false);
    for (const editor of vscode.window.visibleTextEditors) {
      editor.setDecorations(this.hint, []);
      editor.setDecorations(this.old, []);
    }
  }

  private context(visible: boolean, tab: boolean): void {
    void vscode.commands.executeCommand("setContext", "lacuna.nextEditVisible", visible);
    void vscode.commands.executeCommand("setContext", "lacuna.nextEditTakesTab", tab);
  }
}

/** Whether the cursor is in the lines of an edit. */
function isAt(editor: vscode.TextEditor, shown: Shown): boolean {
  const { line } = editor.selection.active;
  const { start, end } = shown.range;
  return isIn(editor.document.uri, shown) && line >= start.line && line <= end.line;
}

/** Whether a URI is that of the file of an edit. */
function isIn(uri: vscode.Uri, shown: Shown): boolean {
  return uri.toString() === shown.uri.toString();
}

function after(
  editor: vscode.TextEditor,
  line: number,
  contentText: string,
  hoverMessage?: vscode.MarkdownString,
): vscode.DecorationOptions {
  const { end } = editor.document.lineAt(Math.min(line, editor.document.lineCount - 1)).range;
  return {
    range: new vscode.Range(end, end),
    renderOptions: { after: { contentText } },
    ...(hoverMessage && { hoverMessage }),
  };
}

/** One line about the new text, which a decoration cannot show in several. */
function preview(text: string): string {
  const [first = "", ...more] = text.split("\n");
  const line = first.trim().slice(0, SHOWN_CHARACTERS);
  return `⇥ ${line || "(deleted)"}${more.length > 0 ? ` … ${more.length} more` : ""}`;
}

function hover({ offered }: Shown): vscode.MarkdownString {
  return new vscode.MarkdownString().appendCodeblock(offered.text);
}
