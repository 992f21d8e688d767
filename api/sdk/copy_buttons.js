/** On a page with a table of DNS records: a button beside each field that copies it. The page is complete without. */

const COPIED_SECONDS = 2.5;
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
for (const table of document.querySelectorAll("table")) {
  for (const value of table.querySelectorAll("td code")) {
    value.after(copyButtonOf(value, table.dataset.copy ?? "", table.dataset.copied ?? ""));
  }
}

/** @param {Element} value  whose text the button copies @param {string} words  of the button @param {string} done  once it is copied */
function copyButtonOf(value, words, done) {
  const button = document.createElement("button");
  const label = value.parentElement?.dataset.name;
  button.type = "button";
  button.className = "copy";
  button.textContent = words;
  button.setAttribute("aria-label", `${words}: ${label}`);
  button.addEventListener("click", async () => {
    if (!(await copy(value))) {
      return;
    }
    button.textContent = done;
    status.textContent = `${done}: ${label}`;
    setTimeout(() => {
      button.textContent = words;
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
