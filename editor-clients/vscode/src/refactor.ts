/** Asks the user for a refactor. The server finds the places, and VS Code previews them before any edit. */

import * as vscode from "vscode";
import type { Client } from "./client";

/** A ready-made refactor, as `lacuna.recipes` returns it. `places` is null if their number depends on settings. */
interface Recipe {
  name: string;
  summary: string;
  settings: Record<string, string>;
  places: number | null;
}

interface Choice extends vscode.QuickPickItem {
  recipe?: Recipe;
}

type Argument = Record<string, unknown>;

/** Returns the argument of `lacuna.refactor`: a recipe or a pattern, or undefined if the user cancels. */
export async function askForRefactor(client: Client, editor?: vscode.TextEditor): Promise<Argument | undefined> {
  const textDocument = editor && { uri: editor.document.uri.toString() };
  const recipes = async (): Promise<Choice[]> => {
    const byPattern = { label: "$(regex) By a pattern and a template…" };
    if (!textDocument) return [byPattern];
    const found = await client.execute<{ recipes: Recipe[] }>("lacuna.recipes", { textDocument });
    return [byPattern, ...found.recipes.map(choice)];
  };
  // Until there are recipes, the box shows that it waits.
  const chosen = await vscode.window.showQuickPick(recipes(), { title: "Lacuna: refactor", matchOnDescription: true });
  if (!chosen) return undefined;
  const { recipe } = chosen;
  const asked = recipe ? await askForSettings(recipe) : await askForPattern(editor);
  if (!(asked && textDocument)) return asked;
  const where = ["In this file", "In the whole workspace"] as const;
  const scope = await vscode.window.showQuickPick(where, { title: `Lacuna: ${recipe?.summary ?? asked.pattern}` });
  if (!scope) return undefined;
  return scope === where[0] ? { ...asked, textDocument } : asked;
}

function choice(recipe: Recipe): Choice {
  const { name, summary, places } = recipe;
  const there = places === 1 ? ", 1 place in this file" : places ? `, ${places} places in this file` : "";
  return { label: summary.charAt(0).toUpperCase() + summary.slice(1), description: `${name}${there}`, recipe };
}

async function askForSettings({ name, summary, settings }: Recipe): Promise<Argument | undefined> {
  const given: Record<string, string> = {};
  for (const [setting, meaning] of Object.entries(settings)) {
    const value = await vscode.window.showInputBox({ title: `Lacuna: ${summary}`, prompt: `${setting}: ${meaning}` });
    if (value === undefined) return undefined;
    if (value) given[setting] = value;
  }
  return { recipe: name, settings: given };
}

async function askForPattern(editor?: vscode.TextEditor): Promise<Argument | undefined> {
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
  return template ? { pattern, template, language: editor?.document.languageId ?? "" } : undefined;
}
