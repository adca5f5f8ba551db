"use strict";
// The list of targets: search, filters, keyboard, links, and the details of one target.

const ROW = 52; // the height of a row of the list in pixels, as in page.css
const NARROW = "(max-width: 60rem)"; // the details are below the list, as in page.css
const ACTIONS = ["add", "change", "delete", "run"];
const STATUSES = ["error", "failed", "unverified", "interrupted", "not attempted", "refused", "locked", "differs", "skipped", "changed", "unchanged", "planned"];
const NOT_DONE = STATUSES.slice(0, 9); // they come first in the list
const MOST_ROWS = 300; // rows of a table that are drawn at once
const FEWEST_ALIKE = 3; // targets with equal changes from which on they are one row, as in the text
const KINDS = { asset: "asset", rss_channel: "channel", database: "database" };

const $ = (id) => document.getElementById(id);

/** Read the embedded data; large data is deflated. */
async function readTargets() {
  const script = $("data");
  if (!script.dataset.encoding) return JSON.parse(script.textContent);
  const bytes = Uint8Array.from(atob(script.textContent), (sign) => sign.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(script.dataset.encoding));
  return new Response(inflated).json();
}

/** Count the changes of a target by action. */
function countActions(target) {
  const counts = {};
  for (const [action] of target.changes ?? []) counts[action] = (counts[action] ?? 0) + 1;
  return counts;
}

/** What the search looks at: everything that the details show. */
function searchText(target) {
  const { id, clip, stills, ...shown } = target;
  return JSON.stringify(Object.values(shown)).normalize("NFC").toLowerCase();
}

// Filters -------------------------------------------------------------------------------------------------------

/** Put what has the same key together, in the order of the first of each. */
function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** How many targets rows stand for: one may stand for several of a job that has no list of its own. */
const countTargets = (targets) => targets.reduce((sum, target) => sum + (target.count ?? 1), 0);

/** How many targets have each value: as many as the list has of it. */
function countValues(targets, valuesOf) {
  const counts = new Map();
  for (const target of targets) {
    for (const value of new Set(valuesOf(target))) counts.set(value, (counts.get(value) ?? 0) + countTargets([target]));
  }
  return counts;
}

class Filters {
  constructor(targets, changed) {
    this.changed = changed;
    this.chips = { status: (target) => [target.status], action: (target) => Object.keys(target.counts) };
    this.selects = {
      job: (target) => [target.job ?? ""],
      server: (target) => [target.server],
      aspect: (target) => (target.changes ?? []).map(([, aspect]) => aspect),
    };
    this.pressed = { status: new Set(), action: new Set() };
    this.#offerChips("status", STATUSES, targets);
    this.#offerChips("action", ACTIONS, targets);
    for (const name of Object.keys(this.selects)) this.#offer(name, targets);
    this.group = null;
    $("search").addEventListener("input", changed);
    $("reset").addEventListener("click", () => this.reset());
    $("same").addEventListener("click", () => this.only(null));
  }

  /** Fill a choice with the values that occur and how many targets have each; hide it if there is one only. */
  #offer(name, targets) {
    const counts = countValues(targets, this.selects[name]);
    const select = $(name);
    for (const [value, count] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
      select.append(html("option", { value }, `${value.replaceAll("_", " ")} (${count})`));
    select.parentElement.hidden = counts.size < 2;
    select.addEventListener("change", this.changed);
  }

  /** A chip for each value that occurs, to be pressed together; of a plan without errors, the status is no news. */
  #offerChips(name, values, targets) {
    const counts = countValues(targets, this.chips[name]);
    for (const value of values.filter((each) => counts.has(each))) {
      const sign = SIGN[value] ? [html("span", { class: "sign", "aria-hidden": true }, SIGN[value]), " "] : [];
      const chip = html("button", { type: "button", class: `chip ${value.replaceAll(" ", "-")}`, "aria-pressed": false },
        ...sign, value, " ", html("span", { class: "count" }, counts.get(value)));
      chip.addEventListener("click", () => {
        const on = !this.pressed[name].delete(value);
        if (on) this.pressed[name].add(value);
        chip.setAttribute("aria-pressed", on);
        this.changed();
      });
      $(name).append(chip);
    }
    $(name).hidden = counts.size === 1 && counts.has("planned");
  }

  /** Show only the targets of a group of equal changes; null shows all groups. */
  only(group) {
    this.group = group;
    $("same").hidden = group === null;
    $("same").textContent = `${groupTitle(group)} ✕`;
    this.changed();
  }

  reset() {
    $("search").value = "";
    for (const values of Object.values(this.pressed)) values.clear();
    for (const chip of document.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", false);
    for (const name of Object.keys(this.selects)) $(name).value = "";
    this.only(null);
  }

  get active() {
    const chosen = Object.keys(this.selects).some((name) => $(name).value);
    const pressed = Object.values(this.pressed).some((values) => values.size);
    return Boolean($("search").value.trim() || pressed || chosen || this.group !== null);
  }

  /** The targets that have every word of the search, one of the pressed chips of each kind, and the chosen values. */
  apply(targets) {
    const words = $("search").value.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean).map((word) => JSON.stringify(word).slice(1, -1));
    const chosen = Object.entries(this.selects).filter(([name]) => $(name).value);
    const pressed = Object.entries(this.chips).filter(([name]) => this.pressed[name].size);
    return targets.filter((target) => {
      if (this.group !== null && target.group !== this.group) return false;
      if (!pressed.every(([name, valuesOf]) => valuesOf(target).some((value) => this.pressed[name].has(value)))) return false;
      if (!chosen.every(([name, valuesOf]) => valuesOf(target).includes($(name).value))) return false;
      if (!words.length) return true;
      target.text ??= searchText(target);
      return words.every((word) => target.text.includes(word));
    });
  }
}

// The list ------------------------------------------------------------------------------------------------------

/** What targets with equal changes and results share: the number of their group in the overview, or all that they show. */
function sharedBy(target) {
  const { job, status, kind, database, group, result, error } = target;
  const inOverview = overviewOf(group)?.dataset.level === "alike";
  const changes = inOverview ? group : (target.changes ?? []).map((change) => change.slice(0, 5));
  return JSON.stringify([job, status, kind, database, changes, result, error, target.count]);
}

/** What targets of one row are: "60 assets: comment". */
function titleOf(members) {
  const [{ kind, changes, result, error }] = members;
  const keys = (changes ?? []).map(([, aspect, key]) => key || aspect.replaceAll("_", " "));
  const [line] = [...(result ?? []).map(([, text]) => text), ...(error ?? [])];
  const why = line?.replace(/^(\S+:\d+:\d+: )?(server \S+?(, database [^:]+| at \S+)?: )?/, "");
  return `${plural(members.length, KINDS[kind] ?? "target")}: ${[...new Set(keys)].join(", ") || why}`;
}

/** Rows in which targets with equal changes are one; those of the rows in `open` follow it. */
function foldedRows(targets, open) {
  const alike = grouped(targets, (target) => (target.shared ??= sharedBy(target)));
  return [...alike].flatMap(([shared, members]) => {
    if (members.length < FEWEST_ALIKE) return members;
    const [{ job, status, kind, database, counts, folder }] = members;
    const server = [...new Set(members.map((member) => member.server))].join(", ");
    const isIn = members.every((member) => member.folder === folder);
    const row = { job, status, kind, database, counts, shared, members, name: titleOf(members), server, folder: isIn && folder };
    return open.has(shared) ? [row, ...members] : [row];
  });
}

/** A list that has elements only for the rows in view, however long it is. */
class WindowedList {
  constructor(selected) {
    this.box = $("list");
    this.rows = $("rows");
    this.shown = [];
    this.open = new Set();
    this.current = -1;
    this.selected = selected;
    this.box.addEventListener("scroll", () => this.draw());
    this.box.addEventListener("keydown", (event) => this.#key(event));
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest("[data-index]");
      if (!row) return;
      this.select(Number(row.dataset.index));
      if (this.shown[this.current].members) this.#toggle();
      if (matchMedia(NARROW).matches) $("detail").scrollIntoView();
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** Show these targets, those with equal changes as one row if `folds`; the selected row stays selected if it is there. */
  show(targets, folds) {
    const before = this.shown[this.current];
    this.targets = targets;
    this.folds = folds;
    this.shown = folds ? foldedRows(targets, this.open) : targets;
    this.rows.style.height = `${this.shown.length * ROW}px`;
    this.current = this.shown.findIndex((row) => row === before || (row.members && row.shared === before?.shared && before.members));
    $("none").hidden = targets.length > 0;
    if (this.current < 0) this.box.scrollTop = 0;
    if (this.current < 0 && targets.length) this.select(0);
    else this.reveal();
    this.draw();
  }

  /** Open the row of targets with equal changes that is selected, or close it. */
  #toggle() {
    const { shared } = this.shown[this.current];
    if (!this.open.delete(shared)) this.open.add(shared);
    this.show(this.targets, this.folds);
  }

  /** Select a target, also in a row that is not open. */
  find(target) {
    if (!this.shown.includes(target)) {
      this.open.add(target.shared);
      this.show(this.targets, this.folds);
    }
    this.select(this.shown.indexOf(target));
  }

  select(index) {
    if (!this.shown.length) return;
    this.current = Math.max(0, Math.min(this.shown.length - 1, index));
    this.reveal();
    this.draw();
    this.selected(this.shown[this.current]);
  }

  /** Scroll so that the selected row is in view. */
  reveal() {
    if (this.current < 0) return;
    const top = this.current * ROW;
    const { scrollTop, clientHeight } = this.box;
    const away = Math.max(scrollTop - top, top + ROW - scrollTop - clientHeight);
    if (away > 2 * ROW) this.box.scrollTop = top - clientHeight / 2;
    else if (top < scrollTop) this.box.scrollTop = top;
    else if (away > 0) this.box.scrollTop = top + ROW - clientHeight;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 4);
    const last = Math.min(this.shown.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + 4);
    const indices = Array.from({ length: Math.max(0, last - first) }, (_, offset) => first + offset);
    if (this.current >= 0 && (this.current < first || this.current >= last)) indices.push(this.current);
    this.rows.replaceChildren(...indices.map((index) => this.#row(index)));
    if (this.current >= 0) this.box.setAttribute("aria-activedescendant", `row-${this.current}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  #row(index) {
    const target = this.shown[index];
    const counts = ACTIONS.filter((action) => target.counts[action])
      .map((action) => html("span", { class: `count ${action}` }, `${SIGN[action]}${target.counts[action]}`));
    const row = html("div", {
      class: "entry", role: "option", id: `row-${index}`, "data-index": index, "aria-selected": index === this.current,
      "aria-setsize": this.shown.length, "aria-posinset": index + 1,
    },
    html("span", { class: "name" }, ...(target.members ? [this.open.has(target.shared) ? "▾ " : "▸ "] : []), target.name), html("span", { class: "counts" }, ...counts, ...statusBadge(target)),
    html("span", { class: "place" }, placeOf(target)));
    row.style.top = `${index * ROW}px`;
    return row;
  }

  #key(event) {
    if (event.key === "Enter" && this.shown[this.current]?.members) this.#toggle();
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.shown.length, End: this.shown.length };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.select(this.current + steps[event.key]);
  }
}

const placeOf = (target) => [target.job, target.server, target.database, target.folder].filter(Boolean).join(" · ");

/** The status of a target where it is worth a look: not if it is planned or changed. */
function statusBadge({ status }) {
  return status === "planned" ? [] : [html("span", { class: `status ${status.replaceAll(" ", "-")}` }, status)];
}

// Details -------------------------------------------------------------------------------------------------------

/** A value as before and after; what does not change is plain. */
function valuePart([label, before, after]) {
  const part = html("div", { class: "part" });
  if (label) part.append(html("span", { class: "label" }, label), " ");
  if (before !== null && after !== null && before !== after)
    part.append(html("del", {}, before), html("span", { class: "arrow" }, " → "), html("ins", {}, after));
  else part.append(html("span", { class: "value" }, after ?? before ?? ""));
  return part;
}

function changeRow([action, aspect, key, parts, notes, [place, task]]) {
  const sign = html("span", { class: "sign", title: action, "aria-label": action, role: "img" }, SIGN[action]);
  const source = place ? [html("span", { class: "source", title: task }, place)] : [];
  const below = notes || place ? [html("p", { class: "notes" }, notes, notes && place ? " · " : "", ...source)] : [];
  return html("li", { class: action }, sign, html("span", {}, aspect.replaceAll("_", " ")),
    html("span", { class: "key" }, key), html("div", { class: "parts" }, ...parts.map(valuePart), ...below));
}

/** Rows of a list, the first ones at once and the others on demand. */
function fillRows(container, rows, draw, after) {
  container.append(...rows.slice(0, MOST_ROWS).map(draw));
  if (rows.length <= MOST_ROWS) return;
  const more = html("button", { type: "button" }, `Show all ${rows.length}`);
  more.addEventListener("click", () => {
    container.append(...rows.slice(MOST_ROWS).map(draw));
    more.remove();
  });
  after.append(more);
}

function changesSection(changes) {
  const list = html("ul", { class: "changes" });
  const section = html("section", {}, html("h3", {}, plural(changes.length, "change")), list);
  fillRows(list, changes, changeRow, section);
  return section;
}

function requestItem({ text, body, result }) {
  const item = html("li", {});
  if (result) item.append(html("span", { class: `status ${result[0].replaceAll(" ", "-")}` }, result[0]), " ");
  item.append(html("code", {}, text));
  if (body) item.append(html("div", { class: "body" }, body));
  if (result?.[1]) item.append(html("div", { class: "answer" }, result[1]));
  return item;
}

function requestsSection(requests) {
  const list = html("ol", { class: "requests" });
  const ran = requests.some((request) => request.result);
  const section = html("details", {}, html("summary", {}, plural(requests.length, "request")), list);
  section.open = ran || requests.length <= 6;
  fillRows(list, requests, requestItem, section);
  return section;
}

function resultSection(target) {
  const lines = target.result.map(([kind, line]) => html("li", { class: kind }, line));
  const verified = target.verified ? [html("p", { class: "verified" }, target.verified)] : [];
  return lines.length || verified.length ? [html("section", { class: "result" }, html("h3", {}, "Result"), ...verified, html("ul", {}, ...lines))] : [];
}

function stillsSection({ stills, clip }) {
  const figures = stills.map(([frame, uri]) => {
    const caption = frame === null ? "still" : showTimecode(frame, clip?.rate);
    return html("figure", {}, html("img", { src: uri, alt: `Still at ${caption}` }), html("figcaption", {}, caption));
  });
  return html("div", { class: "stills" }, ...figures);
}

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** What the overview has of a group of several targets; nothing for one target. */
const overviewOf = (group) => document.querySelector(`[data-group="${group}"]`);
const groupTitle = (group) => overviewOf(group)?.dataset.title;

/** The names of targets with equal changes, a line for each place. */
function membersSection(members) {
  const lines = [...grouped(members, placeOf)].map(([place, targets]) => {
    const links = targets.slice(0, MOST_ROWS).flatMap(({ id, name }) => [", ", html("a", { href: `#${id}` }, name)]);
    const more = targets.length > MOST_ROWS ? [` and ${targets.length - MOST_ROWS} more, in the list`] : [];
    return html("p", { class: "names" }, html("span", { class: "label" }, place, ": "), ...links.slice(1), ...more);
  });
  return html("section", { class: "members" }, ...lines);
}

/** Everything about one target, or about those of one row. */
function details(target, showGroup) {
  if (target.members) {
    const [head, ...parts] = details({ ...target.members[0], ...target, members: null, group: null, clip: null, stills: null, requests: null }, showGroup);
    return [head, membersSection(target.members), ...parts];
  }
  const back = html("button", { type: "button", class: "back" }, "↑ List");
  back.addEventListener("click", () => $("explorer").scrollIntoView());
  const head = html("header", {}, back, html("h2", { id: "detail-title" }, target.name, ...statusBadge(target)), html("p", { class: "place" }, placeOf(target)));
  const group = groupTitle(target.group);
  if (group) {
    const button = html("button", { type: "button" }, `One of ${group}`);
    button.addEventListener("click", () => showGroup(target.group));
    head.append(button);
  }
  const parts = [head];
  if (target.error) parts.push(html("div", { class: "error" }, ...target.error.map((line) => html("p", {}, line))));
  if (target.emptied) parts.push(html("div", { class: "warning" }, ...target.emptied.map((line) => html("p", {}, line))));
  if (target.result) parts.push(...resultSection(target));
  if (target.clip) parts.push(new Timeline(target.clip).element);
  if (target.stills) parts.push(stillsSection(target));
  if (target.changes) parts.push(changesSection(target.changes));
  if (target.requests) parts.push(requestsSection(target.requests));
  return parts;
}

// The page ------------------------------------------------------------------------------------------------------

class Page {
  constructor(targets) {
    this.targets = targets;
    for (const target of targets) target.counts = countActions(target);
    const rank = ({ status }) => (NOT_DONE.includes(status) ? NOT_DONE.indexOf(status) : NOT_DONE.length);
    targets.sort((one, other) => rank(one) - rank(other));
    this.byHash = new Map(targets.map((target) => [target.id, target]));
    $("explorer").hidden = false;
    this.list = new WindowedList((target) => this.#open(target));
    this.filters = new Filters(targets, () => this.#filter());
    addEventListener("hashchange", () => this.#follow(true));
    addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("click", (event) => this.#groupLink(event));
    this.quiet = true; // the first target opens without a link of its own
    this.#filter();
    this.quiet = false;
    this.#follow(true);
  }

  #filter() {
    const found = this.filters.apply(this.targets);
    const all = plural(countTargets(this.targets), "target");
    $("found").textContent = this.filters.active ? `${countTargets(found)} of ${all}` : all;
    $("reset").hidden = !this.filters.active;
    this.list.show(found, this.filters.group === null);
    if (!found.length) $("detail").replaceChildren();
  }

  #open(target) {
    $("detail").replaceChildren(...details(target, (group) => this.filters.only(group)));
    $("detail").scrollTop = 0;
    if (!this.quiet && target.id) history.replaceState(null, "", `#${target.id}`);
    if (!this.quiet && $("explorer").getBoundingClientRect().top < 0) $("explorer").scrollIntoView();
  }

  /** Open the target of the address, also one that the filters hide. */
  #follow(scroll) {
    const target = this.byHash.get(location.hash.slice(1));
    if (!target) return;
    if (!this.filters.apply([target]).length) this.filters.reset();
    this.list.find(target);
    if (scroll) $(matchMedia(NARROW).matches ? "detail" : "explorer").scrollIntoView();
  }

  /** A group in the overview, or a job of a batch, shows its targets in the list. */
  #groupLink(event) {
    const button = event.target.closest?.("[data-group], [data-job]");
    if (!button) return;
    this.filters.reset();
    $("job").value = button.dataset.job ?? "";
    this.filters.only(button.dataset.group ? Number(button.dataset.group) : null);
    $("explorer").scrollIntoView();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const search = $("search");
    if (event.key === "Escape" && event.target === search) {
      if (search.value) search.value = "";
      else this.list.box.focus();
      this.filters.changed();
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && event.target === search) this.list.box.focus();
    if (event.target.closest("input, select, textarea")) return;
    const act = {
      j: () => this.list.select(this.list.current + 1),
      k: () => this.list.select(this.list.current - 1),
      "/": () => search.focus(),
      Escape: () => this.filters.active && this.filters.reset(),
    }[event.key];
    if (!act) return;
    if (event.key === "/") event.preventDefault();
    act();
  }
}

for (const element of document.querySelectorAll(".with-scripts")) element.hidden = false;
readTargets().then(
  (targets) => targets.length && new Page(targets),
  (error) => {
    $("unread").hidden = false;
    $("unread").append(` (${error.message})`);
  },
);
