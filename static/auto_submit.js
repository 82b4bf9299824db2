// Forms with data-auto-submit are submitted by every change; the changed field keeps the focus on the next page.

const KEY = "auto-submit-focus";
const field = document.querySelector(`form[data-auto-submit] [name="${CSS.escape(sessionStorage.getItem(KEY) ?? "")}"]`);
sessionStorage.removeItem(KEY);
field?.focus();

document.addEventListener("change", ({ target }) => {
  const form = target.closest("form[data-auto-submit]");
  if (!form) return;
  sessionStorage.setItem(KEY, target.name);
  form.requestSubmit();
});
