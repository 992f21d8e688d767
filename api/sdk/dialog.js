/**
 * The dialog: a `<dialog>` in the top layer, in a shadow root, in an element beside the page's body.
 *
 * Beside the body, because a body that is `display: none`, filtered or inert must not take the dialog with it. Owns the
 * frame (back, brand, progress, close, the announcements for screen readers) and the focus; `modal.js` fills it.
 */

import { el, icon } from "./elements.js";
import { adoptStyle, applyTheme } from "./style.js";

export const STAGES = 4;

/** @typedef {{title: string, body: import("./elements.js").Child[], actions?: HTMLElement[], focus?: HTMLElement | null, seal?: Node}} Content */

export class Dialog {
  #host;
  #dialog;
  #header;
  #main;
  #footer;
  #progress;
  #offline;
  #status;
  #back;
  /** @type {Element | null} */
  #opener = null;
  #words;

  /**
   * @param {import("./words.js").Words} words
   * @param {import("./configuration.js").WhiteLabel & {name?: string}} brand
   * @param {string} nonce
   * @param {{back: () => void, close: () => void, escape: () => void}} on
   */
  constructor(words, brand, nonce, on) {
    this.#words = words;
    this.#host = document.createElement("frontage-connect");
    this.#host.lang = words.locale;
    this.#host.dir = words.direction;
    const root = this.#host.attachShadow({ mode: "open" });
    adoptStyle(root, nonce);
    applyTheme(this.#host, brand.theme ?? {});
    this.#back = el("button", { type: "button", class: "round", "aria-label": words.of("back"), on: { click: on.back } }, icon("back"));
    const close = el("button", { type: "button", class: "round", "aria-label": words.of("close"), on: { click: on.close } }, icon("close"));
    this.#header = el("div", { class: "header" }, this.#back, el("div", { class: "brand" }, brandNodes(brand)), close);
    this.#progress = el("div", { class: "progress", role: "img" });
    this.#offline = el("div", { class: "offline", role: "alert", hidden: true }, icon("warning"), el("span", {}, words.of("offline")));
    this.#main = el("div", { class: "content", role: "group", "aria-labelledby": "title" });
    this.#footer = el("div", { class: "footer" });
    this.#status = el("div", { class: "unseen", role: "status" });
    this.#dialog = /** @type {HTMLDialogElement} */ (
      el("dialog", { "aria-labelledby": "title" }, this.#header, this.#progress, this.#offline, this.#main, this.#footer, this.#status)
    );
    this.#dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      on.escape();
    });
    this.#dialog.addEventListener("close", () => this.#host.isConnected && on.close());
    for (const name of ["keydown", "keyup", "keypress", "wheel", "touchmove"]) {
      this.#dialog.addEventListener(name, (event) => event.stopPropagation(), { passive: true }); // the page's shortcuts
    }
    root.append(this.#dialog);
  }

  open() {
    this.#opener = document.activeElement;
    document.documentElement.append(this.#host);
    this.#dialog.showModal();
  }

  close() {
    this.#dialog.close();
    this.#host.remove();
    if (this.#opener instanceof HTMLElement) {
      this.#opener.focus();
    }
  }

  /**
   * Show a step, and read its title to screen readers. `seal`: a picture above the title.
   *
   * @param {Content} content
   * @param {{stage: number, canGoBack: boolean}} frame
   */
  show({ title, body, actions = [], focus = null, seal }, { stage, canGoBack }) {
    const heading = el("h2", { id: "title", tabindex: "-1" }, breakable(title));
    this.#main.replaceChildren(...(seal ? [seal] : []), heading, .../** @type {(Node | string)[]} */ (body.filter(Boolean)));
    this.#footer.replaceChildren(...actions);
    this.#main.scrollTop = 0;
    const scrolls = this.#main.scrollHeight > this.#main.clientHeight; // then by keyboard as well
    this.#main.tabIndex = scrolls ? 0 : -1;
    this.#back.style.visibility = canGoBack ? "visible" : "hidden";
    this.#progress.setAttribute("aria-label", this.#words.of("progress", { step: String(stage), steps: String(STAGES) }));
    this.#progress.replaceChildren(...Array.from({ length: STAGES }, (_, number) => el("span", { class: number < stage ? "done" : "" })));
    (focus ?? heading).focus();
  }

  /** @param {boolean} isOffline @returns {boolean}  whether that is a change */
  showConnection(isOffline) {
    const isChange = this.#offline.hidden === isOffline;
    this.#offline.hidden = !isOffline;
    return isChange;
  }

  /** While a request runs, what would send another one rests. @param {boolean} isBusy */
  setBusy(isBusy) {
    this.#main.toggleAttribute("aria-busy", isBusy);
    for (const each of this.#dialog.querySelectorAll(".button.primary, .choice")) {
      each.toggleAttribute("data-busy", isBusy);
    }
  }

  /** @param {string} message  read out by screen readers when they are free */
  announce(message) {
    this.#status.textContent = "";
    this.#status.append(message);
  }

  get element() {
    return this.#dialog;
  }
}

/** A name stays in one line where it fits into one; else it breaks at its dots first. @param {string} text */
function breakable(text) {
  return text.split(/(\S+\.\S+)/).map((part, number) => {
    const labels = part.split(/(?<=\.)(?=\S)/);
    return number % 2 ? el("span", { class: "name" }, labels.flatMap((label, place) => (place ? [el("wbr"), label] : [label]))) : part;
  });
}

/** @param {import("./configuration.js").WhiteLabel & {name?: string}} brand */
function brandNodes({ logo, logoDark, name }) {
  if (!logo) {
    return [el("span", {}, name ?? "")];
  }
  const image = el("img", { src: logo, alt: name ?? "" });
  if (!logoDark) {
    return [image];
  }
  const source = el("source", { srcset: logoDark, media: "(prefers-color-scheme: dark)" });
  return [el("picture", {}, source, image)];
}

