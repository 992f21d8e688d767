/**
 * The modal's words: English here, the other languages as JSON beside the script (`words/<locale>.json`).
 *
 * A key that a language lacks, and every key while its file cannot be fetched, is in English. A partner's `copy`
 * replaces single texts by their key. `{name}` stands for a value.
 */

const FETCH_SECONDS = 5;

/** @type {Readonly<Record<string, string>>} */
export const ENGLISH = Object.freeze({
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

  prepare_offer: "Keep your site up while you switch",
  prepare_offer_text: "{domain} serves something already. Set one record first, and no visitor is interrupted when it moves.",
  prepare_needed: "A wildcard needs one record first",
  prepare_needed_text: "Its certificate is made from it. Then set up the rest.",
  prepare_start: "Prepare it first",
  prepare_title: "Prepare {domain}",
  prepare_lead: "Add this record where the DNS of {domain} is managed. Your site stays as it is; meanwhile its certificate is made.",
  prepare_wait: "We see the record by ourselves. You may close this window and come back later.",
  prepare_ready_title: "{domain} is prepared",
  prepare_ready: "Everything is ready: when you change the settings now, no visitor is interrupted.",
  prepare_refused: "{domain} cannot be prepared at the moment. Try again later, or contact {application}.",
  prepare_skip: "Not now",

  way_title: "How do you want to set it up?",
  way_lead: "The DNS of {domain} is hosted at {provider}.",
  way_empty: "All records are in place already",
  way_empty_lead: "{domain} has all records that are needed. There is nothing to copy and nothing to change.",
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
  domain_connect_closed: "The window is closed. If you have confirmed, this goes on by itself in a moment. If not, open it again.",
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
  address_silent: "Nothing answers at this address. Check that it is typed right.",
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
  failure_provider_unreachable: "{provider} does not answer. Try again in a few minutes.",
  failure_rate_limited: "Many changes are being made at the moment. Try again in a minute.",
  failure_zone_not_found: "This account at {provider} does not have {domain}. Use the account in which it is managed.",
  failure_address_refused: "The server's address cannot be used. It must be a public one.",
  failure_interrupted: "The change was interrupted before its end. Try again.",
  failure_not_written: "{provider} took the change, but its name servers do not show it.",
  failure_provider_refused: "{provider} refuses the change.",
  failure_other: "The changes could not be made. Try again, or choose another way.",
  failure_credentials_missing: "Something is missing here, or has another form.",
  value_refused: "“{value}” is not accepted here.",
  plan_changed: "The settings of {domain} have changed meanwhile. Nothing was written; here is the new plan.",

  manual_title: "Add these records at {provider}",
  manual_title_plain: "Add these records",
  manual_open: "Sign in at {provider} and open the DNS settings of {domain}.",
  manual_open_plain: "Sign in where the DNS of {domain} is managed, and open its DNS settings.",
  manual_console: "Sign in at {provider}",
  manual_remove: "Delete the records that are listed under “{heading}”.",
  manual_add: "Add each record below, exactly as it stands, and save.",
  manual_wait: "Stay here or come back later: we see by ourselves when they are live.",
  manual_delete: "To delete",
  manual_records: "To add",
  manual_merge: "There is such a record already: overwrite its value with this one.",
  manual_help: "Help of {provider}",
  manual_partner_help: "Guide of {application}",
  manual_check: "Check now",
  provider_other: "Is your DNS at another provider?",
  provider_label: "Your DNS provider",
  provider_none: "This provider is not in the list. The records below are the same at every provider.",
  manual_tick: "I have done this",
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
  done_failed: "Its DNS is right, but the domain could not be connected. Contact {application}.",
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
  error_other: "This did not work. Try again in a moment.",
  error_number: "Number of this request, for support: {id}",
  details: "Details",
});

const FROM_RIGHT = ["ar"];

/**
 * The language to speak: the first of `wanted` (BCP 47 tags, such as `pt-BR` or `de-AT`) that there is; else English.
 *
 * @param {readonly string[]} wanted
 * @param {readonly string[]} known
 */
export function chooseLocale(wanted, known) {
  for (const tag of wanted) {
    const [language] = tag.split("-");
    const found =
      known.find((each) => each.toLowerCase() === tag.toLowerCase()) ?? known.find((each) => each === language.toLowerCase());
    if (found) {
      return found;
    }
  }
  return "en";
}

export class Words {
  /**
   * @param {string} locale
   * @param {Record<string, string>} texts
   * @param {Record<string, string>} copy  a partner's own
   */
  constructor(locale, texts, copy) {
    this.locale = locale;
    this.#texts = { ...ENGLISH, ...texts, ...copy };
  }

  /** @type {Record<string, string>} */
  #texts;

  /**
   * @param {string} key
   * @param {Record<string, string>} [values]
   * @returns {string}
   */
  of(key, values = {}) {
    return this.#texts[key].replaceAll(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  }

  /** The direction of writing. */
  get direction() {
    return FROM_RIGHT.includes(this.locale) ? "rtl" : "ltr";
  }

  /** @param {string} key */
  has(key) {
    return key in this.#texts;
  }

  /**
   * The text in pieces, with nodes in the place of values.
   *
   * @param {string} key
   * @param {Record<string, Node | string>} values
   * @returns {(Node | string)[]}
   */
  nodes(key, values) {
    return this.#texts[key].split(/(\{\w+\})/).map((part) => values[part.slice(1, -1)] ?? part);
  }

  /** In how long, in words. @param {number} seconds */
  inTime(seconds) {
    const format = new Intl.RelativeTimeFormat(this.locale, { numeric: "auto" });
    return seconds < 90 ? format.format(Math.max(1, Math.round(seconds)), "second") : format.format(Math.round(seconds / 60), "minute");
  }

  /** @param {string} moment  ISO 8601 @param {Intl.DateTimeFormatOptions} options */
  date(moment, options) {
    return new Intl.DateTimeFormat(this.locale, options).format(new Date(moment));
  }
}

/**
 * @param {string} apiUrl
 * @param {string} locale
 * @param {Record<string, string>} copy
 * @returns {Promise<Words>}
 */
export async function loadWords(apiUrl, locale, copy) {
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
