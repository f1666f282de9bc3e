// Records one fill as frames to step through: the state of every slot after every step.

// A frame: {fills, slots, counts, seconds}; a slot: {text, state, confidence, event}.
export class Story {
  constructor(gaps) {
    this.gaps = gaps;
    this.began = performance.now();
    this.frames = [];
    this.result = null;
    this.base = { steps: 0, nfe: 0, vetoes: 0, deferrals: 0, corrections: 0 };
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
      corrections: this.base.corrections + (snapshot.corrections ?? 0),
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
  const counts = { steps: 0, nfe: 0, vetoes: 0, deferrals: 0, corrections: 0, corrected: 0 };
  const slots = snapshot.slots.map((gap) => Array(Math.max(MASKS, gap.length)).fill(mask));
  return { step: 0, fills: snapshot.fills.map(() => ""), slots, counts, seconds: 0 };
}

export function tokens(frame) {
  return frame.counts.tokens ?? frame.slots.flat().filter((slot) => slot.state === "committed" && slot.text).length;
}
