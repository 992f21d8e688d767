/** On the page that a Domain Connect provider sends the browser back to: the modal is in the window that opened this one. */
window.close();
