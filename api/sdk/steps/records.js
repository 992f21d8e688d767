/** Writing the records, and each of them going live as the API sees it. */

import { button, code, details, el, icon } from "../elements.js";
import { noticeOf } from "./notice.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function applyingStep(modal) {
  const { words, flow } = modal;
  const isUndoing = flow?.state === "undoing";
  const list = el("ul", { class: "list" });
  const update = () => {
    list.replaceChildren(...(modal.flow?.written ?? []).map((entry) => writtenItem(entry)));
  };
  update();
  return {
    title: words.of(isUndoing ? "undoing_title" : "applying_title", { domain: modal.host }),
    body: [el("p", { class: "lead" }, words.of("applying_lead")), list],
    update,
  };
}

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function haltedStep(modal) {
  const { words, flow } = modal;
  const written = flow?.written ?? [];
  const hasWritten = written.some((entry) => entry.status === "written");
  const way = flow?.ways?.find((each) => each.way === flow.way);
  const provider = modal.providerName || way?.provider || words.of("your_server");
  const values = { provider, domain: flow?.domain ?? "" };
  const { code: failure, message, hint } = flow?.error ?? {};
  const known = ["wrong_token", "not_allowed"].includes(failure) ? "token_wrong" : `failure_${failure}`;
  return {
    title: words.of(hasWritten ? "halted_title" : "halted_nothing_title"),
    body: [
      el("p", { class: "lead" }, words.of(hasWritten ? "halted_lead" : "halted_nothing", values)),
      el(
        "div",
        { class: "note bad", role: "alert" },
        icon("warning", "bad"),
        el("p", {}, words.of(words.has(known) ? known : "failure_other", values)),
      ),
      details(words.of("details"), message, hint),
      hasWritten && el("ul", { class: "list" }, written.map((entry) => writtenItem(entry))),
    ],
    actions: [
      ...(modal.canUndo && hasWritten ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
      button(words.of("try_again"), () => modal.lookAgain(), { kind: "primary" }),
    ],
  };
}

/** @param {any} entry */
function writtenItem({ name, type, status }) {
  const isDone = ["written", "taken_back"].includes(status);
  const isFailed = status === "not_written";
  return el(
    "li",
    { class: "looked" },
    isDone ? icon("check", "good") : isFailed ? icon("close", "bad") : icon("wait", "spin"),
    el("div", {}, el("span", { class: "type" }, type), " ", el("bdi", {}, name)),
  );
}

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function recordsStep(modal) {
  const { words } = modal;
  const list = el("ul", { class: "list" });
  const look = el("p", { class: "small", role: "status" });
  const other = button(words.of("domain_connect_other"), () => modal.lookAgain(), { kind: "plain" });
  let shown = "";
  const update = () => {
    if (!isHandedOver(modal)) {
      other.remove(); // the records are live
    }
    const { records = [], enrolments = [] } = modal.flow ?? {};
    look.textContent = nextLook(modal);
    if (shown === (shown = JSON.stringify([records, enrolments]))) {
      return;
    }
    list.replaceChildren(
      ...records.map((record) => liveItem(modal, record)),
      ...(enrolments ?? []).filter((/** @type {any} */ each) => ["power", "secure"].includes(each.product)).map((/** @type {any} */ each) => certificateItem(modal, each)),
    );
    const live = records.filter((record) => record.status === "propagated").length;
    modal.announce(words.of("live_of", { live: String(live), all: String(records.length) }));
  };
  update();
  return {
    title: words.of("records_title", { domain: modal.host }),
    body: [
      noticeOf(modal),
      el("p", { class: "lead" }, words.of("records_lead")),
      list,
      el("div", { class: "note" }, icon("wait"), el("div", {}, el("p", {}, words.of("records_close")), look)),
    ],
    actions: [
      ...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
      ...(isHandedOver(modal) ? [other] : []),
    ],
    update,
  };
}

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function timeoutStep(modal) {
  const { words, flow } = modal;
  return {
    title: words.of("timeout_title"),
    body: [
      el("p", { class: "lead" }, words.of("timeout_lead")),
      el("ul", { class: "list" }, (flow?.records ?? []).map((record) => liveItem(modal, record, { isLookedFor: false }))),
    ],
    actions: [
      ...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
      button(words.of("manual_check"), () => modal.act(() => modal.post("check"), () => modal.show(null)), { kind: "primary" }),
    ],
  };
}

/** Whether a provider's page has confirmed the change, and the DNS does not show it yet. @param {Modal} modal */
function isHandedOver({ flow }) {
  return flow?.state === "waiting" && flow.way === "domain_connect";
}

/**
 * A record and whether it is live.
 *
 * @param {Modal} modal
 * @param {any} record
 * @param {{isLookedFor?: boolean}} [now] whether the API still looks for it by itself
 */
export function liveItem({ words, flow }, record, { isLookedFor = true } = {}) {
  const isLive = record.status === "propagated";
  const name = record.host === "@" ? flow?.domain : `${record.host}.${flow?.domain}`;
  return el(
    "li",
    { class: "looked" },
    isLive ? icon("check", "good") : isLookedFor ? icon("wait", "spin") : icon("warning", "warn"),
    el(
      "div",
      {},
      el("span", { class: "type" }, record.type),
      " ",
      el("bdi", {}, name ?? ""),
      el("p", { class: "small" }, code(record.value)),
    ),
    el("span", { class: `state ${isLive ? "good" : "soft"}` }, words.of(isLive || isLookedFor ? `record_${record.status}` : "record_missing")),
  );
}

/** @param {Modal} modal @param {any} enrolment */
export function certificateItem({ words }, { name, status, certificate }) {
  const isFailed = status === "failed" || certificate === "none";
  const isReady = certificate === "live";
  return el(
    "li",
    { class: "looked" },
    isReady ? icon("lock", "good") : isFailed ? icon("warning", "warn") : icon("wait", "spin"),
    el("div", {}, words.of("certificate"), el("p", { class: "small" }, el("bdi", {}, name))),
    el(
      "span",
      { class: `state ${isReady ? "good" : "soft"}` },
      words.of(isReady ? "certificate_ready" : isFailed ? "certificate_failed" : "certificate_pending"),
    ),
  );
}

/** @param {import("../words.js").Words} words @param {string} status @returns {Node[]} */
export function recordState(words, status) {
  return [icon(status === "propagated" ? "check" : "wait"), el("span", {}, words.of(`record_${status}`))];
}

/** When the API looks for the records again. @param {Modal} modal */
export function nextLook({ words, flow }) {
  const at = flow?.propagation?.next_look_at;
  if (!at) {
    return "";
  }
  const seconds = (Date.parse(at) - Date.now()) / 1000;
  return seconds > 1 ? words.of("next_look", { when: words.inTime(seconds) }) : words.of("last_look");
}
