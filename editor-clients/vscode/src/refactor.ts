/** Asks what is to be refactored; the server finds the places, and VS Code shows them before anything is done. */

import * as vscode from "vscode";

interface Choice extends vscode.QuickPickItem {
  argument?: Record<string, unknown>;
}

/** The argument of `lacuna.refactor`: a recipe that the server offers here, or a pattern; undefined where dismissed. */
export async function askForRefactor(editor?: vscode.TextEditor): Promise<Record<string, unknown> | undefined> {
  const choices: Choice[] = [
    { label: "$(regex) By a pattern and a template…" },
    ...(editor ? await recipes(editor) : []),
  ];
  const chosen = await vscode.window.showQuickPick(choices, { title: "Lacuna: refactor" });
  if (!chosen) return undefined;
  const { argument } = chosen;
  if (!argument) return askForPattern(editor);
  const where = ["In this file", "In the whole workspace"] as const;
  const scope = await vscode.window.showQuickPick(where, { title: `Lacuna: ${chosen.label}` });
  if (!scope) return undefined;
  return scope === where[0] ? argument : { recipe: argument.recipe };
}

async function recipes({ document, selection }: vscode.TextEditor): Promise<Choice[]> {
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    document.uri,
    selection,
    vscode.CodeActionKind.RefactorRewrite.value,
  );
  return actions
    .filter(({ command }) => command?.command === "lacuna.refactor")
    .map(({ title, command }) => ({ label: title, argument: command?.arguments?.[0] }));
}

async function askForPattern(editor?: vscode.TextEditor): Promise<Record<string, unknown> | undefined> {
  const selected = editor?.document.getText(editor.selection) ?? "";
  const pattern = await vscode.window.showInputBox({
    title: "Lacuna: what to look for",
    prompt: "Code, with $NAME for anything and $$$NAME for any number of things",
    placeHolder: "requests.get($$$ARGS)",
    value: selected,
  });
  if (!pattern) return undefined;
  const template = await vscode.window.showInputBox({
    title: "Lacuna: what to put in its place",
    prompt: "<<fill>> is filled for every place by itself",
    placeHolder: "requests.get($$$ARGS, timeout=<<fill>>)",
    value: pattern,
  });
  return template ? { pattern, template } : undefined;
}
