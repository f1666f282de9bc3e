// A queue of tasks with a limit.
"use strict";

const EMPTY = Object.freeze([]);

class TaskQueue {
  #running = 0;

  constructor(limit = 4) {
    this.limit = limit;
    this.waiting = [];
  }

  async add(task, { urgent = false } = {}) {
    if (typeof task !== "function") {
      throw new TypeError(`not a task: ${String(task)}`);
    }
    if (urgent) {
      this.waiting.unshift(task);
    } else {
      this.waiting.push(task);
    }
    return this.drain();
  }

  async drain() {
    const results = [];
    while (this.waiting.length > 0 && this.#running < this.limit) {
      const task = this.waiting.shift();
      this.#running += 1;
      try {
        results.push(await task());
      } catch (error) {
        console.error("task failed:", error.message ?? error);
      } finally {
        this.#running -= 1;
      }
    }
    return results;
  }
}

function byName(items) {
  const found = new Map();
  for (const item of items ?? EMPTY) {
    const list = found.get(item.name) || [];
    list.push({ ...item, label: `${item.name}#${list.length}` });
    found.set(item.name, list);
  }
  return [...found.entries()].map(([name, list]) => ({ name, size: list.length }));
}

const half = (value) => (value > 1 ? value / 2 : 0);

module.exports = { TaskQueue, byName, half, pattern: /^[a-z]+\/(\d+)$/gi };
