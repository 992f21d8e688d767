/** The end: live, with a link that opens; or taken back. */

import { button, el, icon } from "../elements.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function doneStep(modal) {
  const { words, flow } = modal;
  const enrolments = /** @type {any[]} */ (flow?.enrolments ?? []).filter(({ product }) => ["power", "secure"].includes(product));
  const served = enrolments.find(({ status, name }) => status === "success" && name === flow?.host) ?? enrolments.find(({ status }) => status === "success");
  const failed = enrolments.filter(({ status }) => status === "failed");
  const values = { domain: served?.name ?? modal.host };
  const open = served && el(
    "a",
    { class: "button primary", href: served.url ?? `https://${served.name}/`, target: "_blank", rel: "noopener" },
    el("span", {}, words.of("done_open", values)),
    icon("open"),
  );
  const end = button(words.of("done"), () => modal.close(), { kind: open ? "secondary" : "primary" });
  const seal = el("p", { class: "seal" }, icon("check"));
  return {
    title: words.of("done_title", { domain: modal.host }),
    body: [
      el("p", { class: "lead" }, words.of(served ? "done_lead" : "done_lead_plain")),
      ...failed.map((enrolment) =>
        el(
          "div",
          { class: "note warn" },
          icon("warning", "warn"),
          el("p", {}, el("bdi", {}, enrolment.name), `: ${words.of("certificate_failed")}. ${enrolment.hint ?? ""}`),
        ),
      ),
      open && el("p", { class: "field" }, open),
    ],
    seal,
    actions: [
      ...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
      end,
    ],
  };
}

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function undoneStep(modal) {
  const { words } = modal;
  return {
    title: words.of("undone_title"),
    body: [el("p", { class: "lead" }, words.of("undone_lead", { domain: modal.host }))],
    actions: [
      button(words.of("start_again"), () => modal.lookAgain(), { kind: "plain" }),
      button(words.of("done"), () => modal.close(), { kind: "primary" }),
    ],
  };
}
