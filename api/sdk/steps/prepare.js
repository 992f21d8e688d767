/** One record first, and once all is ready here, the others: so a site that is up stays up, and a wildcard is possible. */

import { reconnectPause } from "../client.js";
import { button, code, copyButton, el, icon } from "../elements.js";
import { certificateItem, recordState } from "./records.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {{isOffered: boolean, isNeeded: boolean, domains: any[]}} Preparation */

/** @param {Modal} modal @returns {Promise<Preparation | null>} null while it cannot be asked */
async function askPreparation(modal) {
  const found = await modal.client.get(`/connect/flows/${modal.flow?.id}/prepare`).catch(() => null);
  return Array.isArray(found?.domains) ? found : null;
}

/** @param {Preparation} preparation */
function isPrepared({ domains }) {
  return domains.length > 0 && domains.every(({ state }) => ["prepared", "active"].includes(state));
}

/**
 * A place for the offer, which stays empty where there is none.
 *
 * @param {Modal} modal
 * @param {{isNeeded?: boolean}} [only]  `isNeeded`: no more than what cannot be left out
 */
export function preparationOffer(modal, { isNeeded = false } = {}) {
  const { words } = modal;
  const place = el("div", { class: "field" });
  const values = { domain: modal.host };
  const show = (/** @type {Preparation} */ found) => {
    const ready = isPrepared(found);
    place.replaceChildren(
      el(
        "div",
        { class: `note ${ready ? "good" : ""}` },
        icon(ready ? "check" : "lock", ready ? "good" : ""),
        el(
          "div",
          {},
          el("p", {}, el("b", {}, words.of(ready ? "prepare_ready_title" : found.isNeeded ? "prepare_needed" : "prepare_offer", values))),
          el("p", {}, words.of(ready ? "prepare_ready" : found.isNeeded ? "prepare_needed_text" : "prepare_offer_text", values)),
          !ready && button(words.of("prepare_start"), () => modal.show("prepare")),
        ),
      ),
    );
  };
  askPreparation(modal).then((found) => found && (found.isNeeded || !isNeeded) && (found.isOffered || isPrepared(found)) && show(found));
  return place;
}

/**
 * @param {Modal} modal
 * @returns {import("../modal.js").StepContent}
 */
export function prepareStep(modal) {
  const { words } = modal;
  const values = { domain: modal.host, application: modal.applicationName };
  const cards = el("div", { class: "field" }, icon("wait", "spin"));
  const list = el("ul", { class: "list" });
  const state = el("div", { class: "note", role: "status" }, icon("wait"), el("p", {}, words.of("prepare_wait")));
  const goOn = button(words.of("continue"), () => modal.show(null), { kind: "primary", disabled: true });
  let shown = "";
  const show = (/** @type {Preparation} */ found) => {
    if (shown === (shown = JSON.stringify(found.domains))) {
      return;
    }
    cards.replaceChildren(...found.domains.filter(({ record }) => record).map((each) => firstRecordCard(modal, each.record)));
    list.replaceChildren(...found.domains.filter(({ state }) => state !== "waiting").map((each) => certificateItem(modal, certificateOf(each))));
    const isRefused = found.domains.some(({ reason }) => reason);
    const ready = isPrepared(found);
    const text = words.of(ready ? "prepare_ready" : isRefused ? "prepare_refused" : "prepare_wait", values);
    state.className = `note ${ready ? "good" : isRefused ? "warn" : ""}`;
    state.replaceChildren(icon(ready ? "check" : isRefused ? "warning" : "wait", ready ? "good" : ""), el("p", {}, text));
    /** @type {HTMLButtonElement} */ (goOn).disabled = !ready;
  };
  const follow = async () => {
    try {
      show(/** @type {any} */ (await modal.post("prepare")));
    } catch (error) {
      const known = await askPreparation(modal); // it is prepared already, or the flow has moved on
      if (!known?.domains.length) {
        state.className = "note warn";
        state.replaceChildren(icon("warning", "warn"), el("p", {}, words.of("prepare_refused", values)));
        cards.replaceChildren();
        return;
      }
    }
    const { signal } = new AbortController();
    for (let looks = 2; cards.isConnected && goOn.hasAttribute("disabled"); looks++) {
      const found = await askPreparation(modal);
      if (found) {
        show(found);
      }
      await reconnectPause(Math.min(looks, 4), signal);
    }
  };
  queueMicrotask(follow);
  return {
    title: words.of("prepare_title", values),
    body: [el("p", { class: "lead" }, words.of("prepare_lead", values)), cards, list, state],
    actions: [button(words.of("prepare_skip"), () => modal.show(null), { kind: "plain" }), goOn],
  };
}

/** @param {any} prepared */
function certificateOf({ domain, state, reason }) {
  return { name: domain, status: reason ? "failed" : "success", certificate: ["prepared", "active"].includes(state) ? "live" : "ordering" };
}

/** @param {Modal} modal @param {any} record */
function firstRecordCard(modal, { type, host, value, state }) {
  const { words, flow } = modal;
  const relative = host.endsWith(`.${flow?.domain}`) ? host.slice(0, -1 - (flow?.domain ?? "").length) : host;
  const isFound = state === "found";
  const row = (/** @type {string} */ label, /** @type {string} */ text) =>
    el(
      "div",
      { class: "row" },
      el("dt", {}, label),
      el("dd", {}, code(text), copyButton(text, `${type} ${label}`, { copy: words.of("copy"), copied: words.of("copied") }, (message) => modal.announce(message))),
    );
  return el(
    "section",
    { class: "card", "aria-label": `${type} ${relative}` },
    el(
      "div",
      { class: "card-head" },
      el("span", { class: "type" }, type),
      el("bdi", {}, host),
      el("span", { class: `state ${isFound ? "good" : "soft"}` }, ...recordState(words, isFound ? "propagated" : "missing")),
    ),
    el("dl", { class: "rows" }, row(words.of("field_host"), relative), row(words.of("field_value"), value)),
  );
}
