/** A link for the colleague who can change the DNS. */

import { button, copyButton, el, icon } from "../elements.js";

/**
 * @param {import("../modal.js").Modal} modal
 * @returns {import("../modal.js").StepContent}
 */
export function shareStep(modal) {
  const { words } = modal;
  const place = el("div", { class: "field", role: "status" }, icon("wait", "spin"));
  const lead = el("p", { class: "lead" });
  const make = async () => {
    try {
      const { link, expires_at: expiresAt } = /** @type {any} */ (await modal.post("share"));
      modal.noteShared(link);
      const date = words.date(expiresAt, { dateStyle: "long" });
      lead.textContent = words.of("share_lead", { domain: modal.host, date });
      const field = /** @type {HTMLInputElement} */ (
        el("input", { id: "link", class: "input", readonly: true, dir: "ltr", props: { value: link }, on: { focus: () => field.select() } })
      );
      const copy = copyButton(link, words.of("share_label"), { copy: words.of("copy"), copied: words.of("copied") }, (message) => modal.announce(message));
      copy.className = "button primary copy-link";
      place.replaceChildren(el("label", { for: "link" }, words.of("share_label")), field, el("p", { class: "field" }, copy));
    } catch {
      place.replaceChildren(
        el("p", { class: "problem" }, icon("warning"), words.of("share_failed")),
        button(words.of("try_again"), make),
      );
    }
  };
  make();
  return {
    title: words.of("share_title"),
    body: [lead, place],
    actions: [button(words.of("back"), () => modal.back())],
  };
}
