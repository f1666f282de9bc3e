/** Lacuna for VS Code. It starts the language server, and sends notifications that VS Code does not send by itself. */

import * as vscode from "vscode";
import { Lacuna } from "./lacuna";
import { turnDial } from "./status";

let lacuna: Lacuna;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  lacuna = new Lacuna(context);
  const { suggestions, nextEdit, review, status, output } = lacuna;
  const command = vscode.commands.registerCommand;
  context.subscriptions.push(
    lacuna,
    command("lacuna.restart", () => lacuna.restart()),
    command("lacuna.setup", () => lacuna.setup.byHand()),
    command("lacuna.suggest", () => suggestions.suggest()),
    command("lacuna.dismiss", () => suggestions.dismiss()),
    command("lacuna.acceptEdit", () => review.decide(true)),
    command("lacuna.discardEdit", () => review.decide(false)),
    command("lacuna.nextEdit", () => nextEdit.accept()),
    command("lacuna.dismissNextEdit", () => nextEdit.dismiss()),
    command("lacuna.toggle", () => status.toggle("enabled")),
    command("lacuna.toggleAutomatic", () => status.toggle("automatic")),
    command("lacuna.dial", () => turnDial()),
    command("lacuna.menu", () => status.menu()),
    command("lacuna.showOutput", () => output.show()),
    command("lacuna.openSettings", () => vscode.commands.executeCommand("workbench.action.openSettings", "lacuna.")),
    vscode.workspace.onDidChangeTextDocument((event) => suggestions.changed(event)),
    vscode.workspace.onDidChangeTextDocument((event) => nextEdit.changed(event)),
    vscode.workspace.onDidChangeConfiguration((event) => lacuna.configure(event)),
    vscode.window.onDidChangeActiveTextEditor((editor) => lacuna.focus(editor)),
    vscode.window.onDidChangeActiveTextEditor((editor) => nextEdit.moved(editor)),
    vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
      // The output that is shown beside the code moves its cursor, too.
      if (textEditor !== vscode.window.activeTextEditor) return;
      lacuna.focus(textEditor);
      nextEdit.moved(textEditor);
    }),
    vscode.window.tabGroups.onDidChangeTabs((event) => nextEdit.closed(event)),
    vscode.window.tabGroups.onDidChangeTabs((event) => review.closed(event)),
  );
  await lacuna.restart();
}

export function deactivate(): Promise<void> {
  return lacuna.stop();
}
