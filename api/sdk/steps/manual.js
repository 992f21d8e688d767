/** By hand: a guide, each field to copy, in the provider's own words, and what the API sees of each record, live. */

import { fetchProviders } from "../client.js";
import { button, code, copyButton, el, externalLink, icon } from "../elements.js";
import { changesOf } from "../flow.js";
import { rememberProvider, rememberTicks, rememberedProvider, rememberedTicks } from "../memory.js";
import { providerPicker } from "./provider_picker.js";
import { nextLook, recordState } from "./records.js";

/** @typedef {import("../modal.js").Modal} Modal */

/**
 * @param {Modal} modal
 * @returns {import("../modal.js").StepContent}
 */
export function manualStep(modal) {
  const { words, flow } = modal;
  const way = flow?.ways?.find((each) => each.way === "manual") ?? {};
  const picked = rememberedProvider(flow?.id ?? "");
  const provider = picked?.name ?? modal.providerName;
  const values = { domain: flow?.domain ?? "", provider, application: modal.applicationName };
  const changes = changesOf(/** @type {any} */ (flow));
  const merged = changes.filter(({ action }) => action === "merge");
  const leaving = changes.filter((change) => !merged.includes(change)).flatMap((change) =>
    change.before
      .filter((/** @type {string} */ value) => !change.after.includes(value))
      .map((/** @type {string} */ value) => ({ type: change.type, host: change.host, value })),
  );
  const names = picked ? picked.fieldNames : modal.providerName ? way.fieldNames : {}; // of a provider's own form
  const cards = (flow?.records ?? []).map((record, number) => {
    const change = merged.find(({ host, type }) => host === record.host && type === record.type);
    const form = { number, manual: way.records?.[number], ...record, ...(picked && { formHost: hostAt(picked, record.host, values.domain) }) };
    return recordCard(modal, form, names ?? {}, change && mergedValue(change));
  });
  const look = el("p", { class: "small", role: "status" });
  const update = () => {
    (modal.flow?.records ?? []).forEach((record, number) => cards[number]?.showState(record));
    look.textContent = nextLook(modal);
  };
  update();
  const providers = fetchProviders(modal.client.apiUrl);
  const pick = (/** @type {import("../client.js").ProviderForm} */ chosen) => {
    rememberProvider(flow?.id ?? "", chosen);
    modal.show(null);
  };
  return {
    title: words.of(provider ? "manual_title" : "manual_title_plain", values),
    body: [
      el(
        "ol",
        { class: "guide" },
        el("li", {}, words.of(provider ? "manual_open" : "manual_open_plain", values)),
        leaving.length > 0 && el("li", {}, words.of("manual_remove", { heading: words.of("manual_delete") })),
        el("li", {}, words.of("manual_add")),
      ),
      guides(modal, values, picked, providers),
      providerPicker(words, providers, { isUnknown: !provider, pick }),
      leaving.length > 0 && el("h3", {}, words.of("manual_delete")),
      ...leaving.map((record) => leavingCard(record)),
      el("h3", {}, words.of("manual_records")),
      ...cards.map(({ element }) => element),
      el("div", { class: "note" }, icon("wait"), el("div", {}, el("p", {}, words.of("manual_wait")), look)),
    ],
    actions: [
      button(words.of("share"), () => modal.show("share"), { kind: "plain", icon: "share" }),
      button(words.of("manual_check"), () => modal.act(() => modal.post("check"), () => modal.show(null)), { kind: "primary" }),
    ],
    update,
  };
}

/** A record's host as the provider's form takes it. @param {import("../client.js").ProviderForm} provider @param {string} host @param {string} domain */
function hostAt({ hostStyle }, host, domain) {
  if (hostStyle === "whole") {
    return host === "@" ? domain : `${host}.${domain}`;
  }
  return host === "@" && hostStyle === "blank" ? "" : host;
}

/**
 * Where the provider's console is, and who explains it.
 *
 * @param {Modal} modal
 * @param {Record<string, string>} values
 * @param {import("../client.js").ProviderForm | null} picked
 * @param {Promise<import("../client.js").ProviderForm[]>} providers
 */
function guides(modal, values, picked, providers) {
  const { words, flow } = modal;
  const { manualSetupDocumentation: own } = modal.configuration;
  const ownGuide = own ? externalLink(words.of("manual_partner_help", values), own) : null;
  ownGuide?.addEventListener("click", () => modal.noteGuide(/** @type {string} */ (own)));
  const helpUrl = picked ? picked.helpUrl : flow?.provider?.helpUrl;
  const place = el("p", { class: "small" });
  /** @param {string} [consoleUrl] */
  const show = (consoleUrl) => {
    const console = consoleUrl && externalLink(words.of("manual_console", values), consoleUrl.replace("{domain}", encodeURIComponent(values.domain)));
    const links = [console, helpUrl && externalLink(words.of("manual_help", values), helpUrl), ownGuide].filter(Boolean);
    place.replaceChildren(.../** @type {Node[]} */ (links.flatMap((link, number) => (number ? [" · ", link] : [link]))));
  };
  show(picked?.consoleUrl);
  if (!picked) {
    providers.then((known) => show(known.find(({ id }) => id === flow?.provider?.id)?.consoleUrl));
  }
  return place;
}

/** @param {{type: string, host: string, value: string}} record */
function leavingCard({ type, host, value }) {
  return el(
    "div",
    { class: "card" },
    el("div", { class: "change" }, el("span", { class: "type" }, type), " ", code(host), " ", el("del", { class: "before" }, code(value))),
  );
}

/** What an existing record becomes. @param {{before: string[], after: string[]}} change */
function mergedValue({ before, after }) {
  return after.find((value) => !before.includes(value)) ?? after[0];
}

/**
 * @param {Modal} modal
 * @param {any} record
 * @param {Record<string, string>} names  the provider's own
 * @param {string} [merged]  the value with which the existing record is overwritten
 */
function recordCard(modal, record, names, merged) {
  const { words } = modal;
  const state = el("span", { class: "state" });
  const host = record.formHost ?? record.manual?.host ?? record.host;
  const fields = [
    ["host", host],
    ["value", merged ?? record.manual?.value ?? record.value],
    ["priority", record.priority],
    ["ttl", record.ttl],
  ].filter(([, value]) => value !== undefined && value !== null);
  const rows = fields.map(([name, value]) => {
    const label = names[name] ?? words.of(`field_${name}`);
    const text = String(value);
    const shown = text === "" ? el("span", { class: "soft" }, words.of("field_empty")) : code(text);
    return el(
      "div",
      { class: "row" },
      el("dt", {}, label),
      el("dd", {}, shown, text !== "" && copyButton(text, `${record.type} ${label}`, { copy: words.of("copy"), copied: words.of("copied") }, (message) => modal.announce(message))),
    );
  });
  const element = el(
    "section",
    { class: "card", "aria-label": `${record.type} ${record.host}` },
    el("div", { class: "card-head" }, el("span", { class: "type" }, record.type), el("bdi", {}, nameOf(record, modal.flow?.domain ?? "")), state),
    merged !== undefined && el("div", { class: "change small" }, words.of("manual_merge")),
    el("dl", { class: "rows" }, rows),
    tick(modal, record.number),
  );
  let shown = "";
  return {
    element,
    showState: (/** @type {any} */ current) => {
      if (shown !== (shown = current.status)) {
        state.replaceChildren(...recordState(words, current.status));
        state.className = `state ${current.status === "propagated" ? "good" : "soft"}`;
      }
    },
  };
}

/** The person's own mark of what is typed in at the provider. @param {Modal} modal @param {number} number */
function tick({ words, flow }, number) {
  const ticks = rememberedTicks(flow?.id ?? "");
  const change = () => {
    const now = rememberedTicks(flow?.id ?? "");
    now[box.checked ? "add" : "delete"](number);
    rememberTicks(flow?.id ?? "", now);
  };
  const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", on: { change }, props: { checked: ticks.has(number) } }));
  return el("label", { class: "tick" }, box, el("span", {}, words.of("manual_tick")));
}

/** @param {any} record @param {string} domain */
function nameOf(record, domain) {
  return record.host === "@" ? domain : `${record.host}.${domain}`;
}
