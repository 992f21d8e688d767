/**
 * Which flow belongs to a domain, which domain was the last, and which records the person has ticked: remembered for the
 * tab's session, so that a modal that is opened again, or a page that is loaded again, goes on where it was. A flow's id
 * opens nothing without a token.
 */

import { forApi } from "./configuration.js";

const PREFIX = "frontage:flow:";
const TICKS = "frontage:ticks:";
const PROVIDERS = "frontage:provider:";

/**
 * @param {import("./configuration.js").Configuration} configuration
 * @param {string} name
 * @returns {string | null}
 */
export function rememberedFlow(configuration, name) {
  return read(keyOf(configuration, name));
}

/**
 * @param {import("./configuration.js").Configuration} configuration
 * @param {string} name
 * @param {string} flowId
 */
export function rememberFlow(configuration, name, flowId) {
  write(keyOf(configuration, name), flowId);
  write(keyOf(configuration, ""), name);
}

/** The domain that was connected last with this configuration. @param {import("./configuration.js").Configuration} configuration */
export function rememberedName(configuration) {
  return read(keyOf(configuration, ""));
}

/** The numbers of the records that the person has ticked in a flow. @param {string} flowId @returns {Set<number>} */
export function rememberedTicks(flowId) {
  return new Set(JSON.parse(read(TICKS + flowId) ?? "[]"));
}

/** @param {string} flowId @param {Set<number>} ticks */
export function rememberTicks(flowId, ticks) {
  write(TICKS + flowId, JSON.stringify([...ticks]));
}

/** The provider that the person has picked for a flow. @param {string} flowId @returns {import("./client.js").ProviderForm | null} */
export function rememberedProvider(flowId) {
  return JSON.parse(read(PROVIDERS + flowId) ?? "null");
}

/** @param {string} flowId @param {import("./client.js").ProviderForm} provider */
export function rememberProvider(flowId, provider) {
  write(PROVIDERS + flowId, JSON.stringify(provider));
}

/** @param {string} key @returns {string | null} */
function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null; // storage may be forbidden
  }
}

/** @param {string} key @param {string} value */
function write(key, value) {
  try {
    sessionStorage.setItem(key, value);
  } catch {
    // then it starts anew
  }
}

/** Another configuration is another flow. @param {import("./configuration.js").Configuration} configuration @param {string} name */
function keyOf(configuration, name) {
  const { locale, whiteLabel, prefilledDomain, ...meaning } = /** @type {any} */ (forApi(configuration));
  const text = JSON.stringify([configuration.applicationId, name, meaning]);
  let hash = 0xcbf29ce484222325n; // FNV-1a
  for (let index = 0; index < text.length; index++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(index))) * 0x100000001b3n);
  }
  return PREFIX + hash.toString(36);
}
