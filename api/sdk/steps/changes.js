/** The plan, with before and after: to agree to it, to look at it again, and to take it back. */

import { button, code, el, externalLink, icon, submitButton } from "../elements.js";
import { changesOf } from "../flow.js";
import { credentialFields } from "./credentials.js";
import { noticeOf } from "./notice.js";
import { preparationOffer } from "./prepare.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function conflictsStep(modal) {
  const { words } = modal;
  return {
    title: words.of("conflicts_title", { domain: modal.host }),
    body: [
      noticeOf(modal),
      el("p", { class: "lead" }, words.of("conflicts_lead", { application: modal.applicationName })),
      preparationOffer(modal),
      ...changeCards(modal, changesOf(/** @type {any} */ (modal.flow))),
      !["manual", "domain_connect"].includes(modal.flow?.ways?.find((way) => !way.isExpert)?.way) &&
        el("div", { class: "note" }, icon("undo"), el("p", {}, words.of("conflicts_undo"))),
    ],
    actions: [button(words.of("conflicts_agree"), () => modal.show("way"), { kind: "primary" })],
  };
}

/**
 * What the flow has done, for the way back from the later steps.
 *
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function reviewStep(modal) {
  const { words } = modal;
  return {
    title: words.of(modal.flow?.written ? "changed" : "changes"),
    body: changeCards(modal, changesOf(/** @type {any} */ (modal.flow))),
    actions: [
      ...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
      button(words.of("continue"), () => modal.show(null), { kind: "primary" }),
    ],
  };
}

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function undoStep(modal) {
  return modal.isUndoneAtProvider ? undoAtProvider(modal) : undoHere(modal);
}

/**
 * What a Domain Connect provider has changed: what was there before, and where it can be set back.
 *
 * @param {Modal} modal
 * @returns {StepContent}
 */
function undoAtProvider(modal) {
  const { words, flow } = modal;
  const way = flow?.ways?.find((each) => each.way === "domain_connect");
  const values = { domain: modal.host, provider: way?.provider ?? modal.providerName };
  const before = changesOf(/** @type {any} */ (flow)).map((change) => ({ ...change, status: "written" }));
  return {
    title: words.of("undo_title", values),
    body: [
      el("p", { class: "lead" }, words.of("domain_connect_undo_lead", values)),
      way?.controlPanelUrl && el("p", {}, externalLink(words.of("domain_connect_open", values), way.controlPanelUrl)),
      ...changeCards(modal, takenBack(before)),
    ],
    actions: [button(words.of("back"), () => modal.back(), { kind: "primary" })],
  };
}

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
function undoHere(modal) {
  const { words, flow } = modal;
  const answer = modal.error?.answer;
  const isChanged = modal.error?.apiCode === "written_changed";
  const way = flow?.ways?.find((each) => each.way === flow.way);
  const fields = credentialFields(modal, way);
  const values = { domain: modal.host, application: modal.applicationName };
  const start = (/** @type {Event} */ event) => {
    event.preventDefault();
    const credentials = fields.read();
    if (credentials) {
      modal.undo({ ...(fields.isNeeded && { credentials }), ...(isChanged && { digest: answer.digest }) });
    }
  };
  return {
    title: words.of("undo_title", values),
    body: [
      isChanged && el("div", { class: "note warn" }, icon("warning", "warn"), el("p", {}, words.of("undo_changed"))),
      el("p", { class: "lead" }, words.of("undo_lead", values)),
      ...changeCards(modal, takenBack(flow?.written ?? [])),
      el("form", { id: "undo-form", novalidate: true, on: { submit: start } }, fields.element),
    ],
    actions: [
      button(words.of("undo_keep"), () => modal.back(), { kind: "plain" }),
      submitButton(words.of("undo_start"), "undo-form"),
    ],
  };
}

/**
 * One card for each name: what is there now, and what will be.
 *
 * @param {Modal} modal
 * @param {any[]} changes
 * @returns {HTMLElement[]}
 */
export function changeCards({ words }, changes) {
  /** @type {Map<string, any[]>} */
  const byName = new Map();
  for (const change of changes) {
    byName.set(change.name, [...(byName.get(change.name) ?? []), change]);
  }
  return [...byName].map(([name, ofName]) =>
    el(
      "section",
      { class: "card" },
      el("div", { class: "card-head" }, el("b", {}, el("bdi", {}, name))),
      ofName.map((change) => {
        const action = change.action === "replace" && change.before.length === 0 ? "add" : change.action === "replace" && change.after.length === 0 ? "remove" : change.action;
        return el(
          "div",
          { class: "change" },
          el("p", {}, el("span", { class: "type" }, change.type), el("span", { class: "tag" }, words.of(`action_${action}`))),
          el(
            "dl",
            { class: "sides" },
            change.before.length > 0 && side(words.of("now"), change.before, change.action === "merge" ? change.before : change.after),
            change.after.length > 0 && side(words.of("then"), change.after, change.after, change.action === "merge" ? change.before : []),
          ),
        );
      }),
    ),
  );
}

/**
 * @param {string} label
 * @param {string[]} values
 * @param {string[]} [kept]  what is there afterwards too
 * @param {string[]} [merged]  what the values were merged from: words that none of it has are marked
 */
function side(label, values, kept = values, merged = []) {
  const known = merged.flatMap((text) => text.split(" "));
  /** @param {string} value */
  const shown = (value) => {
    const text = code(value);
    if (merged.length > 0) {
      text.replaceChildren(...value.split(/( )/).map((part) => (part === " " || known.includes(part) ? part : el("ins", {}, part))));
    }
    return text;
  };
  return [
    el("dt", {}, label),
    el("dd", {}, values.map((value) => el("div", { class: kept.includes(value) ? "" : "before" }, kept.includes(value) ? shown(value) : el("del", {}, code(value))))),
  ];
}

/** @param {any[]} written @returns {any[]} */
function takenBack(written) {
  return written
    .filter((entry) => entry.status === "written" || entry.status === "writing")
    .map((entry) => ({ ...entry, action: "replace", before: entry.after, after: entry.before }));
}
