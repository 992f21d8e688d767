// The dashboard works without this file; with it, parts load and refresh by themselves and values are copied by a click.
"use strict";

const show = (element, content) => {
  const chosen = new Set([...element.querySelectorAll("input.choose:checked")].map((box) => box.value)); // stays so
  element.replaceChildren(content);
  element.querySelectorAll("input.choose").forEach((box) => { box.checked = chosen.has(box.value); });
  element.removeAttribute("aria-busy");
  prepare(element);
};

// data-load: a part of the page that takes long, such as questions to the DNS.
async function load(element) {
  element.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(element.dataset.load, { headers: { "Accept": "text/html" }, credentials: "same-origin" });
    if (response.redirected) { location.reload(); return; }
    const part = document.createElement("template");
    part.innerHTML = await response.text();
    show(element, part.content);
  } catch {
    element.removeAttribute("aria-busy");
    element.textContent = "This part could not be loaded: reload the page.";
  }
}

// data-live: the page's stream of parts, which the server sends anew whenever they have changed. It is open while the
// page is seen, since a browser keeps few connections; parts that take long are loaded again when it is seen again.
const AGAIN_MILLISECONDS = 3000;

function follow(element) {
  const state = document.querySelector("[data-live-state]");
  const report = (name, text) => { if (state) { state.dataset.state = name; state.textContent = text; } };
  let source = null;
  const open = () => {
    source?.close();
    source = new EventSource(element.dataset.live);
    source.addEventListener("open", () => report("on", "Live updates"));
    source.addEventListener("error", () => {
      report("off", "Reconnecting");
      if (source?.readyState === EventSource.CLOSED) setTimeout(retry, AGAIN_MILLISECONDS);
    });
    source.addEventListener("state", ({ data }) => data === "on" ? report("on", "Live updates") : report("off", "The database cannot be reached"));
    source.addEventListener("content", (event) => update(event.data));
  };
  const close = () => { source?.close(); source = null; };
  addEventListener("pagehide", close);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); return; }
    open();
    document.querySelectorAll("[data-load]").forEach(load);
  });
  if (!document.hidden) open();

  // A browser tries again after a broken connection, and never after an answer that is no stream, such as a 503.
  async function retry() {
    if (document.hidden) return;
    const asking = new AbortController();
    try {
      const response = await fetch(element.dataset.live, { credentials: "same-origin", signal: asking.signal });
      asking.abort();
      if (response.redirected || response.status === 403 || response.status === 404) report("off", "Ended: reload this page");
      else if (response.ok) open();
      else setTimeout(retry, AGAIN_MILLISECONDS);
    } catch { setTimeout(retry, AGAIN_MILLISECONDS); }
  }
}

function update(html) {
  const parts = document.createElement("template");
  parts.innerHTML = html;
  parts.content.querySelectorAll("template[data-into]").forEach((part) => {
    const element = document.getElementById(part.dataset.into);
    if (element) put(element, part.content);
  });
}

// Where the keyboard is or a button of the mouse is held, nothing moves; the newest content is put there as soon as it
// is left. A link that moved between press and release would not be followed.
const waiting = new Map();

function put(element, content) {
  if (element.contains(document.activeElement) || element.matches(":active")) { waiting.set(element, content); return; }
  waiting.delete(element);
  show(element, content);
}

function putWaiting() {
  for (const [element, content] of waiting) put(element, content);
}

for (const type of ["focusout", "pointerup", "pointercancel", "dragend"])
  document.addEventListener(type, () => setTimeout(putWaiting));

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent.trim();
  const label = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { getSelection().selectAllChildren(document.getElementById(button.dataset.copy)); button.textContent = "Press Ctrl+C"; }
  setTimeout(() => { button.textContent = label; }, 1500);
}

// form[data-passkey]: asks the authenticator for what data-options describes, and sends its answer with the form. Shown
// only in browsers that can (WebAuthn Level 3).
const FAILURES = {
  NotAllowedError: "No passkey was used. Try again.",
  InvalidStateError: "This device has a passkey for the account already.",
  Expired: "That took too long. Reload the page, then try again.",
  SecurityError: "Passkeys do not work at this address: open the dashboard at its own one.",
};

async function usePasskey(form) {
  const [problem, button] = [form.querySelector(".error"), form.querySelector("button[type=submit]")];
  problem.hidden = true;
  button.disabled = true;
  try {
    const response = await fetch(form.dataset.options, { headers: { "Accept": "application/json" }, credentials: "same-origin" });
    if (!response.ok || response.redirected) throw new DOMException("no options", "Expired");
    const options = await response.json();
    const credential = form.dataset.passkey === "create"
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
    form.elements.credential.value = JSON.stringify(credential.toJSON());
    form.submit();
  } catch (error) {
    problem.textContent = FAILURES[error.name] ?? "The passkey could not be used. Try again.";
    problem.hidden = false;
    button.disabled = false;
  }
}

function prepare(root) {
  root.querySelectorAll("[data-load]").forEach(load);
  root.querySelectorAll("[data-live]").forEach(follow);
  root.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; button.addEventListener("click", () => copy(button)); });
  root.querySelectorAll("[data-choose-all]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => {
      const boxes = [...document.getElementById(button.dataset.chooseAll).querySelectorAll("input.choose")];
      const all = boxes.some((box) => !box.checked);
      boxes.forEach((box) => { box.checked = all; });
    });
  });
  root.querySelectorAll("form[data-typed]").forEach((form) => {
    const [field, button] = [form.querySelector("input[name=typed]"), form.querySelector("button[type=submit]")];
    const update = () => { button.disabled = field.value.trim() !== form.dataset.typed; };
    field.addEventListener("input", update);
    update();
  });
  if (globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON) {
    root.querySelectorAll("form[data-passkey]").forEach((form) => {
      form.hidden = false;
      form.addEventListener("submit", (event) => { event.preventDefault(); usePasskey(form); });
    });
  }
  root.querySelectorAll("time:not([data-local])").forEach((time) => { // local time and UTC for whom points at "3 minutes ago"
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.valueOf())) time.title = `${at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })} your time, ${at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" })} UTC`;
  });
  root.querySelectorAll("time[data-local]").forEach((time) => { time.textContent = new Date(time.dateTime).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }); });
  root.querySelectorAll("[data-submit] select").forEach((select) => select.addEventListener("change", () => select.form.requestSubmit()));
  root.querySelectorAll("form[method=post]:not([data-passkey])").forEach((form) => form.addEventListener("submit", () => {
    setTimeout(() => form.querySelectorAll("button[type=submit]").forEach((button) => { button.disabled = true; }));
  }));
}

const menu = document.querySelector("[data-menu]");
if (menu) {
  const side = menu.closest(".side");
  const show = (open) => { side.toggleAttribute("data-open", open); menu.setAttribute("aria-expanded", String(open)); };
  menu.addEventListener("click", () => show(!side.hasAttribute("data-open")));
  side.addEventListener("keydown", (event) => { if (event.key === "Escape" && side.hasAttribute("data-open")) { show(false); menu.focus(); } });
}
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // signed out meanwhile, perhaps
const tab = document.querySelector(".tabs [aria-current]");
if (tab) { // tabs scroll on a phone; the page stays where it is, which may be at a field to mend
  const tabs = tab.closest(".tabs");
  tabs.scrollLeft += tab.getBoundingClientRect().left - tabs.getBoundingClientRect().left - (tabs.clientWidth - tab.offsetWidth) / 2;
}

// ⌘K or Ctrl+K: applications, domains, pages and the handbook, from anywhere.
const palette = document.getElementById("palette");
if (palette) {
  const [input, found] = [palette.querySelector("input"), palette.querySelector("[data-found]")];
  let asked = null, wait = 0;
  const open = () => { if (!palette.open) palette.showModal(); input.select(); };
  const links = () => [...found.querySelectorAll("a")];
  const docs = async (text, signal) => {
    const response = await fetch(`/docs?q=${encodeURIComponent(text)}`, { signal });
    const page = document.createElement("template"); // of the list alone: the page's own style is not ours to apply
    page.innerHTML = (await response.text()).match(/<ol class="hits">[^]*?<\/ol>/)?.[0] ?? "";
    const hits = [...page.content.querySelectorAll("a")].slice(0, 5);
    if (!hits.length) return;
    const list = document.createElement("ul");
    for (const hit of hits) {
      const link = document.createElement("a");
      link.href = hit.getAttribute("href");
      link.textContent = hit.textContent;
      list.append(document.createElement("li"));
      list.lastChild.append(link);
    }
    const title = document.createElement("h2");
    title.textContent = "Handbook";
    found.append(title, list);
  };
  const search = async () => {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked, text = input.value.trim();
    try {
      const response = await fetch(`${palette.dataset.url}?q=${encodeURIComponent(text)}`, { credentials: "same-origin", signal });
      if (response.redirected) { location.reload(); return; }
      const part = document.createElement("template");
      part.innerHTML = await response.text();
      found.replaceChildren(part.content);
      found.dataset.found = text;
      if (text) await docs(text, signal);
    } catch (error) { if (error.name !== "AbortError") found.textContent = "The search failed: try again."; }
  };
  input.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(search, 120); });
  palette.addEventListener("keydown", (event) => {
    const all = links(), at = all.indexOf(document.activeElement);
    if (event.key === "Escape") { event.preventDefault(); palette.close(); } // a search field would be emptied first
    if (event.key === "Enter" && at < 0 && all.length) { event.preventDefault(); all[0].click(); }
    if (event.key === "ArrowDown" && all.length) { event.preventDefault(); all[(at + 1) % all.length].focus(); }
    if (event.key === "ArrowUp" && at >= 0) { event.preventDefault(); (all[at - 1] ?? input).focus(); }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  document.querySelectorAll("[data-search]").forEach((button) => { button.hidden = false; button.addEventListener("click", open); });
  document.addEventListener("keydown", (event) => { if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey)) { event.preventDefault(); open(); search(); } });
  palette.addEventListener("toggle", () => { if (palette.open) search(); });
}
prepare(document);
