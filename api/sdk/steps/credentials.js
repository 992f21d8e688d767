/** The fields that a way needs: a token, or a key. What is typed there is sent once and kept nowhere. */

import { el, icon } from "../elements.js";
import { ADDRESS_FAILURES, ADDRESS_FIELDS } from "../flow.js";

/** The words for a refusal, by its code. @type {Record<string, string>} */
const REFUSAL_WORDS = {
  missing: "failure_credentials_missing",
  credentials_missing: "failure_credentials_missing",
  provider_unreachable: "address_silent",
  address_refused: "failure_address_refused",
};

/**
 * @param {import("../modal.js").Modal} modal
 * @param {any} way
 */
export function credentialFields(modal, way) {
  const { words } = modal;
  const wanted = /** @type {any[]} */ (way?.fields ?? []);
  const problems = wanted.map((_, number) => el("p", { class: "problem", id: `problem-${number}`, role: "alert", hidden: true }));
  /** @type {number[]} */
  let refused = [];
  const inputs = wanted.map((field, number) =>
    /** @type {HTMLInputElement} */ (
      el("input", {
        id: `credential-${number}`,
        name: field.name,
        class: "input",
        type: field.isSecret ? "password" : "text",
        autocomplete: "off",
        spellcheck: "false",
        autocapitalize: "off",
        dir: "ltr",
        "data-1p-ignore": true,
        "data-lpignore": "true",
        "aria-required": String(field.isRequired),
        "aria-describedby": `problem-${number}`,
        on: { input: () => clear(number) },
        props: { value: (!field.isSecret && modal.kept[field.name]) || "" },
      })
    ),
  );
  /** @param {number} number @param {string | null} text */
  const show = (number, text) => {
    problems[number].hidden = text === null;
    problems[number].replaceChildren(icon("warning"), el("span", {}, text ?? ""));
    inputs[number].setAttribute("aria-invalid", String(text !== null));
    inputs[number].setAttribute("aria-describedby", `problem-${number}`);
  };
  /** With one of the fields that were refused together, none of them is known to be wrong any more. @param {number} number */
  const clear = (number) => {
    const together = refused.includes(number) ? refused : [number];
    refused = [];
    together.forEach((each) => show(each, null));
  };
  /** @returns {Record<string, string> | null} */
  const read = () => {
    const empty = wanted.flatMap((field, number) => (field.isRequired && !inputs[number].value.trim() ? [number] : []));
    empty.forEach((number) => show(number, words.of("token_empty")));
    if (empty.length > 0) {
      inputs[empty[0]].focus();
      return null;
    }
    return Object.fromEntries(inputs.filter((input) => input.value.trim()).map((input) => [input.name, input.value.trim()]));
  };
  const element = el(
    "div",
    {},
    wanted.map((field, number) =>
      el("div", { class: "field" }, el("label", { for: `credential-${number}` }, labelOf(words, field)), inputs[number], problems[number]),
    ),
  );
  /** What the provider or the API has refused, beside the field that is to be typed again. */
  const showRefusal = () => {
    const { apiCode = "" } = modal.error ?? {};
    if (inputs.length > 0 && apiCode.startsWith("credentials")) {
      const failure = apiCode.replace(/^credentials_/, "");
      refused = refusedFields(wanted, failure, modal.error?.answer?.fields ?? []);
      const [first] = refused;
      const values = {
        domain: modal.flow?.domain ?? "",
        provider: way.provider ?? (modal.providerName || words.of("your_server")),
        value: inputs[first].value,
      };
      const isRead = failure === "credentials_missing" && Boolean(values.value);
      show(first, words.of(isRead ? "value_refused" : (REFUSAL_WORDS[failure] ?? "token_wrong"), values));
      refused.slice(1).forEach((number) => {
        inputs[number].setAttribute("aria-invalid", "true");
        inputs[number].setAttribute("aria-describedby", `problem-${first}`);
      });
      modal.error = null;
      const isTyping = inputs.some((input) => input.matches(":focus") && input.value);
      if (!isTyping) {
        inputs[first].focus();
      }
    }
  };
  return { element, read, showRefusal, isNeeded: wanted.length > 0, first: inputs.find((input) => !input.value) ?? inputs[0] ?? null };
}

/**
 * Which fields were refused: those that the API names; else where the server is, or all that make up a key.
 *
 * @param {any[]} wanted @param {string} failure @param {string[]} named @returns {number[]} one at least
 */
function refusedFields(wanted, failure, named) {
  const isAddress = (/** @type {any} */ { name }) => ADDRESS_FIELDS.includes(name);
  const isOfKey = (/** @type {any} */ field) => field.isRequired && !isAddress(field);
  const numbers = (/** @type {(field: any) => boolean} */ isRefused) => [...wanted.keys()].filter((each) => isRefused(wanted[each]));
  const told = numbers(({ name }) => named.includes(name));
  const guessed = numbers(ADDRESS_FAILURES.includes(failure) ? isAddress : isOfKey);
  return told.length > 0 ? told : guessed.length > 0 ? guessed : [0];
}

/** In the modal's language where it has one; else as the API names it. @param {any} words @param {any} field */
function labelOf(words, field) {
  const key = `credential_${field.name}`;
  return words.has(key) ? words.of(key) : field.label;
}
