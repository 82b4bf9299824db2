// Keyboard shortcuts and shift-click in the run history. All of it works without them, too.
const choice = () => document.getElementById("choice");
const boxes = () => [...document.querySelectorAll("#choice tbody input[type=checkbox]")];
let last = null;

// Shift-click selects the range from the last box to this one.
document.addEventListener("click", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.matches("#choice tbody input[type=checkbox]")) return;
  const all = boxes();
  const [from, to] = [all.findIndex((other) => other.value === last), all.indexOf(box)];
  if (event.shiftKey && from >= 0) {
    for (const other of all.slice(Math.min(from, to), Math.max(from, to) + 1)) other.checked = box.checked;
  }
  last = box.value;
});

// Keeps empty fields and default columns out of the URL.
document.addEventListener("formdata", (event) => {
  if (event.target.id !== "finder") return;
  const data = event.formData;
  for (const [name, value] of [...data]) if (value === "") data.delete(name);
  const usual = event.target.querySelector("[data-usual]")?.dataset.usual;
  if (data.getAll("columns").join() === usual) data.delete("columns");
});

function move(step) {
  const all = boxes();
  if (!all.length) return;
  const row = document.activeElement?.closest("#choice tbody tr");
  const at = row ? all.findIndex((box) => row.contains(box)) : -1;
  const next = all[Math.min(Math.max(at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step, 0), all.length - 1)];
  next.focus({ focusVisible: true, preventScroll: true });
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  next.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  x: () => document.activeElement?.closest("#choice tbody tr")?.querySelector("input[type=checkbox]")?.click(),
  c: () => choice()?.querySelector("input:checked") && choice().requestSubmit(),
  "/": () => {
    const search = document.querySelector("#finder input[type=search]");
    search?.closest("details").setAttribute("open", "");
    search?.focus();
  },
  "?": () => document.getElementById("keys")?.showModal(),
};

function isTyping(element) {
  return element instanceof HTMLElement
    && (element.isContentEditable || element.matches("textarea, select, input:not([type=checkbox], [type=radio])"));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});
