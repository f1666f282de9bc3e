/** Asks VS Code's other language servers how the names at the cursor are used, and tells Lacuna's. */

import * as vscode from "vscode";
import type { Client } from "./client";

/** Later answers are of no use: the request for a suggestion has gone by then. */
const PATIENCE_MS = 50;
const NAMED = /([\w$]+)[.(:]+[\w$]*$/;
const SERVER = "the language server";

interface Told {
  server: string;
  name: string;
  text: string;
}

/** Nothing waits for the answers; those that come soon enough are passed on. */
export async function askServers(client: Client, document: vscode.TextDocument, at: vscode.Position): Promise<void> {
  if (!vscode.workspace.getConfiguration("lacuna", document).get("askServers", true)) return;
  const until = new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE_MS, undefined));
  const asked = [signatures(document, at), hovered(document, at)];
  const told = (await Promise.all(asked.map((one) => Promise.race([one.catch(() => undefined), until])))).flatMap(
    (found) => found ?? [],
  );
  if (told.length === 0) return;
  await client.sendNotification("textDocument/didFindSignatures", {
    textDocument: { uri: client.code2ProtocolConverter.asUri(document.uri) },
    position: client.code2ProtocolConverter.asPosition(at),
    signatures: told,
  });
}

async function signatures({ uri }: vscode.TextDocument, at: vscode.Position): Promise<Told[]> {
  const help = await vscode.commands.executeCommand<vscode.SignatureHelp | undefined>(
    "vscode.executeSignatureHelpProvider",
    uri,
    at,
  );
  const found = [...(help?.signatures ?? [])];
  const active = found.splice(help?.activeSignature ?? 0, 1);
  return [...active, ...found].map(({ label }) => ({
    server: SERVER,
    name: label.split(/[(\s]/, 1)[0] ?? "",
    text: label,
  }));
}

/** What is said of the name before the last dot or bracket. */
async function hovered(document: vscode.TextDocument, at: vscode.Position): Promise<Told[]> {
  const match = NAMED.exec(document.lineAt(at.line).text.slice(0, at.character));
  const name = match?.[1];
  if (match === null || name === undefined) return [];
  const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
    "vscode.executeHoverProvider",
    document.uri,
    at.with({ character: match.index }),
  );
  return hovers
    .flatMap(({ contents }) => contents.slice(0, 1))
    .map((content) => {
      const text = typeof content === "string" ? content : content.value;
      return { server: SERVER, name, text: /```\w*\n([\s\S]*?)```/.exec(text)?.[1] ?? text.split("\n", 1)[0] ?? "" };
    });
}
