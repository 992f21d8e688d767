/**
 * The SDK's public functions.
 *
 * A function that cannot do what it is asked for rejects with a `FrontageError`, and writes its reason to the console.
 */

import { Client, fetchShare } from "./client.js";
import { forApi, LOCALES, readConfiguration } from "./configuration.js";
import { CODES, FrontageError } from "./errors.js";
import { Modal } from "./modal.js";
import { chooseLocale, loadWords } from "./words.js";

export { CODES, FrontageError };

/** @typedef {import("./configuration.js").Configuration} Configuration */
/** @typedef {import("./configuration.js").DnsRecord} DnsRecord */
/** @typedef {import("./configuration.js").Closed} Closed */
/** @typedef {import("./configuration.js").Succeeded} Succeeded */
/** @typedef {import("./configuration.js").StepChanged} StepChanged */

export const VERSION = "1.0.0";

/** Set while the script is being run for the first time; a package has none. */
const SCRIPT = /** @type {HTMLScriptElement | null} */ (globalThis.document?.currentScript ?? null);
const SDK_PATH = /\/sdk\/[^/]+\/frontage\.js$/;
const SHARE_PATH = /^(.*)\/share\/([A-Za-z0-9_-]{16,64})$/;

/** What this page has open, the topmost last, and where it finds the API. */
const page = {
  open: /** @type {Modal[]} */ ([]),
  apiUrl: /** @type {string | null} */ (null),
  hasWarnedOfAlias: false,
};

/**
 * Open the modal.
 *
 * @param {Configuration} configuration
 * @returns {Promise<Closed>}  once the person has closed it
 */
export async function connectDomain(configuration) {
  return logged(() => openModal(configuration, null));
}

/**
 * The old name of `connectDomain`.
 *
 * @deprecated
 * @param {Configuration} configuration
 * @returns {Promise<Closed>}
 */
export async function showFrontage(configuration) {
  if (!page.hasWarnedOfAlias) {
    page.hasWarnedOfAlias = true;
    console.info("Frontage: showFrontage() is deprecated; connectDomain() is the same.");
  }
  return connectDomain(configuration);
}

/**
 * Which provider hosts a domain's DNS, what can be set up there, and what stands in the way.
 *
 * @param {string} domain  without a subdomain
 * @param {Configuration} configuration
 * @returns {Promise<any>}
 */
export async function checkDomain(domain, configuration) {
  return logged(() => check("/checkdomain", domain, configuration));
}

/**
 * For each record of the configuration, whether it is propagated or missing.
 *
 * @param {string} domain
 * @param {Configuration} configuration
 * @returns {Promise<any>}
 */
export async function checkRecords(domain, configuration) {
  return logged(() => check("/checkrecords", domain, configuration));
}

/** Close the modal that lies on top; its close callback is called with the last step. */
export function close() {
  page.open.at(-1)?.close();
}

/**
 * Make the SDK ready. Needed with the package only, where it sets the API's address once for all calls.
 *
 * @param {{apiUrl?: string}} [options]
 * @returns {Promise<void>}
 */
export async function load({ apiUrl } = {}) {
  return logged(async () => {
    if (apiUrl !== undefined) {
      page.apiUrl = withoutSlash(apiUrl);
    }
    if (!("showModal" in (globalThis.HTMLDialogElement?.prototype ?? {}))) {
      throw new FrontageError("not_supported", CODES.not_supported);
    }
  });
}

/**
 * Open the modal with the configuration that a sharing link has saved.
 *
 * @param {string} url
 * @param {Partial<Configuration>} [callbacks]  `getToken`, and those whose names begin with `on`
 * @returns {Promise<Closed>}
 */
export async function loadSharedFlow(url, callbacks = {}) {
  return logged(async () => {
    const [, apiUrl, id] = SHARE_PATH.exec(String(url).split(/[?#]/, 1)[0]) ?? [];
    if (!id) {
      throw new FrontageError("invalid_link", `${url} is not the address of a sharing link`);
    }
    const shared = await fetchShare(apiUrl, id);
    const configuration = {
      ...(shared.config ?? { dnsRecords: shared.dnsRecords }),
      applicationId: shared.applicationId,
      token: shared.token,
      getToken: async () => (await fetchShare(apiUrl, id)).token,
      apiUrl,
      ...callbacks,
    };
    const name = [shared.subdomain, shared.domain].filter(Boolean).join(".");
    return openModal(name ? { ...configuration, prefilledDomain: name } : configuration, id);
  });
}

/** @param {Configuration} given @param {string | null} share */
async function openModal(given, share) {
  await load();
  const configuration = readConfiguration(given, warn);
  if (!configuration.dnsRecords && !configuration.configurationId && !share) {
    throw new FrontageError("invalid_configuration", "dnsRecords: expected the records to set, or a configurationId", { key: "dnsRecords" });
  }
  const apiUrl = apiUrlOf(configuration);
  const locale = configuration.locale ?? chooseLocale([document.documentElement.lang, ...navigator.languages], LOCALES);
  const words = await loadWords(apiUrl, locale, configuration.whiteLabel?.copy ?? {});
  const modal = new Modal(configuration, new Client(apiUrl, configuration), words, { nonce: SCRIPT?.nonce ?? "", share });
  page.open.push(modal);
  try {
    return await modal.run();
  } finally {
    page.open.splice(page.open.indexOf(modal), 1);
  }
}

/** @param {string} path @param {string} domain @param {Configuration} given */
async function check(path, domain, given) {
  const configuration = readConfiguration(given, warn);
  if (typeof domain !== "string" || domain.trim() === "") {
    throw new FrontageError("invalid_domain", "domain: expected a domain, as text", { key: "domain" });
  }
  const client = new Client(apiUrlOf(configuration), configuration);
  return client.post(path, { ...forApi(configuration), domain });
}

/** @param {Configuration} configuration */
function apiUrlOf({ apiUrl }) {
  const found = apiUrl ? withoutSlash(apiUrl) : (page.apiUrl ?? apiUrlOfScript());
  if (found === null) {
    throw new FrontageError("invalid_configuration", "apiUrl: expected the API's address, here or in load()", { key: "apiUrl" });
  }
  return found;
}

/** @returns {string | null} */
function apiUrlOfScript() {
  const [address] = SCRIPT?.src.split(/[?#]/, 1) ?? [""];
  return SDK_PATH.test(address) ? address.replace(SDK_PATH, "") : null;
}

/** @param {string} url */
function withoutSlash(url) {
  return url.replace(/\/+$/, "");
}

/** @param {string} warning */
function warn(warning) {
  console.warn(`Frontage: ${warning}`);
}

/**
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function logged(work) {
  try {
    return await work();
  } catch (error) {
    console.error(error instanceof FrontageError ? described(error) : error);
    throw error;
  }
}

/** @param {FrontageError} error */
function described({ code, message, hint }) {
  return `Frontage: ${code}: ${message}${hint ? ` (${hint})` : ""}`;
}
