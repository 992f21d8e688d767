/**
 * DOM nodes without HTML text: works under a Content Security Policy with Trusted Types, and nothing is ever parsed.
 */

const SVG = "http://www.w3.org/2000/svg";

/** Paths on a grid of 24, drawn as lines. */
const ICONS = {
  back: "M15 5l-7 7 7 7",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  copy: "M9 9h10v11H9zM5 15V4h10",
  warning: "M12 4L2.5 20h19zM12 10v4.5M12 17.2v.3",
  open: "M13 5h6v6M19 5l-9 9M17 14v5H5V7h5",
  share: "M12 15V4M8 7.5L12 4l4 3.5M5 12v8h14v-8",
  undo: "M9 7H15a4.5 4.5 0 010 9H8M9 7l3-3M9 7l3 3",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 017 0v3",
  arrow: "M5 12h14M13 6l6 6-6 6",
  more: "M9 5l7 7-7 7",
  wait: "M12 3a9 9 0 109 9",
  todo: "M12 5a7 7 0 110 14 7 7 0 010-14",
};

/**
 * @typedef {Node | string | null | undefined | false} Child
 */

/**
 * An element. `props`: `class`, `on` with listeners, `props` with properties; everything else is an attribute, left out
 * where it is null or false.
 *
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function el(tag, { on = {}, props = {}, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const [name, listener] of Object.entries(on)) {
    element.addEventListener(name, listener);
  }
  Object.assign(element, props);
  element.append(.../** @type {(Node | string)[]} */ (children.flat().filter((child) => child || child === "")));
  return element;
}

/**
 * A picture beside words: hidden from screen readers, turned with the direction of writing where it points.
 *
 * @param {keyof typeof ICONS} name
 * @param {string} [className]
 */
export function icon(name, className = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", `icon ${["back", "arrow", "more"].includes(name) ? "points " : ""}${className}`);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * @param {string} text
 * @param {() => void} onClick
 * @param {{kind?: "primary" | "secondary" | "plain", icon?: keyof typeof ICONS, disabled?: boolean}} [options]
 */
export function button(text, onClick, { kind = "secondary", icon: name, disabled = false } = {}) {
  return el(
    "button",
    { type: "button", class: `button ${kind}`, props: { disabled }, on: { click: onClick } },
    name && icon(name),
    el("span", {}, text),
  );
}

/**
 * The button that sends a form which lies elsewhere in the dialog.
 *
 * @param {string} text
 * @param {string} form  its id
 * @param {{icon?: keyof typeof ICONS}} [options]
 */
export function submitButton(text, form, { icon: name } = {}) {
  return el("button", { type: "submit", form, class: "button primary" }, name && icon(name), el("span", {}, text));
}

/** A technical text: shown as it is, from left to right, and selected as a whole. @param {string} text */
export function code(text) {
  return el("code", { dir: "ltr" }, text);
}

/** A link to another site. @param {string} text @param {string} href */
export function externalLink(text, href) {
  return el("a", { href, target: "_blank", rel: "noopener noreferrer", class: "link" }, text, icon("open"));
}

/**
 * What a server or a provider has answered, in its own words: for those who look into it.
 *
 * @param {string} summary
 * @param {...(string | null | undefined)} answers
 * @returns {HTMLElement | null}  null where there is none
 */
export function details(summary, ...answers) {
  const text = answers.filter(Boolean).join(" ");
  return text ? el("details", {}, el("summary", {}, summary), el("p", { class: "small", lang: "en", dir: "auto" }, text)) : null;
}

/**
 * A button that copies `text`, and shows that it has.
 *
 * @param {string} text
 * @param {string} label  for screen readers: what is copied
 * @param {{copy: string, copied: string}} words
 * @param {(message: string) => void} announce
 */
export function copyButton(text, label, words, announce) {
  const face = el("span", { class: "face" }, icon("copy"), el("span", {}, words.copy));
  const copy = async () => {
    const done = await writeClipboard(text, copier);
    if (!done) {
      return;
    }
    face.replaceChildren(icon("check"), el("span", {}, words.copied));
    copier.classList.add("copied");
    announce(words.copied);
    setTimeout(() => {
      face.replaceChildren(icon("copy"), el("span", {}, words.copy));
      copier.classList.remove("copied");
    }, 2500);
  };
  const copier = el("button", { type: "button", class: "copy", "aria-label": `${words.copy}: ${label}`, on: { click: copy } }, face);
  return copier;
}

/**
 * @param {string} text
 * @param {HTMLElement} beside  where a field may stand for the moment: outside of the dialog nothing can be selected
 * @returns {Promise<boolean>}
 */
async function writeClipboard(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "aside", readonly: true, "aria-hidden": "true", tabindex: "-1" }, text);
    beside.after(field);
    /** @type {HTMLTextAreaElement} */ (field).select();
    const done = document.execCommand("copy"); // pages without a secure context have nothing else
    field.remove();
    beside.focus();
    return done;
  }
}
