// The shell of the console: header, navigation, time slider, and the page of the address.
//
// A page is a module `pages/NAME.js` that exports
//   - `Page({path, params})`: its component; `path` has the parts of the address behind the name
//     (`#/groups/billing` gives ["billing"]), `params` its query. It reads data by `usePoll`, links
//     by `href(page, path, params)` and goes by `go`, and so keeps the moment of the time slider.
//   - `needsCluster`: whether it says nothing about a saved journal.
// Its keys are bound by `useKeys(list, 'Page name')`, with keys other than those of KEYS below, of
// time.js and of tables (arrows, j, k, Enter, Home, End). Pages are loaded when they are opened.
// `CopyAs` and `formsOfAction` (ui.js) give the texts of an action; `act` (actions.js) does one.

import { html, render, useEffect, useErrorBoundary, useRef, useState } from './preact.js';
import { connection, get, getToken, setToken } from './api.js';
import {
  ANY_TIME, ending, go, href, observable, place, switchTheme, theme, useKeys, useMoment, usePlace, usePoll, useStore,
} from './store.js';
import { Badge, ErrorLine, Icon, Keys, clock, duration, number } from './ui.js';
import { TimeSlider } from './time.js';

/** The pages in the order of the navigation: name, label, second key after "g". */
const PAGES = [
  ['cluster', 'Cluster', 'c'],
  ['timeline', 'Timeline', 't'],
  ['groups', 'Groups', 'r'],
  ['transactions', 'Transactions', 'x'],
  ['topics', 'Topics', 'o'],
  ['faults', 'Faults', 'f'],
  ['audit', 'Audit', 'a'],
];
const NAMES = PAGES.map(([name]) => name);

/** `GET /v1/about`, or null before its first answer. */
export const about = observable(null);

const loaded = new Map();
/** The module of a page: loaded once. */
function load(name) {
  if (!loaded.has(name)) {
    loaded.set(name, import(`./pages/${name}.js`).catch((error) => {
      loaded.delete(name);
      throw error;
    }));
  }
  return loaded.get(name);
}

function useAbout() {
  const { state } = useStore(connection);
  useEffect(() => {
    get('/v1/about').then((told) => {
      ending.set(told.source === 'journal' ? told.journal?.last_seq ?? 0 : null);
      about.set(told);
    }, () => {});
  }, [state]);
  return useStore(about);
}

function App() {
  const where = usePlace();
  const told = useAbout();
  const [keys, setKeys] = useState(false);
  const [token, setTokenShown] = useState(false);
  const { state } = useStore(connection);
  const main = useRef(null);
  useKeys(
    [
      ...PAGES.map(([name, label, key]) => ({
        keys: `g ${key}`, what: label, run: () => go(name),
      })),
      { keys: '/', what: 'search on this page', run: focusSearch },
      { keys: 't', what: 'light or dark', run: switchTheme },
      { keys: 'Escape', what: 'close, or leave a field', run: leave },
      { keys: '?', what: 'this list', run: () => setKeys(true) },
    ],
    'Everywhere',
  );
  const known = NAMES.includes(where.page);
  useEffect(() => {
    const label = PAGES.find(([name]) => name === where.page)?.[1] || 'Not found';
    document.title = `${[...where.path].reverse().concat(label).join(' · ')} – mockbroker`;
  }, [where]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>To the content</a>
    <${Header} told=${told} onKeys=${() => setKeys(true)} onToken=${() => setTokenShown(true)} />
    <${Nav} page=${where.page} />
    <div class="right">
      ${told?.journal === null ? null : html`<${TimeSlider} />`}
      <${ConnectionLine} />
      ${told?.torn ? html`<div class="note-line torn" role="region" aria-label="The file breaks off">The file breaks off: ${told.torn}. What comes before it is shown.</div>` : null}
      <main id="main" tabindex="-1" ref=${main}>
        ${state === 'token' || token
          ? html`<${TokenForm} onDone=${() => setTokenShown(false)} refused=${state === 'token'} />`
          : told === null && state === 'ok' ? null : known
            ? html`<${Page} key=${where.page} where=${where} told=${told} />`
            : html`<${NoPage} title="There is no such page"><a href=${href('cluster')}>Go to the cluster</a><//>`}
      </main>
    </div>
    ${keys ? html`<${Keys} onClose=${() => setKeys(false)} />` : null}`;
}

function focusSearch() {
  const field = document.querySelector('main input[type="search"]');
  field?.focus();
  field?.select();
}

function leave() {
  if (document.activeElement?.matches?.('input, textarea, select')) document.activeElement.blur();
}

function Header({ told, onKeys, onToken }) {
  const shade = useStore(theme);
  return html`<header class="top">
    <a class="brand" href=${href('cluster')}><svg viewBox="0 0 16 16" aria-hidden="true"><path
      d="M3 12V4l5 5 5-5v8" /></svg>mockbroker</a>
    <span class="title" title=${told?.title}>${told ? told.title : ''}</span>
    ${told?.source === 'journal' ? html`<${Badge} kind="info">saved journal<//>` : told ? html`<${Clock} />` : null}
    <span class="grow"></span>
    ${told?.journal ? html`<${JournalCount} />` : null}
    ${getToken() ? html`<button class="small plain" onClick=${onToken}>Token</button>` : null}
    <button class="icon" aria-label=${shade === 'dark' ? 'Light theme' : 'Dark theme'} onClick=${switchTheme}>
      <${Icon} name=${shade === 'dark' ? 'sun' : 'moon'} /></button>
    <button class="icon" aria-label="Keys" onClick=${onKeys}>?</button>
  </header>`;
}

/** The cluster's clock, and whether it is frozen or runs at another rate. */
function Clock() {
  const at = useMoment();
  const poll = usePoll('/v1/clock', {}, 2_000, (state) => ({ now_ms: state.at_ms, rate: 0, past: true }));
  const [, tick] = useState(0);
  const seen = useRef({ data: null, at: 0 });
  if (seen.current.data !== poll.data) seen.current = { data: poll.data, at: performance.now() };
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) tick((n) => n + 1); }, 1_000);
    return () => clearInterval(timer);
  }, []);
  const found = poll.data;
  if (!found) return null;
  const rate = found.rate ?? 1;
  const now = poll.stale ? found.now_ms : found.now_ms + (performance.now() - seen.current.at) * rate;
  const what = at !== null ? null
    : rate === 0 ? html`<${Badge} kind="pause">frozen<//>`
      : rate !== 1 ? html`<${Badge} kind="info">${rate} × time<//>` : null;
  return html`<span class="clock"><time class="num" title=${`${new Date(now).toISOString()} on the cluster's clock`}
    datetime=${new Date(now).toISOString()}>${clock(now)}</time> ${what}</span>`;
}

function JournalCount() {
  const poll = usePoll('/v1/about', {}, 5_000, ANY_TIME);
  const journal = (poll.data || about.get())?.journal;
  if (!journal) return null;
  return html`<span class="muted num counts" title=${`Entries ${number(journal.first_seq)} to ${number(journal.last_seq)} of the journal`}>
    ${number(journal.entries ?? journal.last_seq)} entries${journal.dropped ? html`, ${number(journal.dropped)} dropped` : null}</span>`;
}

function Nav({ page }) {
  const list = useRef(null);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [page]);
  useMoment(); // the links keep it
  return html`<nav aria-label="Pages" ref=${list}>${PAGES.map(([name, label, key]) => html`<a key=${name}
    href=${href(name)} aria-current=${name === page ? 'page' : undefined}
    onPointerEnter=${() => load(name).catch(() => {})}>${label}<kbd aria-hidden="true">g ${key}</kbd></a>`)}</nav>`;
}

/** Says in place that the cluster is gone; what is shown stays, and is marked as old. */
function ConnectionLine() {
  const { state, detail, sinceMs } = useStore(connection);
  const [, tick] = useState(0);
  useEffect(() => {
    document.documentElement.dataset.connection = state;
    if (state === 'ok') return undefined;
    const timer = setInterval(() => tick((n) => n + 1), 1_000);
    return () => clearInterval(timer);
  }, [state]);
  useProbe(state);
  if (state === 'ok' || state === 'token') return null;
  return html`<div class="gone" role="alert"><span class="mark" aria-hidden="true">✖</span>
    <span>${detail} You see what was last known, ${duration(Date.now() - sinceMs)} ago. The console tries again.</span></div>`;
}

/** While nothing answers, ask until something does. */
function useProbe(state) {
  useEffect(() => {
    if (state !== 'gone' && state !== 'silent') return undefined;
    const timer = setInterval(() => get('/v1/about').catch(() => {}), 2_000);
    return () => clearInterval(timer);
  }, [state]);
}

function TokenForm({ onDone, refused }) {
  const [text, setText] = useState('');
  const had = getToken() !== '';
  return html`<form class="token" onSubmit=${(event) => { event.preventDefault(); setToken(text.trim()); onDone(); }}>
    <h1>This cluster wants a token</h1>
    <p class="muted">It is the admin token that the cluster was started with. This tab keeps it until it is closed.</p>
    ${refused && had ? html`<${ErrorLine} error=${{ message: 'This token is wrong.' }} />` : null}
    <label for="token">Admin token</label>
    <div class="row"><input id="token" type="password" autocomplete="off" autofocus value=${text}
      onInput=${(event) => setText(event.target.value)} /><button class="primary" disabled=${!text.trim()}>Open</button></div>
  </form>`;
}

/** What stands in place of a page, and what to do. */
function NoPage({ title, children }) {
  return html`<div class="pagehead"><h1>${title}</h1></div><p>${children}</p>`;
}

function Page({ where, told }) {
  const [module, setModule] = useState(null);
  const [failed, setFailed] = useState(null);
  const [broken, reset] = useErrorBoundary();
  useEffect(() => {
    load(where.page).then(setModule, setFailed);
  }, [where.page]);
  if (broken) {
    console.error(broken);
    return html`<${ErrorLine} error=${{ message: `This page has failed: ${broken.message}` }} onRetry=${reset} />`;
  }
  if (failed) {
    return html`<${ErrorLine} error=${{ message: 'The page could not be loaded: the admin server does not answer.' }}
      onRetry=${() => { setFailed(null); load(where.page).then(setModule, setFailed); }} />`;
  }
  if (!module) return null;
  if (module.needsCluster && told?.source === 'journal') {
    return html`<${NoPage} title="This page needs a running cluster">
      A saved journal is open. The timeline, the groups and the audit show what it has.<//>`;
  }
  return html`<${module.Page} path=${where.path} params=${where.params} />`;
}

if (!location.hash) history.replaceState(null, '', '#/cluster');
place.set({ ...place.get() });
if (NAMES.includes(place.get().page)) load(place.get().page).catch(() => {});
render(html`<${App} />`, document.getElementById('app'));
