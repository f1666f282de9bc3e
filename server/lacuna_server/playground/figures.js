// Shows the numbers of a fill beside the code.

import { tokens } from "./frames.js";

const NAMES = [
  ["tokens/s", (frame) => rate(tokens(frame), frame.seconds)],
  ["tokens", (frame) => tokens(frame)],
  ["passes", (frame) => frame.counts.nfe],
  ["steps", (frame) => frame.counts.steps],
  ["vetoes", (frame) => frame.counts.vetoes],
  ["deferrals", (frame) => frame.counts.deferrals],
  ["corrections", (frame) => frame.counts.corrected + frame.counts.corrections],
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
