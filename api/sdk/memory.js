/**
 * Which flow belongs to a domain: remembered for the tab's session, so that a modal that is opened again goes on where
 * it was. A flow's id opens nothing without a token.
 */

import { forApi } from "./configuration.js";

const PREFIX = "frontage:flow:";

/**
 * @param {import("./configuration.js").Configuration} configuration
 * @param {string} name
 * @returns {string | null}
 */
export function rememberedFlow(configuration, name) {
  try {
    return sessionStorage.getItem(keyOf(configuration, name));
  } catch {
    return null; // storage may be forbidden
  }
}

/**
 * @param {import("./configuration.js").Configuration} configuration
 * @param {string} name
 * @param {string} flowId
 */
export function rememberFlow(configuration, name, flowId) {
  try {
    sessionStorage.setItem(keyOf(configuration, name), flowId);
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
