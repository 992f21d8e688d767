// The dashboard works without this file; with it, parts load and refresh by themselves and values are copied by a click.
"use strict";

const replace = (element, html) => { element.innerHTML = html; element.removeAttribute("aria-busy"); prepare(element); };

// data-load: a part of the page that takes long, such as questions to the DNS.
async function load(element) {
  element.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(element.dataset.load, { headers: { "Accept": "text/html" }, credentials: "same-origin" });
    if (response.redirected) { location.reload(); return; }
    replace(element, await response.text());
  } catch {
    element.removeAttribute("aria-busy");
    element.textContent = "This part could not be loaded: reload the page.";
  }
}

// data-live: a part that the server sends anew whenever it has changed.
function follow(element) {
  const state = document.querySelector("[data-live-state]");
  const show = (on) => { if (state) { state.dataset.state = on ? "on" : "off"; state.textContent = on ? "Live" : "Reconnecting"; } };
  const source = new EventSource(element.dataset.live);
  source.addEventListener("open", () => show(true));
  source.addEventListener("error", () => show(false));
  source.addEventListener("content", (event) => { if (!element.contains(document.activeElement)) replace(element, event.data); });
  addEventListener("pagehide", () => source.close());
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent.trim();
  const label = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { getSelection().selectAllChildren(document.getElementById(button.dataset.copy)); button.textContent = "Press Ctrl+C"; }
  setTimeout(() => { button.textContent = label; }, 1500);
}

function prepare(root) {
  root.querySelectorAll("[data-load]").forEach(load);
  root.querySelectorAll("[data-live]").forEach(follow);
  root.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; button.addEventListener("click", () => copy(button)); });
  root.querySelectorAll("form[data-typed]").forEach((form) => {
    const [field, button] = [form.querySelector("input[name=typed]"), form.querySelector("button[type=submit]")];
    const update = () => { button.disabled = field.value.trim() !== form.dataset.typed; };
    field.addEventListener("input", update);
    update();
  });
  root.querySelectorAll("[data-submit] select").forEach((select) => select.addEventListener("change", () => select.form.requestSubmit()));
  root.querySelectorAll("form[method=post]").forEach((form) => form.addEventListener("submit", () => {
    setTimeout(() => form.querySelectorAll("button[type=submit]").forEach((button) => { button.disabled = true; }));
  }));
}

const menu = document.querySelector("[data-menu]");
if (menu) {
  menu.addEventListener("click", () => {
    const open = menu.closest(".side").toggleAttribute("data-open");
    menu.setAttribute("aria-expanded", String(open));
  });
}
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // signed out meanwhile, perhaps
prepare(document);
