/**
 * Errors of the SDK: what functions reject with, and what `onFrontageClose` has as `error`.
 *
 * Every code is in `CODES`, with the sentence that the reference shows.
 */

/** Code to meaning. */
export const CODES = Object.freeze({
  invalid_configuration: "A key of the configuration is missing or has a wrong value: `key` names it.",
  invalid_domain: "The API does not take the domain: the message has its reason.",
  get_token_failed: "`getToken` has thrown, or has returned no token.",
  token_refused: "The API does not take the token: it is wrong or has expired, and there is no `getToken`.",
  forbidden: "The token is good, but its scope, tier or subscription does not open this: see `apiCode`.",
  too_many_requests: "The API asks to wait: `retryAfterSeconds`.",
  unreachable: "The API could not be reached, or did not answer in time.",
  refused: "The API has refused the request: see `status`, `apiCode` and `hint`.",
  link_not_found: "The sharing link has expired, was revoked, or never existed.",
  invalid_link: "The address is not that of a sharing link.",
  not_supported: "The browser is too old: it has no modal dialogs.",
});

/** An error with one of the documented codes. */
export class FrontageError extends Error {
  /**
   * @param {keyof typeof CODES} code
   * @param {string} message
   * @param {{key?: string, status?: number, apiCode?: string, hint?: string, requestId?: string,
   *   retryAfterSeconds?: number, answer?: any, cause?: unknown}} [details]
   */
  constructor(code, message, details = {}) {
    super(message, { cause: details.cause });
    this.name = "FrontageError";
    /** @type {keyof typeof CODES} */
    this.code = code;
    /** The configuration's key that is wrong. */
    this.key = details.key;
    /** HTTP status, `code`, `hint` and `request_id` of the API's answer. */
    this.status = details.status;
    this.apiCode = details.apiCode;
    this.hint = details.hint;
    this.requestId = details.requestId;
    this.retryAfterSeconds = details.retryAfterSeconds;
    /** The API's whole answer. @type {any} */
    this.answer = details.answer;
  }
}
