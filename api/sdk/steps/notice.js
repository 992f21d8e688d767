/** What is to be read above a step, once. */

import { el, icon } from "../elements.js";

/** @param {import("../modal.js").Modal} modal */
export function noticeOf(modal) {
  const { notice } = modal;
  modal.notice = null;
  return notice && el("div", { class: "note warn", role: "alert" }, icon("warning", "warn"), el("p", {}, notice));
}
