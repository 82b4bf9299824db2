// Registration, login and confirmation with passkeys. The browser converts between JSON and WebAuthn.

const api = "/api/v1/";

async function post(path, body) {
  const response = await fetch(api + path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  if (response.ok) return response.status === 204 ? null : response.json();
  const answer = await response.json().catch(() => null);
  throw new Error(answer?.error ?? `The server responded with status ${response.status}.`);
}

async function create(options) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey);
  return (await navigator.credentials.create({ publicKey })).toJSON();
}

async function login() {
  const { ceremony, options } = await post("auth/login/start", {});
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
  const credential = await navigator.credentials.get({ publicKey });
  await post("auth/login/finish", { ceremony, credential: credential.toJSON() });
}

async function register(form) {
  const { token, name, passkey_name } = Object.fromEntries(new FormData(form));
  const { ceremony, options } = await post("auth/register/start", { token, name });
  await post("auth/register/finish", { ceremony, credential: await create(options), passkey_name });
}

// Confirms the user's identity, unless the last confirmation is recent enough.
async function confirm() {
  const started = await post("auth/confirm/start", {});
  if (!started) return;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(started.options.publicKey);
  const credential = await navigator.credentials.get({ publicKey });
  await post("auth/confirm/finish", { ceremony: started.ceremony, credential: credential.toJSON() });
}

async function add(form) {
  await confirm();
  const { ceremony, options } = await post("account/passkeys/start", {});
  const passkey_name = new FormData(form).get("passkey_name");
  await post("account/passkeys/finish", { ceremony, credential: await create(options), passkey_name });
}

// Returns a readable message for the error of a ceremony.
function message(fault) {
  switch (fault.name) {
    case "NotAllowedError":
    case "AbortError":
      return "The passkey request was cancelled or timed out. Try again.";
    case "InvalidStateError":
      return "This device already has a passkey for this account.";
    case "SecurityError":
      return "Passkeys need HTTPS, or HTTP on localhost. Open this page at the server's public URL.";
    default:
      return fault.message;
  }
}

// Returns a URL on this server only, so that a link cannot redirect elsewhere after the login. It is a full URL, because a
// path may name a host: /.//evil.example becomes //evil.example when it is normalized.
function destination(next) {
  const home = new URL("/", location.origin);
  const url = URL.canParse(next, home) ? new URL(next, home) : home;
  return (url.origin === home.origin && !url.pathname.startsWith("//") ? url : home).href;
}

// Returns the message below a form, or below the paragraph of a button or link.
function alertOf(element) {
  const above = element.closest("form, p");
  if (above.nextElementSibling?.matches("[data-passkey-alert]")) return above.nextElementSibling;
  const alert = document.createElement("p");
  alert.className = "alert below";
  alert.role = "alert";
  alert.dataset.passkeyAlert = "";
  above.after(alert);
  return alert;
}

async function ceremony(element, steps, then = () => location.assign(destination(element.dataset.next ?? "/"))) {
  const alert = alertOf(element);
  const button = element.matches("button, a") ? element : element.querySelector("button");
  alert.hidden = true;
  button.disabled = true;
  try {
    if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
      throw new Error(
        window.isSecureContext
          ? "This browser does not support passkeys. Use a current Chromium, Firefox or Safari."
          : message({ name: "SecurityError" }),
      );
    }
    await steps();
    then();
  } catch (fault) {
    alert.textContent = message(fault);
    alert.hidden = false;
    button.disabled = false;
  }
}

for (const [kind, steps] of Object.entries({ login, confirm })) {
  for (const button of document.querySelectorAll(`button[data-passkey=${kind}]`)) {
    button.addEventListener("click", () => ceremony(button, steps));
  }
}
// Links and forms that need a confirmation continue after it.
for (const link of document.querySelectorAll("a[data-passkey=confirm]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    ceremony(link, confirm, () => location.assign(link.href));
  });
}
for (const form of document.querySelectorAll("form[data-passkey=confirm]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ceremony(form, confirm, () => form.submit());
  });
}
for (const [kind, steps] of Object.entries({ register, add })) {
  for (const form of document.querySelectorAll(`form[data-passkey=${kind}]`)) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ceremony(form, () => steps(form));
    });
  }
}
