/** The end: live, with a link that opens once the certificate is there; or taken back. */

import { button, details, el, icon } from "../elements.js";
import { servedNames } from "../flow.js";
import { certificateItem } from "./records.js";
import { REFUSALS } from "./error.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function doneStep(modal) {
  const { words, flow } = modal;
  const failed = /** @type {any[]} */ (flow?.enrolments ?? []).filter(({ product, status }) => product !== "monitor" && status === "failed");
  const lead = el("p", { class: "lead" });
  const place = el("div", {});
  const wait = el("p", { class: "small", hidden: true }, words.of("records_close"));
  const end = button(words.of("done"), () => modal.close());
  let shown = "";
  const update = () => {
    const served = servedNames(modal.flow);
    if (shown === (shown = JSON.stringify(served))) {
      return;
    }
    const ready = served.filter(({ certificate }) => certificate === "live");
    const isReady = served.length > 0 && ready.length === served.length;
    lead.textContent = words.of(isReady ? "done_lead" : "done_lead_plain");
    place.replaceChildren(
      ...(isReady ? [] : [el("ul", { class: "list" }, served.map((each) => certificateItem(modal, each)))]),
      ...(isReady ? [openLink(modal, ready.find(({ name }) => name === modal.flow?.host) ?? ready[0])] : []),
    );
    wait.hidden = isReady || served.length === 0;
    end.className = `button ${isReady ? "secondary" : "primary"}`;
    modal.announce(isReady ? words.of("done_lead") : "");
  };
  update();
  return {
    title: words.of("done_title", { domain: modal.host }),
    body: [
      lead,
      ...failed.map((enrolment) =>
        el(
          "div",
          { class: "note warn" },
          icon("warning", "warn"),
          el(
            "div",
            {},
            el("p", {}, el("bdi", {}, enrolment.name), `: ${reasonOf(modal, enrolment)}`),
            details(words.of("details"), enrolment.hint),
          ),
        ),
      ),
      place,
      wait,
    ],
    seal: el("p", { class: "seal" }, icon("check")),
    actions: [
      ...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
      end,
    ],
    update,
  };
}

/** Why a name was not enrolled. @param {Modal} modal @param {any} enrolment */
function reasonOf({ words, applicationName }, { code }) {
  const key = code === "already_enrolled" ? "done_enrolled" : REFUSALS[code];
  return words.of(key ?? "done_failed", { application: applicationName });
}

/** To a name that opens over HTTPS. @param {Modal} modal @param {any} enrolment */
function openLink({ words }, { name, url }) {
  return el(
    "p",
    { class: "field" },
    el(
      "a",
      { class: "button primary", href: url ?? `https://${name}/`, target: "_blank", rel: "noopener" },
      el("span", {}, words.of("done_open", { domain: name })),
      icon("open"),
    ),
  );
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
