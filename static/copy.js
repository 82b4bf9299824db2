// Copy buttons: <button hidden data-copy="#id">, shown only if the clipboard is available. data-copy-as="markdown" or
// "csv" copies a table.

const announcement = document.createElement("span");
announcement.className = "sr";
announcement.setAttribute("role", "status");
document.body.append(announcement);

function show() {
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) button.hidden = false;
}

if (navigator.clipboard) {
  show();
  // Buttons that are added later are hidden, too.
  new MutationObserver(show).observe(document.body, { subtree: true, childList: true, attributeFilter: ["hidden"] });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    const source = button && document.querySelector(button.dataset.copy);
    if (!source) return;
    const table = { markdown, csv }[button.dataset.copyAs];
    await navigator.clipboard.writeText(table ? table(cells(source)) : (source.value ?? source.textContent));
    button.classList.add("copied");
    announcement.textContent = "Copied";
    setTimeout(() => {
      button.classList.remove("copied");
      announcement.textContent = "";
    }, 2000);
  });
}

// Pads cells that span columns with empty cells, to keep columns aligned.
function cells(table) {
  return [...table.rows].map((row) => [...row.cells].flatMap((cell) => [cell, ...Array(cell.colSpan - 1).fill(null)]));
}

function cellText(cell) {
  if (!cell) return "";
  const copy = cell.cloneNode(true);
  for (const unseen of copy.querySelectorAll(".sr, button:not(.term), .term.icon")) unseen.remove();
  for (const below of copy.querySelectorAll(".under")) below.textContent = ` (${below.textContent.trim()})`;
  return copy.textContent.replace(/\s+/g, " ").trim();
}

function markdown([head, ...rows]) {
  const line = (parts) => `| ${parts.join(" | ")} |`;
  const plain = (cell) => cellText(cell).replaceAll("|", "\\|");
  const text = (row) => line(row.map((cell) => (cell?.classList.contains("best") ? `**${plain(cell)}**` : plain(cell))));
  const rule = line(head.map((cell) => (cell?.classList.contains("n") ? "---:" : "---")));
  return [text(head), rule, ...rows.map(text)].join("\n") + "\n";
}

// Writes raw values, and nothing for unknown ones. Quotes text that a spreadsheet would read as a formula.
function csv(rows) {
  const field = (cell) => {
    const known = cell?.querySelector(".unknown") ? "" : cellText(cell);
    const text = cell?.dataset.value ?? known.replace(/^[=+\-@]/, "'$&");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join(",") + "\r\n").join("");
}
