// Draws all steps of a fill as a picture: a row for each step, a column for each slot.

const CELL = { width: 9, height: 7 };

export class Lattices extends EventTarget {
  constructor(element) {
    super();
    this.element = element;
    this.story = null;
    this.shown = 0;
  }

  // Draws the whole story again, with a mark at the row of frame ``shown``.
  draw(story, shown) {
    this.story = story;
    this.shown = shown;
    while (this.element.children.length > story.gaps.length) this.element.lastChild.remove();
    story.gaps.forEach((_, gap) => this.#gap(gap, this.element.children[gap] ?? this.#figure(gap)));
  }

  #figure(gap) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.addEventListener("mousemove", (event) => this.#point(event, gap, caption));
    canvas.addEventListener("mouseleave", () => (caption.textContent = title(gap)));
    canvas.addEventListener("click", (event) => {
      this.dispatchEvent(new CustomEvent("seek", { detail: Math.floor(event.offsetY / CELL.height) }));
    });
    caption.textContent = title(gap);
    figure.append(caption, canvas);
    this.element.append(figure);
    return figure;
  }

  #gap(gap, figure) {
    const rows = this.story.frames.filter((frame) => !frame.done).map((frame) => frame.slots[gap] ?? []);
    const canvas = figure.lastChild;
    const columns = Math.max(1, ...rows.map((row) => row.length));
    const scale = devicePixelRatio || 1;
    const size = [columns * CELL.width, Math.max(1, rows.length) * CELL.height];
    [canvas.width, canvas.height] = size.map((length) => length * scale);
    [canvas.style.width, canvas.style.height] = size.map((length) => `${length}px`);
    canvas.setAttribute("aria-label", `${title(gap)}: ${rows.length - 1} steps over up to ${columns} slots`);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const colours = palette(canvas);
    rows.forEach((row, y) => {
      row.forEach((slot, x) => {
        pen.fillStyle = colours(slot);
        pen.fillRect(x * CELL.width, y * CELL.height, CELL.width - 1, CELL.height - 1);
      });
      if (y === this.shown && row.length) {
        pen.strokeStyle = getComputedStyle(canvas).color;
        pen.strokeRect(0.5, y * CELL.height - 0.5, row.length * CELL.width - 1, CELL.height);
      }
    });
  }

  #point(event, gap, caption) {
    const row = Math.floor(event.offsetY / CELL.height);
    const slot = this.story.frames[row]?.slots[gap]?.[Math.floor(event.offsetX / CELL.width)];
    if (!slot) return;
    const sure = slot.state === "mask" ? "" : `, ${Math.round(100 * slot.confidence)} %`;
    caption.textContent = `step ${row}: ${slot.state} ${slot.text ? JSON.stringify(slot.text) : ""}${sure}`;
  }
}

function title(gap) {
  return `gap ${gap + 1}`;
}

// Returns a function that gives a slot's colour: from the style sheet; for drafts from red to green by confidence.
function palette(canvas) {
  const colour = (name) => {
    canvas.style.color = `var(--lattice-${name})`;
    return getComputedStyle(canvas).color;
  };
  const [mask, now, corrected, changed, done] = ["mask", "now", "corrected", "changed", "done"].map(colour);
  canvas.style.color = "";
  const light = matchMedia("(prefers-color-scheme: dark)").matches ? 55 : 45;
  return (slot) => {
    if (slot.state === "mask") return mask;
    if (slot.state === "committed") return { now, corrected, changed }[slot.event] ?? done;
    return `hsl(${Math.round(140 * slot.confidence)} 75% ${light}% / ${0.4 + 0.6 * slot.confidence})`;
  };
}
