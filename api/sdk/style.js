/**
 * The modal's style sheet, and the partner's colours in it.
 *
 * Rules
 *   all of it lies in the shadow root; what the host page inherits into it is reset with `!important`, which wins there
 *   (CSS Cascade 5 §6.1: for important rules the inner context is the stronger one); `all` leaves out the direction
 *   text is never in the accent colour, so that any accent is readable; its own text is black or white, by contrast
 *   sizes of text follow the reader's browser setting, not the host page's root
 */

export const CSS = `
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
.name { display: inline-block; max-inline-size: 100%; overflow-wrap: anywhere; }
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
.choice > bdi { grid-row: 1 / span 2; }
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
.tick { display: flex; gap: 10px; align-items: center; min-block-size: 44px; margin: 0; padding: 4px 14px; border-block-start: 1px solid var(--line); font-size: .9375em; font-weight: 400; cursor: pointer; }
.tick input { inline-size: 18px; block-size: 18px; margin: 0; accent-color: var(--accent); flex: none; }
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

/**
 * Give the shadow root its style. Constructed style sheets are no inline style for a Content Security Policy; a browser
 * without them gets a style element with the page's nonce.
 *
 * @param {ShadowRoot} root
 * @param {string} nonce
 */
export function adoptStyle(root, nonce) {
  if ("adoptedStyleSheets" in root) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(CSS);
    root.adoptedStyleSheets = [sheet];
    return;
  }
  const style = document.createElement("style");
  style.nonce = nonce;
  style.textContent = CSS;
  /** @type {ShadowRoot} */ (root).append(style);
}

/**
 * @param {HTMLElement} host
 * @param {{accent?: string, accentDark?: string, colorScheme?: string}} theme
 */
export function applyTheme(host, { accent, accentDark = accent, colorScheme = "auto" }) {
  host.dataset.scheme = colorScheme;
  if (accent && accentDark) {
    host.style.setProperty("--accent", `light-dark(${accent}, ${accentDark})`);
    host.style.setProperty("--on-accent", `light-dark(${textOn(accent)}, ${textOn(accentDark)})`);
  }
}

/**
 * Black or white, whichever has the higher contrast (WCAG 2.2, "relative luminance").
 *
 * @param {string} colour  `#rgb` or `#rrggbb`
 */
export function textOn(colour) {
  const hex = colour.length === 4 ? colour.replaceAll(/[^#]/g, "$&$&") : colour;
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = Number.parseInt(hex.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}
