/** How the records get into the zone: the choice, the credentials, and the way through a provider's own page. */

import { button, details, el, externalLink, icon, submitButton } from "../elements.js";
import { changesExisting, changesOf } from "../flow.js";
import { changeCards } from "./changes.js";
import { noticeOf } from "./notice.js";
import { preparationOffer } from "./prepare.js";
import { credentialFields } from "./credentials.js";
import { liveItem } from "./records.js";

/** @typedef {import("../modal.js").Modal} Modal */
/** @typedef {import("../modal.js").StepContent} StepContent */

const TITLES = Object.freeze({
  domain_connect: "apply_title",
  provider_api: "token_title",
  dynamic_update: "way_dynamic_update",
});

/**
 * @param {Modal} modal
 * @returns {StepContent}
 */
export function wayStep(modal) {
  const { words, flow } = modal;
  const ways = flow?.ways ?? [];
  const manual = ways.find(({ way }) => way === "manual");
  if (flow?.plan?.isEmpty && manual) {
    return {
      title: words.of("way_empty"),
      body: [
        el("p", { class: "lead" }, words.of("way_empty_lead", { domain: modal.host })),
        el("ul", { class: "list" }, flow.records.map((record) => liveItem(modal, record))),
      ],
      actions: [button(words.of("continue"), () => modal.apply(manual), { kind: "primary" })],
    };
  }
  const values = { domain: flow?.domain ?? "", provider: modal.providerName };
  const best = ways.find((way) => !way.isExpert);
  const choice = (/** @type {any} */ way) => {
    const isBest = way === best && ways.length > 1;
    const names = { ...values, provider: providerOf(modal, way) };
    return el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: `choice${isBest ? " best" : ""}`, "data-way": way.way, on: { click: () => take(modal, way) } },
        el("b", {}, words.of(`way_${way.way}`, names), isBest && el("span", { class: "tag" }, words.of("way_best"))),
        el("span", { class: "small" }, words.of(`way_${way.way}_text`, names)),
        icon("more"),
      ),
    );
  };
  const experts = ways.filter((way) => way.isExpert);
  return {
    title: words.of("way_title"),
    body: [
      noticeOf(modal),
      modal.providerName &&
        el("p", { class: "lead" }, words.nodes("way_lead", { domain: el("bdi", {}, values.domain), provider: el("strong", {}, values.provider) })),
      preparationOffer(modal, { isNeeded: true }),
      el("ul", { class: "choices" }, ways.filter((way) => !way.isExpert).map(choice)),
      experts.length > 0 &&
        el("details", {}, el("summary", {}, words.of("way_experts")), el("ul", { class: "choices" }, experts.map(choice))),
    ],
    actions: [button(words.of("share"), () => modal.show("share"), { kind: "plain", icon: "share" })],
  };
}

/** The name of the provider, else of its interface. @param {Modal} modal @param {any} way @returns {string} */
function providerOf(modal, way) {
  return way.provider ?? (modal.providerName || way.api || "DNS");
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
  const values = { domain: flow?.domain ?? "", provider: providerOf(modal, way) };
  const fields = credentialFields(modal, way);
  const isHandedOver = way.way === "domain_connect";
  const start = () => {
    const credentials = fields.read();
    if (credentials === null) {
      return;
    }
    if (isHandedOver) {
      openHandover(modal, way, modal.apply(way));
    } else {
      modal.apply(way, fields.isNeeded ? credentials : undefined);
    }
  };
  const form = el("form", { id: "credentials", novalidate: true, on: { submit: (/** @type {Event} */ event) => (event.preventDefault(), start()) } }, fields.element);
  return {
    title: words.of(TITLES[/** @type {keyof typeof TITLES} */ (way.way)], { ...values, domain: modal.host }),
    body: [
      isHandedOver && el("p", { class: "lead" }, words.of("domain_connect_text", values)),
      way.way === "provider_api" && tokenGuide(modal, way, values),
      form,
      fields.isNeeded && el("div", { class: "note" }, icon("lock"), el("p", {}, words.of("token_forgotten"))),
      el("h3", {}, words.of("changes")),
      ...changeCards(modal, changesOf(/** @type {any} */ (flow))),
      isHandedOver &&
        changesExisting(/** @type {any} */ (flow)) &&
        el("div", { class: "note" }, icon("undo"), el("p", {}, words.of("domain_connect_undo", values))),
    ],
    actions: [
      submitButton(words.of(isHandedOver ? "domain_connect_open" : "apply_start", values), "credentials", {
        icon: isHandedOver ? "open" : undefined,
      }),
    ],
    focus: fields.first,
    update: fields.showRefusal,
  };
}

/** @param {Modal} modal @param {any} way @param {Record<string, string>} values */
function tokenGuide({ words }, way, values) {
  const page = way.tokenUrl && externalLink(new URL(way.tokenUrl).hostname, way.tokenUrl);
  const least = way.leastRight && el("strong", {}, way.leastRight.replace(/\.$/, ""));
  const source = way.isOwnServer ? "token_own_server" : "token_make";
  return el(
    "ol",
    { class: "guide" },
    el("li", {}, page ? words.nodes(source, { ...values, page }) : words.of("token_make_plain", values)),
    least && !way.isOwnServer && el("li", {}, words.nodes("token_least", { right: least })),
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
  const values = { provider: providerOf(modal, way ?? {}) };
  const waiting = el("p", {});
  const note = el("div", { class: "note", role: "status" });
  const reason = el("div", {});
  let shown = "";
  const again = el(
    "a",
    { class: "button secondary", target: "_blank", rel: "noopener noreferrer" },
    el("span", {}, words.of("domain_connect_again", values)),
    icon("open"),
  );
  const update = () => {
    const { url, returned, description } = modal.flow?.handover ?? {};
    const key = returned ? "refused" : modal.isWindowBlocked ? "blocked" : modal.isWindowClosed ? "closed" : "waiting";
    waiting.textContent = words.of(`domain_connect_${key}`, values);
    note.replaceChildren(returned ? icon("warning", "warn") : icon("wait", "spin"), el("div", {}, waiting));
    if (shown !== (shown = description ?? "")) {
      reason.replaceChildren(details(words.of("details"), description) ?? ""); // what is open stays so while it is the same
    }
    if (url) {
      again.setAttribute("href", url);
    }
  };
  update();
  return {
    title: words.of("apply_title", { ...values, domain: modal.host }),
    body: [
      el("p", { class: "lead" }, words.of("domain_connect_text", values)),
      note,
      reason,
    ],
    actions: [button(words.of("domain_connect_other"), () => modal.lookAgain(), { kind: "plain" }), again],
    update,
  };
}

/**
 * The window opens in the click itself, or browsers block it; its address follows.
 *
 * @param {Modal} modal
 * @param {any} way
 * @param {Promise<void>} applied
 */
async function openHandover(modal, way, applied) {
  const opened = window.open("", "_blank", windowFeatures(way));
  modal.isWindowBlocked = !opened;
  modal.isWindowClosed = false;
  await applied;
  const url = modal.flow?.handover?.url;
  if (opened && url) {
    opened.opener = null;
    opened.location.replace(url);
    modal.watchWindow(opened);
  } else {
    opened?.close();
  }
}

/** Of the size that the provider's page wants, in the middle of this window. @param {any} way */
function windowFeatures({ width = 750, height = 750 }) {
  const left = Math.max(0, Math.round(window.screenX + (window.outerWidth - width) / 2));
  const top = Math.max(0, Math.round(window.screenY + (window.outerHeight - height) / 2));
  return `popup,width=${width},height=${height},left=${left},top=${top}`;
}
