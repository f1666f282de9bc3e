// Connects the parts of the page.

import { Canvas, Editor } from "./code.js";
import { Connection } from "./connection.js";
import { EXAMPLES, LANGUAGES, parse } from "./examples.js";
import { Figures, Lattices, Story } from "./story.js";

const $ = (id) => document.getElementById(id);
const editor = new Editor($("code"), $("backdrop"));
const canvas = new Canvas($("canvas"));
const figures = new Figures($("numbers"), $("insight"));
const lattices = new Lattices($("lattices"));
const connection = new Connection();
let story = null;
let request = "";
let timer = 0;

// --- choosing code and gaps

EXAMPLES.forEach((example, index) => $("example").add(new Option(example.name, index)));
$("language").add(new Option("none", ""));
LANGUAGES.forEach((language) => $("language").add(new Option(language)));
$("example").addEventListener("change", choose);
$("mark").addEventListener("click", () => (editor.mark(), $("code").focus()));
$("clear").addEventListener("click", () => editor.clear());
editor.addEventListener("change", hint);
for (const radio of document.querySelectorAll("input[name=mode]")) {
  radio.addEventListener("change", () => {
    editor.marking = radio.value === "mark";
    setUp();
  });
}

function choose() {
  const example = EXAMPLES[$("example").value];
  const { text, gaps } = parse(example.code);
  $("language").value = example.language;
  setUp();
  editor.show(text, gaps);
}

function hint() {
  const count = editor.gaps.length;
  const shown = !$("canvas").hidden;
  $("mark").disabled = $("clear").disabled = shown;
  const marked = count === 0 ? "No gap yet." : count === 1 ? "1 gap." : `${count} gaps.`;
  if (shown) $("hint").textContent = "Point at a slot to see its token and how sure the model is of it.";
  else $("hint").textContent = editor.marking
    ? `${marked} Click to put a gap, select text to make it one, click a gap to remove it.`
    : `${marked} Type or paste; “Gap here” makes a gap of the selection.`;
  $("fill").disabled = !count || !connection.ready || Boolean(request);
}

// --- running

$("fill").addEventListener("click", fill);
$("back").addEventListener("click", setUp);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !$("fill").disabled) fill();
});

function fill() {
  pause();
  const form = $("settings").elements;
  const options = {
    prior: form.drafts.checked,
    drafter: form.drafts.checked,
    syntax: form.syntax.checked,
  };
  story = new Story(editor.gaps);
  canvas.begin(editor.text, editor.gaps);
  figures.draw(null);
  show(true);
  $("canvas").focus({ preventScroll: true });
  $("replay").hidden = $("history").hidden = true;
  say("");
  const region = { max_tokens: form.max_tokens.valueAsNumber };
  request = connection.fill(editor.text, $("language").value, editor.gaps, region, options);
  hint();
}

function setUp() {
  pause();
  if (request) connection.cancel(request);
  request = "";
  const wasShown = !$("canvas").hidden;
  show(false);
  say("");
  hint();
  if (wasShown) $("code").focus({ preventScroll: true });
}

function show(running) {
  $("canvas").hidden = $("back").hidden = !running;
  $("code").hidden = $("backdrop").hidden = running;
  $("canvas").classList.toggle("running", running);
  if (!running) $("replay").hidden = true;
}

function say(text, bad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", bad);
}

function ended() {
  request = "";
  $("canvas").classList.remove("running");
  hint();
}

// --- messages of the service

connection.addEventListener("welcome", hint);
connection.addEventListener("closed", () => {
  state("no connection", "failed");
  if (request) say("The connection was lost; it is being made again.", true);
  ended();
});
connection.addEventListener("status", ({ detail }) => {
  const percent = Math.round(100 * detail.fraction);
  const text = { ready: detail.model, failed: detail.detail }[detail.state] ?? `${detail.state} ${percent} %`;
  state(text, detail.state);
});
connection.addEventListener("progress", ({ detail }) => {
  if (detail.id !== request) return;
  const reasons = { queued: "Waiting for other requests.", loading: "The model is being loaded." };
  say(reasons[detail.state] ?? "");
});
connection.addEventListener("step", ({ detail }) => {
  if (detail.id !== request) return;
  story.step(detail.snapshot);
  say("");
  draw(story.frames.length - 1);
});
connection.addEventListener("result", ({ detail }) => {
  if (detail.id !== request) return;
  const { result } = detail;
  story.end(result);
  ended();
  $("replay").hidden = false;
  draw(story.frames.length - 1);
  say(result.status === "ok" ? "" : `${result.status.replaceAll("_", " ")}: ${result.message}`, result.status !== "ok");
});
connection.addEventListener("error", ({ detail }) => {
  if (detail.id && detail.id !== request) return; // a run that was cancelled
  say(`${detail.code.replaceAll("_", " ")}: ${detail.message}`, true);
  ended();
});

function state(text, name) {
  $("server").textContent = text;
  $("server").className = name;
}

// --- stepping through the frames

$("scrubber").addEventListener("input", () => (pause(), draw($("scrubber").valueAsNumber)));
$("play").addEventListener("click", () => (timer ? pause() : play()));
lattices.addEventListener("seek", ({ detail }) => (pause(), draw(detail)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (story) lattices.draw(story, lattices.shown);
});

function draw(index) {
  const frame = story.frames[Math.min(index, story.frames.length - 1)];
  canvas.draw(frame);
  figures.draw(frame);
  $("history").hidden = false;
  lattices.draw(story, index);
  $("scrubber").max = story.frames.length - 1;
  $("scrubber").value = index;
  $("position").textContent = frame.done ? "result" : `step ${index} of ${story.frames.length - 2}`;
}

function play() {
  let index = $("scrubber").valueAsNumber;
  if (index >= story.frames.length - 1) index = -1;
  const next = () => {
    draw(++index);
    timer = index < story.frames.length - 1 ? setTimeout(next, Number($("speed").value)) : 0;
    playing(Boolean(timer));
  };
  next();
}

function pause() {
  clearTimeout(timer);
  timer = 0;
  playing(false);
}

function playing(is) {
  $("play").textContent = is ? "Pause" : "Replay slowly";
  $("play").setAttribute("aria-pressed", is);
}

// --- options

for (const input of $("settings").querySelectorAll("input[type=range]")) {
  const told = () => (input.nextElementSibling.textContent = input.value);
  input.addEventListener("input", told);
  told();
}

choose();
