/**
 * The API as the modal sees it: requests, server-sent events, a token that is always good, and sharing links.
 *
 * Rules
 *   a request has the headers `applicationId` and `Authorization`, never cookies
 *   `getToken` is called when there is no token, before one expires, and once after a 401; one call at a time
 *   every wait has a bound; what fails is a `FrontageError` with a documented code
 */

import { FrontageError } from "./errors.js";

const REQUEST_SECONDS = 30;
const SILENCE_SECONDS = 30; // the API sends a comment every ten seconds
const TOKEN_MARGIN_SECONDS = 60;
const GET_TOKEN_SECONDS = 30;
const LONGEST_PAUSE_SECONDS = 8;
/** @type {Readonly<Record<number, keyof typeof import("./errors.js").CODES>>} */
const CODE_OF_STATUS = Object.freeze({ 401: "token_refused", 403: "forbidden", 429: "too_many_requests" });

export class Client {
  #token;
  #getToken;
  #applicationId;
  /** @type {Promise<string> | null} */
  #asking = null;

  /**
   * @param {string} apiUrl  without a slash at its end
   * @param {{applicationId: string, token?: string, getToken?: () => string | Promise<string>}} credentials
   */
  constructor(apiUrl, { applicationId, token, getToken }) {
    this.apiUrl = apiUrl;
    this.#applicationId = applicationId;
    this.#token = token ?? null;
    this.#getToken = getToken;
  }

  /**
   * @param {string} path
   * @returns {Promise<any>}
   */
  get(path) {
    return this.#json("GET", path);
  }

  /**
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  post(path, body = {}) {
    return this.#json("POST", path, body);
  }

  /**
   * The events of a stream, until it ends.
   *
   * @param {string} path
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<any>}
   */
  async *events(path, signal) {
    const controller = new AbortController();
    const abort = () => controller.abort();
    signal.addEventListener("abort", abort);
    let timer = setTimeout(abort, REQUEST_SECONDS * 1000);
    try {
      const response = await this.#fetch("GET", path, undefined, controller.signal);
      const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
      const decoder = new TextDecoder();
      for (let rest = ""; ; ) {
        clearTimeout(timer);
        timer = setTimeout(abort, SILENCE_SECONDS * 1000);
        const { done, value } = await reader.read();
        if (done) {
          return;
        }
        const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = /** @type {string} */ (events.pop());
        yield* events.map(eventData).filter((data) => data !== null);
      }
    } catch (error) {
      throw error instanceof FrontageError ? error : unreachable(error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      controller.abort();
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object} [body]
   */
  async #json(method, path, body) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), REQUEST_SECONDS * 1000);
    try {
      const response = await this.#fetch(method, path, body, controller.signal);
      return await response.json();
    } catch (error) {
      throw error instanceof FrontageError ? error : unreachable(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object | undefined} body
   * @param {AbortSignal} signal
   */
  async #fetch(method, path, body, signal) {
    let response = await this.#send(method, path, body, signal);
    if (response.status === 401 && this.#getToken) {
      this.#token = null;
      response = await this.#send(method, path, body, signal);
    }
    if (!response.ok) {
      throw await refusal(response);
    }
    return response;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object | undefined} body
   * @param {AbortSignal} signal
   */
  async #send(method, path, body, signal) {
    /** @type {Record<string, string>} */
    const headers = { applicationId: this.#applicationId, Authorization: `Bearer ${await this.#freshToken()}` };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
    }
    return fetch(this.apiUrl + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
      signal,
    });
  }

  /** @returns {Promise<string>} */
  async #freshToken() {
    if (this.#token !== null && (!this.#getToken || !expiresSoon(this.#token))) {
      return this.#token;
    }
    this.#asking ??= this.#askForToken().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #askForToken() {
    const getToken = /** @type {() => string | Promise<string>} */ (this.#getToken);
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("no answer in time")), GET_TOKEN_SECONDS * 1000);
    });
    try {
      const token = await Promise.race([Promise.resolve().then(getToken), late]);
      if (typeof token !== "string" || token === "") {
        throw new TypeError("it must return a token, as text");
      }
      this.#token = token;
      return token;
    } catch (error) {
      throw new FrontageError("get_token_failed", `getToken: ${messageOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * How long to wait before a lost connection is tried again. Ends at once when the browser comes back on line.
 *
 * @param {number} failures  in a row
 * @param {AbortSignal} signal
 */
export function reconnectPause(failures, signal) {
  const seconds = Math.min(0.5 * 2 ** failures, LONGEST_PAUSE_SECONDS) * (0.75 + Math.random() / 2);
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      globalThis.removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve(undefined);
    };
    const timer = setTimeout(done, seconds * 1000);
    globalThis.addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}

/** @param {string} event  its lines (WHATWG HTML, "Server-sent events") */
function eventData(event) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.length ? JSON.parse(lines.map((line) => line.slice(5).trimStart()).join("\n")) : null;
}

/**
 * The configuration that a sharing link has saved, with a new token. The link's id is the only key to it.
 *
 * @param {string} apiUrl  without a slash at its end
 * @param {string} id
 * @returns {Promise<any>}
 */
export async function fetchShare(apiUrl, id) {
  try {
    const response = await fetch(`${apiUrl}/share/${id}`, {
      headers: { Accept: "application/json" },
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(REQUEST_SECONDS * 1000),
    });
    if (!response.ok) {
      throw await refusal(response, response.status === 404 ? "link_not_found" : undefined);
    }
    return await response.json();
  } catch (error) {
    throw error instanceof FrontageError ? error : unreachable(error);
  }
}

/**
 * @typedef {object} ProviderForm  what a person meets at a DNS provider
 * @property {string} id
 * @property {string} name
 * @property {string | null} helpUrl
 * @property {string} [consoleUrl]  `{domain}` in it stands for the domain
 * @property {Record<string, string>} [fieldNames]  of its form
 * @property {"relative" | "whole" | "blank"} [hostStyle]
 */

/**
 * The known DNS providers, by name; none while they cannot be fetched.
 *
 * @param {string} apiUrl  without a slash at its end
 * @returns {Promise<ProviderForm[]>}
 */
export async function fetchProviders(apiUrl) {
  try {
    const response = await fetch(`${apiUrl}/sdk/v1/providers.json`, {
      credentials: "omit",
      signal: AbortSignal.timeout(REQUEST_SECONDS * 1000),
    });
    return response.ok ? await response.json() : [];
  } catch {
    return [];
  }
}

/**
 * @param {Response} response
 * @param {keyof typeof import("./errors.js").CODES} [code]
 */
async function refusal(response, code = CODE_OF_STATUS[response.status] ?? "refused") {
  const answer = await response.json().catch(() => ({}));
  return new FrontageError(code, answer.message ?? `HTTP ${response.status}`, {
    status: response.status,
    apiCode: answer.code,
    hint: answer.hint,
    requestId: answer.request_id,
    retryAfterSeconds: Number(response.headers.get("Retry-After")) || undefined,
    answer,
  });
}

/** @param {unknown} error */
function unreachable(error) {
  return new FrontageError("unreachable", `the API could not be reached: ${messageOf(error)}`, { cause: error });
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** RFC 7519 §4.1.4. A token that cannot be read is the API's to judge. @param {string} token */
function expiresSoon(token) {
  try {
    const claims = JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
    return typeof claims.exp === "number" && claims.exp - Date.now() / 1000 < TOKEN_MARGIN_SECONDS;
  } catch {
    return false;
  }
}
