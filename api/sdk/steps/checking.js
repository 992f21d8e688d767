/** What is being looked at, live; and what to do when the DNS does not answer. */

import { button, details, el, icon } from "../elements.js";

/** The API's names of what it looks at, in its order, each with the key of its words. */
const LOOKS = Object.freeze({ provider: "checking_provider", records: "checking_records", ways: "checking_ways" });

/**
 * @param {import("../modal.js").Modal} modal
 * @returns {import("../modal.js").StepContent}
 */
export function checkingStep(modal) {
  const { words } = modal;
  const list = el("ul", { class: "list" });
  let shown = "";
  const update = () => {
    const steps = modal.flow?.steps ?? {};
    if (shown === (shown = JSON.stringify([steps, modal.providerName]))) {
      return;
    }
    list.replaceChildren(
      ...Object.entries(LOOKS).map(([name, key]) => {
        const isDone = steps[name] === "done";
        const found = name === "provider" && isDone && modal.providerName;
        return el(
          "li",
          { class: "looked" },
          isDone ? icon("check", "good") : icon(steps[name] === "running" ? "wait" : "todo", steps[name] === "running" ? "spin" : "soft"),
          el("div", {}, words.of(key), found && el("p", { class: "small" }, found)),
        );
      }),
    );
  };
  update();
  return {
    title: words.of("checking_title", { domain: modal.host }),
    body: [el("p", { class: "lead" }, words.of("checking_lead")), list],
    update,
  };
}

/**
 * @param {import("../modal.js").Modal} modal
 * @returns {import("../modal.js").StepContent}
 */
export function uncheckedStep(modal) {
  const { words, flow } = modal;
  const isUnregistered = ["not_registered", "nxdomain"].includes(flow?.error?.code);
  const kind = isUnregistered ? "not_registered" : "unchecked";
  const actions = [
    button(words.of("other_domain"), () => modal.show("domain"), { kind: isUnregistered ? "primary" : "plain" }),
    button(words.of("try_again"), () => modal.lookAgain(), { kind: isUnregistered ? "plain" : "primary" }),
  ];
  return {
    title: words.of(`${kind}_title`, { domain: modal.host }),
    body: [
      el("p", { class: "lead" }, words.of(`${kind}_lead`)),
      details(words.of("details"), flow?.error?.message, flow?.error?.hint),
    ],
    actions: isUnregistered ? actions.reverse() : actions,
  };
}
