// The editor of the code and its gaps: a textarea over a drawn copy of its text, which shows the gaps.

import { append, runs } from "./highlight.js";

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
