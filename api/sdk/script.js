/** The script distribution: the functions as the global `frontage`. */

import { checkDomain, checkRecords, close, connectDomain, load, loadSharedFlow, showFrontage, VERSION } from "./frontage.js";

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
