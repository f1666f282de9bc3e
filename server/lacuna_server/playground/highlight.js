// Highlights comments, strings, numbers and the keywords that most languages have.

const WORDS =
  "abstract and as assert async await break case catch class const continue def default defer del do elif else enum " +
  "except export extends false False final finally fn for from func function go if impl import in interface is lambda " +
  "let loop match mod mut new nil None not null or package pass private protected pub public raise return self static " +
  "struct super switch this throw trait true True try type typeof use var void where while with yield";

const PATTERN = new RegExp(
  [
    String.raw`(?<comment>\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<=^|\s)#[^\n]*)`,
    String.raw`(?<string>"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|` + "`[^`]*`)",
    String.raw`(?<number>\b\d[\w.]*\b)`,
    `(?<keyword>\\b(?:${WORDS.replaceAll(" ", "|")})\\b)`,
  ].join("|"),
  "gm",
);

// Returns runs of the text as [start, end, class], in order; text between them has no class.
export function runs(text) {
  return Array.from(text.matchAll(PATTERN), (match) => {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    return [match.index, match.index + match[0].length, kind];
  });
}

// Appends text[start..end] to an element, with the colours that it has in the whole text.
export function append(element, text, start, end, coloured) {
  let at = start;
  for (const [from, to, kind] of coloured) {
    if (to <= at || from >= end) continue;
    element.append(text.slice(at, Math.max(at, from)));
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text.slice(Math.max(at, from), Math.min(to, end));
    element.append(span);
    at = Math.min(to, end);
  }
  element.append(text.slice(at, end));
}
