/**
 * One opened modal: shows the step that its flow is in, sends what the person decides, follows what happens.
 *
 * Rules
 *   the API's flow decides; the modal only remembers which step the person looks at instead (`#view`)
 *   one request of the person's at a time; while it runs, the step's buttons rest
 *   a lost connection is shown, tried again, and nothing is asked twice: every change is followed from the flow's row
 *   closing reports the step that was shown
 */

import { reconnectPause } from "./client.js";
import { Dialog } from "./dialog.js";
import { forApi } from "./configuration.js";
import { FrontageError } from "./errors.js";
import {
  awaitsPerson,
  canUndo,
  canUndoAtProvider,
  hasEnded,
  lacksCertificate,
  providerName,
  stepBefore,
  stepOf,
  STEPS,
  wantsCredentials,
} from "./flow.js";
import { rememberFlow, rememberedFlow, rememberedName } from "./memory.js";
import { domainStep } from "./steps/domain.js";
import { checkingStep, uncheckedStep } from "./steps/checking.js";
import { conflictsStep, reviewStep, undoStep } from "./steps/changes.js";
import { credentialsStep, loginStep, wayStep } from "./steps/ways.js";
import { manualStep } from "./steps/manual.js";
import { applyingStep, haltedStep, recordsStep, timeoutStep } from "./steps/records.js";
import { prepareStep } from "./steps/prepare.js";
import { doneStep, undoneStep } from "./steps/done.js";
import { shareStep } from "./steps/share.js";
import { errorStep } from "./steps/error.js";

/** @typedef {import("./flow.js").Flow} Flow */
/** @typedef {import("./flow.js").Step} Step */
/** @typedef {import("./dialog.js").Content & {update?: () => void}} StepContent */

/** @type {Record<Step, (modal: Modal) => StepContent>} */
const VIEWS = {
  domain: domainStep,
  checking: checkingStep,
  unchecked: uncheckedStep,
  conflicts: conflictsStep,
  prepare: prepareStep,
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

/** Steps that stay in view when the flow moves on behind them. */
const LASTING = ["review", "undo", "share", "prepare"];
const MOST_TOKEN_FAILURES = 3;

export class Modal {
  /** @type {Flow | null} */
  flow = null;
  /** What the person has typed as a domain. */
  typed = "";
  /** The way that the person is about to take. @type {any} */
  chosenWay = null;
  /** What the person has typed for the way that is no secret, by the field's name. @type {Record<string, string>} */
  kept = {};
  /** What is to be read above the next step. @type {string | null} */
  notice = null;
  /** @type {FrontageError | null} */
  error = null;
  /** What "Try again" does. @type {() => void} */
  retry = () => {};
  isBusy = false;
  /** Whether the browser has blocked the provider's window. */
  isWindowBlocked = false;
  /** Whether the provider's window was open and is not any more. */
  isWindowClosed = false;

  /** @type {Step | null} */
  #view = null;
  /** What the present step was built from: the same again only updates it. */
  #shown = "";
  /** @type {(() => void) | undefined} */
  #update;
  #following = new AbortController();
  #isOpen = false;
  /** While another plan is made behind the credentials, they stay in view. */
  #isPlanning = false;
  #hasSucceeded = false;
  /** @type {(detail: import("./configuration.js").Closed) => void} */
  #resolve = () => {};

  /**
   * @param {import("./configuration.js").Configuration} configuration
   * @param {import("./client.js").Client} client
   * @param {import("./words.js").Words} words
   * @param {{nonce: string, share: string | null}} origin  `share`: the id of the sharing link that was opened
   */
  constructor(configuration, client, words, { nonce, share }) {
    this.configuration = configuration;
    this.client = client;
    this.words = words;
    this.share = share;
    const brand = { ...configuration.whiteLabel, name: configuration.applicationName };
    this.dialog = new Dialog(words, brand, nonce, {
      back: () => this.back(),
      close: () => this.requestClose(),
      escape: () => (LASTING.includes(this.#step()) ? this.back() : this.requestClose()),
    });
  }

  /**
   * Open, and stay until the person closes it.
   *
   * @returns {Promise<import("./configuration.js").Closed>}
   */
  run() {
    this.#isOpen = true;
    this.dialog.open();
    this.render();
    const { prefilledDomain } = this.configuration;
    if (typeof prefilledDomain === "string") {
      this.typed = prefilledDomain;
      this.choose(prefilledDomain);
    } else {
      this.#goOn();
    }
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** As the person asks; the partner's page may keep the modal open. */
  requestClose() {
    const { domain, provider } = this.#outcome();
    if (this.#emit("onRequestClose", { step: this.#step(), domain, provider })) {
      this.close();
    }
  }

  close() {
    if (!this.#isOpen) {
      return;
    }
    this.#isOpen = false;
    this.#following.abort();
    this.dialog.close();
    /** @type {import("./configuration.js").Closed} */
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

  /** The name that is being connected. */
  get host() {
    return this.flow?.host ?? this.flow?.domain ?? this.typed;
  }

  get canUndo() {
    return canUndo(this.flow) || this.isUndoneAtProvider;
  }

  /** Whether the person can undo the changes at the provider alone. */
  get isUndoneAtProvider() {
    return !canUndo(this.flow) && canUndoAtProvider(this.flow);
  }

  /** @param {string} message */
  announce(message) {
    this.dialog.announce(message);
  }

  // What the person does ------------------------------------------------------------------------------------------

  /** Show a step that is not the flow's own; null: the flow's. @param {Step | null} step */
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

  /** @param {string} name */
  choose(name) {
    return this.act(() => this.#chooseOrResume(name), () => this.choose(name));
  }

  lookAgain() {
    return this.act(() => this.post("plan"), () => this.lookAgain());
  }

  /**
   * @param {any} way
   * @param {Record<string, string>} [credentials]
   */
  apply(way, credentials) {
    const plain = (way.fields ?? []).filter((/** @type {any} */ field) => !field.isSecret).map((/** @type {any} */ field) => field.name);
    this.kept = Object.fromEntries(Object.entries(credentials ?? {}).filter(([name]) => plain.includes(name)));
    const body = { way: way.way, digest: this.flow?.plan?.digest, ...(credentials && { credentials }) };
    return this.act(async () => {
      if (this.flow?.state === "halted") {
        await this.#planAgain(body.digest);
      }
      return this.post("apply", body);
    }, () => this.show(null));
  }

  /**
   * Make the same plan anew, from which it can be written once more.
   *
   * @param {string} digest  of what the person has agreed to
   * @throws {FrontageError} `plan_changed` where the zone has changed meanwhile
   */
  async #planAgain(digest) {
    this.#isPlanning = true;
    try {
      let flow = await this.post("plan");
      for (let looks = 0; flow.state === "checking" && this.#isOpen; looks++) {
        await reconnectPause(looks, this.#following.signal);
        flow = await this.client.get(`/connect/flows/${flow.id}`);
      }
      if (flow.plan?.digest !== digest) {
        throw new FrontageError("refused", "the zone has changed", { apiCode: "plan_changed" });
      }
    } finally {
      this.#isPlanning = false;
    }
  }

  /** Look whether the provider's window is still open, as long as the flow waits for it. @param {Window} opened */
  watchWindow(opened) {
    const timer = setInterval(() => {
      if (!this.#isOpen || this.flow?.state !== "waiting") {
        clearInterval(timer);
      } else if (opened.closed) {
        clearInterval(timer);
        this.isWindowClosed = true;
        this.render();
      }
    }, 300);
  }

  /** A sharing link was made. @param {string} link */
  noteShared(link) {
    this.#emit("onSharedFlowSent", { domain: this.#outcome().domain, link });
  }

  /** The partner's own guide was opened. @param {string} url */
  noteGuide(url) {
    const { domain, provider } = this.#outcome();
    this.#emit("onManualSetupDocumentationClick", { domain, provider, url });
  }

  /** @param {{credentials?: Record<string, string>, digest?: string}} [body] */
  undo(body = {}) {
    return this.act(() => this.post("undo", body), () => this.show("undo"));
  }

  /** One action on the flow. @param {string} action @param {object} [body] @returns {Promise<Flow>} */
  post(action, body) {
    return this.client.post(`/connect/flows/${this.flow?.id}/${action}`, body);
  }

  /**
   * Run a request of the person's, and show where it leads.
   *
   * @param {() => Promise<Flow>} request
   * @param {() => void} retry
   */
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

  /** @param {string} name */
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

  /** Go on with the domain that the person was in the middle of, if the page was loaded again. */
  async #goOn() {
    const name = rememberedName(this.configuration);
    const id = name && rememberedFlow(this.configuration, name);
    const flow = id && (await this.client.get(`/connect/flows/${id}`).catch(() => null));
    if (flow && awaitsPerson(flow) && this.flow === null && !this.isBusy && this.typed === "") {
      this.typed = name;
      this.#take(flow, true);
      this.#follow();
    }
  }

  // What happens ----------------------------------------------------------------------------------------------------

  /** Follow the flow's events until it ends or the modal closes. */
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

  /** Records are live before HTTPS is: look until every certificate is there. @param {AbortSignal} signal */
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

  /** @param {Flow} flow @param {boolean} isAnswer  to a request of the person's */
  #take(flow, isAnswer) {
    if (this.flow?.id === flow.id && flow.version < this.flow.version) {
      return;
    }
    const moved = this.flow?.state !== flow.state;
    this.flow = flow;
    const isPinned = this.#view === null || [...LASTING, "error"].includes(this.#view) || this.#isPlanning;
    if (moved && !isAnswer && !isPinned) {
      this.#view = null;
    }
    const way = flow.ways?.find((each) => each.way === flow.way);
    // The flow's event may come before the answer: then the form is there, and what was typed into it stays.
    if ((moved || isAnswer) && wantsCredentials(flow, this.kept) && way?.fields?.length) {
      this.chosenWay = way;
      this.error = new FrontageError("refused", flow.error.message, { apiCode: `credentials_${flow.error.code}`, answer: flow.error });
      this.#view = "credentials";
      if (moved) {
        this.#shown = "";
      }
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

  /** @param {unknown} error @param {() => void} retry */
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
    this.announce(""); // what was said of the step before may be true no longer
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

  /** @returns {Step} */
  #step() {
    return this.#view ?? stepOf(this.flow);
  }

  #outcome() {
    const domain = this.flow?.host ?? this.flow?.domain ?? null;
    return { domain, setupType: this.flow?.setup_type ?? null, provider: providerName(this.flow) };
  }

  /** @returns {import("./configuration.js").LastStatus} */
  #lastStatus() {
    const step = LASTING.includes(this.#step()) ? stepOf(this.flow) : this.#step();
    return /** @type {import("./configuration.js").LastStatus} */ (STEPS[step].lastStatus);
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.isBusy = isBusy;
    this.dialog.setBusy(isBusy);
  }

  /** @param {boolean} isOffline */
  #setOffline(isOffline) {
    if (this.dialog.showConnection(isOffline) && !isOffline) {
      this.announce(this.words.of("online"));
    }
  }

  /**
   * As a callback of this modal's configuration, and as an event on the window.
   *
   * @param {"onFrontageClose" | "onSuccess" | "onFrontageStepChange" | "onRequestClose" | "onSharedFlowSent" | "onManualSetupDocumentationClick"} name
   * @param {any} detail
   * @returns {boolean}  whether the page lets it happen: false was returned nowhere, and nobody prevented the event
   */
  #emit(name, detail) {
    /** @type {unknown} */
    let answer;
    try {
      answer = this.configuration[name]?.(detail);
    } catch (error) {
      console.error(`Frontage: ${name} has thrown`, error);
    }
    return globalThis.dispatchEvent(new CustomEvent(name, { detail, cancelable: name === "onRequestClose" })) && answer !== false;
  }
}

/**
 * Whether following a flow ends with this error. Others pass by themselves: a bad network, an API or a partner's server
 * that restarts. A partner's page that cannot renew its token `MOST_TOKEN_FAILURES` times in a row cannot at all.
 *
 * @param {unknown} error
 * @param {number} failures  in a row, before this one
 */
function isLasting(error, failures) {
  if (!(error instanceof FrontageError) || ["unreachable", "too_many_requests"].includes(error.code)) {
    return false;
  }
  return error.code === "get_token_failed" ? failures + 1 >= MOST_TOKEN_FAILURES : (error.status ?? 0) < 500;
}
