// The code and its gaps: highlighted, edited, and drawn while the gaps are filled.

// --- highlights comments, strings, numbers and the keywords that most languages have

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
function runs(text) {
  return Array.from(text.matchAll(PATTERN), (match) => {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    return [match.index, match.index + match[0].length, kind];
  });
}

// Appends text[start..end] to an element, with the colours that it has in the whole text.
function append(element, text, start, end, coloured) {
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

// --- the editor of the code and its gaps: a textarea over a drawn copy of its text, which shows the gaps

export class Editor extends EventTarget {
  constructor(code, backdrop) {
    super();
    this.code = code;
    this.backdrop = backdrop;
    this.gaps = [];
    this.marking = true;
    this.text = "";
    code.addEventListener("beforeinput", (event) => this.marking && event.preventDefault());
    code.addEventListener("input", () => this.#edited());
    code.addEventListener("scroll", () => this.#scroll());
    code.addEventListener("mouseup", () => this.marking && setTimeout(() => this.mark()));
    code.addEventListener("keydown", (event) => this.#key(event));
  }

  show(text, gaps) {
    this.text = this.code.value = text;
    this.gaps = gaps;
    this.code.scrollTop = 0;
    this.#draw();
  }

  // Makes the selection a gap, and removes the gaps that it touches.
  mark() {
    const [start, end] = [this.code.selectionStart, this.code.selectionEnd];
    const touched = this.gaps.filter((gap) => gap.start <= end && start <= gap.end);
    this.gaps = this.gaps.filter((gap) => !touched.includes(gap));
    if (!touched.length || start < end) this.gaps.push({ start, end });
    this.gaps.sort((one, other) => one.start - other.start);
    this.#draw();
  }

  clear() {
    this.gaps = [];
    this.#draw();
  }

  #key(event) {
    if (!this.marking) return;
    const at = this.code.selectionStart;
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.mark();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.gaps = this.gaps.filter((gap) => at < gap.start || at > gap.end);
      this.#draw();
    }
  }

  // Moves the gaps after a change with the text, and removes the gaps that the change touches.
  #edited() {
    const [before, after] = [this.text, this.code.value];
    let head = 0;
    while (head < Math.min(before.length, after.length) && before[head] === after[head]) head++;
    let tail = 0;
    while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
    const shift = after.length - before.length;
    this.gaps = this.gaps
      .filter((gap) => gap.end <= head || gap.start >= before.length - tail)
      .map((gap) => (gap.end <= head ? gap : { start: gap.start + shift, end: gap.end + shift }));
    this.text = after;
    this.#draw();
  }

  #draw() {
    const coloured = runs(this.text);
    const drawn = document.createDocumentFragment();
    let at = 0;
    this.gaps.forEach((gap, index) => {
      append(drawn, this.text, at, gap.start, coloured);
      const mark = document.createElement("span");
      mark.className = gap.start === gap.end ? "gap empty" : "gap";
      mark.textContent = this.text.slice(gap.start, gap.end);
      mark.dataset.number = index + 1;
      drawn.append(mark);
      at = gap.end;
    });
    append(drawn, this.text, at, this.text.length, coloured);
    drawn.append("\n");
    this.backdrop.replaceChildren(drawn);
    this.#scroll();
    this.dispatchEvent(new Event("change"));
  }

  #scroll() {
    this.backdrop.scrollTop = this.code.scrollTop;
    this.backdrop.scrollLeft = this.code.scrollLeft;
  }
}

// --- draws a frame: the code with the slots of every gap in it

const MASK = "·";
const WAITING = 6; // masks drawn for a gap before its first frame

export class Canvas {
  constructor(element) {
    this.element = element;
    this.text = "";
    this.gaps = [];
    this.coloured = [];
  }

  begin(text, gaps) {
    Object.assign(this, { text, gaps, coloured: runs(text) });
    this.draw(null);
  }

  // Draws a frame of the story; null: there is no frame yet.
  draw(frame) {
    const drawn = document.createDocumentFragment();
    let at = 0;
    this.gaps.forEach((gap, index) => {
      append(drawn, this.text, at, gap.start, this.coloured);
      drawn.append(frame ? gapOf(frame, index) : waiting());
      at = gap.end;
    });
    append(drawn, this.text, at, this.text.length, this.coloured);
    drawn.append("\n");
    this.element.replaceChildren(drawn);
  }
}

function gapOf(frame, index) {
  if (frame.done) return element("fill slot committed", frame.fills[index]);
  const slots = frame.slots[index];
  if (!slots.length) return frame.fills[index] ? element("slot committed", frame.fills[index]) : waiting();
  const gap = document.createDocumentFragment();
  gap.append(...slots.filter((slot) => slot.text || slot.state === "mask").map(slotOf));
  return gap;
}

function slotOf(slot) {
  const span = element(`slot ${slot.state} ${slot.event}`, "");
  if (slot.state === "mask") {
    span.textContent = MASK;
    return span;
  }
  span.style.setProperty("--sure", slot.confidence.toFixed(3));
  span.title = `${JSON.stringify(slot.text)} ${slot.state}, ${Math.round(100 * slot.confidence)} % sure`;
  // A newline has no width, so a sign shows the slot that contains it.
  for (const piece of slot.text.split(/(\n)/)) {
    if (piece === "\n") span.append(element("sign", "↵"));
    span.append(piece);
  }
  return span;
}

function waiting() {
  const gap = document.createDocumentFragment();
  for (let slot = 0; slot < WAITING; slot++) gap.append(element("slot mask", MASK));
  return gap;
}

function element(name, text) {
  const span = document.createElement("span");
  span.className = name;
  span.textContent = text;
  return span;
}
