/** On the page behind a sharing link: the modal with what the link has saved. The page is complete without it. */

const COPIED_SECONDS = 2.5;
const setUp = /** @type {HTMLButtonElement} */ (document.getElementById("set-up"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const openShared = () => frontage.loadSharedFlow(location.href).catch(() => {}); // its reason is in the console
setUp.hidden = false;
setUp.addEventListener("click", openShared);
for (const value of document.querySelectorAll("td code")) {
  value.after(copyButtonOf(value));
}
openShared();

/** @param {Element} value  whose text the button copies */
function copyButtonOf(value) {
  const button = document.createElement("button");
  const label = value.parentElement?.dataset.name;
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${label}`);
  button.addEventListener("click", async () => {
    if (!(await copy(value))) {
      return;
    }
    button.textContent = "Copied";
    status.textContent = `Copied: ${label}`;
    setTimeout(() => {
      button.textContent = "Copy";
      status.textContent = "";
    }, COPIED_SECONDS * 1000);
  });
  return button;
}

/** @param {Element} value */
async function copy(value) {
  try {
    await navigator.clipboard.writeText(value.textContent ?? "");
    return true;
  } catch {
    getSelection()?.selectAllChildren(value); // pages without a secure context have nothing else
    return document.execCommand("copy");
  }
}
