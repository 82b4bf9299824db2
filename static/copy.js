// Buttons that copy: <button hidden data-copy="#id">, shown only where copying works.

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
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.classList.add("copied");
    told.textContent = "Copied";
    setTimeout(() => {
      button.classList.remove("copied");
      told.textContent = "";
    }, 2000);
  });
}
