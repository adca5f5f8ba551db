"use strict";
// The timeline of a clip: a ruler, a lane for the segments and for each track of markers, before above after.
// Where a lane changes it has two rows; what moves is joined by a line. Zoom and pan change the view only.

const WORD = { add: "added", change: "changed", delete: "removed", "": "stays" };
const TRACKS = [
  "General", "Cue Point", "Secondary Event", "Goto Cue", "Game Time", "Icon", "Picture", "Profanity Start", "Profanity End",
];
const RULER = 34;
const SEGMENT_ROW = 26;
const MARKER_ROW = 26;
const JOIN = 16; // between before and after, for the lines
const LANE_GAP = 9;
const CROWDED = 4; // pixels between markers below which all but one are lines
const LONGEST_LABEL = 220;
const PIN = "M-6.5 0h13v8.5l-6.5 6.5l-6.5 -6.5z";

/** Items of a clip as objects: {action, name, before, after} with places {lane, start, duration, title}. */
function timelineItems(clip) {
  const place = (values) => values && { lane: values[0], start: values[1], duration: values[2], title: values[3] };
  return clip.items.map(([action, name, before, after]) => ({
    action,
    name,
    before: place(before),
    after: place(action ? after : before),
  }));
}

const isSegment = (place) => place.lane === "Segments";
const itemName = (item) => (isSegment(item.before ?? item.after) ? `Segment ${item.name}` : `Marker ${item.name}`);
const moves = ({ before, after }) =>
  before && after && (before.start !== after.start || before.duration !== after.duration || before.lane !== after.lane);

class Timeline {
  constructor(clip) {
    this.rate = clip.rate;
    this.length = Math.max(1, clip.frames);
    this.items = timelineItems(clip);
    this.from = 0; // the first frame in view, and how many are
    this.span = this.length;
    this.gutter = 118;
    this.width = 800;
    this.lanes = this.#lanes();
    this.#findNeighbours();
    this.height = this.lanes.length ? this.lanes.at(-1).bottom + 4 : RULER;
    this.element = this.#build();
  }

  code(frame) {
    return showTimecode(frame, this.rate);
  }

  // Lanes -------------------------------------------------------------------------------------------------------

  /** Segments first, then the tracks in the order of the interface; a lane without changes has one row. */
  #lanes() {
    const names = new Set(this.items.flatMap((item) => [item.before, item.after]).filter(Boolean).map((p) => p.lane));
    const order = ["Segments", "In and out", ...TRACKS];
    const rank = (name) => (order.indexOf(name) + 1 || order.length + 1);
    let top = RULER + LANE_GAP;
    return [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1)).map((name) => {
      const touches = (item) => item.action && (item.before?.lane === name || item.after?.lane === name);
      const row = name === "Segments" ? SEGMENT_ROW : MARKER_ROW;
      const changes = this.items.some(touches);
      const lane = { name, row, changes, before: top, after: changes ? top + row + JOIN : top };
      lane.bottom = lane.after + row;
      lane.colour = TRACKS.includes(name) ? TRACKS.indexOf(name) % 8 : 3;
      top = lane.bottom + LANE_GAP;
      return lane;
    });
  }

  /** Give each place of a marker the places before and after it in its row. */
  #findNeighbours() {
    for (const when of ["before", "after"])
      for (const lane of this.lanes) {
        const row = this.items.map((item) => item[when]).filter((place) => place?.lane === lane.name);
        row.sort((one, other) => one.start - other.start);
        row.forEach((place, index) => Object.assign(place, { previous: row[index - 1], next: row[index + 1] }));
      }
  }

  lane(name) {
    return this.lanes.find((lane) => lane.name === name);
  }

  // Drawing -----------------------------------------------------------------------------------------------------

  x(frame) {
    return this.gutter + ((frame - this.from) / this.span) * (this.width - this.gutter - 14);
  }

  frameAt(x) {
    const frame = this.from + ((x - this.gutter) / (this.width - this.gutter - 14)) * this.span;
    return Math.min(this.length, Math.max(0, Math.floor(frame)));
  }

  inView(place) {
    return place.start + place.duration >= this.from && place.start <= this.from + this.span;
  }

  draw() {
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.picture.setAttribute("width", this.width);
    this.picture.setAttribute("height", this.height);
    this.clipRect.setAttribute("x", this.gutter - 7);
    this.clipRect.setAttribute("width", Math.max(0, this.width - this.gutter + 7));
    this.clipRect.setAttribute("height", this.height);
    this.gutterGroup.replaceChildren(...this.lanes.flatMap((lane) => this.#laneHead(lane)));
    this.content.replaceChildren(
      ...this.#ruler(),
      ...this.items.filter(moves).map((item) => this.#join(item)),
      ...this.items.flatMap((item) => this.#item(item)),
    );
    const whole = this.span >= this.length;
    this.overview.hidden = whole;
    this.thumb.style.left = `${(this.from / this.length) * 100}%`;
    this.thumb.style.width = `${Math.max(0.6, (this.span / this.length) * 100)}%`;
    this.range.textContent = whole
      ? `whole clip, ${this.code(this.length)}`
      : `${this.code(Math.round(this.from))} – ${this.code(Math.round(this.from + this.span))}`;
  }

  #laneHead(lane) {
    const row = (y, className) =>
      svg("rect", { class: className, x: this.gutter, y, width: Math.max(0, this.width - this.gutter - 14), height: lane.row, rx: 3 });
    const label = (text, y, className) => svg("text", { class: className, x: this.gutter - 12, y: y + lane.row / 2 + 4 }, text);
    if (!lane.changes) return [row(lane.before, "row same"), label(lane.name, lane.before, "lane")];
    return [
      row(lane.before, "row before"),
      row(lane.after, "row after"),
      svg("text", { class: "lane", x: this.gutter - 12, y: (lane.before + lane.bottom) / 2 + 4 }, lane.name),
      label("before", lane.before - 1, "when"),
      label("after", lane.after + 1, "when"),
    ];
  }

  #ruler() {
    const numberFrom = numberOfFrame(Math.floor(this.from), this.rate);
    const numberTo = numberOfFrame(Math.ceil(this.from + this.span), this.rate);
    const pixels = (this.width - this.gutter - 14) / Math.max(1, numberTo - numberFrom);
    const steps = rulerSteps(this.rate);
    const major = steps.find((step) => step * pixels >= 104) ?? steps.at(-1);
    const minor = steps.filter((step) => major % step === 0 && step * pixels >= 7)[0] ?? major;
    const marks = [svg("line", { class: "axis", x1: this.gutter, x2: this.width - 14, y1: RULER, y2: RULER })];
    for (let number = numberFrom - (numberFrom % minor); number <= numberTo; number += minor) {
      const frame = frameOfNumber(number, this.rate);
      const x = this.x(frame);
      if (frame < this.from || x > this.width - 13) continue;
      const isMajor = number % major === 0;
      marks.push(svg("line", { class: "tick", x1: x, x2: x, y1: RULER - (isMajor ? 11 : 5), y2: RULER }));
      if (isMajor && x + 84 <= this.width) marks.push(svg("text", { class: "code", x: x + 4, y: RULER - 12 }, this.code(frame)));
      if (isMajor) marks.push(svg("line", { class: "grid", x1: x, x2: x, y1: RULER, y2: this.height }));
    }
    return marks;
  }

  #item(item) {
    const drawn = [];
    const { before, after, action } = item;
    if (before && this.inView(before)) drawn.push(this.#place(item, before, "before"));
    const twoRows = after && (action || this.lane(after.lane).changes);
    if (after && twoRows && this.inView(after)) drawn.push(this.#place(item, after, "after"));
    return drawn;
  }

  #place(item, place, when) {
    const lane = this.lane(place.lane);
    const y = when === "before" ? lane.before : lane.after;
    // A change is shown on both rows; what is added or removed is on one row only.
    const group = svg("g", { class: `item ${item.action || "same"} ${when} track-${lane.colour}` });
    group.append(...(isSegment(place) ? this.#segment(item, place, y) : this.#pin(item, place, y)));
    group.item = item;
    return group;
  }

  #segment(item, place, y) {
    const x = Math.max(this.x(place.start), this.gutter - 12); // an edge out of view is outside the clip path
    const end = Math.min(this.x(place.start + place.duration), this.width + 12);
    const width = Math.max(2, end - x - 1);
    const textAt = Math.max(x + 6, this.gutter + 2);
    const shapes = [svg("rect", { class: "segment", x, y: y + 1, width, height: SEGMENT_ROW - 2, rx: 3 })];
    if (item.action === "delete")
      shapes.push(svg("rect", { class: "hatch", x, y: y + 1, width, height: SEGMENT_ROW - 2, rx: 3, fill: "url(#hatch)" }));
    const text = [SIGN[item.action], item.name, place.title].filter(Boolean).join(" ");
    const shown = fitted(text, Math.min(end, this.width - 14) - textAt - 6);
    if (shown) shapes.push(svg("text", { class: "title", x: textAt, y: y + SEGMENT_ROW / 2 + 4 }, shown));
    return shapes;
  }

  #pin(item, place, y) {
    const x = this.x(place.start);
    const stem = svg("line", { class: "stem", x1: x, x2: x, y1: y + 2, y2: y + MARKER_ROW });
    if (place.next && this.x(place.next.start) - x < CROWDED) return [stem]; // the last one of a crowd has a head
    const shapes = [stem, svg("path", { class: "pin", d: PIN, transform: `translate(${x} ${y + 3})` })];
    if (item.action) shapes.push(svg("text", { class: "sign", x, y: y + 13.5 }, SIGN[item.action]));
    return [...shapes, ...this.#label(place, x, y + MARKER_ROW / 2 + 4)];
  }

  /** The title of a marker: to the right, cut where the next marker begins; to the left if it has room only there. */
  #label(place, x, y) {
    const end = Math.min(this.width - 10, place.next ? this.x(place.next.start) - 8 : Infinity);
    const { previous } = place;
    const begin = Math.max(this.gutter, previous ? this.x(previous.start) + 16 + textWidth(previous.title) : 0);
    const needed = Math.min(LONGEST_LABEL, textWidth(place.title));
    if (end - x - 10 < needed && x - 10 - begin >= needed)
      return [svg("text", { class: "label left", x: x - 10, y }, fitted(place.title, LONGEST_LABEL))];
    const label = fitted(place.title, Math.min(LONGEST_LABEL, end - x - 10));
    return label ? [svg("text", { class: "label", x: x + 10, y }, label)] : [];
  }

  /** Join what moves: a band between the edges of a segment, a curve between the positions of a marker. */
  #join({ before, after }) {
    const top = this.lane(before.lane).before + this.lane(before.lane).row;
    const bottom = this.lane(after.lane).after;
    const [from, to] = [this.x(before.start), this.x(after.start)];
    if (!isSegment(before)) {
      const middle = (top + bottom) / 2;
      return svg("path", { class: "join", d: `M${from} ${top}C${from} ${middle} ${to} ${middle} ${to} ${bottom}` });
    }
    const [fromEnd, toEnd] = [this.x(before.start + before.duration), this.x(after.start + after.duration)];
    return svg("path", { class: "join band", d: `M${from} ${top}L${fromEnd} ${top}L${toEnd} ${bottom}L${to} ${bottom}Z` });
  }

  // Building and events -----------------------------------------------------------------------------------------

  #build() {
    this.clipRect = svg("rect", { y: 0 });
    this.gutterGroup = svg("g");
    this.content = svg("g", { "clip-path": "url(#view)" });
    this.hair = svg("g", { class: "hair", visibility: "hidden" }, svg("line", { y1: 0, y2: this.height }), svg("text", { y: 10 }));
    const hatch = svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("line", { x1: 0, y1: 0, x2: 0, y2: 6 }));
    const defs = svg("defs", {}, svg("clipPath", { id: "view" }, this.clipRect), hatch);
    this.picture = svg("svg", { role: "img", "aria-label": this.#summary() }, defs, this.gutterGroup, this.content, this.hair);
    this.tip = html("div", { class: "tip", hidden: "" });
    this.range = html("span", { class: "range" });
    this.thumb = html("div", { class: "thumb" });
    this.overview = html("div", { class: "overview", "aria-hidden": "true" }, this.thumb);
    const button = (text, label, action) => {
      const element = html("button", { type: "button", "aria-label": label, title: label }, text);
      element.addEventListener("click", action);
      return element;
    };
    this.view = html("div", { class: "view", tabindex: "0", role: "group", "aria-label": "Timeline: plus and minus zoom, arrows move, 0 shows the whole clip" },
      this.picture, this.overview, this.tip);
    const tools = html("div", { class: "tools" },
      button("−", "Zoom out", () => this.zoom(2)), button("+", "Zoom in", () => this.zoom(0.5)),
      button("Fit", "Show the whole clip", () => this.fit()), this.range,
      html("span", { class: "hint" }, "Ctrl + wheel zooms, drag moves"));
    this.#listen();
    const table = html("details", { class: "as-table" }, html("summary", {}, "Timeline as a table"));
    table.addEventListener("toggle", () => table.open && !table.querySelector("table") && table.append(this.#table()), { once: false });
    return html("div", { class: "timeline" }, tools, this.view, table);
  }

  #listen() {
    new ResizeObserver(([entry]) => this.resize(entry.contentRect.width)).observe(this.view);
    this.view.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.view.addEventListener("keydown", (event) => this.#key(event));
    this.view.addEventListener("pointermove", (event) => this.#hover(event));
    this.view.addEventListener("pointerleave", () => this.#leave());
    this.view.addEventListener("pointerdown", (event) => this.#grab(event));
  }

  resize(width) {
    if (width < 50) return;
    this.width = width;
    this.gutter = width < 560 ? 92 : 118;
    this.draw();
  }

  /** Zoom by a factor about a frame, by default the middle; one frame is at most 40 pixels wide. */
  zoom(factor, about = this.from + this.span / 2) {
    const least = Math.min(this.length, Math.max(2, (this.width - this.gutter) / 40));
    const span = Math.min(this.length, Math.max(least, this.span * factor));
    this.from = about - ((about - this.from) * span) / this.span;
    this.span = span;
    this.pan(0);
  }

  pan(frames) {
    this.from = Math.min(this.length - this.span, Math.max(0, this.from + frames));
    this.draw();
  }

  fit() {
    [this.from, this.span] = [0, this.length];
    this.draw();
  }

  #wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(Math.sign(event.deltaY) * 0.25), this.frameAt(event.offsetX));
    } else if ((event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) && this.span < this.length) {
      event.preventDefault();
      this.pan(((event.deltaX || event.deltaY) / this.width) * this.span);
    }
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.fit(),
      ArrowLeft: () => this.pan(-this.span / 8), ArrowRight: () => this.pan(this.span / 8),
      Home: () => this.pan(-this.length), End: () => this.pan(this.length),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #grab(event) {
    if (event.button !== 0 || this.span >= this.length) return;
    const onOverview = this.overview.contains(event.target);
    let last = event.clientX;
    const move = (moved) => {
      const share = (moved.clientX - last) / (this.width - (onOverview ? 0 : this.gutter));
      last = moved.clientX;
      this.pan(onOverview ? share * this.length : -share * this.span);
    };
    const end = () => {
      this.view.removeEventListener("pointermove", move);
      this.view.classList.remove("grabbed");
    };
    this.view.setPointerCapture(event.pointerId);
    this.view.classList.add("grabbed");
    this.view.addEventListener("pointermove", move);
    this.view.addEventListener("pointerup", end, { once: true });
    this.view.addEventListener("pointercancel", end, { once: true });
  }

  /** Show the time code under the pointer, and the values of the item there. */
  #hover(event) {
    const box = this.view.getBoundingClientRect();
    const x = event.clientX - box.left;
    const inside = x >= this.gutter && x <= this.width - 13;
    this.hair.setAttribute("visibility", inside ? "visible" : "hidden");
    if (inside) {
      const code = this.code(this.frameAt(x));
      const [line, text] = this.hair.children;
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      text.textContent = code;
      text.setAttribute("x", Math.min(x + 4, this.width - code.length * 7.2));
    }
    const item = document.elementFromPoint(event.clientX, event.clientY)?.closest?.(".item")?.item;
    this.tip.hidden = !item;
    if (!item) return;
    this.tip.replaceChildren(...this.#tip(item));
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${event.clientY - box.top + 18}px`;
  }

  #leave() {
    this.tip.hidden = true;
    this.hair.setAttribute("visibility", "hidden");
  }

  // Texts -------------------------------------------------------------------------------------------------------

  #tip(item) {
    const line = (label, place) => place && html("div", {}, html("span", { class: "when" }, label), this.placeText(place));
    const places = item.action ? [line("before", item.before), line("after", item.after)] : [line("", item.after)];
    return [html("strong", {}, `${itemName(item)}, ${WORD[item.action]}`), ...places.filter(Boolean)];
  }

  placeText(place) {
    const title = place.title ? `, ${place.title}` : "";
    if (!isSegment(place)) return `${this.code(place.start)} (frame ${place.start}), ${place.lane}${title}`;
    const end = place.start + place.duration;
    return `${this.code(place.start)} – ${this.code(end)}, length ${this.code(place.duration)}${title}`;
  }

  #summary() {
    const count = (action) => this.items.filter((item) => item.action === action).length;
    const counts = Object.entries(WORD).filter(([action]) => count(action)).map(([action, word]) => `${count(action)} ${word}`);
    return `Timeline of ${this.code(this.length)}: ${counts.join(", ")}. The table below has all values.`;
  }

  #table() {
    const rows = [...this.items]
      .sort((a, b) => (a.before ?? a.after).start - (b.before ?? b.after).start)
      .map((item) => html("tr", { class: item.action || "same" },
        html("td", {}, itemName(item)), html("td", {}, WORD[item.action]),
        html("td", {}, item.before ? this.placeText(item.before) : "–"),
        html("td", {}, item.after ? this.placeText(item.after) : "–")));
    const heads = ["What", "Change", "Before", "After"].map((text) => html("th", { scope: "col" }, text));
    return html("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Timeline as a table" },
      html("table", {}, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows)));
  }
}

const signWidth = (sign) => (sign >= "\u2e80" ? 12 : 6.5);
const textWidth = (text) => [...text].reduce((width, sign) => width + signWidth(sign), 0);

/** A text cut to a width in pixels, or nothing where too little is left of it. */
function fitted(text, pixels) {
  const signs = [...text];
  let room = pixels;
  const fits = signs.findIndex((sign) => (room -= signWidth(sign)) < 0);
  if (fits < 0) return text;
  return fits >= 4 ? `${signs.slice(0, fits - 1).join("")}…` : "";
}
