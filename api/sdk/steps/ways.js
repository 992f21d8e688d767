/** How the records get into the zone: the choice, the credentials, and the way through a provider's own page. */

import { button, el, externalLink, icon, submitButton } from "../elements.js";
import { changesOf } from "../flow.js";
import { changeCards, noticeOf } from "./changes.js";
import { credentialFields } from "./credentials.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function wayStep(modal) {
  const { words, flow } = modal;
  const ways = flow?.ways ?? [];
  const values = { domain: flow?.domain ?? "", provider: modal.providerName };
  const choices = ways.map((way, number) => {
    const isBest = number === 0 && ways.length > 1;
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: `choice${isBest ? " best" : ""}`, "data-way": way.way, on: { click: () => take(modal, way) } },
        el("b", {}, words.of(`way_${way.way}`, values), isBest && el("span", { class: "tag" }, words.of("way_best"))),
        el("span", { class: "small" }, words.of(`way_${way.way}_text`, values)),
        icon("more"),
      ),
    );
  });
  return {
    title: words.of("way_title"),
    body: [
      noticeOf(modal),
      modal.providerName &&
        el("p", { class: "lead" }, words.nodes("way_lead", { domain: el("bdi", {}, values.domain), provider: el("strong", {}, values.provider) })),
      el("ul", { class: "choices" }, choices),
    ],
    actions: [button(words.of("share"), () => modal.show("share"), { kind: "plain", icon: "share" })],
  };
}

/** @param {Modal} modal @param {any} way */
function take(modal, way) {
  modal.chosenWay = way;
  if (way.way === "manual") {
    modal.apply(way);
  } else {
    modal.show("credentials");
  }
}

/**
 * What will happen on an automatic way, and what it needs.
 *
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function credentialsStep(modal) {
  const { words, flow, chosenWay: way } = modal;
  const values = { domain: flow?.domain ?? "", provider: way.provider ?? modal.providerName };
  const fields = credentialFields(modal, way);
  const isHandedOver = way.way === "domain_connect";
  const start = () => {
    const credentials = fields.read();
    if (credentials === null) {
      return;
    }
    if (isHandedOver) {
      openHandover(modal, modal.apply(way));
    } else {
      modal.apply(way, fields.isNeeded ? credentials : undefined);
    }
  };
  const form = el("form", { id: "credentials", novalidate: true, on: { submit: (/** @type {Event} */ event) => (event.preventDefault(), start()) } }, fields.element);
  return {
    title: words.of(way.way === "provider_api" ? "token_title" : "apply_title", { ...values, domain: modal.host }),
    body: [
      isHandedOver && el("p", { class: "lead" }, words.of("domain_connect_text", values)),
      way.way === "provider_api" && tokenGuide(modal, way, values),
      form,
      fields.isNeeded && el("div", { class: "note" }, icon("lock"), el("p", {}, words.of("token_forgotten"))),
      el("h3", {}, words.of("changes")),
      ...changeCards(modal, changesOf(/** @type {any} */ (flow))),
    ],
    actions: [
      submitButton(words.of(isHandedOver ? "domain_connect_open" : "apply_start", values), "credentials", {
        icon: isHandedOver ? "open" : undefined,
      }),
    ],
    focus: fields.first,
    update: () => {},
  };
}

/** @param {Modal} modal @param {any} way @param {Record<string, string>} values */
function tokenGuide({ words }, way, values) {
  const page = way.tokenUrl && externalLink(new URL(way.tokenUrl).hostname, way.tokenUrl);
  return el(
    "ol",
    { class: "guide" },
    el("li", {}, page ? words.nodes("token_make", { ...values, page }) : words.of("token_make_plain", values)),
    way.leastRight && el("li", {}, words.nodes("token_least", { right: el("strong", {}, way.leastRight) })),
    el("li", {}, words.of("token_paste")),
  );
}

/**
 * The provider's page is open in another window; the API sees in the DNS what was confirmed there.
 *
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function loginStep(modal) {
  const { words, flow } = modal;
  const way = flow?.ways?.find((each) => each.way === "domain_connect");
  const values = { provider: way?.provider ?? modal.providerName };
  const waiting = el("p", {}, words.of("domain_connect_waiting", values));
  const update = () => {
    if (modal.flow?.handover?.returned === "refused" || modal.flow?.handover?.returned === "error") {
      waiting.textContent = words.of("domain_connect_refused", values);
    }
  };
  update();
  return {
    title: words.of("apply_title", { ...values, domain: modal.host }),
    body: [
      el("p", { class: "lead" }, words.of("domain_connect_text", values)),
      el("div", { class: "note", role: "status" }, icon("wait", "spin"), waiting),
    ],
    actions: [
      button(words.of("domain_connect_again", values), () => window.open(modal.flow?.handover?.url, "_blank", "noopener"), { kind: "secondary", icon: "open" }),
    ],
    update,
  };
}

/**
 * The window opens in the click itself, or browsers block it; its address follows.
 *
 * @param {Modal} modal
 * @param {Promise<void>} applied
 */
async function openHandover(modal, applied) {
  const opened = window.open("", "_blank");
  await applied;
  const url = modal.flow?.handover?.url;
  if (opened && url) {
    opened.opener = null;
    opened.location.replace(url);
  } else {
    opened?.close();
    if (url) {
      modal.announce(modal.words.of("domain_connect_blocked"));
    }
  }
}
