// Registration, login and another passkey of one's own with a passkey. The browser's own functions turn JSON into what WebAuthn wants and back.

const api = "/api/v1/";

async function post(path, body) {
  const response = await fetch(api + path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  if (response.ok) return response.status === 204 ? null : response.json();
  const told = await response.json().catch(() => null);
  throw new Error(told?.error ?? `The server answered with ${response.status}.`);
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

// For what takes a recent proof; a server that has one asks for nothing.
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

// What browsers say about a ceremony is not for people.
function sentence(fault) {
  switch (fault.name) {
    case "NotAllowedError":
    case "AbortError":
      return "The passkey was not used: it was cancelled or took too long. Try again.";
    case "InvalidStateError":
      return "This device already has a passkey for this account.";
    case "SecurityError":
      return "Passkeys need https, or http on localhost, and the address that the server was told as its public one.";
    default:
      return fault.message;
  }
}

// An address on this server and nothing else: a link in a mail must not lead elsewhere after the login. It is given whole:
// the path alone may name a host, as that of /.//evil.example does once its dot is gone.
function destination(next) {
  const home = new URL("/", location.origin);
  const url = URL.canParse(next, home) ? new URL(next, home) : home;
  return (url.origin === home.origin && !url.pathname.startsWith("//") ? url : home).href;
}

async function ceremony(element, steps, then = () => location.assign(destination(element.dataset.next ?? "/"))) {
  const alert = document.querySelector("[data-passkey-alert]");
  const button = element.matches("button, a") ? element : element.querySelector("button");
  alert.hidden = true;
  button.disabled = true;
  try {
    if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
      throw new Error(
        window.isSecureContext
          ? "This browser is too old for passkeys. A current Chromium, Firefox or Safari has them."
          : sentence({ name: "SecurityError" }),
      );
    }
    await steps();
    then();
  } catch (fault) {
    alert.textContent = sentence(fault);
    alert.hidden = false;
    button.disabled = false;
  }
}

for (const [kind, steps] of Object.entries({ login, confirm })) {
  for (const button of document.querySelectorAll(`button[data-passkey=${kind}]`)) {
    button.addEventListener("click", () => ceremony(button, steps));
  }
}
// What takes a proof goes on by itself once it is given.
for (const link of document.querySelectorAll("a[data-passkey=confirm]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    ceremony(link, confirm, () => location.assign(link.href));
  });
}
for (const form of document.querySelectorAll("form[data-passkey=confirm]")) {
  form.addEventListener("submit", (event) => {
    const [name, value] = form.dataset.onlyFor?.split("=") ?? [];
    if (name && new FormData(form).get(name) !== value) return;
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
