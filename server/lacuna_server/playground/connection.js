// The websocket connection to the service, with the JSON messages of server/PROTOCOL.md.

const SUBPROTOCOL = "lacuna.v1.json";
const RETRY_MS = 1500;

// Returns the regions of gaps; a gap that is followed by other code on its line gets a fill of one line.
export function regionsOf(text, gaps, region) {
  const bytes = (end) => new TextEncoder().encode(text.slice(0, end)).length;
  return gaps.map(({ start, end }) => {
    const single_line = end < text.length && text[end] !== "\n";
    return { ...region, start: bytes(start), end: bytes(end), single_line };
  });
}

export class Connection extends EventTarget {
  #socket = null;
  #opened = false;
  #version = 0;
  #next = 0;

  constructor() {
    super();
    this.#connect();
  }

  get ready() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  // Requests fills of gaps, given as offsets into the text; returns the request's id.
  fill(text, language, gaps, region, options) {
    const uri = "playground:code";
    const id = `run-${++this.#next}`;
    if (this.#opened) this.#send({ type: "close", uri });
    this.#opened = true;
    this.#send({ type: "open", uri, text, version: ++this.#version, language });
    const regions = regionsOf(text, gaps, region);
    this.#send({ type: "infill", id, uri, version: this.#version, regions, options, snapshots: true });
    return id;
  }

  cancel(id) {
    this.#send({ type: "cancel", id });
  }

  #connect() {
    const url = new URL("/v1/ws", location.href);
    url.search = location.search; // the token, where the service requires one
    url.protocol = url.protocol.replace("http", "ws");
    this.#socket = new WebSocket(url, SUBPROTOCOL);
    this.#socket.onopen = () => this.#send({ type: "hello", client: "playground" });
    this.#socket.onmessage = (event) => this.#received(JSON.parse(event.data));
    this.#socket.onclose = () => {
      this.#opened = false;
      this.dispatchEvent(new CustomEvent("closed"));
      setTimeout(() => this.#connect(), RETRY_MS);
    };
  }

  #received(message) {
    if (message.type === "welcome" || (message.type === "status" && message.state !== "ready")) {
      setTimeout(() => this.ready && this.#send({ type: "get_status" }), message.type === "welcome" ? 0 : 500);
    }
    this.dispatchEvent(new CustomEvent(message.type, { detail: message }));
  }

  #send(message) {
    this.#socket.send(JSON.stringify(message));
  }
}
