/** By hand at a provider that we do not know, or that is another one: the person picks it from those that are known. */

import { el, icon } from "../elements.js";

const MOST_SHOWN = 5;

/** @typedef {import("../client.js").ProviderForm} ProviderForm */

/**
 * A field that finds providers by their name.
 *
 * @param {import("../words.js").Words} words
 * @param {Promise<ProviderForm[]>} providers
 * @param {{isUnknown: boolean, pick: (provider: ProviderForm) => void}} given  `isUnknown`: it stands open
 * @returns {HTMLElement}
 */
export function providerPicker(words, providers, { isUnknown, pick }) {
  /** @type {ProviderForm[]} */
  let found = [];
  const list = el("ul", { class: "choices" });
  const none = el("p", { class: "small", role: "status" });
  const search = async () => {
    const text = input.value.trim().toLowerCase();
    found = text ? findProviders(await providers, text) : [];
    list.replaceChildren(...found.map((provider) => el("li", {}, choice(provider, pick))));
    none.textContent = text && found.length === 0 ? words.of("provider_none") : "";
  };
  const pickFirst = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (found[0]) {
      pick(found[0]);
    }
  };
  const input = /** @type {HTMLInputElement} */ (
    el("input", { id: "provider", class: "input", type: "search", autocomplete: "off", spellcheck: "false", on: { input: search } })
  );
  const form = el("form", { class: "field", novalidate: true, on: { submit: pickFirst } }, el("label", { for: "provider" }, words.of("provider_label")), input, none, list);
  return isUnknown ? form : el("details", {}, el("summary", {}, words.of("provider_other")), form);
}

/** @param {ProviderForm} provider @param {(provider: ProviderForm) => void} pick */
function choice(provider, pick) {
  return el("button", { type: "button", class: "choice", on: { click: () => pick(provider) } }, el("bdi", {}, provider.name), icon("more"));
}

/** Those whose name begins so first. @param {ProviderForm[]} providers @param {string} text  in lower case */
function findProviders(providers, text) {
  const places = providers.map((provider) => ({ provider, place: provider.name.toLowerCase().indexOf(text) }));
  const fitting = places.filter(({ place }) => place >= 0).sort((one, other) => Number(one.place > 0) - Number(other.place > 0));
  return fitting.slice(0, MOST_SHOWN).map(({ provider }) => provider);
}
