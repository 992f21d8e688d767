/** On the page behind a sharing link: the modal with what the link has saved. The page is complete without it. */

const setUp = /** @type {HTMLButtonElement} */ (document.getElementById("set-up"));
const openShared = () => frontage.loadSharedFlow(location.href).catch(() => {}); // its reason is in the console
setUp.hidden = false;
setUp.addEventListener("click", openShared);
openShared();
