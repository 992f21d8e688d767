/**
 * The configuration object: its keys, and what each may be.
 *
 * Rules
 *   null is the same as absent
 *   an unknown key warns in the console and is ignored; a key with a wrong value is an error that names what was expected
 *   keys for the browser only (`BROWSER_KEYS`) never reach the API
 */

import { FrontageError } from "./errors.js";

export const LOCALES = Object.freeze(["en", "es", "pt", "fr", "it", "de", "nl", "pl", "tr", "ja", "pt-BR", "ar"]);
export const RECORD_TYPES = Object.freeze(["A", "AAAA", "CNAME", "MX", "TXT", "NS", "SOA", "SRV", "PTR", "CAA"]);

/**
 * @typedef {object} DnsRecord
 * @property {"A" | "AAAA" | "CNAME" | "MX" | "TXT" | "NS" | "SOA" | "SRV" | "PTR" | "CAA"} type
 * @property {string} host  `@` for the root; placeholders are replaced
 * @property {string} value  placeholders are replaced
 * @property {number | string} ttl  seconds
 * @property {string | number} [priority]  of an MX record
 * @property {boolean} [ssl]  enrols the name in Secure
 * @property {string} [applicationUrl]
 * @property {string} [redirectTo]
 * @property {string[]} [powerRootPathAccess]
 * @property {boolean} [monitor]
 */

/**
 * @typedef {object} WhiteLabel
 * @property {string} [logo]  URL of an image, shown at most 28 pixels high
 * @property {string} [logoDark]  the same for a dark background
 * @property {{accent?: string, accentDark?: string, colorScheme?: "light" | "dark" | "auto"}} [theme]
 *   colours as `#rrggbb`; the text on them is chosen for contrast
 * @property {Record<string, string>} [copy]  texts in place of the SDK's own, by their key
 */

/**
 * @typedef {object} Closed
 * @property {string | null} domain
 * @property {boolean} success
 * @property {"automatic" | "manual" | null} setupType
 * @property {string | null} provider
 * @property {LastStatus} lastStatus
 * @property {{code: string, message: string}} [error]
 */

/** @typedef {"FINISHED_SUCCESSFULLY" | "IN_PROGRESS" | "EXISTING_RECORDS" | "LOGIN" | "MANUAL_CONFIGURATION" | "UNDONE" | "EXIT_WITH_ERROR"} LastStatus */

/**
 * @typedef {object} Succeeded
 * @property {string} domain
 * @property {"automatic" | "manual" | null} setupType
 * @property {string | null} provider
 * @property {string} jobId
 */

/**
 * @typedef {object} StepChanged
 * @property {string} step
 * @property {string | null} domain
 * @property {string | null} provider
 */

/**
 * @typedef {object} Configuration
 * @property {string} applicationId
 * @property {string} [token]  a JWT; one with the scope `connect` is enough
 * @property {() => string | Promise<string>} [getToken]  called when there is no token, and before one expires
 * @property {string} [configurationId]  a configuration that your server has registered: its records need no repeating
 * @property {DnsRecord[] | {domain?: DnsRecord[], subDomain?: DnsRecord[]}} [dnsRecords]
 * @property {string | string[]} [prefilledDomain]  several: the person chooses one
 * @property {boolean} [power]
 * @property {boolean} [monitor]
 * @property {boolean} [checkConflicts]
 * @property {boolean} [hostRequired]
 * @property {string} [defaultSubdomain]
 * @property {boolean} [supportForSubdomains]
 * @property {boolean} [forceSubdomain]
 * @property {boolean} [forceManualSetup]
 * @property {string} [manualSetupDocumentation]  URL of your own guide, shown with the manual records
 * @property {boolean} [wwwRedirect]
 * @property {boolean} [secureRootDomain]
 * @property {string} [userId]
 * @property {string} [applicationName]
 * @property {"en" | "es" | "pt" | "fr" | "it" | "de" | "nl" | "pl" | "tr" | "ja" | "pt-BR" | "ar"} [locale]
 * @property {WhiteLabel} [whiteLabel]
 * @property {string} [apiUrl]  where the API is; the script knows it from its own address
 * @property {(detail: Closed) => void} [onFrontageClose]
 * @property {(detail: Succeeded) => void} [onSuccess]
 * @property {(detail: StepChanged) => void} [onFrontageStepChange]
 * @property {(detail: StepChanged) => boolean | void} [onRequestClose]  before the person closes the modal; false keeps it
 *   open
 * @property {(detail: {domain: string | null, link: string}) => void} [onSharedFlowSent]  a sharing link was made
 * @property {(detail: {domain: string | null, provider: string | null, url: string}) => void}
 *   [onManualSetupDocumentationClick]
 */

const COLOUR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;

/** @typedef {[expected: string, fits: (value: any) => boolean]} Rule */

/** @type {Rule} */
const TEXT = ["a text", (value) => typeof value === "string" && value.trim() !== ""];
/** @type {Rule} */
const SWITCH = ["true or false", (value) => typeof value === "boolean"];
/** @type {Rule} */
const FUNCTION = ["a function", (value) => typeof value === "function"];
/** @type {Rule} */
const WEB_URL = ["an http or https URL", isWebUrl];
/** @type {Rule} */
const COLOUR_TEXT = ["a colour as #rrggbb", (value) => typeof value === "string" && COLOUR.test(value)];

/** @type {Readonly<Record<string, Rule>>} */
export const KEYS = Object.freeze({
  applicationId: TEXT,
  token: TEXT,
  getToken: FUNCTION,
  configurationId: TEXT,
  dnsRecords: ["an array of records, or an object with the arrays domain and subDomain", isRecords],
  prefilledDomain: ["a domain, or an array of domains", (value) => isListOf(TEXT[1])(value) || TEXT[1](value)],
  power: SWITCH,
  monitor: SWITCH,
  checkConflicts: SWITCH,
  hostRequired: SWITCH,
  defaultSubdomain: TEXT,
  supportForSubdomains: SWITCH,
  forceSubdomain: SWITCH,
  forceManualSetup: SWITCH,
  manualSetupDocumentation: WEB_URL,
  wwwRedirect: SWITCH,
  secureRootDomain: SWITCH,
  userId: TEXT,
  applicationName: TEXT,
  locale: [`one of ${LOCALES.join(", ")}`, (value) => LOCALES.includes(value)],
  whiteLabel: ["an object with logo, logoDark, theme or copy", isObject],
  apiUrl: WEB_URL,
  onFrontageClose: FUNCTION,
  onSuccess: FUNCTION,
  onFrontageStepChange: FUNCTION,
  onRequestClose: FUNCTION,
  onSharedFlowSent: FUNCTION,
  onManualSetupDocumentationClick: FUNCTION,
});

/** @type {Readonly<Record<string, Rule>>} */
export const RECORD_KEYS = Object.freeze({
  type: [`one of ${RECORD_TYPES.join(", ")}`, (value) => RECORD_TYPES.includes(value)],
  host: ["a text, @ for the root", TEXT[1]],
  value: TEXT,
  ttl: ["a number of seconds above 0", (value) => ["number", "string"].includes(typeof value) && Number(value) > 0],
  priority: ["a number from 0 to 65535", (value) => /^\d{1,5}$/.test(String(value)) && Number(value) <= 65535],
  ssl: SWITCH,
  applicationUrl: WEB_URL,
  redirectTo: TEXT,
  powerRootPathAccess: [
    "an array of paths that begin with /",
    isListOf((path) => typeof path === "string" && path.startsWith("/"), 0),
  ],
  monitor: SWITCH,
});

/** @type {Readonly<Record<string, Rule>>} */
const WHITE_LABEL_KEYS = Object.freeze({
  logo: ["the URL of an image", isImageUrl],
  logoDark: ["the URL of an image", isImageUrl],
  theme: ["an object with accent, accentDark or colorScheme", isObject],
  copy: ["an object of texts", (value) => isObject(value) && Object.values(value).every((text) => typeof text === "string")],
});

/** @type {Readonly<Record<string, Rule>>} */
const THEME_KEYS = Object.freeze({
  accent: COLOUR_TEXT,
  accentDark: COLOUR_TEXT,
  colorScheme: ["light, dark or auto", (value) => ["light", "dark", "auto"].includes(value)],
});

const REQUIRED_OF_RECORD = ["type", "host", "value", "ttl"];

/** Keys that the API never sees. */
export const BROWSER_KEYS = Object.freeze([
  "applicationId",
  "token",
  "getToken",
  "apiUrl",
  "onFrontageClose",
  "onSuccess",
  "onFrontageStepChange",
  "onRequestClose",
  "onSharedFlowSent",
  "onManualSetupDocumentationClick",
]);

/**
 * The configuration without unknown and absent keys.
 *
 * @param {unknown} given
 * @param {(warning: string) => void} warn  called for each key that is ignored
 * @returns {Configuration}
 * @throws {FrontageError} `invalid_configuration`
 */
export function readConfiguration(given, warn) {
  if (!isObject(given)) {
    throw invalid("configuration", "an object");
  }
  const known = checkKeys(given, KEYS, "", warn);
  if (!known.applicationId) {
    throw invalid("applicationId", "the identifier of your application");
  }
  if (!known.token && !known.getToken) {
    throw invalid("token", "a JWT, or a function getToken that returns one");
  }
  for (const [name, list] of recordLists(known.dnsRecords)) {
    list.forEach((record, number) => checkRecord(record, `${name}[${number}]`, warn));
  }
  if (known.whiteLabel) {
    known.whiteLabel = checkKeys(known.whiteLabel, WHITE_LABEL_KEYS, "whiteLabel.", warn);
    known.whiteLabel.theme = checkKeys(known.whiteLabel.theme ?? {}, THEME_KEYS, "whiteLabel.theme.", warn);
  }
  return /** @type {Configuration} */ (known);
}

/**
 * What the API gets of the configuration.
 *
 * @param {Configuration} configuration
 * @returns {Record<string, unknown>}
 */
export function forApi(configuration) {
  return Object.fromEntries(Object.entries(configuration).filter(([key]) => !BROWSER_KEYS.includes(key)));
}

/**
 * @param {Record<string, any>} given
 * @param {Readonly<Record<string, Rule>>} rules
 * @param {string} path
 * @param {(warning: string) => void} warn
 * @returns {Record<string, any>}
 */
function checkKeys(given, rules, path, warn) {
  /** @type {Record<string, any>} */
  const known = {};
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(rules, key)) {
      warn(`${path}${key} is not a key of the configuration: it is ignored${suggestion(key, Object.keys(rules))}`);
    } else if (value !== null && value !== undefined) {
      const [expected, fits] = rules[key];
      if (!fits(value)) {
        throw invalid(path + key, expected);
      }
      known[key] = value;
    }
  }
  return known;
}

/**
 * @param {any} record
 * @param {string} path
 * @param {(warning: string) => void} warn
 */
function checkRecord(record, path, warn) {
  if (!isObject(record)) {
    throw invalid(path, "an object with type, host, value and ttl");
  }
  const known = checkKeys(record, RECORD_KEYS, `${path}.`, warn);
  const missing = REQUIRED_OF_RECORD.find((key) => !(key in known));
  if (missing) {
    throw invalid(`${path}.${missing}`, RECORD_KEYS[missing][0]);
  }
}

/**
 * @param {any} records
 * @returns {[string, any[]][]}
 */
function recordLists(records) {
  if (Array.isArray(records)) {
    return [["dnsRecords", records]];
  }
  return ["domain", "subDomain"].map((key) => [`dnsRecords.${key}`, records?.[key] ?? []]);
}

/** @param {any} value */
function isRecords(value) {
  if (Array.isArray(value)) {
    return value.length > 0;
  }
  const lists = isObject(value) ? Object.entries(value) : [];
  return lists.length > 0 && lists.every(([key, list]) => ["domain", "subDomain"].includes(key) && Array.isArray(list));
}

/** @param {unknown} value @returns {value is Record<string, any>} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {(value: any) => boolean} fits @param {number} [least] @returns {(value: unknown) => boolean} */
function isListOf(fits, least = 1) {
  return (value) => Array.isArray(value) && value.length >= least && value.every(fits);
}

/** @param {any} value */
function isWebUrl(value) {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}

/** @param {any} value */
function isImageUrl(value) {
  return isWebUrl(value) || (typeof value === "string" && (/^data:image\//.test(value) || /^\.{0,2}\/(?!\/)/.test(value)));
}

/** @param {string} key @param {string[]} names */
function suggestion(key, names) {
  const like = names.find((name) => name.toLowerCase() === key.toLowerCase().replaceAll(/[_-]/g, ""));
  return like ? `; did you mean ${like}?` : "";
}

/** @param {string} key @param {string} expected */
function invalid(key, expected) {
  return new FrontageError("invalid_configuration", `${key}: expected ${expected}`, { key });
}
