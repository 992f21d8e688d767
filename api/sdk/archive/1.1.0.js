/*! Frontage SDK 1.1.0 */
(() => {
"use strict";
const CODES = Object.freeze({
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
class FrontageError extends Error {
constructor(code, message, details = {}) {
super(message, { cause: details.cause });
this.name = "FrontageError";
this.code = code;
this.key = details.key;
this.status = details.status;
this.apiCode = details.apiCode;
this.hint = details.hint;
this.requestId = details.requestId;
this.retryAfterSeconds = details.retryAfterSeconds;
this.answer = details.answer;
}
}
const REQUEST_SECONDS = 30;
const SILENCE_SECONDS = 30; // the API sends a comment every ten seconds
const TOKEN_MARGIN_SECONDS = 60;
const GET_TOKEN_SECONDS = 30;
const LONGEST_PAUSE_SECONDS = 8;
const CODE_OF_STATUS = Object.freeze({ 401: "token_refused", 403: "forbidden", 429: "too_many_requests" });
class Client {
#token;
#getToken;
#applicationId;
#asking = null;
constructor(apiUrl, { applicationId, token, getToken }) {
this.apiUrl = apiUrl;
this.#applicationId = applicationId;
this.#token = token ?? null;
this.#getToken = getToken;
}
get(path) {
return this.#json("GET", path);
}
post(path, body = {}) {
return this.#json("POST", path, body);
}
async *events(path, signal) {
const controller = new AbortController();
const abort = () => controller.abort();
signal.addEventListener("abort", abort);
let timer = setTimeout(abort, REQUEST_SECONDS * 1000);
try {
const response = await this.#fetch("GET", path, undefined, controller.signal);
const reader = (response.body).getReader();
const decoder = new TextDecoder();
for (let rest = ""; ; ) {
clearTimeout(timer);
timer = setTimeout(abort, SILENCE_SECONDS * 1000);
const { done, value } = await reader.read();
if (done) {
return;
}
const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
rest = (events.pop());
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
async #send(method, path, body, signal) {
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
const getToken = (this.#getToken);
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
function reconnectPause(failures, signal) {
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
function eventData(event) {
const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
return lines.length ? JSON.parse(lines.map((line) => line.slice(5).trimStart()).join("\n")) : null;
}
async function fetchShare(apiUrl, id) {
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
function unreachable(error) {
return new FrontageError("unreachable", `the API could not be reached: ${messageOf(error)}`, { cause: error });
}
function messageOf(error) {
return error instanceof Error ? error.message : String(error);
}
function expiresSoon(token) {
try {
const claims = JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
return typeof claims.exp === "number" && claims.exp - Date.now() / 1000 < TOKEN_MARGIN_SECONDS;
} catch {
return false;
}
}
const LOCALES = Object.freeze(["en", "es", "pt", "fr", "it", "de", "nl", "pl", "tr", "ja"]);
const RECORD_TYPES = Object.freeze(["A", "AAAA", "CNAME", "MX", "TXT", "NS", "SOA", "SRV", "PTR", "CAA"]);
const COLOUR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;
const TEXT = ["a text", (value) => typeof value === "string" && value.trim() !== ""];
const SWITCH = ["true or false", (value) => typeof value === "boolean"];
const FUNCTION = ["a function", (value) => typeof value === "function"];
const WEB_URL = ["an http or https URL", isWebUrl];
const COLOUR_TEXT = ["a colour as #rrggbb", (value) => typeof value === "string" && COLOUR.test(value)];
const KEYS = Object.freeze({
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
});
const RECORD_KEYS = Object.freeze({
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
const WHITE_LABEL_KEYS = Object.freeze({
logo: ["the URL of an image", isImageUrl],
logoDark: ["the URL of an image", isImageUrl],
theme: ["an object with accent, accentDark or colorScheme", isObject],
copy: ["an object of texts", (value) => isObject(value) && Object.values(value).every((text) => typeof text === "string")],
});
const THEME_KEYS = Object.freeze({
accent: COLOUR_TEXT,
accentDark: COLOUR_TEXT,
colorScheme: ["light, dark or auto", (value) => ["light", "dark", "auto"].includes(value)],
});
const REQUIRED_OF_RECORD = ["type", "host", "value", "ttl"];
const BROWSER_KEYS = Object.freeze([
"applicationId",
"token",
"getToken",
"apiUrl",
"onFrontageClose",
"onSuccess",
"onFrontageStepChange",
]);
function readConfiguration(given, warn) {
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
return (known);
}
function forApi(configuration) {
return Object.fromEntries(Object.entries(configuration).filter(([key]) => !BROWSER_KEYS.includes(key)));
}
function checkKeys(given, rules, path, warn) {
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
function recordLists(records) {
if (Array.isArray(records)) {
return [["dnsRecords", records]];
}
return ["domain", "subDomain"].map((key) => [`dnsRecords.${key}`, records?.[key] ?? []]);
}
function isRecords(value) {
if (Array.isArray(value)) {
return value.length > 0;
}
const lists = isObject(value) ? Object.entries(value) : [];
return lists.length > 0 && lists.every(([key, list]) => ["domain", "subDomain"].includes(key) && Array.isArray(list));
}
function isObject(value) {
return typeof value === "object" && value !== null && !Array.isArray(value);
}
function isListOf(fits, least = 1) {
return (value) => Array.isArray(value) && value.length >= least && value.every(fits);
}
function isWebUrl(value) {
return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}
function isImageUrl(value) {
return isWebUrl(value) || (typeof value === "string" && (/^data:image\//.test(value) || /^\.{0,2}\/(?!\/)/.test(value)));
}
function suggestion(key, names) {
const like = names.find((name) => name.toLowerCase() === key.toLowerCase().replaceAll(/[_-]/g, ""));
return like ? `; did you mean ${like}?` : "";
}
function invalid(key, expected) {
return new FrontageError("invalid_configuration", `${key}: expected ${expected}`, { key });
}
const SVG = "http://www.w3.org/2000/svg";
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
function el(tag, { on = {}, props = {}, ...attributes } = {}, ...children) {
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
element.append(...(children.flat().filter((child) => child || child === "")));
return element;
}
function icon(name, className = "") {
const svg = document.createElementNS(SVG, "svg");
svg.setAttribute("viewBox", "0 0 24 24");
svg.setAttribute("aria-hidden", "true");
svg.setAttribute("class", `icon ${["back", "arrow", "more"].includes(name) ? "points " : ""}${className}`);
const path = document.createElementNS(SVG, "path");
path.setAttribute("d", ICONS[name]);
svg.append(path);
return svg;
}
function button(text, onClick, { kind = "secondary", icon: name, disabled = false } = {}) {
return el(
"button",
{ type: "button", class: `button ${kind}`, props: { disabled }, on: { click: onClick } },
name && icon(name),
el("span", {}, text),
);
}
function submitButton(text, form, { icon: name } = {}) {
return el("button", { type: "submit", form, class: "button primary" }, name && icon(name), el("span", {}, text));
}
function code(text) {
return el("code", { dir: "ltr" }, text);
}
function externalLink(text, href) {
return el("a", { href, target: "_blank", rel: "noopener noreferrer", class: "link" }, text, icon("open"));
}
function copyButton(text, label, words, announce) {
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
async function writeClipboard(text, beside) {
try {
await navigator.clipboard.writeText(text);
return true;
} catch {
const field = el("textarea", { class: "aside", readonly: true, "aria-hidden": "true", tabindex: "-1" }, text);
beside.after(field);
(field).select();
const done = document.execCommand("copy"); // pages without a secure context have nothing else
field.remove();
beside.focus();
return done;
}
}
const CSS = `
:host {
all: initial !important;
direction: ltr !important;
unicode-bidi: isolate !important;
display: block !important;
position: fixed !important;
color-scheme: light dark !important;
--accent: light-dark(#2a4bd0, #a3b5ff);
--on-accent: light-dark(#fff, #0d1330);
--page: light-dark(#fff, #17191e);
--field: light-dark(#f5f6f8, #21242b);
--ink: light-dark(#14171f, #eceef2);
--soft: light-dark(#545c6b, #a9b0bd);
--line: light-dark(#dfe2e8, #363b45);
--edge: light-dark(#7d8594, #7f8795);
--good: light-dark(#0b6b3a, #6fd39c);
--good-field: light-dark(#e8f5ed, #16301f);
--bad: light-dark(#a8201a, #ff9a92);
--bad-field: light-dark(#fdeeed, #3a1b1a);
--warn: light-dark(#7a4b00, #f2c26b);
--warn-field: light-dark(#fdf4e3, #33270f);
}
:host([dir=rtl]) { direction: rtl !important; }
:host([data-scheme=light]) { color-scheme: light !important; }
:host([data-scheme=dark]) { color-scheme: dark !important; }
*, ::before, ::after { box-sizing: border-box; }
[hidden] { display: none !important; }
dialog {
display: flex; flex-direction: column;
inline-size: min(35em, calc(100vw - 32px)); max-inline-size: none;
max-block-size: min(47em, calc(100dvh - 32px));
margin: auto; padding: 0; border: 0; border-radius: 14px; overflow: hidden;
background: var(--page); color: var(--ink);
font: 400 1em/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif;
text-align: start; overflow-wrap: break-word; -webkit-font-smoothing: antialiased;
box-shadow: 0 0 0 1px light-dark(#14171f14, #ffffff1f), 0 24px 64px -12px #0b0f1a66;
animation: rise .22s cubic-bezier(.2, .8, .3, 1);
}
dialog:not([open]) { display: none; }
dialog::backdrop { background: light-dark(#0f1422a6, #05070cb8); animation: fade .22s ease-out; }
@keyframes rise { from { opacity: 0; transform: translateY(10px); } }
@keyframes fade { from { opacity: 0; } }
@keyframes turn { to { transform: rotate(1turn); } }
.header { display: grid; grid-template-columns: 44px 1fr 44px; align-items: center; padding: 8px 8px 0; flex: none; }
.brand { display: flex; justify-content: center; align-items: center; gap: 8px; min-inline-size: 0; color: var(--soft); font-size: .875em; font-weight: 550; }
.brand span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.brand img { max-block-size: 28px; max-inline-size: 180px; display: block; }
.progress { display: flex; gap: 6px; margin: 10px 24px 8px; flex: none; }
.progress span { flex: 1; block-size: 4px; border-radius: 2px; background: var(--line); }
.progress span.done { background: var(--accent); }
.content { flex: 1 1 auto; overflow: auto; overscroll-behavior: contain; padding: 14px 32px 24px; scrollbar-width: thin; }
.footer { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; justify-content: flex-end; padding: 14px 32px; border-block-start: 1px solid var(--line); flex: none; }
.footer:empty { display: none; }
.footer .plain { margin-inline-end: auto; margin-inline-start: -12px; }
h2 { margin: 0 0 6px; font-size: 1.4375em; line-height: 1.25; font-weight: 650; letter-spacing: -.012em; text-wrap: balance; }
h2:focus { outline: none; }
h3 { margin: 24px 0 8px; font-size: .875em; line-height: 1.4; font-weight: 600; color: var(--soft); }
p { margin: 0 0 12px; text-wrap: pretty; }
.lead { color: var(--soft); }
.lead strong { color: var(--ink); }
.guide + .small { margin-block-start: 12px; }
.small { font-size: .875em; color: var(--soft); }
strong { font-weight: 600; }
bdi { overflow-wrap: anywhere; }
code { font: .875em/1.55 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; overflow-wrap: anywhere; -webkit-user-select: all; user-select: all; }
.icon { inline-size: 1.25em; block-size: 1.25em; fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; flex: none; }
:host([dir=rtl]) .points { transform: scaleX(-1); }
.link { color: inherit; text-decoration: underline; text-decoration-thickness: 1px; text-underline-offset: .18em; }
.link .icon { inline-size: 1em; block-size: 1em; margin-inline-start: .25em; vertical-align: -.12em; }
button, input, textarea { font: inherit; color: inherit; letter-spacing: inherit; }
:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
.button { display: inline-flex; align-items: center; justify-content: center; gap: 8px; min-block-size: 44px; padding: 8px 18px; border: 1px solid transparent; border-radius: 9px; background: none; font-weight: 600; cursor: pointer; text-align: center; }
.button.primary { background: var(--accent); color: var(--on-accent); }
.button.primary:hover { filter: brightness(1.08); }
.button.secondary { border-color: var(--edge); }
.button.secondary:hover, .button.plain:hover, .round:hover { background: var(--field); }
.button.plain { padding-inline: 12px; font-weight: 550; color: var(--soft); }
.button:disabled { opacity: .55; cursor: default; filter: none; }
[data-busy] { opacity: .6; cursor: progress; }
.button .icon { inline-size: 1.125em; block-size: 1.125em; }
.round { display: grid; place-items: center; inline-size: 44px; block-size: 44px; padding: 0; border: 0; border-radius: 50%; background: none; color: var(--soft); cursor: pointer; }
label, legend { display: block; margin: 0 0 6px; padding: 0; font-weight: 550; }
fieldset { margin: 0; padding: 0; border: 0; min-inline-size: 0; }
.input { display: block; inline-size: 100%; min-block-size: 48px; padding: 10px 14px; border: 1px solid var(--edge); border-radius: 9px; background: var(--page); font-size: 1.0625em; }
textarea.input { min-block-size: 84px; font: .875em/1.5 ui-monospace, Menlo, Consolas, monospace; resize: vertical; }
.input::placeholder { color: var(--soft); opacity: 1; }
.input:focus { outline: 2px solid var(--accent); outline-offset: -1px; border-color: var(--accent); }
.input[aria-invalid=true] { border-color: var(--bad); }
.field { margin: 18px 0 0; }
.field .small { margin: 6px 0 0; }
.problem { display: flex; gap: 8px; margin: 8px 0 0; color: var(--bad); font-size: .9375em; }
.hint { margin: 8px 0 0; font-size: .9375em; }
.hint button { padding: 0; border: 0; background: none; font-weight: 600; text-decoration: underline; text-underline-offset: .18em; cursor: pointer; min-block-size: 24px; }
.choices { display: grid; gap: 10px; margin: 18px 0 0; padding: 0; list-style: none; }
.choice { display: grid; grid-template-columns: 1fr auto; align-items: center; gap: 4px 14px; inline-size: 100%; padding: 14px 16px; border: 1px solid var(--line); border-radius: 11px; background: none; text-align: start; cursor: pointer; }
.choice:hover { border-color: var(--edge); background: var(--field); }
.choice b { font-weight: 600; }
.choice .small { grid-column: 1; margin: 0; }
.choice .icon { grid-column: 2; grid-row: 1 / span 2; color: var(--soft); }
.choice.best { border: 2px solid var(--accent); padding: 13px 15px; }
.tag { display: inline-block; margin-inline-start: 8px; padding: 1px 8px; border-radius: 99px; background: var(--field); color: var(--soft); font-size: .75em; font-weight: 600; line-height: 1.6; vertical-align: .08em; white-space: nowrap; }
.best .tag { background: var(--accent); color: var(--on-accent); }
.radio { display: flex; gap: 12px; align-items: center; min-block-size: 52px; padding: 10px 16px; border: 1px solid var(--line); border-radius: 11px; margin: 0; font-weight: 500; cursor: pointer; }
.radio:has(:checked) { border: 2px solid var(--accent); padding: 9px 15px; }
.radio:has(:focus-visible) { outline: 2px solid var(--ink); outline-offset: 2px; }
.radio input { inline-size: 18px; block-size: 18px; margin: 0; accent-color: var(--accent); flex: none; outline: none; }
.list { margin: 18px 0 0; padding: 0; list-style: none; }
.looked { display: flex; gap: 12px; align-items: flex-start; padding: 10px 0; }
.looked + .looked { border-block-start: 1px solid var(--line); }
.looked div { min-inline-size: 0; }
.looked .small { margin: 0; }
.spin { animation: turn 1s linear infinite; color: var(--soft); }
.good { color: var(--good); }
.bad { color: var(--bad); }
.warn { color: var(--warn); }
.soft { color: var(--soft); }
.card { margin: 14px 0 0; border: 1px solid var(--line); border-radius: 11px; overflow: hidden; }
.card-head { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; padding: 9px 14px; background: var(--field); font-size: .9375em; }
.card-head b { font-weight: 650; }
.type { padding: 1px 7px; border: 1px solid var(--line); border-radius: 6px; background: var(--page); font: 600 .8125em/1.6 ui-monospace, Menlo, Consolas, monospace; }
.state { display: inline-flex; gap: 6px; align-items: center; margin-inline-start: auto; font-size: .875em; font-weight: 600; }
.state .icon { inline-size: 1.1em; block-size: 1.1em; }
.rows { display: grid; margin: 0; }
.row { display: grid; grid-template-columns: 6.5em minmax(0, 1fr); gap: 4px 12px; align-items: center; padding-block: 7px; padding-inline: 14px 8px; min-block-size: 46px; }
.row dd { display: flex; gap: 12px; align-items: center; justify-content: space-between; }
.row + .row, .change + .change { border-block-start: 1px solid var(--line); }
dt { color: var(--soft); font-size: .875em; }
dd { margin: 0; min-inline-size: 0; }
.copy { flex: none; border: 1px solid var(--line); border-radius: 7px; background: none; min-block-size: 32px; min-inline-size: 32px; padding: 3px 10px; font-size: .8125em; font-weight: 600; cursor: pointer; }
.copy:hover { border-color: var(--edge); background: var(--field); }
.face { display: inline-flex; gap: 6px; align-items: center; white-space: nowrap; }
.face .icon { inline-size: 1.15em; block-size: 1.15em; }
.copied { color: var(--good); }
.change { padding: 10px 14px; }
.change .small { margin: 0 0 2px; }
.before { color: var(--soft); text-decoration: line-through; text-decoration-thickness: 1px; }
.sides { display: grid; grid-template-columns: 4.5em minmax(0, 1fr); gap: 4px 12px; margin: 0; align-items: baseline; }
.note { display: flex; gap: 12px; margin: 16px 0 0; padding: 12px 14px; border-radius: 11px; background: var(--field); font-size: .9375em; }
.note p { margin: 0; }
.note div { min-inline-size: 0; flex: 1; }
.note .button { margin-block-start: 10px; }
.note.good { background: var(--good-field); }
.note.bad { background: var(--bad-field); }
.note.warn { background: var(--warn-field); }
.note:is(.good, .bad, .warn) p { color: var(--ink); }
ol.guide { margin: 14px 0 0; padding: 0; list-style: none; counter-reset: n; }
ol.guide > li { position: relative; margin: 0; padding-block: 5px; padding-inline-start: 36px; counter-increment: n; }
ol.guide > li::before { content: counter(n); position: absolute; inset-inline-start: 0; inset-block-start: 5px; inline-size: 24px; block-size: 24px; border-radius: 50%; background: var(--field); font-size: .8125em; font-weight: 650; line-height: 24px; text-align: center; }
a.button { text-decoration: none; color: inherit; }
a.button.primary { color: var(--on-accent); }
.copy-link { inline-size: 100%; }
del { text-decoration: inherit; }
ins { padding: 1px 3px; border-radius: 4px; background: var(--good-field); color: var(--good); text-decoration: none; font-weight: 600; }
.seal { display: grid; place-items: center; inline-size: 56px; block-size: 56px; margin: 4px 0 16px; border-radius: 50%; background: var(--good-field); color: var(--good); }
.seal .icon { inline-size: 28px; block-size: 28px; stroke-width: 2.2; }
.aside { position: fixed; inset-block-start: 0; opacity: 0; inline-size: 1px; block-size: 1px; }
.unseen { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.offline { display: flex; gap: 8px; align-items: center; margin: 12px 24px 0; padding: 9px 14px; border-radius: 9px; background: var(--warn-field); font-size: .9375em; flex: none; }
.offline .icon { color: var(--warn); }
details { margin: 16px 0 0; }
summary { cursor: pointer; font-weight: 550; min-block-size: 28px; }
@media (max-width: 480px) {
dialog { inline-size: 100vw; block-size: 100dvh; max-block-size: none; max-inline-size: 100vw; margin: 0; border-radius: 0; }
.content { padding: 10px 20px 20px; }
.footer { padding: 12px 20px max(12px, env(safe-area-inset-bottom)); }
.progress, .offline { margin-inline: 20px; }
.footer .button:not(.plain) { flex: 1 1 auto; }
.footer .plain { margin-inline: 0; flex: 1 1 100%; order: 1; }
.row { grid-template-columns: minmax(0, 1fr); gap: 0; }
h2 { font-size: 1.25em; }
.looked { flex-wrap: wrap; row-gap: 2px; }
.looked div { flex: 1 1 calc(100% - 40px); }
.looked .state { margin-inline-start: 32px; }
.sides { grid-template-columns: minmax(0, 1fr); }
}
@media (prefers-reduced-motion: reduce) {
*, ::before, ::after, ::backdrop { animation-duration: .01ms !important; transition: none !important; }
.spin { animation: none; }
}
@media (forced-colors: active) {
.progress span.done { background: Highlight; }
.button, .choice, .copy { border: 1px solid ButtonBorder; }
dialog { border: 1px solid CanvasText; }
}
`;
function adoptStyle(root, nonce) {
if ("adoptedStyleSheets" in root) {
const sheet = new CSSStyleSheet();
sheet.replaceSync(CSS);
root.adoptedStyleSheets = [sheet];
return;
}
const style = document.createElement("style");
style.nonce = nonce;
style.textContent = CSS;
(root).append(style);
}
function applyTheme(host, { accent, accentDark = accent, colorScheme = "auto" }) {
host.dataset.scheme = colorScheme;
if (accent && accentDark) {
host.style.setProperty("--accent", `light-dark(${accent}, ${accentDark})`);
host.style.setProperty("--on-accent", `light-dark(${textOn(accent)}, ${textOn(accentDark)})`);
}
}
function textOn(colour) {
const hex = colour.length === 4 ? colour.replaceAll(/[^#]/g, "$&$&") : colour;
const [red, green, blue] = [1, 3, 5].map((start) => {
const part = Number.parseInt(hex.slice(start, start + 2), 16) / 255;
return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
});
return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}
const STAGES = 4;
class Dialog {
#host;
#dialog;
#header;
#main;
#footer;
#progress;
#offline;
#status;
#back;
#opener = null;
#words;
constructor(words, brand, nonce, on) {
this.#words = words;
this.#host = document.createElement("frontage-connect");
this.#host.lang = words.locale;
this.#host.dir = "ltr";
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
this.#dialog = (
el("dialog", { "aria-labelledby": "title" }, this.#header, this.#progress, this.#offline, this.#main, this.#footer, this.#status)
);
this.#dialog.addEventListener("cancel", (event) => {
event.preventDefault();
on.close();
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
show({ title, body, actions = [], focus = null, seal }, { stage, canGoBack }) {
const heading = el("h2", { id: "title", tabindex: "-1" }, breakable(title));
this.#main.replaceChildren(...(seal ? [seal] : []), heading, ...(body.filter(Boolean)));
this.#footer.replaceChildren(...actions);
this.#main.scrollTop = 0;
const scrolls = this.#main.scrollHeight > this.#main.clientHeight; // then by keyboard as well
this.#main.tabIndex = scrolls ? 0 : -1;
this.#back.style.visibility = canGoBack ? "visible" : "hidden";
this.#progress.setAttribute("aria-label", this.#words.of("progress", { step: String(stage), steps: String(STAGES) }));
this.#progress.replaceChildren(...Array.from({ length: STAGES }, (_, number) => el("span", { class: number < stage ? "done" : "" })));
(focus ?? heading).focus();
}
showConnection(isOffline) {
const isChange = this.#offline.hidden === isOffline;
this.#offline.hidden = !isOffline;
return isChange;
}
setBusy(isBusy) {
this.#main.toggleAttribute("aria-busy", isBusy);
for (const each of this.#dialog.querySelectorAll(".button.primary, .choice")) {
each.toggleAttribute("data-busy", isBusy);
}
}
announce(message) {
this.#status.textContent = "";
this.#status.append(message);
}
get element() {
return this.#dialog;
}
}
function breakable(text) {
return text.split(/(?<=\.)(?=\S)/).flatMap((part, number) => (number ? [el("wbr"), part] : [part]));
}
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
const STEPS = Object.freeze({
domain: { lastStatus: "IN_PROGRESS", stage: 1 },
checking: { lastStatus: "IN_PROGRESS", stage: 2 },
unchecked: { lastStatus: "EXIT_WITH_ERROR", stage: 2 },
conflicts: { lastStatus: "EXISTING_RECORDS", stage: 2 },
way: { lastStatus: "IN_PROGRESS", stage: 3 },
credentials: { lastStatus: "LOGIN", stage: 3 },
login: { lastStatus: "LOGIN", stage: 3 },
applying: { lastStatus: "IN_PROGRESS", stage: 3 },
halted: { lastStatus: "EXIT_WITH_ERROR", stage: 3 },
manual: { lastStatus: "MANUAL_CONFIGURATION", stage: 3 },
records: { lastStatus: "IN_PROGRESS", stage: 4 },
timeout: { lastStatus: "EXIT_WITH_ERROR", stage: 4 },
done: { lastStatus: "FINISHED_SUCCESSFULLY", stage: 4 },
review: { lastStatus: "IN_PROGRESS", stage: 4 },
undo: { lastStatus: "IN_PROGRESS", stage: 4 },
undoing: { lastStatus: "IN_PROGRESS", stage: 4 },
undone: { lastStatus: "IN_PROGRESS", stage: 4 },
share: { lastStatus: "IN_PROGRESS", stage: 3 },
error: { lastStatus: "EXIT_WITH_ERROR", stage: 1 },
});
const ENDED = ["finished", "timed_out", "undone", "closed"];
function hasEnded(flow) {
return ENDED.includes(flow.state);
}
function stepOf(flow) {
switch (flow?.state) {
case "checking":
return "checking";
case "unchecked":
return "unchecked";
case "planned":
return changesExisting(flow) ? "conflicts" : "way";
case "applying":
return "applying";
case "halted":
return "halted";
case "waiting":
return flow.way === "manual" ? "manual" : flow.handover?.returned === "done" ? "records" : "login";
case "propagating":
return flow.way === "manual" ? "manual" : "records";
case "enrolling":
return "records";
case "timed_out":
return "timeout";
case "finished":
return "done";
case "undoing":
return "undoing";
case "undone":
return "undone";
default:
return "domain";
}
}
function stepBefore(step, flow) {
switch (step) {
case "checking":
case "unchecked":
case "conflicts":
return flow?.written ? null : "domain";
case "way":
return flow && changesExisting(flow) ? "conflicts" : "domain";
case "credentials":
return "way";
case "login":
case "manual":
case "halted":
return "again";
case "records":
case "timeout":
case "done":
return "review";
default:
return null;
}
}
function servedNames(flow) {
const served = (flow?.enrolments ?? []).filter(({ product, status }) => product !== "monitor" && status === "success");
return served.filter(({ name }, number) => served.findIndex((other) => other.name === name) === number);
}
function lacksCertificate(flow) {
return flow.state === "finished" && servedNames(flow).some(({ certificate }) => certificate !== "live");
}
function changesOf(flow) {
return (flow.plan?.changes ?? []).filter((change) => change.action !== "keep");
}
function changesExisting(flow) {
return changesOf(flow).some((change) => change.action !== "add");
}
function providerName(flow) {
const { id, name } = flow?.provider ?? {};
return (id === "" && name === "Unknown") || name === flow?.domain ? null : (name ?? null);
}
function canUndoAtProvider(flow) {
const isWritten = ["propagating", "enrolling", "finished", "timed_out"].includes(flow?.state ?? "");
return flow?.way === "domain_connect" && isWritten && changesOf(flow).length > 0;
}
function canUndo(flow) {
return Boolean(flow?.written?.length) && !["undoing", "undone", "applying"].includes((flow).state);
}
const PREFIX = "frontage:flow:";
function rememberedFlow(configuration, name) {
try {
return sessionStorage.getItem(keyOf(configuration, name));
} catch {
return null; // storage may be forbidden
}
}
function rememberFlow(configuration, name, flowId) {
try {
sessionStorage.setItem(keyOf(configuration, name), flowId);
} catch {
// then it starts anew
}
}
function keyOf(configuration, name) {
const { locale, whiteLabel, prefilledDomain, ...meaning } = (forApi(configuration));
const text = JSON.stringify([configuration.applicationId, name, meaning]);
let hash = 0xcbf29ce484222325n; // FNV-1a
for (let index = 0; index < text.length; index++) {
hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(index))) * 0x100000001b3n);
}
return PREFIX + hash.toString(36);
}
const MEANT = new Map(
Object.entries({
com: "con cmo ocm comm coom vom xom cpm c0m cim cok ccom clm cxm",
net: "nte ent nett ner neet netr",
org: "ogr orgg orf rog orh ogrr 0rg",
info: "ifno inof infoo infp",
de: "dee ed",
fr: "ff rf",
"co.uk": "co.ku co.ik c.uk",
io: "oi ioo",
}).flatMap(([right, wrong]) => wrong.split(" ").map((each) => [each, right])),
);
const MAIL_PROVIDERS = new Set(
("gmail.com googlemail.com outlook.com hotmail.com live.com yahoo.com icloud.com me.com aol.com proton.me gmx.de " +
"gmx.net web.de mail.ru yandex.ru qq.com 163.com t-online.de orange.fr libero.it wp.pl o2.pl").split(" "),
);
function readDomain(typed) {
const text = hostPart(typed);
if (text === "") {
return reading("", "domain_empty");
}
if (text.startsWith("[")) {
return reading(text, "domain_address");
}
const mended = mend(text);
const name = toAscii(text);
if (name === null) {
return reading(text, "domain_characters", mended !== text && toAscii(mended) ? mended : null);
}
if (/^[\d.]+$/.test(name)) {
return reading(name, "domain_address");
}
if (!name.includes(".")) {
return reading(name, "domain_ending", mended.includes(".") ? mended : null);
}
if (name.length > 253 || name.split(".").some((label) => label === "" || label.length > 63)) {
return reading(name, "domain_characters", mended !== text && toAscii(mended) ? mended : null);
}
return {
name,
problem: null,
suggestion: mended === text ? null : mended,
isMailProvider: MAIL_PROVIDERS.has(name),
};
}
function displayName(name, typed) {
const text = hostPart(typed);
return toAscii(text) === name ? text : name;
}
function hostPart(typed) {
const text = typed
.trim()
.toLowerCase()
.normalize("NFKC")
.replaceAll(/[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u00ad]/g, "")
.replace(/^[<("'«]+|[>)"'»,;!?]+$/g, "")
.replace(/^(?:mailto:|(?:[a-z]{2,6}:?)?\/{1,3})/, "");
const host = text.split(/[/?#\\]/, 1)[0];
return host.slice(host.lastIndexOf("@") + 1).replace(/:\d*$/, "").replace(/^\*\./, "").replaceAll("。", ".").replace(/\.$/, "");
}
function toAscii(text) {
if (!/^[^\s!"#$%&'()*+,/:;<=>?@[\\\]^`{|}~]+$/u.test(text) || text.includes("..")) {
return null;
}
try {
return new URL(`http://${text}/`).hostname;
} catch {
return null;
}
}
function mend(text) {
const whole = text.replaceAll(/\s+/g, "").replaceAll(/[,;]+/g, ".").replaceAll(/\.{2,}/g, ".").replace(/^\.|\.$/g, "");
const dotted = whole.replace(/^www(?=[a-z0-9-]{3,}\.[a-z]{2,}$)/, "www.").replace(/^w{2,4}\./, "www.");
const ended = dotted.includes(".") ? dotted : dotted.replace(/(.{2,})(com|net|org)$/, "$1.$2");
const labels = ended.split(".");
for (const count of [2, 1]) {
const meant = labels.length > count && MEANT.get(labels.slice(-count).join("."));
if (meant) {
return [...labels.slice(0, -count), meant].join(".");
}
}
return ended;
}
function reading(name, problem, suggestion = null) {
return { name, problem, suggestion, isMailProvider: false };
}
function domainStep(modal) {
const { words, configuration } = modal;
const { prefilledDomain: prefilled } = configuration;
const choices = Array.isArray(prefilled) ? prefilled : [];
const form = el("form", { id: "domain-form", novalidate: true });
const field = domainField(modal, choices.length > 0);
const radios = [];
const submit = () => {
const chosen = radios.find((radio) => radio.checked)?.value;
if (chosen) {
modal.typed = chosen;
modal.choose(chosen);
return;
}
const name = field.read();
if (name !== null) {
modal.choose(name);
}
};
form.addEventListener("submit", (event) => {
event.preventDefault();
submit();
});
if (choices.length > 0) {
const showField = () => {
field.element.hidden = !radios.at(-1)?.checked;
};
for (const value of [...choices, ""]) {
const radio = (el("input", { type: "radio", name: "domain", value, on: { change: showField } }));
radio.checked = value === (choices.includes(modal.typed) || !modal.typed ? modal.typed || choices[0] : "");
radios.push(radio);
}
const labels = radios.map((radio) => el("label", { class: "radio" }, radio, radio.value ? el("bdi", {}, radio.value) : words.of("domain_other")));
form.append(el("fieldset", {}, el("legend", { class: "unseen" }, words.of("domain_choose")), el("div", { class: "choices" }, labels)));
showField();
}
form.append(field.element);
const title = configuration.applicationName
? words.of("domain_title_for", { application: configuration.applicationName })
: words.of("domain_title");
return {
title,
body: [el("p", { class: "lead" }, words.of(choices.length > 0 ? "domain_choose" : "domain_lead")), form],
actions: [submitButton(words.of("continue"), "domain-form")],
focus: radios.find((radio) => radio.checked) ?? field.input,
update: () => field.showRefusal(),
};
}
function domainField(modal, isSecond) {
const { words } = modal;
const input = (
el("input", {
id: "domain",
class: "input",
type: "text",
inputmode: "url",
placeholder: "example.com",
autocomplete: "off",
autocapitalize: "off",
autocorrect: "off",
spellcheck: "false",
dir: "ltr",
"aria-describedby": "problem hint",
props: { value: modal.typed },
})
);
const problem = el("p", { id: "problem", class: "problem", role: "alert", hidden: true });
const hint = el("p", { id: "hint", class: "hint", "aria-live": "polite", hidden: true });
const showProblem = (text) => {
problem.hidden = text === null;
problem.replaceChildren(icon("warning"), el("span", {}, text ?? ""));
input.setAttribute("aria-invalid", String(text !== null));
};
const showHint = (suggestion) => {
hint.hidden = suggestion === null;
const take = () => {
input.value = modal.typed = suggestion ?? "";
showHint(null);
showProblem(null);
input.focus();
};
hint.replaceChildren(
`${words.of("domain_hint")} `,
el("button", { type: "button", on: { click: take } }, el("bdi", {}, suggestion ?? "")),
"?",
);
};
input.addEventListener("input", () => {
modal.typed = input.value;
showProblem(null);
showHint(null);
});
input.addEventListener("change", () => showHint(input.value.trim() ? readDomain(input.value).suggestion : null));
let warnedOf = "";
const read = () => {
const { name, problem: key, suggestion, isMailProvider } = readDomain(input.value);
const isNew = suggestion !== null && warnedOf !== input.value;
warnedOf = input.value;
showHint(suggestion);
if (key !== null || isMailProvider) {
showProblem(words.of(key ?? "domain_mail_provider", { domain: name }));
input.focus();
return null;
}
if (isNew) {
return null; // a second click on Continue means what is typed
}
modal.typed = displayName(name, input.value);
return name;
};
const showRefusal = () => {
if (modal.error) {
showProblem([words.of("domain_refused"), modal.error.hint].filter(Boolean).join(" "));
input.focus();
}
};
const label = el("label", { for: "domain" }, words.of(isSecond ? "domain_other" : "domain_label"));
return { input, read, showRefusal, element: el("div", { class: "field" }, label, input, problem, hint) };
}
const LOOKS = Object.freeze({ provider: "checking_provider", records: "checking_records", ways: "checking_ways" });
function checkingStep(modal) {
const { words } = modal;
const list = el("ul", { class: "list" });
let shown = "";
const update = () => {
const steps = modal.flow?.steps ?? {};
if (shown === (shown = JSON.stringify([steps, modal.providerName]))) {
return;
}
list.replaceChildren(
...Object.entries(LOOKS).map(([name, key]) => {
const isDone = steps[name] === "done";
const found = name === "provider" && isDone && modal.providerName;
return el(
"li",
{ class: "looked" },
isDone ? icon("check", "good") : icon(steps[name] === "running" ? "wait" : "todo", steps[name] === "running" ? "spin" : "soft"),
el("div", {}, words.of(key), found && el("p", { class: "small" }, found)),
);
}),
);
};
update();
return {
title: words.of("checking_title", { domain: modal.host }),
body: [el("p", { class: "lead" }, words.of("checking_lead")), list],
update,
};
}
function uncheckedStep(modal) {
const { words, flow } = modal;
const isUnregistered = ["not_registered", "nxdomain"].includes(flow?.error?.code);
const kind = isUnregistered ? "not_registered" : "unchecked";
const actions = [
button(words.of("other_domain"), () => modal.show("domain"), { kind: isUnregistered ? "primary" : "plain" }),
button(words.of("try_again"), () => modal.lookAgain(), { kind: isUnregistered ? "plain" : "primary" }),
];
return {
title: words.of(`${kind}_title`, { domain: modal.host }),
body: [
el("p", { class: "lead" }, words.of(`${kind}_lead`)),
flow?.error?.message &&
el("details", {}, el("summary", {}, words.of("details")), el("p", { class: "small" }, [flow.error.message, flow.error.hint].filter(Boolean).join(" "))),
],
actions: isUnregistered ? actions.reverse() : actions,
};
}
function credentialFields(modal, way) {
const { words } = modal;
const wanted = (way?.fields ?? []);
const problems = wanted.map((_, number) => el("p", { class: "problem", id: `problem-${number}`, role: "alert", hidden: true }));
const inputs = wanted.map((field, number) =>
(
el("input", {
id: `credential-${number}`,
name: field.name,
class: "input",
type: field.isSecret ? "password" : "text",
autocomplete: "off",
spellcheck: "false",
autocapitalize: "off",
dir: "ltr",
"data-1p-ignore": true,
"data-lpignore": "true",
"aria-required": String(field.isRequired),
"aria-describedby": `problem-${number}`,
on: { input: () => show(number, null) },
})
),
);
const show = (number, text) => {
problems[number].hidden = text === null;
problems[number].replaceChildren(icon("warning"), el("span", {}, text ?? ""));
inputs[number].setAttribute("aria-invalid", String(text !== null));
};
const read = () => {
const empty = wanted.flatMap((field, number) => (field.isRequired && !inputs[number].value.trim() ? [number] : []));
empty.forEach((number) => show(number, words.of("token_empty")));
if (empty.length > 0) {
inputs[empty[0]].focus();
return null;
}
return Object.fromEntries(inputs.filter((input) => input.value.trim()).map((input) => [input.name, input.value.trim()]));
};
const element = el(
"div",
{},
wanted.map((field, number) =>
el("div", { class: "field" }, el("label", { for: `credential-${number}` }, labelOf(words, field)), inputs[number], problems[number]),
),
);
return { element, read, isNeeded: wanted.length > 0, first: inputs[0] ?? null };
}
function labelOf(words, field) {
const key = `credential_${field.name}`;
return words.has(key) ? words.of(key) : field.label;
}
function conflictsStep(modal) {
const { words } = modal;
return {
title: words.of("conflicts_title", { domain: modal.host }),
body: [
noticeOf(modal),
el("p", { class: "lead" }, words.of("conflicts_lead", { application: modal.applicationName })),
...changeCards(modal, changesOf((modal.flow))),
!["manual", "domain_connect"].includes(modal.flow?.ways?.find((way) => !way.isExpert)?.way) &&
el("div", { class: "note" }, icon("undo"), el("p", {}, words.of("conflicts_undo"))),
],
actions: [button(words.of("conflicts_agree"), () => modal.show("way"), { kind: "primary" })],
};
}
function reviewStep(modal) {
const { words } = modal;
return {
title: words.of(modal.flow?.written ? "changed" : "changes"),
body: changeCards(modal, changesOf((modal.flow))),
actions: [
...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
button(words.of("continue"), () => modal.show(null), { kind: "primary" }),
],
};
}
function undoStep(modal) {
return modal.isUndoneAtProvider ? undoAtProvider(modal) : undoHere(modal);
}
function undoAtProvider(modal) {
const { words, flow } = modal;
const way = flow?.ways?.find((each) => each.way === "domain_connect");
const values = { domain: modal.host, provider: way?.provider ?? modal.providerName };
const before = changesOf((flow)).map((change) => ({ ...change, status: "written" }));
return {
title: words.of("undo_title", values),
body: [
el("p", { class: "lead" }, words.of("domain_connect_undo_lead", values)),
way?.controlPanelUrl && el("p", {}, externalLink(words.of("domain_connect_open", values), way.controlPanelUrl)),
...changeCards(modal, takenBack(before)),
],
actions: [button(words.of("back"), () => modal.back(), { kind: "primary" })],
};
}
function undoHere(modal) {
const { words, flow } = modal;
const answer = modal.error?.answer;
const isChanged = modal.error?.apiCode === "written_changed";
const way = flow?.ways?.find((each) => each.way === flow.way);
const fields = credentialFields(modal, way);
const values = { domain: modal.host, application: modal.applicationName };
const start = (event) => {
event.preventDefault();
const credentials = fields.read();
if (credentials) {
modal.undo({ ...(fields.isNeeded && { credentials }), ...(isChanged && { digest: answer.digest }) });
}
};
return {
title: words.of("undo_title", values),
body: [
isChanged && el("div", { class: "note warn" }, icon("warning", "warn"), el("p", {}, words.of("undo_changed"))),
el("p", { class: "lead" }, words.of("undo_lead", values)),
...changeCards(modal, takenBack(flow?.written ?? [])),
el("form", { id: "undo-form", novalidate: true, on: { submit: start } }, fields.element),
],
actions: [
button(words.of("undo_keep"), () => modal.back(), { kind: "plain" }),
submitButton(words.of("undo_start"), "undo-form"),
],
};
}
function changeCards({ words }, changes) {
const byName = new Map();
for (const change of changes) {
byName.set(change.name, [...(byName.get(change.name) ?? []), change]);
}
return [...byName].map(([name, ofName]) =>
el(
"section",
{ class: "card" },
el("div", { class: "card-head" }, el("b", {}, el("bdi", {}, name))),
ofName.map((change) => {
const action = change.action === "replace" && change.before.length === 0 ? "add" : change.action === "replace" && change.after.length === 0 ? "remove" : change.action;
return el(
"div",
{ class: "change" },
el("p", {}, el("span", { class: "type" }, change.type), el("span", { class: "tag" }, words.of(`action_${action}`))),
el(
"dl",
{ class: "sides" },
change.before.length > 0 && side(words.of("now"), change.before, change.action === "merge" ? change.before : change.after),
change.after.length > 0 && side(words.of("then"), change.after, change.after, change.action === "merge" ? change.before : []),
),
);
}),
),
);
}
function side(label, values, kept = values, merged = []) {
const known = merged.flatMap((text) => text.split(" "));
const shown = (value) => {
const text = code(value);
if (merged.length > 0) {
text.replaceChildren(...value.split(/( )/).map((part) => (part === " " || known.includes(part) ? part : el("ins", {}, part))));
}
return text;
};
return [
el("dt", {}, label),
el("dd", {}, values.map((value) => el("div", { class: kept.includes(value) ? "" : "before" }, kept.includes(value) ? shown(value) : el("del", {}, code(value))))),
];
}
function takenBack(written) {
return written
.filter((entry) => entry.status === "written" || entry.status === "writing")
.map((entry) => ({ ...entry, action: "replace", before: entry.after, after: entry.before }));
}
function noticeOf(modal) {
const { notice } = modal;
modal.notice = null;
return notice && el("div", { class: "note warn", role: "alert" }, icon("warning", "warn"), el("p", {}, notice));
}
const TITLES = Object.freeze({
domain_connect: "apply_title",
provider_api: "token_title",
dynamic_update: "way_dynamic_update",
});
function wayStep(modal) {
const { words, flow } = modal;
const ways = flow?.ways ?? [];
const manual = ways.find(({ way }) => way === "manual");
if (flow?.plan?.isEmpty && manual) {
return {
title: words.of("way_empty"),
body: [el("p", { class: "lead" }, el("bdi", {}, modal.host))],
actions: [button(words.of("continue"), () => modal.apply(manual), { kind: "primary" })],
};
}
const values = { domain: flow?.domain ?? "", provider: modal.providerName };
const best = ways.find((way) => !way.isExpert);
const choice = (way) => {
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
el("ul", { class: "choices" }, ways.filter((way) => !way.isExpert).map(choice)),
experts.length > 0 &&
el("details", {}, el("summary", {}, words.of("way_experts")), el("ul", { class: "choices" }, experts.map(choice))),
],
actions: [button(words.of("share"), () => modal.show("share"), { kind: "plain", icon: "share" })],
};
}
function providerOf(modal, way) {
return way.provider ?? (modal.providerName || way.api || "DNS");
}
function take(modal, way) {
modal.chosenWay = way;
if (way.way === "manual") {
modal.apply(way);
} else {
modal.show("credentials");
}
}
function credentialsStep(modal) {
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
const form = el("form", { id: "credentials", novalidate: true, on: { submit: (event) => (event.preventDefault(), start()) } }, fields.element);
return {
title: words.of(TITLES[(way.way)], { ...values, domain: modal.host }),
body: [
isHandedOver && el("p", { class: "lead" }, words.of("domain_connect_text", values)),
way.way === "provider_api" && tokenGuide(modal, way, values),
form,
fields.isNeeded && el("div", { class: "note" }, icon("lock"), el("p", {}, words.of("token_forgotten"))),
el("h3", {}, words.of("changes")),
...changeCards(modal, changesOf((flow))),
isHandedOver &&
changesExisting((flow)) &&
el("div", { class: "note" }, icon("undo"), el("p", {}, words.of("domain_connect_undo", values))),
],
actions: [
submitButton(words.of(isHandedOver ? "domain_connect_open" : "apply_start", values), "credentials", {
icon: isHandedOver ? "open" : undefined,
}),
],
focus: fields.first,
};
}
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
function loginStep(modal) {
const { words, flow } = modal;
const way = flow?.ways?.find((each) => each.way === "domain_connect");
const values = { provider: providerOf(modal, way ?? {}) };
const waiting = el("p", {});
const reason = el("p", { class: "small" });
const note = el("div", { class: "note", role: "status" });
const again = el(
"a",
{ class: "button secondary", target: "_blank", rel: "noopener noreferrer" },
el("span", {}, words.of("domain_connect_again", values)),
icon("open"),
);
const update = () => {
const { url, returned, description } = modal.flow?.handover ?? {};
const key = returned ? "refused" : modal.isWindowBlocked ? "blocked" : "waiting";
waiting.textContent = words.of(`domain_connect_${key}`, values);
reason.textContent = description ?? "";
note.replaceChildren(returned ? icon("warning", "warn") : icon("wait", "spin"), el("div", {}, waiting, reason));
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
],
actions: [button(words.of("domain_connect_other"), () => modal.lookAgain(), { kind: "plain" }), again],
update,
};
}
async function openHandover(modal, way, applied) {
const opened = window.open("", "_blank", windowFeatures(way));
modal.isWindowBlocked = !opened;
await applied;
const url = modal.flow?.handover?.url;
if (opened && url) {
opened.opener = null;
opened.location.replace(url);
} else {
opened?.close();
}
}
function windowFeatures({ width = 750, height = 750 }) {
const left = Math.max(0, Math.round(window.screenX + (window.outerWidth - width) / 2));
const top = Math.max(0, Math.round(window.screenY + (window.outerHeight - height) / 2));
return `popup,width=${width},height=${height},left=${left},top=${top}`;
}
function applyingStep(modal) {
const { words, flow } = modal;
const isUndoing = flow?.state === "undoing";
const list = el("ul", { class: "list" });
const update = () => {
list.replaceChildren(...(modal.flow?.written ?? []).map((entry) => writtenItem(entry)));
};
update();
return {
title: words.of(isUndoing ? "undoing_title" : "applying_title", { domain: modal.host }),
body: [el("p", { class: "lead" }, words.of("applying_lead")), list],
update,
};
}
function haltedStep(modal) {
const { words, flow } = modal;
const written = flow?.written ?? [];
const hasWritten = written.some((entry) => entry.status === "written");
const way = flow?.ways?.find((each) => each.way === flow.way);
const provider = modal.providerName || way?.provider || words.of("your_server");
const values = { provider, domain: modal.host };
const isTokenWrong = ["wrong_token", "not_allowed"].includes(flow?.error?.code);
return {
title: words.of(hasWritten ? "halted_title" : "halted_nothing_title"),
body: [
el("p", { class: "lead" }, words.of(hasWritten ? "halted_lead" : "halted_nothing", values)),
el(
"div",
{ class: "note bad", role: "alert" },
icon("warning", "bad"),
el("p", {}, isTokenWrong ? words.of("token_wrong", values) : [flow?.error?.message, flow?.error?.hint].filter(Boolean).join(" ")),
),
hasWritten && el("ul", { class: "list" }, written.map((entry) => writtenItem(entry))),
],
actions: [
...(modal.canUndo && hasWritten ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
button(words.of("try_again"), () => modal.lookAgain(), { kind: "primary" }),
],
};
}
function writtenItem({ name, type, status }) {
const isDone = ["written", "taken_back"].includes(status);
const isFailed = status === "not_written";
return el(
"li",
{ class: "looked" },
isDone ? icon("check", "good") : isFailed ? icon("close", "bad") : icon("wait", "spin"),
el("div", {}, el("span", { class: "type" }, type), " ", el("bdi", {}, name)),
);
}
function recordsStep(modal) {
const { words } = modal;
const list = el("ul", { class: "list" });
const look = el("p", { class: "small", role: "status" });
const other = button(words.of("domain_connect_other"), () => modal.lookAgain(), { kind: "plain" });
let shown = "";
const update = () => {
if (modal.flow?.state !== "waiting") {
other.remove(); // the records are live
}
const { records = [], enrolments = [] } = modal.flow ?? {};
look.textContent = nextLook(modal);
if (shown === (shown = JSON.stringify([records, enrolments]))) {
return;
}
list.replaceChildren(
...records.map((record) => liveItem(modal, record)),
...(enrolments ?? []).filter((each) => ["power", "secure"].includes(each.product)).map((each) => certificateItem(modal, each)),
);
const live = records.filter((record) => record.status === "propagated").length;
modal.announce(words.of("live_of", { live: String(live), all: String(records.length) }));
};
update();
return {
title: words.of("records_title", { domain: modal.host }),
body: [
noticeOf(modal),
el("p", { class: "lead" }, words.of("records_lead")),
list,
el("div", { class: "note" }, icon("wait"), el("div", {}, el("p", {}, words.of("records_close")), look)),
],
actions: [
...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
...(modal.flow?.state === "waiting" ? [other] : []),
],
update,
};
}
function timeoutStep(modal) {
const { words, flow } = modal;
return {
title: words.of("timeout_title"),
body: [
el("p", { class: "lead" }, words.of("timeout_lead")),
el("ul", { class: "list" }, (flow?.records ?? []).map((record) => liveItem(modal, record, { isLookedFor: false }))),
],
actions: [
...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
button(words.of("manual_check"), () => modal.act(() => modal.post("check"), () => modal.show(null)), { kind: "primary" }),
],
};
}
function liveItem({ words, flow }, record, { isLookedFor = true } = {}) {
const isLive = record.status === "propagated";
const name = record.host === "@" ? flow?.domain : `${record.host}.${flow?.domain}`;
return el(
"li",
{ class: "looked" },
isLive ? icon("check", "good") : isLookedFor ? icon("wait", "spin") : icon("warning", "warn"),
el(
"div",
{},
el("span", { class: "type" }, record.type),
" ",
el("bdi", {}, name ?? ""),
el("p", { class: "small" }, code(record.value)),
),
el("span", { class: `state ${isLive ? "good" : "soft"}` }, words.of(isLive || isLookedFor ? `record_${record.status}` : "record_missing")),
);
}
function certificateItem({ words }, { name, status, certificate }) {
const isFailed = status === "failed" || certificate === "none";
const isReady = certificate === "live";
return el(
"li",
{ class: "looked" },
isReady ? icon("lock", "good") : isFailed ? icon("warning", "warn") : icon("wait", "spin"),
el("div", {}, words.of("certificate"), el("p", { class: "small" }, el("bdi", {}, name))),
el(
"span",
{ class: `state ${isReady ? "good" : "soft"}` },
words.of(isReady ? "certificate_ready" : isFailed ? "certificate_failed" : "certificate_pending"),
),
);
}
function recordState(words, status) {
return [icon(status === "propagated" ? "check" : "wait"), el("span", {}, words.of(`record_${status}`))];
}
function nextLook({ words, flow }) {
const at = flow?.propagation?.next_look_at;
if (!at) {
return "";
}
const seconds = (Date.parse(at) - Date.now()) / 1000;
return seconds > 1 ? words.of("next_look", { when: words.inTime(seconds) }) : words.of("last_look");
}
function manualStep(modal) {
const { words, flow } = modal;
const way = flow?.ways?.find((each) => each.way === "manual") ?? {};
const values = { domain: flow?.domain ?? "", provider: modal.providerName, application: modal.applicationName };
const changes = changesOf((flow));
const merged = changes.filter(({ action }) => action === "merge");
const leaving = changes.filter((change) => !merged.includes(change)).flatMap((change) =>
change.before
.filter((value) => !change.after.includes(value))
.map((value) => ({ type: change.type, host: change.host, value })),
);
const names = modal.providerName ? way.fieldNames : {}; // of a provider's own form
const cards = (flow?.records ?? []).map((record, number) => {
const change = merged.find(({ host, type }) => host === record.host && type === record.type);
return recordCard(modal, { manual: way.records?.[number], ...record }, names ?? {}, change && mergedValue(change));
});
const look = el("p", { class: "small", role: "status" });
const update = () => {
(modal.flow?.records ?? []).forEach((record, number) => cards[number]?.showState(record));
look.textContent = nextLook(modal);
};
update();
return {
title: words.of(modal.providerName ? "manual_title" : "manual_title_plain", values),
body: [
el(
"ol",
{ class: "guide" },
el("li", {}, words.of(modal.providerName ? "manual_open" : "manual_open_plain", values)),
leaving.length > 0 && el("li", {}, words.of("manual_remove", { heading: words.of("manual_delete") })),
el("li", {}, words.of("manual_add")),
),
guides(modal, values),
leaving.length > 0 && el("h3", {}, words.of("manual_delete")),
...leaving.map((record) => leavingCard(record)),
el("h3", {}, words.of("manual_records")),
...cards.map(({ element }) => element),
el("div", { class: "note" }, icon("wait"), el("div", {}, el("p", {}, words.of("manual_wait")), look)),
],
actions: [
button(words.of("share"), () => modal.show("share"), { kind: "plain", icon: "share" }),
button(words.of("manual_check"), () => modal.act(() => modal.post("check"), () => modal.show(null)), { kind: "primary" }),
],
update,
};
}
function guides({ words, flow, configuration }, values) {
const links = [
flow?.provider?.helpUrl && externalLink(words.of("manual_help", values), flow.provider.helpUrl),
configuration.manualSetupDocumentation && externalLink(words.of("manual_partner_help", values), configuration.manualSetupDocumentation),
].filter(Boolean);
return links.length > 0 && el("p", { class: "small" }, links.flatMap((link, number) => (number ? [" · ", link] : [link])));
}
function leavingCard({ type, host, value }) {
return el(
"div",
{ class: "card" },
el("div", { class: "change" }, el("span", { class: "type" }, type), " ", code(host), " ", el("del", { class: "before" }, code(value))),
);
}
function mergedValue({ before, after }) {
return after.find((value) => !before.includes(value)) ?? after[0];
}
function recordCard(modal, record, names, merged) {
const { words } = modal;
const state = el("span", { class: "state" });
const host = record.manual?.host ?? record.host;
const fields = [
["host", host],
["value", merged ?? record.manual?.value ?? record.value],
["priority", record.priority],
["ttl", record.ttl],
].filter(([, value]) => value !== undefined && value !== null);
const rows = fields.map(([name, value]) => {
const label = names[name] ?? words.of(`field_${name}`);
const text = String(value);
const shown = text === "" ? el("span", { class: "soft" }, words.of("field_empty")) : code(text);
return el(
"div",
{ class: "row" },
el("dt", {}, label),
el("dd", {}, shown, text !== "" && copyButton(text, `${record.type} ${label}`, { copy: words.of("copy"), copied: words.of("copied") }, (message) => modal.announce(message))),
);
});
const element = el(
"section",
{ class: "card", "aria-label": `${record.type} ${record.host}` },
el("div", { class: "card-head" }, el("span", { class: "type" }, record.type), el("bdi", {}, nameOf(record, modal.flow?.domain ?? "")), state),
merged !== undefined && el("div", { class: "change small" }, words.of("manual_merge")),
el("dl", { class: "rows" }, rows),
);
let shown = "";
return {
element,
showState: (current) => {
if (shown !== (shown = current.status)) {
state.replaceChildren(...recordState(words, current.status));
state.className = `state ${current.status === "propagated" ? "good" : "soft"}`;
}
},
};
}
function nameOf(record, domain) {
return record.host === "@" ? domain : `${record.host}.${domain}`;
}
const FAILURES = Object.freeze({
token_refused: "error_token",
get_token_failed: "error_token",
unreachable: "error_unreachable",
too_many_requests: "error_busy",
forbidden: "error_forbidden",
});
const REFUSALS = Object.freeze({
outside_configuration: "error_configuration",
configuration: "error_configuration",
configuration_not_found: "error_configuration",
scope: "error_configuration",
domain: "error_domain",
link: "error_ended",
link_ended: "error_ended",
link_not_found: "error_ended",
link_revoked: "error_ended",
configuration_removed: "error_ended",
secret_ended: "error_ended",
});
function errorStep(modal) {
const { words, error } = modal;
const key = REFUSALS[error?.apiCode ?? ""] ?? FAILURES[(error?.code)] ?? "error_other";
const reason = error?.hint ?? error?.message ?? "";
return {
title: words.of("error_title"),
body: [
el(
"div",
{ class: "note bad", role: "alert" },
icon("warning", "bad"),
el("p", {}, words.of(key, { reason, application: modal.applicationName })),
),
error?.requestId && el("p", { class: "small field" }, words.nodes("error_number", { id: el("code", {}, error.requestId) })),
],
actions: [
button(words.of("close"), () => modal.close(), { kind: "plain" }),
button(words.of("try_again"), () => modal.retry(), { kind: "primary" }),
],
};
}
function doneStep(modal) {
const { words, flow } = modal;
const failed = (flow?.enrolments ?? []).filter(({ product, status }) => product !== "monitor" && status === "failed");
const lead = el("p", { class: "lead" });
const place = el("div", {});
const wait = el("p", { class: "small", hidden: true }, words.of("records_close"));
const end = button(words.of("done"), () => modal.close());
let shown = "";
const update = () => {
const served = servedNames(modal.flow);
if (shown === (shown = JSON.stringify(served))) {
return;
}
const ready = served.filter(({ certificate }) => certificate === "live");
const isReady = served.length > 0 && ready.length === served.length;
lead.textContent = words.of(isReady ? "done_lead" : "done_lead_plain");
place.replaceChildren(
...(isReady ? [] : [el("ul", { class: "list" }, served.map((each) => certificateItem(modal, each)))]),
...(isReady ? [openLink(modal, ready.find(({ name }) => name === modal.flow?.host) ?? ready[0])] : []),
);
wait.hidden = isReady || served.length === 0;
end.className = `button ${isReady ? "secondary" : "primary"}`;
modal.announce(isReady ? words.of("done_lead") : "");
};
update();
return {
title: words.of("done_title", { domain: modal.host }),
body: [
lead,
...failed.map((enrolment) =>
el(
"div",
{ class: "note warn" },
icon("warning", "warn"),
el("p", {}, el("bdi", {}, enrolment.name), `: ${reasonOf(modal, enrolment)}`),
),
),
place,
wait,
],
seal: el("p", { class: "seal" }, icon("check")),
actions: [
...(modal.canUndo ? [button(words.of("undo"), () => modal.show("undo"), { kind: "plain", icon: "undo" })] : []),
end,
],
update,
};
}
function reasonOf({ words, applicationName }, { code, hint }) {
const key = code === "already_enrolled" ? "done_enrolled" : REFUSALS[code];
return key ? words.of(key, { application: applicationName }) : `${words.of("certificate_failed")}. ${hint ?? ""}`;
}
function openLink({ words }, { name, url }) {
return el(
"p",
{ class: "field" },
el(
"a",
{ class: "button primary", href: url ?? `https://${name}/`, target: "_blank", rel: "noopener" },
el("span", {}, words.of("done_open", { domain: name })),
icon("open"),
),
);
}
function undoneStep(modal) {
const { words } = modal;
return {
title: words.of("undone_title"),
body: [el("p", { class: "lead" }, words.of("undone_lead", { domain: modal.host }))],
actions: [
button(words.of("start_again"), () => modal.lookAgain(), { kind: "plain" }),
button(words.of("done"), () => modal.close(), { kind: "primary" }),
],
};
}
function shareStep(modal) {
const { words } = modal;
const place = el("div", { class: "field", role: "status" }, icon("wait", "spin"));
const lead = el("p", { class: "lead" });
const make = async () => {
try {
const { link, expires_at: expiresAt } = (await modal.post("share"));
const date = words.date(expiresAt, { dateStyle: "long" });
lead.textContent = words.of("share_lead", { domain: modal.host, date });
const field = (
el("input", { id: "link", class: "input", readonly: true, dir: "ltr", props: { value: link }, on: { focus: () => field.select() } })
);
const copy = copyButton(link, words.of("share_label"), { copy: words.of("copy"), copied: words.of("copied") }, (message) => modal.announce(message));
copy.className = "button primary copy-link";
place.replaceChildren(el("label", { for: "link" }, words.of("share_label")), field, el("p", { class: "field" }, copy));
} catch {
place.replaceChildren(
el("p", { class: "problem" }, icon("warning"), words.of("share_failed")),
button(words.of("try_again"), make),
);
}
};
make();
return {
title: words.of("share_title"),
body: [lead, place],
actions: [button(words.of("back"), () => modal.back())],
};
}
const VIEWS = {
domain: domainStep,
checking: checkingStep,
unchecked: uncheckedStep,
conflicts: conflictsStep,
way: wayStep,
credentials: credentialsStep,
login: loginStep,
applying: applyingStep,
halted: haltedStep,
manual: manualStep,
records: recordsStep,
timeout: timeoutStep,
done: doneStep,
review: reviewStep,
undo: undoStep,
undoing: applyingStep,
undone: undoneStep,
share: shareStep,
error: errorStep,
};
const LASTING = ["review", "undo", "share"];
const MOST_TOKEN_FAILURES = 3;
class Modal {
flow = null;
typed = "";
chosenWay = null;
notice = null;
error = null;
retry = () => {};
isBusy = false;
isWindowBlocked = false;
#view = null;
#shown = "";
#update;
#following = new AbortController();
#isOpen = false;
#hasSucceeded = false;
#resolve = () => {};
constructor(configuration, client, words, { nonce, share }) {
this.configuration = configuration;
this.client = client;
this.words = words;
this.share = share;
const brand = { ...configuration.whiteLabel, name: configuration.applicationName };
this.dialog = new Dialog(words, brand, nonce, { back: () => this.back(), close: () => this.close() });
}
run() {
this.#isOpen = true;
this.dialog.open();
this.render();
const { prefilledDomain } = this.configuration;
if (typeof prefilledDomain === "string") {
this.typed = prefilledDomain;
this.choose(prefilledDomain);
}
return new Promise((resolve) => {
this.#resolve = resolve;
});
}
close() {
if (!this.#isOpen) {
return;
}
this.#isOpen = false;
this.#following.abort();
this.dialog.close();
const detail = { ...this.#outcome(), success: this.flow?.state === "finished", lastStatus: this.#lastStatus() };
const failure = this.error ?? this.flow?.error;
if (detail.lastStatus === "EXIT_WITH_ERROR" && failure) {
detail.error = { code: failure.code ?? "refused", message: failure.message ?? failure.hint ?? "" };
}
this.#emit("onFrontageClose", detail);
this.#resolve(detail);
}
get applicationName() {
return this.configuration.applicationName ?? this.words.of("this_application");
}
get providerName() {
return providerName(this.flow) ?? "";
}
get host() {
return this.flow?.host ?? this.flow?.domain ?? this.typed;
}
get canUndo() {
return canUndo(this.flow) || this.isUndoneAtProvider;
}
get isUndoneAtProvider() {
return !canUndo(this.flow) && canUndoAtProvider(this.flow);
}
announce(message) {
this.dialog.announce(message);
}
// What the person does ------------------------------------------------------------------------------------------
show(step) {
this.#view = step;
this.#shown = "";
this.render();
}
back() {
const step = this.#step();
if (LASTING.includes(step) || step === "error") {
this.error = null;
this.show(null);
return;
}
const before = stepBefore(step, this.flow);
if (before === "again") {
this.lookAgain();
} else if (before !== null) {
this.show(before);
}
}
choose(name) {
return this.act(() => this.#chooseOrResume(name), () => this.choose(name));
}
lookAgain() {
return this.act(() => this.post("plan"), () => this.lookAgain());
}
apply(way, credentials) {
const body = { way: way.way, digest: this.flow?.plan?.digest, ...(credentials && { credentials }) };
return this.act(() => this.post("apply", body), () => this.show(null));
}
undo(body = {}) {
return this.act(() => this.post("undo", body), () => this.show("undo"));
}
post(action, body) {
return this.client.post(`/connect/flows/${this.flow?.id}/${action}`, body);
}
async act(request, retry) {
if (this.isBusy) {
return;
}
this.#setBusy(true);
try {
const flow = await request();
this.#view = null;
this.error = null;
this.#take(flow, true);
this.#follow();
} catch (error) {
this.#fail(error, retry);
} finally {
this.#setBusy(false);
}
}
async #chooseOrResume(name) {
const remembered = rememberedFlow(this.configuration, name);
if (remembered && remembered !== this.flow?.id) {
const flow = await this.client.get(`/connect/flows/${remembered}`).catch(() => null);
if (flow && !["closed", "undone"].includes(flow.state)) {
return flow;
}
}
const isReusable = this.flow && !this.flow.written && ["choosing", "checking", "unchecked", "planned"].includes(this.flow.state);
const flow = isReusable
? await this.post("domain", { domain: name })
: await this.client.post("/connect/flows", {
...forApi(this.configuration),
domain: name,
...(this.share && { share: this.share }),
});
rememberFlow(this.configuration, name, flow.id);
return flow;
}
// What happens ----------------------------------------------------------------------------------------------------
async #follow() {
this.#following.abort();
const { signal } = (this.#following = new AbortController());
for (let failures = 0; this.flow && !hasEnded(this.flow) && !signal.aborted; ) {
try {
for await (const flow of this.client.events(`/connect/flows/${this.flow.id}/events`, signal)) {
if (signal.aborted) {
return;
}
failures = 0;
this.#setOffline(false);
this.#take(flow, false);
}
await reconnectPause(0, signal);
} catch (error) {
if (signal.aborted) {
return;
}
if (isLasting(error, failures)) {
this.#fail(error, () => this.#resume());
return;
}
this.#setOffline(true);
await reconnectPause(failures++, signal);
}
}
await this.#awaitCertificates(signal);
}
async #awaitCertificates(signal) {
for (let looks = 0; this.flow && lacksCertificate(this.flow) && !signal.aborted; looks++) {
const flow = await this.client.get(`/connect/flows/${this.flow.id}`).catch(() => null);
if (flow !== null && !signal.aborted) {
this.#take(flow, false);
}
await reconnectPause(looks, signal);
}
}
#resume() {
const id = this.flow?.id;
return this.act(() => this.client.get(`/connect/flows/${id}`), () => this.#resume());
}
#take(flow, isAnswer) {
if (this.flow?.id === flow.id && flow.version < this.flow.version) {
return;
}
const moved = this.flow?.state !== flow.state;
this.flow = flow;
if (moved && this.#view !== null && !LASTING.includes(this.#view) && !isAnswer && this.#view !== "error") {
this.#view = null;
}
this.render();
if (moved && flow.state === "closed" && flow.error) {
const { code, message, hint } = flow.error;
this.#fail(new FrontageError("refused", message, { apiCode: code, hint }), () => this.show(null));
}
if (flow.state === "finished" && !this.#hasSucceeded) {
this.#hasSucceeded = true;
this.#emit("onSuccess", { ...this.#outcome(), jobId: flow.job_id });
}
}
#fail(error, retry) {
const known = error instanceof FrontageError ? error : new FrontageError("refused", String(error), { cause: error });
console.error(`Frontage: ${known.code}: ${known.message}${known.hint ? ` (${known.hint})` : ""}`);
this.error = known;
this.retry = retry;
if (known.apiCode === "plan_changed" || known.apiCode === "zone_changed") {
this.notice = this.words.of("plan_changed", { domain: this.host });
this.error = null;
this.#view = null;
queueMicrotask(() => this.#resume());
return;
}
if (this.#step() === "domain" && known.status === 400) {
this.render(); // beside the field
return;
}
if (this.#step() === "credentials" && known.apiCode?.startsWith("credentials")) {
this.render();
return;
}
this.show("error");
}
// What is shown ---------------------------------------------------------------------------------------------------
render() {
if (!this.#isOpen) {
return;
}
const step = this.#step();
const shown = [step, this.flow?.id, this.flow?.plan?.digest].join(" ");
if (shown === this.#shown) {
this.#update?.();
return;
}
this.#shown = shown;
const content = VIEWS[step](this);
this.#update = content.update;
const canGoBack = LASTING.includes(step) || (step === "error" && this.flow !== null) || stepBefore(step, this.flow) !== null;
const stage = STEPS[step === "error" ? stepOf(this.flow) : step].stage;
this.dialog.show(content, { stage, canGoBack });
if (this.dialog.element.dataset.step !== step) {
this.dialog.element.dataset.step = step;
this.#emit("onFrontageStepChange", { step, domain: this.#outcome().domain, provider: this.#outcome().provider });
}
}
#step() {
return this.#view ?? stepOf(this.flow);
}
#outcome() {
const domain = this.flow?.host ?? this.flow?.domain ?? null;
return { domain, setupType: this.flow?.setup_type ?? null, provider: providerName(this.flow) };
}
#lastStatus() {
const step = LASTING.includes(this.#step()) ? stepOf(this.flow) : this.#step();
return (STEPS[step].lastStatus);
}
#setBusy(isBusy) {
this.isBusy = isBusy;
this.dialog.setBusy(isBusy);
}
#setOffline(isOffline) {
if (this.dialog.showConnection(isOffline) && !isOffline) {
this.announce(this.words.of("online"));
}
}
#emit(name, detail) {
try {
this.configuration[name]?.(detail);
} catch (error) {
console.error(`Frontage: ${name} has thrown`, error);
}
globalThis.dispatchEvent(new CustomEvent(name, { detail }));
}
}
function isLasting(error, failures) {
if (!(error instanceof FrontageError) || ["unreachable", "too_many_requests"].includes(error.code)) {
return false;
}
return error.code === "get_token_failed" ? failures + 1 >= MOST_TOKEN_FAILURES : (error.status ?? 0) < 500;
}
const FETCH_SECONDS = 5;
const ENGLISH = Object.freeze({
back: "Back",
close: "Close",
continue: "Continue",
copy: "Copy",
copied: "Copied",
done: "Done",
try_again: "Try again",
other_domain: "Use another domain",
progress: "Step {step} of {steps}",
offline: "The connection is lost. We are trying again; nothing you did is lost.",
online: "Connected again.",
domain_title: "Connect your domain",
domain_title_for: "Connect your domain to {application}",
domain_lead: "Enter a domain that you own. We only look at its settings; nothing is changed yet.",
domain_label: "Your domain",
domain_choose: "Which domain do you want to connect?",
domain_other: "Another domain",
domain_empty: "Enter a domain, such as example.com.",
domain_ending: "Its ending is missing. A whole domain is, for example, example.com.",
domain_address: "This is an IP address. Enter a domain, such as example.com.",
domain_characters: "A domain has only letters, digits, hyphens and dots.",
domain_refused: "This domain cannot be connected.",
domain_hint: "Did you mean",
domain_mail_provider: "{domain} belongs to an e-mail provider. Enter a domain of your own.",
checking_title: "Looking at {domain}",
checking_lead: "This takes a few seconds. Nothing is changed.",
checking_provider: "Which provider hosts its DNS",
checking_records: "The records it has now",
checking_ways: "How it can be set up",
unchecked_title: "We could not look at {domain}",
unchecked_lead: "Its DNS does not answer at the moment. That often passes within minutes.",
not_registered_title: "{domain} is not registered",
not_registered_lead: "Nobody owns this domain yet, or it is misspelt. Check it, or register it first.",
conflicts_title: "{domain} is already in use",
conflicts_lead: "These settings change so that it leads to {application}. All others stay as they are.",
this_application: "this application",
your_server: "Your DNS server",
conflicts_agree: "Agree to these changes",
conflicts_undo: "We keep the old settings, so that you can undo this.",
changes: "What will change",
changed: "What was changed",
now: "Now",
then: "After",
action_add: "New",
action_replace: "Replaced",
action_merge: "Merged",
action_remove: "Removed",
way_title: "How do you want to set it up?",
way_lead: "The DNS of {domain} is hosted at {provider}.",
way_empty: "All records are in place already.",
way_best: "Recommended",
way_domain_connect: "Automatically, at {provider}",
way_domain_connect_text: "Sign in at {provider} and confirm. Takes about a minute.",
way_provider_api: "Automatically, with an API token",
way_provider_api_text: "Paste a token from {provider}. It is used once and never stored.",
way_dynamic_update: "Automatically, with a DNS update key",
way_dynamic_update_text: "For name servers of your own (RFC 2136, TSIG). The key is used once and never stored.",
way_experts: "For experts",
way_manual: "By hand, with a guide",
way_manual_text: "Copy the records into your DNS settings. Takes about five minutes.",
share: "Send this to a colleague",
share_title: "Send this to a colleague",
share_lead: "The link opens this set-up for {domain}. It needs no account and works until {date}.",
share_label: "Link",
share_failed: "The link could not be made.",
apply_title: "Set up {domain} at {provider}",
apply_start: "Set up now",
domain_connect_text: "{provider} opens in a new window, where you sign in and confirm. Your password stays with {provider}.",
domain_connect_open: "Go to {provider}",
domain_connect_again: "Open {provider} again",
domain_connect_waiting: "Waiting for you to confirm at {provider}",
domain_connect_refused: "{provider} reports that the change was not made.",
domain_connect_blocked: "The window was blocked. Use the button to open it.",
domain_connect_other: "Choose another way",
domain_connect_undo: "Later, only {provider} can take these changes back. We keep the earlier settings to show you.",
domain_connect_undo_lead: "{provider} made these changes, and we cannot change them there. To undo them, sign in at {provider} and set the records as they were.",
token_title: "Connect with {provider}",
token_make: "Open {page}, where {provider} makes tokens.",
token_make_plain: "Make an API token at {provider}.",
token_own_server:
"Use the API key of your own {provider} server. It stands in the server's configuration ({page}) and reaches every zone of the server.",
token_least: "The least that it must allow: {right}.",
token_paste: "Paste it here.",
token_forgotten: "It is used for these changes only, and is neither stored nor logged. You can delete it afterwards.",
token_empty: "This field is needed.",
token_wrong: "{provider} does not accept this. Check that it was copied whole and allows changes of {domain}.",
credential_key_name: "Name of the TSIG key",
credential_key_secret: "Secret of the key (base64)",
credential_key_algorithm: "Algorithm, if it is not hmac-sha256",
credential_server: "Primary server, if it is not the zone's own (host or host:port)",
applying_title: "Setting up {domain}",
applying_lead: "The changes are being written. Please wait a moment.",
halted_title: "Not everything could be written",
halted_lead: "{provider} stopped half-way. What was written is listed here.",
halted_nothing_title: "Nothing could be written",
halted_nothing: "{provider} did not take the changes. Nothing was written.",
plan_changed: "The settings of {domain} have changed meanwhile. Nothing was written; here is the new plan.",
manual_title: "Add these records at {provider}",
manual_title_plain: "Add these records",
manual_open: "Sign in at {provider} and open the DNS settings of {domain}.",
manual_open_plain: "Sign in where the DNS of {domain} is managed, and open its DNS settings.",
manual_remove: "Delete the records that are listed under “{heading}”.",
manual_add: "Add each record below, exactly as it stands, and save.",
manual_wait: "Stay here or come back later: we see by ourselves when they are live.",
manual_delete: "To delete",
manual_records: "To add",
manual_merge: "There is such a record already: overwrite its value with this one.",
manual_help: "Guide of {provider}",
manual_partner_help: "Guide of {application}",
manual_check: "Check now",
field_host: "Host",
field_value: "Value",
field_ttl: "TTL",
field_priority: "Priority",
field_empty: "leave empty",
records_title: "Waiting for {domain}",
records_lead: "The records are set. Until they are visible everywhere can take from seconds to an hour.",
records_close: "You may close this window: it goes on without you.",
record_propagated: "Live",
record_missing: "Not seen yet",
record_unknown: "Looking",
next_look: "Next look {when}",
last_look: "Just looked",
certificate: "Certificate for HTTPS",
certificate_pending: "Being issued",
certificate_ready: "Ready",
certificate_failed: "Not issued yet",
timeout_title: "Not live yet",
timeout_lead: "After three days the records are still not visible. Compare them with your DNS settings.",
live_of: "{live} of {all} records are live",
done_title: "{domain} is connected",
done_lead: "It is live with HTTPS, and its certificate renews itself.",
done_lead_plain: "All records are live.",
done_open: "Open {domain}",
done_enrolled: "It is connected already, with other settings. Only {application} can change them.",
undo: "Undo the changes",
undo_title: "Undo the changes at {domain}?",
undo_lead: "The earlier settings are put back. {domain} then no longer leads to {application}.",
undo_start: "Undo now",
undo_keep: "Keep the changes",
undo_changed: "The settings were changed by someone else since. These would be overwritten.",
undoing_title: "Putting the earlier settings back",
undone_title: "The earlier settings are back",
undone_lead: "{domain} is as it was before.",
start_again: "Start again",
error_title: "Something went wrong",
error_token: "Your session has ended. Reload the page and try again; nothing is lost.",
error_unreachable: "Our service cannot be reached at the moment. Check your connection and try again.",
error_busy: "There is a lot going on at the moment. Try again in a minute.",
error_forbidden: "This cannot be set up with the current subscription. Contact {application}.",
error_configuration: "{application} has not allowed this set-up. Contact {application}.",
error_ended: "{application} has ended this set-up. Ask there for a new link, or begin again there.",
error_domain: "This set-up is for another domain.",
error_other: "It could not be done: {reason}",
error_number: "Number of this request, for support: {id}",
details: "Details",
});
class Words {
constructor(locale, texts, copy) {
this.locale = locale;
this.#texts = { ...ENGLISH, ...texts, ...copy };
}
#texts;
of(key, values = {}) {
return this.#texts[key].replaceAll(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
has(key) {
return key in this.#texts;
}
nodes(key, values) {
return this.#texts[key].split(/(\{\w+\})/).map((part) => values[part.slice(1, -1)] ?? part);
}
inTime(seconds) {
const format = new Intl.RelativeTimeFormat(this.locale, { numeric: "auto" });
return seconds < 90 ? format.format(Math.max(1, Math.round(seconds)), "second") : format.format(Math.round(seconds / 60), "minute");
}
date(moment, options) {
return new Intl.DateTimeFormat(this.locale, options).format(new Date(moment));
}
}
async function loadWords(apiUrl, locale, copy) {
if (locale === "en") {
return new Words(locale, {}, copy);
}
const controller = new AbortController();
const timer = setTimeout(() => controller.abort(), FETCH_SECONDS * 1000);
try {
const response = await fetch(`${apiUrl}/sdk/v1/words/${locale}.json`, { credentials: "omit", signal: controller.signal });
return new Words(locale, await response.json(), copy);
} catch {
console.warn(`Frontage: the words of ${locale} could not be fetched; English stands in for them.`);
return new Words("en", {}, copy);
} finally {
clearTimeout(timer);
}
}
const VERSION = "1.1.0";
const SCRIPT = (globalThis.document?.currentScript ?? null);
const SDK_PATH = /\/sdk\/[^/]+\/frontage\.js$/;
const SHARE_PATH = /^(.*)\/share\/([A-Za-z0-9_-]{16,64})$/;
const page = {
open: ([]),
apiUrl: (null),
hasWarnedOfAlias: false,
};
async function connectDomain(configuration) {
return logged(() => openModal(configuration, null));
}
async function showFrontage(configuration) {
if (!page.hasWarnedOfAlias) {
page.hasWarnedOfAlias = true;
console.info("Frontage: showFrontage() is deprecated; connectDomain() is the same.");
}
return connectDomain(configuration);
}
async function checkDomain(domain, configuration) {
return logged(() => check("/checkdomain", domain, configuration));
}
async function checkRecords(domain, configuration) {
return logged(() => check("/checkrecords", domain, configuration));
}
function close() {
page.open.at(-1)?.close();
}
async function load({ apiUrl } = {}) {
return logged(async () => {
if (apiUrl !== undefined) {
page.apiUrl = withoutSlash(apiUrl);
}
if (!("showModal" in (globalThis.HTMLDialogElement?.prototype ?? {}))) {
throw new FrontageError("not_supported", CODES.not_supported);
}
});
}
async function loadSharedFlow(url, callbacks = {}) {
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
async function openModal(given, share) {
await load();
const configuration = readConfiguration(given, warn);
if (!configuration.dnsRecords && !configuration.configurationId && !share) {
throw new FrontageError("invalid_configuration", "dnsRecords: expected the records to set, or a configurationId", { key: "dnsRecords" });
}
const apiUrl = apiUrlOf(configuration);
const words = await loadWords(apiUrl, configuration.locale ?? "en", configuration.whiteLabel?.copy ?? {});
const modal = new Modal(configuration, new Client(apiUrl, configuration), words, { nonce: SCRIPT?.nonce ?? "", share });
page.open.push(modal);
try {
return await modal.run();
} finally {
page.open.splice(page.open.indexOf(modal), 1);
}
}
async function check(path, domain, given) {
const configuration = readConfiguration(given, warn);
if (typeof domain !== "string" || domain.trim() === "") {
throw new FrontageError("invalid_domain", "domain: expected a domain, as text", { key: "domain" });
}
const client = new Client(apiUrlOf(configuration), configuration);
return client.post(path, { ...forApi(configuration), domain });
}
function apiUrlOf({ apiUrl }) {
const found = apiUrl ? withoutSlash(apiUrl) : (page.apiUrl ?? apiUrlOfScript());
if (found === null) {
throw new FrontageError("invalid_configuration", "apiUrl: expected the API's address, here or in load()", { key: "apiUrl" });
}
return found;
}
function apiUrlOfScript() {
const [address] = SCRIPT?.src.split(/[?#]/, 1) ?? [""];
return SDK_PATH.test(address) ? address.replace(SDK_PATH, "") : null;
}
function withoutSlash(url) {
return url.replace(/\/+$/, "");
}
function warn(warning) {
console.warn(`Frontage: ${warning}`);
}
async function logged(work) {
try {
return await work();
} catch (error) {
console.error(error instanceof FrontageError ? described(error) : error);
throw error;
}
}
function described({ code, message, hint }) {
return `Frontage: ${code}: ${message}${hint ? ` (${hint})` : ""}`;
}
globalThis.frontage = Object.freeze({
connectDomain,
showFrontage,
checkDomain,
checkRecords,
close,
load,
loadSharedFlow,
version: VERSION,
});
})();
