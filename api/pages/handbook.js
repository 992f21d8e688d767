// The handbook works without this file; with it, code has tabs and copy buttons, and calls can be tried.
"use strict";

const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

async function copy(button, text) {
  const label = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
  catch { button.textContent = "Press Ctrl+C"; getSelection().selectAllChildren(button.previousSibling); }
  setTimeout(() => { button.textContent = label; }, 1500);
}

for (const block of document.querySelectorAll("main pre")) {
  const frame = make("div", { className: "code" });
  block.before(frame);
  const button = make("button", { type: "button", className: "copy", textContent: "Copy", onclick: () => copy(button, block.textContent) });
  frame.append(block, button);
}

// Tabs of one call in several languages (ARIA Authoring Practices: Tabs). All groups follow the choice.
function choose(language, focused) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const group = tab.closest(".samples"), names = group.dataset.languages.split(" ");
    const isChosen = tab.textContent === (names.includes(language) ? language : names[0]);
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isChosen;
    if (isChosen && group === focused) tab.focus();
  }
}

document.querySelectorAll(".samples").forEach((group, at) => {
  const blocks = [...group.querySelectorAll("pre")], list = make("div");
  group.dataset.languages = blocks.map((block) => block.dataset.language).join(" ");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Language");
  blocks.forEach((block, number) => {
    const panel = block.parentElement, tab = make("button", { type: "button", id: `tab-${at}-${number}`, textContent: block.dataset.language });
    panel.id = `panel-${at}-${number}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    tab.onclick = () => {
      const top = group.getBoundingClientRect().top; // samples above may become shorter or longer
      choose(tab.textContent);
      scrollBy(0, group.getBoundingClientRect().top - top);
    };
    list.append(tab);
  });
  list.onkeydown = (event) => {
    const tabs = [...list.children], step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) choose(tabs.at((tabs.indexOf(event.target) + step) % tabs.length).textContent, group);
  };
  group.prepend(list);
});
choose("curl");

// A call is tried with what its reader types. It lives in this page only: nothing is stored, and it goes to this API alone.
const typed = { applicationId: "", token: "" };

function field(label, name, value, type = "text") {
  const input = make("input", { type, name, value, autocomplete: "off", spellcheck: false });
  return make("label", {}, label, input);
}

function openTrial(call) {
  const { method, path, body } = call.dataset, isOpen = "open" in call.dataset;
  const secrets = isOpen ? [] : [field("applicationId", "applicationId", typed.applicationId), field("Token or API key", "token", typed.token, "password")];
  const area = body === undefined ? [] : [make("label", {}, "Body", make("textarea", { name: "body", value: body, rows: Math.min(12, body.split("\n").length + 1), spellcheck: false }))];
  const output = make("output"), form = make("form", { className: "trial" }, ...secrets, field("Path", "path", path), ...area,
    make("button", { type: "submit", textContent: `Send ${method}` }), output);
  form.onsubmit = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    if (!isOpen) Object.assign(typed, { applicationId: values.applicationId, token: values.token });
    const headers = { ...(isOpen ? {} : { Authorization: `Bearer ${typed.token}` }), ...(typed.applicationId && !isOpen ? { applicationId: typed.applicationId } : {}), ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
    output.replaceChildren("Sending …");
    try {
      const response = await fetch(new URL(values.path, location.origin), { method, headers, body: values.body, credentials: "omit" });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* no JSON: as it came */ }
      const result = make("pre", { tabIndex: 0 }, make("code", { textContent: shown }));
      output.replaceChildren(make("b", { textContent: `${response.status} ${response.statusText}` }), result);
    } catch (error) {
      output.replaceChildren(`Not sent: ${error.message}`);
    }
  };
  return form;
}

for (const call of document.querySelectorAll("[data-path]")) {
  const button = make("button", { type: "button", className: "try", textContent: "Try it" });
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-label", `Try it: ${call.dataset.method} ${call.dataset.path}`);
  button.onclick = () => {
    const shown = call.querySelector(".trial");
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) shown.remove();
    else { call.append(openTrial(call)); call.querySelector("input").focus(); }
  };
  call.append(button);
}

const here = document.querySelector("nav [aria-current]"), nav = document.querySelector("nav");
if (here) nav.scrollTop = here.offsetTop - nav.clientHeight / 3; // the contents show where the reader is
