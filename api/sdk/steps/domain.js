/** The first step: which domain. */

import { displayName, readDomain } from "../domain_input.js";
import { details, el, icon, submitButton } from "../elements.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function domainStep(modal) {
  const { words, configuration } = modal;
  const { prefilledDomain: prefilled } = configuration;
  const choices = Array.isArray(prefilled) ? prefilled : [];
  const form = el("form", { id: "domain-form", novalidate: true });
  const field = domainField(modal, choices.length > 0);
  /** @type {HTMLInputElement[]} */
  const radios = [];

  const submit = () => {
    const chosen = radios.find((radio) => radio.checked)?.value;
    if (chosen) {
      modal.typed = chosen;
      modal.choose(chosen);
      return;
    }
    const name = field.read();
    if (name !== null) {
      modal.choose(name);
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });

  if (choices.length > 0) {
    const showField = () => {
      field.element.hidden = !radios.at(-1)?.checked;
    };
    for (const value of [...choices, ""]) {
      const radio = /** @type {HTMLInputElement} */ (el("input", { type: "radio", name: "domain", value, on: { change: showField } }));
      radio.checked = value === (choices.includes(modal.typed) || !modal.typed ? modal.typed || choices[0] : "");
      radios.push(radio);
    }
    const labels = radios.map((radio) => el("label", { class: "radio" }, radio, radio.value ? el("bdi", {}, radio.value) : words.of("domain_other")));
    form.append(el("fieldset", {}, el("legend", { class: "unseen" }, words.of("domain_choose")), el("div", { class: "choices" }, labels)));
    showField();
  }
  form.append(field.element);
  const title = configuration.applicationName
    ? words.of("domain_title_for", { application: configuration.applicationName })
    : words.of("domain_title");
  return {
    title,
    body: [el("p", { class: "lead" }, words.of(choices.length > 0 ? "domain_choose" : "domain_lead")), form],
    actions: [submitButton(words.of("continue"), "domain-form")],
    focus: radios.find((radio) => radio.checked) ?? field.input,
    update: () => field.showRefusal(),
  };
}

/** @param {Modal} modal @param {boolean} isSecond  beside choices, its label says that it is another one */
function domainField(modal, isSecond) {
  const { words } = modal;
  const input = /** @type {HTMLInputElement} */ (
    el("input", {
      id: "domain",
      class: "input",
      type: "text",
      inputmode: "url",
      placeholder: "example.com",
      autocomplete: "off",
      autocapitalize: "off",
      autocorrect: "off",
      spellcheck: "false",
      dir: "ltr",
      "aria-describedby": "problem hint",
      props: { value: modal.typed },
    })
  );
  const problem = el("p", { id: "problem", class: "problem", role: "alert", hidden: true });
  const answer = el("div", {});
  const hint = el("p", { id: "hint", class: "hint", "aria-live": "polite", hidden: true });

  /** @param {string | null} text */
  const showProblem = (text) => {
    problem.hidden = text === null;
    answer.replaceChildren();
    problem.replaceChildren(icon("warning"), el("span", {}, text ?? ""));
    input.setAttribute("aria-invalid", String(text !== null));
  };
  /** @param {string | null} suggestion */
  const showHint = (suggestion) => {
    hint.hidden = suggestion === null;
    const take = () => {
      input.value = modal.typed = suggestion ?? "";
      showHint(null);
      showProblem(null);
      input.focus();
    };
    hint.replaceChildren(
      `${words.of("domain_hint")} `,
      el("button", { type: "button", on: { click: take } }, el("bdi", {}, suggestion ?? "")),
      "?",
    );
  };
  input.addEventListener("input", () => {
    modal.typed = input.value;
    showProblem(null);
    showHint(null);
  });
  input.addEventListener("change", () => showHint(input.value.trim() ? readDomain(input.value).suggestion : null));

  let warnedOf = "";
  const read = () => {
    const { name, problem: key, suggestion, isMailProvider } = readDomain(input.value);
    const isNew = suggestion !== null && warnedOf !== input.value;
    warnedOf = input.value;
    showHint(suggestion);
    if (key !== null || isMailProvider) {
      showProblem(words.of(key ?? "domain_mail_provider", { domain: name }));
      input.focus();
      return null;
    }
    if (isNew) {
      return null; // a second click on Continue means what is typed
    }
    modal.typed = displayName(name, input.value);
    return name;
  };
  const showRefusal = () => {
    if (modal.error) {
      showProblem(words.of("domain_refused"));
      answer.replaceChildren(details(words.of("details"), modal.error.hint) ?? "");
      input.focus();
    }
  };
  const label = el("label", { for: "domain" }, words.of(isSecond ? "domain_other" : "domain_label"));
  return { input, read, showRefusal, element: el("div", { class: "field" }, label, input, problem, answer, hint) };
}
