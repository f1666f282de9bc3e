// The story of one fill: its frames, its numbers, and a picture of all its steps.

// --- records one fill as frames to step through: the state of every slot after every step

// A frame: {fills, slots, counts, seconds}; a slot: {text, state, confidence, event}.
export class Story {
  constructor(gaps) {
    this.gaps = gaps;
    this.began = performance.now();
    this.frames = [];
    this.result = null;
    this.base = { steps: 0, nfe: 0, vetoes: 0, deferrals: 0 };
  }

  get last() {
    return this.frames.at(-1);
  }

  step(snapshot) {
    const before = this.last;
    if (!before) this.frames.push(beginning(snapshot));
    if (before && snapshot.step <= before.step) this.base = before.counts; // a new group of gaps counts from 0
    const counts = {
      steps: this.base.steps + snapshot.step,
      nfe: this.base.nfe + (snapshot.nfe ?? 0),
      vetoes: this.base.vetoes + (snapshot.vetoes ?? 0),
      deferrals: this.base.deferrals + (snapshot.deferrals ?? 0),
    };
    const slots = snapshot.slots.map((gap, index) => gap.map((slot, at) => told(slot, this.last.slots[index]?.[at])));
    const refused = slots.flat().filter((slot) => slot.event === "corrected").length;
    counts.corrected = this.last.counts.corrected + refused;
    const seconds = (performance.now() - this.began) / 1000;
    this.frames.push({ step: snapshot.step, fills: snapshot.fills, slots, counts, seconds });
  }

  // Adds the last frame: the result, which has fills and no slots.
  end(result) {
    this.result = result;
    const { stats } = result;
    const counts = { ...stats, corrected: this.last?.counts.corrected ?? 0 };
    this.frames.push({
      step: stats.steps, fills: result.fills, slots: result.fills.map(() => []), counts, seconds: stats.ms / 1000,
      done: true,
    });
  }
}

// Returns a slot with its event: "now" if it has just been committed, "corrected" if so with another text than the
// draft had, "changed" if its committed text has changed.
function told(slot, before) {
  if (slot.state !== "committed") return { ...slot, event: "" };
  const same = before?.text === slot.text;
  if (before?.state === "committed") return { ...slot, event: same ? "" : "changed" };
  return { ...slot, event: before?.state === "draft" && !same ? "corrected" : "now" };
}

const MASKS = 6; // the least number of masks for a gap before the first step

// Returns the frame before the first step, in which every slot is a mask.
function beginning(snapshot) {
  const mask = { text: "", state: "mask", confidence: 0, event: "" };
  const counts = { steps: 0, nfe: 0, vetoes: 0, deferrals: 0, corrected: 0 };
  const slots = snapshot.slots.map((gap) => Array(Math.max(MASKS, gap.length)).fill(mask));
  return { step: 0, fills: snapshot.fills.map(() => ""), slots, counts, seconds: 0 };
}

function tokens(frame) {
  return frame.counts.tokens ?? frame.slots.flat().filter((slot) => slot.state === "committed" && slot.text).length;
}

// --- shows the numbers of a fill beside the code

const NAMES = [
  ["tokens/s", (frame) => rate(tokens(frame), frame.seconds)],
  ["tokens", (frame) => tokens(frame)],
  ["passes", (frame) => frame.counts.nfe],
  ["steps", (frame) => frame.counts.steps],
  ["vetoes", (frame) => frame.counts.vetoes],
  ["deferrals", (frame) => frame.counts.deferrals],
  ["corrections", (frame) => frame.counts.corrected],
  ["seconds", (frame) => frame.seconds.toFixed(2)],
];

export class Figures {
  constructor(list, insight) {
    this.insight = insight;
    this.values = NAMES.map(([name]) => {
      const [box, term, value] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
      term.textContent = name;
      value.dataset.figure = name;
      box.append(term, value);
      list.append(box);
      return value;
    });
    this.draw(null);
  }

  draw(frame) {
    NAMES.forEach(([, show], index) => (this.values[index].textContent = frame ? show(frame) : "–"));
    const passes = frame?.counts.nfe;
    this.insight.textContent = passes
      ? `${count(tokens(frame), "token")} in ${count(passes, "pass", "passes")} of the model. ` +
        `From left to right, one token a pass, it takes ${count(tokens(frame), "pass", "passes")}.`
      : "";
  }
}

function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

function rate(count, seconds) {
  return seconds > 0 ? Math.round(count / seconds) : "–";
}

// --- draws all steps of a fill as a picture: a row for each step, a column for each slot

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
