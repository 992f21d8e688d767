/**
 * A flow as the API shows it, read for the modal: which step it is in, and what is in its plan.
 */

/**
 * As `common/flow_states.py` has them.
 * @typedef {"choosing" | "checking" | "unchecked" | "planned" | "applying" | "halted" | "waiting" | "propagating" | "enrolling"
 *   | "finished" | "timed_out" | "undoing" | "undone" | "closed"} FlowState
 */

/**
 * @typedef {object} Flow
 * @property {string} id
 * @property {string} job_id
 * @property {FlowState} state
 * @property {number} version
 * @property {string | null} domain
 * @property {string | null} subdomain
 * @property {string | null} host
 * @property {any} steps
 * @property {any} provider
 * @property {any[] | null} ways
 * @property {any[]} records
 * @property {any} plan
 * @property {string | null} way
 * @property {"automatic" | "manual" | null} setup_type
 * @property {any[] | null} written
 * @property {any} handover
 * @property {any} propagation
 * @property {any} enrolments
 * @property {any} error
 */

/** Steps, in the order in which a person meets them, with the status that closing there reports and their part of the way. */
export const STEPS = Object.freeze({
  domain: { lastStatus: "IN_PROGRESS", stage: 1 },
  checking: { lastStatus: "IN_PROGRESS", stage: 2 },
  unchecked: { lastStatus: "EXIT_WITH_ERROR", stage: 2 },
  conflicts: { lastStatus: "EXISTING_RECORDS", stage: 2 },
  prepare: { lastStatus: "EXISTING_RECORDS", stage: 2 },
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
  undone: { lastStatus: "UNDONE", stage: 4 },
  share: { lastStatus: "IN_PROGRESS", stage: 3 },
  error: { lastStatus: "EXIT_WITH_ERROR", stage: 1 },
});

/** @typedef {keyof typeof STEPS} Step */

/** @type {readonly FlowState[]} */
const ENDED = ["finished", "timed_out", "undone", "closed"];

/** Nothing changes by itself any more, so there is nothing to follow. @param {Flow} flow */
export function hasEnded(flow) {
  return ENDED.includes(flow.state);
}

/**
 * The step that shows a flow in its present state.
 *
 * @param {Flow | null} flow
 * @returns {Step}
 */
export function stepOf(flow) {
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
      return flow.way === "manual" ? stepByHand(flow) : flow.handover?.returned === "done" ? "records" : "login";
    case "propagating":
      return flow.way === "manual" ? stepByHand(flow) : "records";
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

/** Nothing is to be typed where the zone has every record already. @param {Flow} flow @returns {Step} */
function stepByHand(flow) {
  return flow.plan?.isEmpty && flow.records.every(({ status }) => status === "propagated") ? "records" : "manual";
}

/**
 * Where Back leads from a step; null where the step is the first, or the work cannot be left.
 *
 * @param {Step} step
 * @param {Flow | null} flow
 * @returns {Step | "again" | null}  `again`: to a new plan
 */
export function stepBefore(step, flow) {
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

/** Enrolments of a finished flow that are served over HTTPS, each once by name. @param {Flow | null} flow @returns {any[]} */
export function servedNames(flow) {
  const served = /** @type {any[]} */ (flow?.enrolments ?? []).filter(({ product, status }) => product !== "monitor" && status === "success");
  return served.filter(({ name }, number) => served.findIndex((other) => other.name === name) === number);
}

/** Whether a finished flow still waits for a certificate. @param {Flow} flow */
export function lacksCertificate(flow) {
  return flow.state === "finished" && servedNames(flow).some(({ certificate }) => certificate !== "live");
}

/** What the plan does, without what stays as it is. @param {Flow} flow @returns {any[]} */
export function changesOf(flow) {
  return (flow.plan?.changes ?? []).filter((/** @type {any} */ change) => change.action !== "keep");
}

/** Whether the plan touches what is in the zone already. @param {Flow} flow */
export function changesExisting(flow) {
  return changesOf(flow).some((change) => change.action !== "add");
}

/** None where nothing is known of the provider but name servers in the domain itself. @param {Flow | null} flow @returns {string | null} */
export function providerName(flow) {
  const { id, name } = flow?.provider ?? {};
  return (id === "" && name === "Unknown") || name === flow?.domain ? null : (name ?? null);
}

/**
 * Whether a Domain Connect provider has changed the zone: only there it can be changed back.
 *
 * @param {Flow | null} flow
 */
export function canUndoAtProvider(flow) {
  const isWritten = ["propagating", "enrolling", "finished", "timed_out"].includes(flow?.state ?? "");
  return flow?.way === "domain_connect" && isWritten && changesOf(flow).length > 0;
}

/** Whether the flow has written into the zone, and can take it back. @param {Flow | null} flow */
export function canUndo(flow) {
  return Boolean(flow?.written?.length) && !["undoing", "undone", "applying"].includes(/** @type {Flow} */ (flow).state);
}

/** The fields in which a person types where their own name server is. */
export const ADDRESS_FIELDS = ["server", "pdns_server"];

/** What the API says where such an address leads nowhere. */
export const ADDRESS_FAILURES = ["provider_unreachable", "address_refused"];

/**
 * Whether the provider has refused the credentials, and nothing is written: others can be tried at once.
 * @param {Flow} flow @param {Record<string, string>} typed what is no secret
 */
export function wantsCredentials(flow, typed) {
  const isUntouched = !(flow.written ?? []).some(({ status }) => status === "written");
  const hasAddress = ADDRESS_FIELDS.some((name) => typed[name]);
  const codes = ["wrong_token", "not_allowed", ...(hasAddress ? ADDRESS_FAILURES : [])];
  const isTheirs = codes.includes(flow.error?.code) || Boolean(flow.error?.fields?.length);
  return flow.state === "halted" && isUntouched && isTheirs;
}

/** Whether the person has something left to do: a page that is loaded again goes on there. @param {Flow} flow */
export function awaitsPerson(flow) {
  return ["checking", "unchecked", "planned", "halted"].includes(flow.state) || (flow.state === "waiting" && flow.way === "manual");
}
