/**
 * What people type where a domain is asked for: addresses of pages, e-mail addresses, typing errors.
 *
 * Nothing is changed behind a person's back: a likely error gives a hint with a better name, to take or to leave. Which
 * names are real is for the API to decide; it knows the public suffixes.
 */

/** Endings that are no top-level domain, and the one that was meant. */
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

/** Whose domain is not the person's, however often it is in their address. */
const MAIL_PROVIDERS = new Set(
  ("gmail.com googlemail.com outlook.com hotmail.com live.com yahoo.com icloud.com me.com aol.com proton.me gmx.de " +
    "gmx.net web.de mail.ru yandex.ru qq.com 163.com t-online.de orange.fr libero.it wp.pl o2.pl").split(" "),
);

/**
 * `name` in ASCII form (RFC 5891) as far as it is one; `problem` is a key of the words: why it is no domain yet;
 * `suggestion` a likelier name.
 *
 * @typedef {{name: string, problem: string | null, suggestion: string | null, isMailProvider: boolean}} Reading
 */

/**
 * @param {string} typed
 * @returns {Reading}
 */
export function readDomain(typed) {
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

/**
 * The name for people: IDN labels in their own script where the browser can be sure of them, else as they are.
 *
 * @param {string} name
 * @param {string} typed  what the person has typed
 */
export function displayName(name, typed) {
  const text = hostPart(typed);
  return toAscii(text) === name ? text : name;
}

/** @param {string} typed */
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

/** @param {string} text @returns {string | null} */
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

/** @param {string} text */
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

/** @param {string} name @param {string} problem @param {string | null} [suggestion] @returns {Reading} */
function reading(name, problem, suggestion = null) {
  return { name, problem, suggestion, isMailProvider: false };
}
