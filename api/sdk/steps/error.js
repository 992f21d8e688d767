/** A request that failed for no reason that its step knows. */

import { button, details, el, icon } from "../elements.js";

const FAILURES = Object.freeze({
  token_refused: "error_token",
  get_token_failed: "error_token",
  unreachable: "error_unreachable",
  too_many_requests: "error_busy",
  forbidden: "error_forbidden",
});

/** By the API's code, which says more than the status. @type {Readonly<Record<string, string>>} */
export const REFUSALS = Object.freeze({
  outside_configuration: "error_configuration",
  configuration: "error_configuration",
  configuration_not_found: "error_configuration",
  scope: "error_configuration",
  domain: "error_domain",
  link: "error_ended",
  link_ended: "error_ended",
  link_not_found: "error_ended",
  link_revoked: "error_ended",
  configuration_removed: "error_ended",
  key_revoked: "error_ended",
  secret_ended: "error_ended",
});

/**
 * @param {import("../modal.js").Modal} modal
 * @returns {import("../modal.js").StepContent}
 */
export function errorStep(modal) {
  const { words, error } = modal;
  const key = REFUSALS[error?.apiCode ?? ""] ?? FAILURES[/** @type {keyof typeof FAILURES} */ (error?.code)] ?? "error_other";
  return {
    title: words.of("error_title"),
    body: [
      el(
        "div",
        { class: "note bad", role: "alert" },
        icon("warning", "bad"),
        el("p", {}, words.of(key, { application: modal.applicationName })),
      ),
      details(words.of("details"), error?.message, error?.hint),
      error?.requestId && el("p", { class: "small field" }, words.nodes("error_number", { id: el("code", {}, error.requestId) })),
    ],
    actions: [
      button(words.of("close"), () => modal.close(), { kind: "plain" }),
      button(words.of("try_again"), () => modal.retry(), { kind: "primary" }),
    ],
  };
}
