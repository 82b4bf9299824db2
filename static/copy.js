// Buttons that copy: <button hidden data-copy="#id">, shown only where copying works; a table by data-copy-as="markdown"
// or "csv".

const told = document.createElement("span");
told.className = "sr";
told.setAttribute("role", "status");
document.body.append(told);

function show() {
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) button.hidden = false;
}

if (navigator.clipboard) {
  show();
  // What is patched in later comes hidden as well.
  new MutationObserver(show).observe(document.body, { subtree: true, childList: true, attributeFilter: ["hidden"] });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    const source = button && document.querySelector(button.dataset.copy);
    if (!source) return;
    const table = { markdown, csv }[button.dataset.copyAs];
    await navigator.clipboard.writeText(table ? table(cells(source)) : (source.value ?? source.textContent));
    button.classList.add("copied");
    told.textContent = "Copied";
    setTimeout(() => {
      button.classList.remove("copied");
      told.textContent = "";
    }, 2000);
  });
}

// A cell that spans columns leaves the others empty, so that columns stay columns.
function cells(table) {
  return [...table.rows].map((row) => [...row.cells].flatMap((cell) => [cell, ...Array(cell.colSpan - 1).fill(null)]));
}

function words(cell) {
  if (!cell) return "";
  const copy = cell.cloneNode(true);
  for (const unseen of copy.querySelectorAll(".sr, button")) unseen.remove();
  for (const below of copy.querySelectorAll(".under")) below.textContent = ` (${below.textContent.trim()})`;
  return copy.textContent.replace(/\s+/g, " ").trim();
}

function markdown([head, ...rows]) {
  const line = (parts) => `| ${parts.join(" | ")} |`;
  const plain = (cell) => words(cell).replaceAll("|", "\\|");
  const text = (row) => line(row.map((cell) => (cell?.classList.contains("best") ? `**${plain(cell)}**` : plain(cell))));
  const rule = line(head.map((cell) => (cell?.classList.contains("n") ? "---:" : "---")));
  return [text(head), rule, ...rows.map(text)].join("\n") + "\n";
}

// Figures as they are, without what makes them readable, and nothing for what is not known; text that a spreadsheet would
// take for a formula is quoted.
function csv(rows) {
  const field = (cell) => {
    const known = cell?.querySelector(".unknown") ? "" : words(cell);
    const text = cell?.dataset.value ?? known.replace(/^[=+\-@]/, "'$&");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join(",") + "\r\n").join("");
}
