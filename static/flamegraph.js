// Draws every <section class="flame" data-flame="URL of a profile as JSON" id="…">, and adds all controls itself:
//
//   <section class="card flame" id="profile" data-flame="/runs/7/profile.json" aria-labelledby="profile-title" data-ignore-morph>
//     <div class="head"><h2 id="profile-title">CPU time by call stack</h2><a class="unit" href="#functions">Functions as a table</a></div>
//   </section>
//
// Without JavaScript, only the heading and the link remain, so the table must exist. The id, a plain word, prefixes the
// state in the address ("#profile:view=callers&of=…"). The server never receives it, and search terms stay out of logs.
//
// It draws on a canvas, because with an element per frame a zoom takes 0.4 s at 50,000 nodes.

const minWidth = 0.5;
// The width of a card on an A4 sheet, as in charts.js, and what fits on it below the details.
const paperWidth = 660;
const paperRows = 32;
// A value of `change` that only this script uses: the server tested single nodes, and this is a sum of several.
const untested = 2;
const kinds = { app: "Application", library: "Libraries", runtime: "Language runtime", kernel: "Kernel", other: "Unknown" };
const scheme = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");

// ---- Text ----

// Names come from the measured program. Terminal sequences, control characters and marks that change the direction of text go.
const unprintable = /\x1b\[[0-?]*[ -/]*[@-~]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;
const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
const clean = (text) => cut(text, 2000).replace(unprintable, "").trim() || "(no name)";
const format = (options) => {
  const formatter = new Intl.NumberFormat("en", options);
  return (value) => formatter.format(value).replace("-", "−");
};
const figure = format({ maximumSignificantDigits: 4 });
const share = format({ maximumSignificantDigits: 3 });
const signed = format({ maximumSignificantDigits: 3, signDisplay: "exceptZero" });
const percent = (part, total) => `${share(total ? (100 * part) / total : 0)}\u00a0%`;

// Formats a relative difference as the server does: +28.3 %, −22.1 %, ±0.0 %, +151 %, or ×151.
function relative(ratio) {
  if (ratio >= 100) return `×${figure(ratio + 1)}`;
  const digits = Math.abs(ratio) < 0.9995 ? Math.abs(100 * ratio).toFixed(1) : figure(Math.round(100 * ratio));
  const sign = digits === "0.0" ? "±" : ratio < 0 ? "−" : "+";
  return `${sign}${digits}\u00a0%`;
}

function hash(text, seed = 7) {
  for (let n = 0; n < text.length; n++) seed = (Math.imul(seed, 31) + text.charCodeAt(n)) | 0;
  return seed >>> 0;
}

// Returns a test of names for "text" or "/regex/". Throws if the regex is invalid.
function matcher(query) {
  const regex = /^\/(.+)\/(i?)$/s.exec(query);
  if (regex) {
    const pattern = new RegExp(regex[1], regex[2]);
    return (name) => pattern.test(name);
  }
  const text = query.toLowerCase();
  return (name) => name.toLowerCase().includes(text);
}

// ---- Trees: parallel arrays in preorder, so that a subtree is a range ----

function checked(profile) {
  const { names, modules, frames, depth, frame, value, base, change, sides } = profile;
  const nodes = depth.length;
  const columns = [depth, frame, value, ...(sides ? [base, change] : [])];
  const isTree = depth.every((at, n) => Number.isInteger(at) && (n ? at >= 1 && at <= depth[n - 1] + 1 : at === 0));
  const isNamed = Array.isArray(modules) && frames.every((index, n) => n % 2 || typeof names[index] === "string");
  const isFramed = frame.every((index) => index >= 0 && 2 * index + 1 < frames.length);
  if (!nodes || !isTree || !isNamed || !isFramed || columns.some((column) => column.length !== nodes)) throw new Error("the file is damaged");
  return profile;
}

// Adds what drawing needs: parents, ends of subtrees, self values, and `lost`, the baseline's part in vanished frames.
function finish({ depth, frame, value, base = value, change = new Int8Array(depth.length) }) {
  const nodes = depth.length;
  const [parent, end] = [new Int32Array(nodes).fill(-1), new Int32Array(nodes)];
  const [self, selfBase, lost] = [Float64Array.from(value), Float64Array.from(base), new Float64Array(nodes)];
  const path = [];
  for (let n = 0; n < nodes; n++) {
    path[depth[n]] = n;
    if (n) parent[n] = path[depth[n] - 1];
  }
  for (let n = nodes - 1; n >= 0; n--) {
    const above = parent[n];
    end[n] = Math.max(end[n], n + 1);
    if (!value[n]) lost[n] = base[n];
    if (above < 0) continue;
    end[above] = Math.max(end[above], end[n]);
    self[above] -= value[n];
    selfBase[above] -= base[n];
    lost[above] += lost[n];
  }
  // Values are rounded, so what is left of a frame without samples of its own may be below zero.
  for (const values of [self, selfBase]) values.forEach((left, n) => (values[n] = Math.max(left, 0)));
  return { depth, frame, value, base, change, parent, end, self, selfBase, lost };
}

function* children(tree, node) {
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) yield child;
}

const contains = (tree, node, inner) => node <= inner && inner < tree.end[node];

// Returns the outermost nodes with this frame, so that recursion counts once.
function occurrences(tree, frame) {
  const found = [];
  for (let n = 0; n < tree.frame.length; ) {
    if (tree.frame[n] === frame) found.push(n);
    n = tree.frame[n] === frame ? tree.end[n] : n + 1;
  }
  return found;
}

const bud = (frame) => ({ frame, value: 0, base: 0, change: undefined, below: null });

function branch(node, frame) {
  node.below ??= new Map();
  if (!node.below.has(frame)) node.below.set(frame, bud(frame));
  return node.below.get(frame);
}

// A sum of nodes is significant only if all of its parts are, in the same direction.
function add(node, tree, from) {
  node.value += tree.value[from];
  node.base += tree.base[from];
  const change = tree.change[from];
  if (node.change === undefined) node.change = change;
  else if (node.change !== change || !change) node.change = untested;
}

// Merges the subtrees of nodes with the same frame; optionally also each frame with its caller if they are equal.
function mergeDown(tree, starts, isCollapsed) {
  const root = bud(tree.frame[starts[0]]);
  const path = [];
  for (const start of starts) {
    add(root, tree, start);
    path[tree.depth[start]] = root;
    for (let n = start + 1; n < tree.end[start]; n++) {
      const above = path[tree.depth[n] - 1];
      const isRecursion = isCollapsed && above.frame === tree.frame[n];
      path[tree.depth[n]] = isRecursion ? above : branch(above, tree.frame[n]);
      if (!isRecursion) add(path[tree.depth[n]], tree, n);
    }
  }
  return root;
}

// Merges the paths from nodes to the root: the children of a function are its callers.
function mergeUp(tree, starts, isCollapsed) {
  const root = bud(tree.frame[starts[0]]);
  for (const start of starts) {
    add(root, tree, start);
    let below = root;
    for (let n = tree.parent[start]; n > 0; n = tree.parent[n]) {
      if (isCollapsed && below.frame === tree.frame[n]) continue;
      below = branch(below, tree.frame[n]);
      add(below, tree, start);
    }
  }
  return root;
}

function flatten(root, frames) {
  const flat = { depth: [], frame: [], value: [], base: [], change: [] };
  const waiting = [[root, 0]];
  while (waiting.length) {
    const [node, depth] = waiting.pop();
    flat.depth.push(depth);
    for (const key of ["frame", "value", "base", "change"]) flat[key].push(node[key]);
    const below = [...(node.below?.values() ?? [])].sort((a, b) => frames[b.frame].rank - frames[a.frame].rank);
    for (const child of below) waiting.push([child, depth + 1]);
  }
  return finish(flat);
}

// ---- Elements ----

function element(tag, attributes = {}, ...contents) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...contents);
  return made;
}

function button(label, act) {
  const made = element("button", { type: "button", class: "btn small" }, label);
  made.addEventListener("click", act);
  return made;
}

const swatch = (kind, words) => element("li", {}, element("i", { class: `flame-swatch ${kind}` }), words);
const key = (name) => element("kbd", {}, name);

class FlameGraph {
  constructor(section) {
    this.section = section;
    this.message = element("p", { class: "flame-message", role: "status" });
    section.append(this.message);
    this.load();
  }

  async load() {
    this.message.replaceChildren("Loading the profile…");
    const profile = await this.fetch().catch((error) => {
      this.message.replaceChildren(`The profile could not be loaded: ${error.message}. `, button("Retry", () => this.load()));
    });
    if (profile) this.open(profile);
  }

  async fetch() {
    const response = await fetch(this.section.dataset.flame).catch(() => {
      throw new Error("no connection to the server");
    });
    if (!response.ok) throw new Error(`the server answered with status ${response.status}`);
    return response.json().then(checked).catch(() => {
      throw new Error("the file is damaged");
    });
  }

  open(profile) {
    this.profile = profile;
    this.whole = finish(profile);
    if (!this.whole.value[0] && !this.whole.base[0]) return this.message.replaceChildren("No samples");
    this.sides = profile.sides?.map((side) => cut(clean(side), 60));
    this.readFrames();
    this.build();
    this.message.remove();
    this.restore();
    this.listen();
  }

  readFrames() {
    const { names, modules, frames } = this.profile;
    this.modules = modules.map(({ name, kind }) => ({ name: clean(name), kind: Object.hasOwn(kinds, kind) ? kind : "other" }));
    this.frames = [];
    for (let n = 0; n < frames.length; n += 2) {
      const name = clean(names[frames[n]]);
      this.frames.push({ name, label: cut(name, 200), module: this.modules[frames[n + 1]] ?? { name: "", kind: "other" }, pixels: 0 });
    }
    this.frames[this.whole.frame[0]].module = { name: "", kind: "other" };
    const sorted = [...this.frames].sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
    for (const [rank, frame] of sorted.entries()) frame.rank = rank;
  }

  build() {
    const id = this.section.id;
    this.query = element("input", { type: "search", id: `${id}-query`, autocomplete: "off", spellcheck: "false", maxlength: "200" });
    this.query.setAttribute("aria-describedby", `${id}-found`);
    this.query.placeholder = "Text or /regex/";
    this.found = element("output", { id: `${id}-found`, for: `${id}-query`, class: "soft" });
    this.collapse = element("input", { type: "checkbox" });
    this.measure = element("select", {}, element("option", { value: "candidate" }, this.sides?.[1] ?? ""));
    if (this.sides) {
      this.measure.append(element("option", { value: "baseline" }, this.sides[0]));
      this.measure.append(element("option", { value: "lost" }, `Only in ${this.sides[0]}`));
    }
    const width = element("label", { class: "row" }, "Width", this.measure);
    width.hidden = !this.sides;
    this.reset = button("Reset zoom", () => this.zoomFromButton(0));
    const tools = element("div", { class: "flame-tools row" },
      element("label", { class: "row" }, "Search", this.query), this.found, element("span", { class: "push" }),
      width, element("label", { class: "row" }, this.collapse, "Collapse recursion"));

    this.viewName = element("span", { class: "break" });
    this.viewLine = element("p", { class: "flame-which row" }, this.viewName, button("Whole profile", () => this.show("whole")));

    this.name = element("p", { class: "flame-name" });
    this.where = element("p", { class: "soft clip" });
    this.numbers = element("div", { class: this.sides ? "flame-numbers both" : "flame-numbers" });
    const act = (view, label) => [view, button(label, () => this.show(view, this.tree.frame[this.selected]))];
    this.acts = new Map([act("callers", "Callers"), act("callees", "Callees")]);
    this.zoomIn = button("Zoom", () => this.zoomFromButton(this.selected));
    this.hint = element("span", { class: "unit" }, coarse.matches ? "Tap a frame for its figures, twice to zoom in" : "Click a frame to zoom in");
    const acts = element("div", { class: "flame-acts row" }, this.hint, this.zoomIn, ...this.acts.values(), this.reset);
    const details = element("div", { class: "flame-details" }, element("div", {}, this.name, this.where, this.numbers), acts);

    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.ring = element("i", { class: "flame-ring" });
    this.pointed = element("i", { class: "flame-ring pointed", hidden: "" });
    this.content = element("div", { class: "flame-content" }, this.canvas, this.pointed, this.ring);
    this.view = element("div", { class: "flame-view", tabindex: "0", role: "application", "aria-roledescription": "flame graph" }, this.content);
    this.view.setAttribute("aria-label", this.section.querySelector("h2, h3")?.textContent ?? "Flame graph");
    this.view.setAttribute("aria-describedby", `${id}-keys`);
    this.nothing = element("p", { class: "flame-message" });
    this.spoken = element("p", { class: "sr", role: "status" });
    this.keys = element("p", { id: `${id}-keys`, class: "flame-keys unit" },
      key("↑"), " up, ", key("↓"), " largest frame below, ", key("←"), " ", key("→"), " siblings, ",
      key("Enter"), " zoom in, ", key("Esc"), " zoom out, ", key("/"), " search");
    this.legend = element("ul", { class: "flame-legend legend unit", "aria-label": "Colours" }, ...this.legendItems());
    this.probe = element("i", { hidden: "" });
    this.section.append(tools, this.viewLine, details, this.view, this.nothing, this.legend, this.keys, this.spoken, this.probe);
  }

  legendItems() {
    if (!this.sides) {
      const used = new Set(this.modules.map(({ kind }) => kind));
      return Object.keys(kinds).filter((kind) => used.has(kind)).map((kind) => swatch(kind, kinds[kind]));
    }
    const [base, candidate] = this.sides;
    return [swatch("more", `▲ more in ${candidate}`), swatch("less", `▼ less in ${candidate}`), swatch("same", "not shown to differ"), swatch("lost", `only in ${base}`)];
  }

  listen() {
    this.view.addEventListener("keydown", (event) => this.press(event));
    this.view.addEventListener("focus", () => this.speak());
    this.view.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()));
    this.view.addEventListener("pointerdown", ({ pointerType }) => (this.isTouch = pointerType !== "mouse"));
    this.view.addEventListener("click", (event) => this.click(this.hit(event)));
    this.view.addEventListener("pointermove", (event) => this.point(event.pointerType === "mouse" ? this.hit(event) : -1));
    this.view.addEventListener("pointerleave", () => this.point(-1));
    this.query.addEventListener("input", () => this.search());
    this.measure.addEventListener("change", () => this.rebuild());
    this.collapse.addEventListener("change", () => this.rebuild());
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      this.query.focus();
    });
    const redraw = () => {
      this.colours = null;
      this.layout();
    };
    new ResizeObserver(() => this.content.clientWidth !== this.drawnWidth && !this.onPaper && this.layout()).observe(this.content);
    for (const changed of [scheme, coarse]) changed.addEventListener("change", redraw);
    this.watchRatio();
    for (const [event, prints] of [["beforeprint", true], ["afterprint", false]]) {
      addEventListener(event, () => {
        this.onPaper = prints;
        redraw();
      });
    }
    addEventListener("hashchange", () => location.hash.startsWith(`#${this.section.id}:`) && this.restore());
  }

  // A window that moves to another screen keeps its size, so only this query notices.
  watchRatio() {
    const changed = () => {
      this.draw();
      this.watchRatio();
    };
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", changed, { once: true });
  }

  // ---- State ----

  show(view, of) {
    this.state = { view, of };
    this.setTree(0);
    this.view.focus({ preventScroll: true });
  }

  // Builds the tree of the current view, and zooms to the node.
  setTree(zoom) {
    const { view, of } = this.state;
    const isCollapsed = this.collapse.checked;
    const starts = view === "whole" ? [0] : occurrences(this.whole, of);
    if (view === "whole" && !isCollapsed) this.tree = this.whole;
    else this.tree = flatten((view === "callers" ? mergeUp : mergeDown)(this.whole, starts, isCollapsed), this.frames);
    this.setWidths();
    this.rows = 0;
    this.zoomTo(typeof zoom === "function" ? zoom() : zoom);
    this.search();
    this.viewLine.hidden = view === "whole";
    const name = view === "whole" ? "" : this.frames[of].label;
    this.viewName.textContent = view === "callers" ? `Callers of ${name}: each frame is called by the frames below it` : `Callees of ${name}, wherever it is called`;
  }

  // Builds the tree again and zooms to the same frames, as far as they exist.
  rebuild() {
    const path = [];
    for (let n = this.zoom; n > 0; n = this.tree.parent[n]) path.unshift(this.tree.frame[n]);
    this.setTree(() => {
      let at = 0;
      for (const frame of path) for (const child of children(this.tree, at)) if (this.tree.frame[child] === frame) at = child;
      return this.width[at] ? at : 0;
    });
  }

  setWidths() {
    const { tree } = this;
    this.width = { candidate: tree.value, baseline: tree.base, lost: tree.lost }[this.measure.value];
    this.left = new Float64Array(tree.frame.length);
    const used = new Float64Array(tree.frame.length);
    for (let n = 1; n < used.length; n++) {
      this.left[n] = used[n] = used[tree.parent[n]];
      used[tree.parent[n]] += this.width[n];
    }
  }

  // A hash beside the number of a node or frame shows whether it is still the same one.
  sign(tree, node) {
    let sum = 7;
    for (let n = node; n >= 0; n = tree.parent[n]) sum = hash(this.frames[tree.frame[n]].name, sum);
    return `${node}.${sum.toString(36)}`;
  }

  signFrame(frame) {
    return `${frame}.${hash(this.frames[frame].name + this.frames[frame].module.name).toString(36)}`;
  }

  store() {
    clearTimeout(this.storing);
    // Browsers limit how often a page may change its address.
    this.storing = setTimeout(() => {
      const { view, of } = this.state;
      const stored = new URLSearchParams();
      if (view !== "whole") stored.set("view", view);
      if (view !== "whole") stored.set("of", this.signFrame(of));
      if (this.collapse.checked) stored.set("recursion", "collapsed");
      if (this.measure.value !== this.usualMeasure()) stored.set("width", this.measure.value);
      if (this.query.value) stored.set("q", this.query.value);
      if (this.zoom) stored.set("zoom", this.sign(this.tree, this.zoom));
      const prefix = `#${this.section.id}:`;
      const unused = location.hash.startsWith(prefix) ? "" : location.hash;
      history.replaceState(history.state, "", location.pathname + location.search + (String(stored) ? prefix + stored : unused));
    }, 150);
  }

  usualMeasure() {
    return this.whole.value[0] ? "candidate" : "baseline";
  }

  restore() {
    const prefix = `#${this.section.id}:`;
    const isStored = location.hash.startsWith(prefix);
    const stored = new URLSearchParams(isStored ? location.hash.slice(prefix.length) : "");
    const [view, of] = [stored.get("view"), parseInt(stored.get("of"))];
    const isKnown = ["callers", "callees"].includes(view) && this.frames[of] && this.signFrame(of) === stored.get("of");
    this.state = isKnown && occurrences(this.whole, of).length ? { view, of } : { view: "whole" };
    this.collapse.checked = stored.get("recursion") === "collapsed";
    const measures = this.sides ? ["candidate", "baseline", "lost"] : ["candidate"];
    this.measure.value = measures.includes(stored.get("width")) ? stored.get("width") : this.usualMeasure();
    this.query.value = stored.get("q") ?? "";
    this.setTree(() => {
      const zoom = parseInt(stored.get("zoom"));
      return this.width[zoom] && this.sign(this.tree, zoom) === stored.get("zoom") ? zoom : 0;
    });
    if (isStored) this.section.scrollIntoView();
  }

  search() {
    const query = this.query.value.trim();
    let matches = null;
    let fault = "";
    try {
      matches = query && matcher(query);
    } catch (error) {
      fault = `Invalid regex: ${error.message.split(": ").pop()}`;
    }
    this.matched = matches ? this.frames.map(({ name, module }) => matches(name) || matches(module.name)) : null;
    this.query.setAttribute("aria-invalid", String(fault !== ""));
    this.found.className = fault ? "fault" : "soft";
    this.found.textContent = fault || (matches ? this.describeMatches() : "");
    this.draw();
    this.store();
  }

  // Counts a matching frame inside another one only once.
  describeMatches() {
    const { tree, width } = this;
    let [sum, count] = [0, 0];
    for (let n = 0, free = 0; n < width.length; n++) {
      if (!width[n] || !this.matched[tree.frame[n]]) continue;
      count++;
      if (n < free) continue;
      sum += width[n];
      free = tree.end[n];
    }
    if (!count) return "No matches";
    return `${percent(sum, width[0])} of the total, ${new Intl.NumberFormat("en").format(count)} ${count === 1 ? "frame" : "frames"}`;
  }

  // ---- Layout and drawing ----

  colour(expression, fallback = expression) {
    this.colours ??= new Map();
    if (!this.colours.has(expression)) {
      this.probe.style.colorScheme = this.onPaper ? "light" : "";
      // A browser that does not know the expression keeps the fallback.
      this.probe.style.color = fallback;
      this.probe.style.color = expression;
      this.colours.set(expression, getComputedStyle(this.probe).color);
    }
    return this.colours.get(expression);
  }

  fill(node) {
    const { tree } = this;
    if (this.matched && !this.matched[tree.frame[node]]) return this.colour("var(--flame-dimmed)");
    if (this.sides) return tree.value[node] ? this.changeColour(node) : this.hatch(this.changeColour(node));
    const { module } = this.frames[tree.frame[node]];
    const base = `var(--flame-${module.kind})`;
    const vary = hash(module.name);
    return this.colour(`oklch(from ${base} calc(l + ${((vary % 5) - 2) / 100}) c calc(h + ${((vary >>> 4) % 5) * 4 - 8}))`, base);
  }

  changeColour(node) {
    const [value, base, change] = [this.tree.value[node], this.tree.base[node], this.tree.change[node]];
    if (change !== 1 && change !== -1) return this.colour("var(--flame-same)");
    const strength = 1 + Math.min(3, Math.floor((5 * Math.abs(value - base)) / Math.max(value, base)));
    return this.colour(`color-mix(in oklab, var(--flame-${change > 0 ? "more" : "less"}) ${25 * strength}%, var(--flame-same))`);
  }

  hatch(colour) {
    const key = `hatch ${colour}`;
    if (!this.colours.has(key)) {
      const tile = element("canvas", { width: 8, height: 8 });
      const pen = tile.getContext("2d");
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 8, 8);
      pen.strokeStyle = this.colour("var(--flame-hatch)");
      for (const start of [-8, 0, 8]) {
        pen.moveTo(start, 8);
        pen.lineTo(start + 8, 0);
      }
      pen.stroke();
      this.colours.set(key, pen.createPattern(tile, "repeat"));
    }
    return this.colours.get(key);
  }

  // Returns left and right edge of a node in pixels. Ancestors of the zoomed frame have the full width.
  edges(node) {
    if (contains(this.tree, node, this.zoom)) return [0, this.drawnWidth];
    const left = (this.left[node] - this.left[this.zoom]) * this.pixels;
    return [left, left + this.width[node] * this.pixels];
  }

  // Finds the frames that are wide enough, and sets the height.
  layout() {
    const { tree, zoom } = this;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.row = Math.round(rem * (coarse.matches && !this.onPaper ? 1.75 : 1.3));
    this.font = `${rem * 0.75}px ${getComputedStyle(this.section).fontFamily}`;
    this.drawnWidth = this.onPaper ? paperWidth : this.content.clientWidth;
    this.pixels = this.width[zoom] ? this.drawnWidth / this.width[zoom] : 0;
    this.shown = [];
    for (let n = zoom; n >= 0; n = tree.parent[n]) this.shown.unshift(n);
    let rows = this.shown.length;
    for (let n = zoom + 1; n < tree.end[zoom]; ) {
      const isShown = this.width[n] * this.pixels >= minWidth;
      if (isShown) this.shown.push(n);
      if (isShown) rows = Math.max(rows, tree.depth[n] + 1);
      n = isShown ? n + 1 : tree.end[n];
    }
    // The height never shrinks, or the page would move under the pointer.
    this.rows = Math.max(rows, this.rows);
    this.view.style.height = `${this.rows * this.row + 2}px`;
    this.content.style.height = `${rows * this.row}px`;
    this.nothing.textContent = this.width[0] ? "" : this.describeNothing();
    this.draw();
    this.place(this.ring, this.selected);
  }

  describeNothing() {
    const [base, candidate] = this.sides;
    if (this.measure.value === "lost") return `Every frame of ${base} is in ${candidate}, too.`;
    return `No samples of ${this.measure.value === "candidate" ? candidate : base}. Change the width to see the other side.`;
  }

  draw() {
    if (!this.shown || !this.drawnWidth) return;
    const height = this.onPaper ? Math.min(this.content.clientHeight, paperRows * this.row) : this.view.clientHeight;
    const top = this.onPaper ? 0 : this.view.scrollTop;
    const ratio = devicePixelRatio;
    this.canvas.width = Math.round(this.drawnWidth * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, -top * ratio);
    const [first, last] = [Math.floor(top / this.row), Math.floor((top + height) / this.row)];
    const visible = this.shown.filter((node) => this.tree.depth[node] >= first && this.tree.depth[node] <= last);
    this.drawFrames(pen, visible);
    this.drawLabels(pen, visible);
  }

  // Fills all frames of one colour together, because changing the colour is what takes time.
  drawFrames(pen, visible) {
    for (const [fill, nodes] of Map.groupBy(visible, (node) => this.fill(node))) {
      pen.fillStyle = fill;
      for (const node of nodes) this.drawFrame(pen, node);
    }
    if (!this.matched) return;
    pen.fillStyle = this.colour("var(--focus)");
    for (const node of visible) {
      if (this.matched[this.tree.frame[node]]) this.drawFrame(pen, node, this.row - 4);
    }
  }

  drawFrame(pen, node, from = 0) {
    const [left, right] = this.edges(node);
    pen.fillRect(left, this.tree.depth[node] * this.row + from, right - left > 3 ? right - left - 1 : right - left, this.row - 1 - from);
  }

  drawLabels(pen, visible) {
    pen.font = this.font;
    pen.textBaseline = "middle";
    for (const node of visible) {
      const [left, right] = this.edges(node);
      if (right - left < 16) continue;
      const frame = this.tree.frame[node];
      pen.fillStyle = this.colour(this.matched && !this.matched[frame] ? "var(--soft)" : "var(--ink)");
      const mark = { 1: "▲ ", "-1": "▼ " }[this.tree.change[node]] ?? "";
      const room = right - left - 9 - (mark && pen.measureText(mark).width);
      pen.fillText(mark + this.fit(pen, this.frames[frame], room), left + 4, (this.tree.depth[node] + 0.5) * this.row);
    }
  }

  fit(pen, frame, room) {
    frame.pixels ||= pen.measureText(frame.label).width;
    if (frame.pixels <= room) return frame.label;
    let length = Math.floor((frame.label.length * room) / frame.pixels);
    while (length > 1 && pen.measureText(cut(frame.label, length)).width > room) length--;
    return length > 4 ? cut(frame.label, length) : "";
  }

  place(ring, node) {
    ring.hidden = !(node >= 0 && this.width[node] > 0);
    if (ring.hidden) return;
    const [left, right] = this.edges(node);
    ring.style.left = `${Math.min(left, this.drawnWidth - 4)}px`;
    ring.style.top = `${this.tree.depth[node] * this.row}px`;
    ring.style.width = `${Math.max(right - left, 4)}px`;
    ring.style.height = `${this.row - 1}px`;
  }

  // ---- Details ----

  amount(value, total) {
    const shown = figure(value * this.profile.scale);
    if (this.profile.unit === "%") return `${shown}\u00a0%`;
    return `${shown}${this.sides ? "" : ` ${this.profile.unit}`} (${percent(value, total)})`;
  }

  // Returns the lines of figures: [label, value, value of the baseline, difference].
  lines(node) {
    const { tree, whole } = this;
    const line = (label, value, base) => {
      const both = [label, this.amount(value, whole.value[0])];
      if (!this.sides) return both;
      const unit = this.profile.unit === "%" ? " points" : "";
      const ratio = base && value !== base && !unit ? ` (${relative((value - base) / base)})` : "";
      return [...both, this.amount(base, whole.base[0]), signed((value - base) * this.profile.scale) + unit + ratio];
    };
    const total = line("Total", tree.value[node], tree.base[node]);
    // In a tree of callers, what remains of a frame is not its own time.
    return this.state.view === "callers" ? [total] : [total, line("Self", tree.self[node], tree.selfBase[node])];
  }

  verdict(node) {
    const [value, base, change] = [this.tree.value[node], this.tree.base[node], this.tree.change[node]];
    if (!value && base) return `only in ${this.sides[0]}`;
    if (value && !base) return `only in ${this.sides[1]}`;
    if (change === untested) return "not tested: merged from several frames";
    return { 1: `more in ${this.sides[1]}`, "-1": `less in ${this.sides[1]}` }[change] ?? "not shown to differ";
  }

  describeModule({ module }) {
    return module.name ? `${module.name} · ${kinds[module.kind]}` : "All samples";
  }

  describe(node) {
    const frame = this.frames[this.tree.frame[node]];
    this.name.textContent = frame.name;
    this.where.textContent = this.describeModule(frame) + (this.sides ? ` · ${this.verdict(node)}` : "");
    const head = this.sides ? [this.profile.unit, this.sides[1], this.sides[0], "Difference"] : [];
    const cells = this.lines(node).flatMap((line) => line.map((text, n) => element("span", { class: n ? "num" : "soft" }, text)));
    this.numbers.replaceChildren(...head.map((text) => element("span", { class: "head" }, text)), ...cells);
  }

  speak() {
    const frame = this.frames[this.tree.frame[this.selected]];
    const said = this.lines(this.selected).map(([label, value, base, difference]) =>
      this.sides ? `${label} in ${this.profile.unit}: ${this.sides[1]} ${value}, ${this.sides[0]} ${base}, difference ${difference}` : `${label}: ${value}`);
    const verdict = this.sides ? [this.verdict(this.selected)] : [];
    this.spoken.textContent = [frame.label, this.describeModule(frame), ...said, ...verdict].join(". ");
  }

  // ---- Input ----

  zoomTo(node) {
    this.zoom = node;
    this.selected = node;
    this.hovered = -1;
    this.pointed.hidden = true;
    this.layout();
    this.select(node);
    this.store();
  }

  // The buttons hide when they have nothing left to do, so the focus moves on to the graph.
  zoomFromButton(node) {
    this.zoomTo(node);
    this.view.focus({ preventScroll: true });
  }

  // Selects a frame. If the zoom hides it, zooms out to its parent.
  select(node) {
    this.selected = node;
    if (!contains(this.tree, node, this.zoom) && !contains(this.tree, this.zoom, node)) {
      this.zoom = this.tree.parent[node];
      this.layout();
      this.store();
    }
    this.describe(node);
    this.place(this.ring, node);
    this.zoomIn.hidden = node === this.zoom;
    this.reset.hidden = !this.zoom;
    // The root is no function, or the one that the view is about.
    for (const [view, act] of this.acts) act.hidden = node === 0 && ["whole", view].includes(this.state.view);
    this.hint.hidden = [this.zoomIn, this.reset, ...this.acts.values()].some((act) => !act.hidden);
    const top = this.tree.depth[node] * this.row;
    const margin = 2 * this.row;
    if (top - margin < this.view.scrollTop) this.view.scrollTop = top - margin;
    else if (top + margin > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = top + margin - this.view.clientHeight;
  }

  point(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.place(this.pointed, node);
    this.describe(node >= 0 ? node : this.selected);
  }

  // Returns the frame under the pointer, or -1.
  hit({ clientX, clientY }) {
    const { tree } = this;
    const box = this.content.getBoundingClientRect();
    const [x, depth] = [clientX - box.left, Math.floor((clientY - box.top) / this.row)];
    let at = this.zoom;
    while (tree.depth[at] > depth && at > 0) at = tree.parent[at];
    while (at >= 0 && tree.depth[at] < depth) {
      let below = -1;
      for (const child of children(tree, at)) {
        const [left, right] = this.edges(child);
        if (x >= left && x < right && right - left >= minWidth) below = child;
      }
      at = below;
    }
    return depth < 0 ? -1 : at;
  }

  // The first tap shows details, because a finger covers what it points at. The second one zooms.
  click(node) {
    if (node < 0) return;
    if (this.isTouch && node !== this.selected) return this.select(node);
    this.zoomTo(node);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowUp: () => this.tree.parent[this.selected],
      ArrowDown: () => this.largestChild(),
      ArrowLeft: () => this.sibling(-1),
      ArrowRight: () => this.sibling(1),
    };
    if (Object.hasOwn(moves, event.key)) this.move(moves[event.key]());
    else if (event.key === "Enter") this.zoomTo(this.selected);
    else if (event.key === "Escape") this.zoom ? this.zoomTo(0) : this.state.view !== "whole" && this.show("whole");
    else return;
    event.preventDefault();
    this.speak();
  }

  move(node) {
    if (node >= 0) this.select(node);
  }

  largestChild() {
    let largest = -1;
    for (const child of children(this.tree, this.selected)) {
      if (this.width[child] > (this.width[largest] ?? 0)) largest = child;
    }
    return largest;
  }

  sibling(step) {
    const above = this.tree.parent[this.selected];
    const siblings = above < 0 ? [] : [...children(this.tree, above)].filter((child) => this.width[child] > 0);
    return siblings[siblings.indexOf(this.selected) + step] ?? -1;
  }
}

for (const section of document.querySelectorAll(".flame[data-flame]")) new FlameGraph(section);
