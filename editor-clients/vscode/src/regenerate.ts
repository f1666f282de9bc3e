/** Lets the user choose one of several texts for a range, and previews each text in the document. */

import * as vscode from "vscode";

const ONE_STEP = { undoStopBefore: false, undoStopAfter: false };

/** Lets the user choose a text. The document shows the highlighted one; if the user chooses none, the old one. */
export async function choose(editor: vscode.TextEditor, range: vscode.Range, texts: readonly string[]): Promise<void> {
  const { document } = editor;
  const start = document.offsetAt(range.start);
  let there = range;
  let tried = Promise.resolve(false);
  const attempt = async (text: string): Promise<boolean> => {
    const first = there === range;
    const done = await editor.edit((edit) => edit.replace(there, text), { ...ONE_STEP, undoStopBefore: first });
    if (done) {
      // The text may have other line endings than the document, so compute its length with those of the document.
      const length = document.eol === vscode.EndOfLine.CRLF ? text.replace(/\r?\n/g, "\r\n").length : text.length;
      there = new vscode.Range(document.positionAt(start), document.positionAt(start + length));
    }
    return done;
  };

  const picker = vscode.window.createQuickPick<vscode.QuickPickItem & { text: string }>();
  picker.title = "Lacuna: which one?";
  picker.matchOnDetail = true;
  picker.items = texts.map((text, index) => {
    const [label = "", ...more] = text.trim().split(/\r?\n/);
    return { label: `${index + 1}: ${label}`, detail: more.map((line) => line.trim()).join(" ⏎ "), text };
  });
  const chosen = await new Promise<boolean>((resolve) => {
    // Edits must run one after the other, because each one replaces the text of the previous one.
    picker.onDidChangeActive(([active]) => {
      if (active) tried = tried.then(() => attempt(active.text));
    });
    picker.onDidAccept(() => resolve(true));
    picker.onDidHide(() => resolve(false));
    picker.show();
  });
  picker.dispose();
  await tried;
  await vscode.window.showTextDocument(document, editor.viewColumn);
  if (!chosen && there !== range) await vscode.commands.executeCommand("undo");
}
