/** Runs the server's commands by name, with arguments from the editor if the caller gives none. */

import * as vscode from "vscode";
import { LSPErrorCodes, type Range, ResponseError } from "vscode-languageclient";
import type { Client } from "./client";
import type { ContextPage } from "./context";
import { Progress } from "./progress";
import { askForRefactor } from "./refactor";
import { choose } from "./regenerate";

/** The result of a command that edits. If it is `stale` or `refused`, the server has already shown the reason. */
interface Outcome {
  status: "applied" | "nothing" | "declined" | "stale" | "offered" | "refused";
  alternatives?: string[];
  edits?: number;
  left?: number;
  failed?: number;
}

const MENTIONED_MS = 6_000;
const CHANGED = "the change is made";
const TICKED = "the ticked changes are made";

type Argument = Record<string, unknown>;
type Command = (editor: vscode.TextEditor | undefined, given?: Argument) => Promise<void>;

export class Commands {
  readonly progress = new Progress();

  constructor(
    private readonly client: () => Client,
    private readonly contextPage: ContextPage,
  ) {}

  private readonly own: Record<string, Command> = {
    "lacuna.fillRegions": async (editor, given) =>
      this.edit("Filling", "lacuna.fillRegions", given ?? this.regions(opened(editor))),
    "lacuna.propagate": async (editor, given) =>
      this.edit("Making the change everywhere", "lacuna.propagate", given ?? this.place(opened(editor)), TICKED),
    "lacuna.refactor": async (editor, given) => {
      const asked = given ?? (await askForRefactor(this.client(), editor));
      if (asked) await this.edit("Refactoring", "lacuna.refactor", asked, TICKED);
    },
    "lacuna.regenerate": async (editor, given) => this.regenerate(opened(editor), given),
    "lacuna.edit": async (editor, given) => this.instruct(opened(editor), given),
    "lacuna.snooze": async (_, given) => {
      const { minutes } = await this.run<{ minutes: number }>("Snoozing", "lacuna.snooze", given ?? { minutes: 10 });
      mention(minutes ? `no suggestions while you type for ${minutes} minutes` : "suggestions go on");
    },
    "lacuna.showContext": async (editor, given) => {
      await this.contextPage.show(await this.run("Looking", "lacuna.showContext", given ?? this.place(opened(editor))));
    },
  };

  /** Middleware: runs the extension's own version of a command. Without one, it passes the command to the client. */
  async execute(
    command: string,
    given: unknown[],
    next: (command: string, given: unknown[]) => unknown,
  ): Promise<unknown> {
    const own = this.own[command];
    if (!own) return next(command, given);
    try {
      await own(vscode.window.activeTextEditor, given[0] as Argument | undefined);
    } catch (error) {
      if (cancelled(error)) mention("cancelled, nothing was edited");
      else say(error instanceof Error ? error.message : `${error}`);
    }
    return undefined;
  }

  /** Runs a command that edits; `ticked` is the message at the end if the server does not know what was ticked. */
  private async edit(title: string, command: string, argument: Argument, ticked?: string): Promise<void> {
    const { status, edits = 0, left = 0, failed = 0 } = await this.run<Outcome>(title, command, argument);
    const without = left + failed;
    if (status === "nothing") say("nothing was found to put in");
    else if (status === "applied") {
      mention(ticked ? (edits === 1 ? CHANGED : ticked) : `${places(edits)} filled`);
      if (without) say(`${places(without)} left without a valid fill`);
    }
  }

  private async regenerate(editor: vscode.TextEditor, given?: Argument): Promise<void> {
    const { document, selection } = editor;
    const range = given ? this.range(given) : selection.isEmpty ? code(document, selection.active.line) : selection;
    const argument = given ?? { textDocument: identifier(document), range: this.plain(range) };
    const { version } = document;
    const { alternatives = [] } = await this.run<Outcome>("Regenerating", "lacuna.regenerate", {
      ...argument,
      choose: false,
    });
    if (document.version !== version) say("the text has changed meanwhile");
    else if (alternatives.length > 0) await choose(editor, range, alternatives);
    else say("nothing else was found for this place");
  }

  /** Rewrites the selection or the line by an instruction, which the user types if `given` has none. */
  private async instruct(editor: vscode.TextEditor, given?: Argument): Promise<void> {
    const { document, selection } = editor;
    const argument = given ?? { textDocument: identifier(document), range: this.plain(selection) };
    const instruction = argument.instruction ?? (await askForInstruction());
    if (!instruction) return;
    const asked = { ...argument, instruction };
    const { status } = await this.run<Outcome>("Editing", "lacuna.edit", asked);
    if (status === "nothing") mention("there is nothing to change");
    else if (status === "applied") mention(CHANGED);
  }

  private run<T>(title: string, command: string, argument: Argument): Promise<T> {
    return this.progress.around(title, (token) => this.client().execute<T>(command, argument, token));
  }

  /** Returns the selections and cursors. For a single cursor without a selection, it selects the file's markers. */
  private regions({ document, selections }: vscode.TextEditor): Argument {
    const textDocument = identifier(document);
    const nothing = selections.length === 1 && selections[0]?.isEmpty;
    return nothing
      ? { textDocument, select: "markers" }
      : { textDocument, ranges: selections.map((one) => this.plain(one)) };
  }

  private place({ document, selection }: vscode.TextEditor): Argument {
    const position = this.client().code2ProtocolConverter.asPosition(selection.active);
    return { textDocument: { uri: identifier(document).uri }, position };
  }

  private plain(range: vscode.Range): { start: object; end: object } {
    const { start, end } = this.client().code2ProtocolConverter.asRange(range);
    return { start, end };
  }

  private range(given: Argument): vscode.Range {
    return this.client().protocol2CodeConverter.asRange(given.range as Range);
  }
}

function identifier(document: vscode.TextDocument): { uri: string; version: number } {
  return { uri: document.uri.toString(), version: document.version };
}

/** Asks the user what to change; returns undefined if the user cancels. */
function askForInstruction(): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Lacuna: edit the selection",
    prompt: "What to change, such as: add a docstring. Nothing outside the selected lines changes.",
    validateInput: (text) => (text.trim() ? undefined : "Say what to change"),
  });
}

/** Whether the user cancelled the command, which needs no box. */
function cancelled(error: unknown): boolean {
  const answered = error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled;
  return answered || error instanceof vscode.CancellationError;
}

/** Shows one line to the user. */
function say(line: string): void {
  void vscode.window.showWarningMessage(`Lacuna: ${line}`);
}

/** Shows the user one line in the status bar for a while: a good end needs no box. */
function mention(line: string): void {
  vscode.window.setStatusBarMessage(`Lacuna: ${line}`, MENTIONED_MS);
}

function places(count: number): string {
  return `${count} place${count === 1 ? "" : "s"}`;
}

function opened(editor: vscode.TextEditor | undefined): vscode.TextEditor {
  if (!editor) throw new Error("no file is open");
  return editor;
}

/** The text of a line without its indentation. */
function code(document: vscode.TextDocument, line: number): vscode.Range {
  const { range, firstNonWhitespaceCharacterIndex } = document.lineAt(line);
  return range.with(range.start.translate(0, firstNonWhitespaceCharacterIndex));
}
