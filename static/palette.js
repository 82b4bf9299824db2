// The command palette: Ctrl K, ⌘K or the button in the header opens a search that leads to any target, experiment, run,
// page or chapter, and to a few actions. It is a combobox with a list box. Without this script, the same form leads to
// /search.

const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const list = document.getElementById("palette-hits");
const status = dialog.querySelector("[role=status]");
const opener = document.querySelector(".jump button");
const HEADINGS = { action: "Actions", target: "Targets", experiment: "Experiments", run: "Runs", page: "Pages", documentation: "Documentation" };
// As in src/web/series_style.rs.
const SHAPES = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "cross", "hourglass"];
const PAUSE_MS = 80;

let active = null;
let timer = 0;
let loading = new AbortController();
// Settles once the list belongs to what was typed.
let settled = Promise.resolve();

const isApple = /^(Mac|iP)/.test(navigator.userAgentData?.platform ?? navigator.platform);
if (isApple && opener) opener.querySelector("kbd").textContent = "⌘K";

async function setTheme(theme) {
  await fetch("/settings/theme", { method: "POST", body: new URLSearchParams({ theme }), redirect: "manual" });
  location.reload();
}

// Visitors without a login have none.
const logOut = document.querySelector('form[action="/logout"]');
const ACTIONS = [
  { title: "Dark theme", also: "mode night", run: () => setTheme("dark") },
  { title: "Light theme", also: "mode day", run: () => setTheme("light") },
  { title: "System theme", also: "mode", run: () => setTheme("system") },
  { title: "Log out", also: "logout sign exit", run: () => logOut.requestSubmit() },
];

function actions(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = ({ title, also }) => words.every((word) => `${title} ${also}`.toLowerCase().includes(word));
  const found = logOut && words.length > 0 ? ACTIONS.filter(matches) : [];
  return found.map((action) => ({ ...action, kind: "action", detail: null, url: location.href, mark: null }));
}

const options = () => [...list.querySelectorAll("[role=option]")];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function select(option) {
  active?.setAttribute("aria-selected", "false");
  active = option ?? null;
  active?.setAttribute("aria-selected", "true");
  active?.scrollIntoView({ block: "nearest" });
  if (active) field.setAttribute("aria-activedescendant", active.id);
  else field.removeAttribute("aria-activedescendant");
}

function option({ title, detail, url, mark, run }, place) {
  const { pathname, search, hash } = new URL(url);
  const href = pathname + search + hash;
  const made = element("a", { role: "option", id: `palette-hit-${place}`, tabindex: "-1", "aria-selected": "false", href });
  const name = element("span", { class: "target" });
  if (mark !== null) name.append(element("i", { class: `dot t${(mark % 8) + 1} ${SHAPES[Math.floor(mark / 8) % 8]}`, "aria-hidden": "true" }));
  name.append(title);
  made.append(name);
  if (detail) made.append(element("span", { class: "under" }, detail));
  if (run) {
    made.addEventListener("click", (event) => {
      event.preventDefault();
      run();
    });
  }
  return made;
}

function show(hits) {
  list.replaceChildren();
  let group = null;
  hits.forEach((hit, place) => {
    if (group?.dataset.kind !== hit.kind) {
      const heading = element("div", { class: "unit", id: `palette-${hit.kind}`, role: "presentation" }, HEADINGS[hit.kind]);
      group = element("div", { role: "group", "aria-labelledby": heading.id, "data-kind": hit.kind }, heading);
      list.append(group);
    }
    group.append(option(hit, place));
  });
  list.hidden = hits.length === 0;
  field.setAttribute("aria-expanded", String(hits.length > 0));
  status.textContent = hits.length === 0 ? "Nothing found" : hits.length === 1 ? "1 result" : `${hits.length} results`;
  list.scrollTop = 0;
  select(options()[0]);
}

async function load() {
  loading.abort();
  loading = new AbortController();
  try {
    const query = new URLSearchParams({ q: field.value });
    const answer = await fetch(`/search?${query}`, { headers: { accept: "application/json" }, signal: loading.signal });
    if (!answer.ok) throw new Error(answer.statusText);
    show([...actions(field.value), ...(await answer.json()).hits]);
  } catch (fault) {
    if (fault.name === "AbortError") return;
    show([]);
    status.textContent = "The search is not available. Enter opens its page.";
  }
}

function search(pause) {
  clearTimeout(timer);
  settled = new Promise((resolve) => {
    timer = setTimeout(() => load().then(resolve), pause);
  });
}

function open() {
  if (dialog.open || document.querySelector("dialog[open]")) return;
  dialog.showModal();
  field.focus();
  field.select();
  search(0);
}

function move(step) {
  const all = options();
  if (all.length) select(all[(all.indexOf(active) + step + all.length) % all.length]);
}

opener?.addEventListener("click", (event) => {
  event.preventDefault();
  open();
});

document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
  event.preventDefault();
  if (dialog.open) dialog.close();
  else open();
});

field.addEventListener("input", () => search(PAUSE_MS));

field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  move(step);
});

// Enter opens the selected hit, also one that is still being loaded. Without a hit, the page of the search opens.
dialog.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = field.value;
  await settled;
  if (!dialog.open || field.value !== typed) return;
  if (active) active.click();
  else event.target.submit();
});

// A link to another part of this page loads nothing, so the palette closes by itself.
list.addEventListener("click", (event) => {
  if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) dialog.close();
});

dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
