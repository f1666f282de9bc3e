// Draws a frame: the code with the slots of every gap in it.

import { append, runs } from "./highlight.js";

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
