// State that pages share: the place (hash router), the moment (time travel), polls, keys, theme.
//
// The place is in the address, `#/groups/NAME?at=120&lag=1`, so each view has a link. `at` is the
// moment: a sequence number of the journal, or nothing for now. `href` keeps it.

import { useEffect, useState } from './preact.js';
import { connection, get, urlOf } from './api.js';
import { observable } from './observable.js';

export { observable };

/** The value of an observable, as a hook. */
export function useStore(store) {
  const [, redraw] = useState(0);
  useEffect(() => {
    let seen = store.get();
    const check = () => {
      if (!Object.is(seen, store.get())) {
        seen = store.get();
        redraw((n) => n + 1);
      }
    };
    check();
    return store.subscribe(check);
  }, [store]);
  return store.get();
}

// --- The place -------------------------------------------------------------------------------

/** @typedef {{page: string, path: string[], params: Object<string, string>}} Place */

function parse(hash) {
  const [way, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [page = '', ...path] = way.split('/').map(decode);
  return { page: page || 'cluster', path, params: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where the user is. @type {import('./observable.js').Observable<Place>} */
export const place = observable(parse(location.hash));
addEventListener('hashchange', () => place.set(parse(location.hash)));

/** The link to a place; the moment stays. `params` with null or '' are left out. */
export function href(page, path = [], params = {}) {
  const way = [page, ...path].map(encodeURIComponent).join('/');
  const { at } = place.get().params;
  return urlOf(`#/${way}`, at ? { at, ...params } : params);
}

/** Go to a place. */
export function go(page, path = [], params = {}) {
  location.hash = href(page, path, params);
}

/** Change parameters of the present place without a new entry in the history. */
export function setParams(changes) {
  const { page, path, params } = place.get();
  const way = [page, ...path].map(encodeURIComponent).join('/');
  history.replaceState(null, '', urlOf(`#/${way}`, { ...params, ...changes }));
  place.set(parse(location.hash));
}

export const usePlace = () => useStore(place);

// --- The moment ------------------------------------------------------------------------------

/** The last entry of a saved journal, which has no present; null for a cluster. */
export const ending = observable(null);

/** The sequence number that all pages show, or null for now. */
export const moment = observable(momentOf(place.get()));
place.subscribe((where) => moment.set(momentOf(where)));
ending.subscribe(() => moment.set(momentOf(place.get())));

function momentOf({ params }) {
  return /^\d+$/.test(params.at || '') ? Number(params.at) : ending.get();
}

/** Show the cluster as it was after journal entry `seq`; null shows it live, or at the journal's end. */
export function travel(seq) {
  setParams({ at: seq === null ? '' : String(seq) });
}

export const useMoment = () => useStore(moment);

// --- Polls -----------------------------------------------------------------------------------

/**
 * @typedef {Object} Polled
 * @property {any} data the newest answer, or null before the first one
 * @property {Error|null} error of the last try
 * @property {boolean} stale the data is older than the last try, or than a change of the place
 * @property {() => void} refresh asks now
 */

// A poll waits at least so many times as long as its last answer took.
const SHARE = 20;

/** Polls by URL: several components that ask the same share one. */
const polls = new Map();

class Poll {
  constructor(path, params, ms) {
    this.path = path;
    this.params = params;
    this.ms = ms;
    this.state = observable({ data: null, error: null, stale: false });
    this.users = 0;
    this.timer = 0;
    this.text = null;
    this.asking = false;
  }

  enter(ms) {
    this.users += 1;
    this.ms = Math.min(this.ms, ms);
    if (this.users === 1) this.ask();
  }

  leave() {
    this.users -= 1;
    if (this.users === 0) {
      clearTimeout(this.timer);
      polls.delete(urlOf(this.path, this.params));
    }
  }

  refresh() {
    clearTimeout(this.timer);
    return this.ask();
  }

  async ask() {
    if (this.asking) {
      this.again = true;
      return;
    }
    let tookMs = 0;
    if (!document.hidden || this.state.get().data === null) {
      this.asking = true;
      const began = performance.now();
      try {
        const data = await get(this.path, this.params);
        const text = JSON.stringify(data);
        const { error, stale } = this.state.get();
        // An unchanged answer redraws nothing.
        if (text !== this.text || error || stale) {
          const same = text === this.text ? this.state.get().data : data;
          this.text = text;
          this.state.set({ data: same, error: null, stale: false });
        }
      } catch (error) {
        const { data } = this.state.get();
        this.state.set({ data, error, stale: data !== null });
      }
      this.asking = false;
      tookMs = performance.now() - began;
    }
    if (this.users > 0) {
      // A slow answer, of a large or busy cluster, is asked for less often.
      const wait = this.again ? 0 : Math.max(this.ms, SHARE * tookMs);
      this.again = false;
      clearTimeout(this.timer);
      if (Number.isFinite(wait)) this.timer = setTimeout(() => this.ask(), wait);
    }
  }
}

/** As `ofState` of `usePoll`: what the path tells does not depend on the moment. */
export const ANY_TIME = (data) => data;

const IDLE = observable({ data: null, error: null, stale: false });

/**
 * Ask a path again and again; the last data stay when a call fails. Nothing is asked while the tab
 * is hidden, nor if `path` is null.
 *
 * At a moment, `ofState` picks the same data from the state that `/v1/journal/state` gives. A poll
 * without it is of the present only: its `data` is null at a moment, and `past` is true. With
 * ANY_TIME it asks the same path at every moment.
 * @param {string|null} path
 * @param {Object} params
 * @param {number} ms
 * @param {(state: object) => any} [ofState]
 * @returns {Polled & {past: boolean, untold: boolean}} `untold`: the journal does not tell it
 */
export function usePoll(path, params = {}, ms = 2_000, ofState = undefined) {
  const at = useMoment();
  const past = at !== null && ofState !== ANY_TIME;
  const asked = past && path !== null && ofState ? '/v1/journal/state' : past ? null : path;
  const with_ = past ? { seq: at } : params;
  const every = past ? Infinity : ms;
  const url = asked === null ? '' : urlOf(asked, with_);
  const [, redraw] = useState(0);
  let poll = null;
  if (url) {
    poll = polls.get(url);
    if (!poll) {
      poll = new Poll(asked, with_, every);
      polls.set(url, poll);
    }
  }
  const rendered = poll && poll.state.get();
  useEffect(() => {
    if (!poll) return undefined;
    polls.set(url, poll);
    const unsubscribe = poll.state.subscribe(() => redraw((n) => n + 1));
    // An answer may have come between the rendering and this effect.
    if (poll.state.get() !== rendered) redraw((n) => n + 1);
    poll.enter(every);
    return () => {
      unsubscribe();
      poll.leave();
    };
  }, [url]);
  const found = (poll ? poll.state : IDLE).get();
  const data = past && ofState && found.data !== null ? ofState(found.data) ?? null : found.data;
  const untold = past && data === null && (asked === null || found.data !== null);
  return { ...found, data, past, untold, refresh: () => poll && poll.refresh() };
}

/** Ask everything that is shown now: after an action. */
export function refreshAll() {
  for (const poll of polls.values()) poll.refresh();
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) refreshAll();
});
connection.subscribe(({ state }) => {
  if (state === 'ok') refreshAll();
});

// --- Keys ------------------------------------------------------------------------------------

/** @typedef {{keys: string, what: string, run: (event: KeyboardEvent) => void}} Key */

const bound = new Set();

/**
 * Keys while a component is shown: "t", "g c" (one after the other), "Escape", "shift+?".
 * The list at `?` shows them. Nothing happens while a text is typed, but for Escape.
 * @param {Key[]} list
 * @param {string} where heading in the list
 * @param {any[]} deps as of `useEffect`
 */
export function useKeys(list, where, deps = []) {
  useEffect(() => {
    const entry = { list, where };
    bound.add(entry);
    return () => bound.delete(entry);
  }, deps);
}

/** All keys by heading, in the order in which they were bound. @returns {Map<string, Key[]>} */
export function allKeys() {
  const found = new Map();
  for (const { list, where } of bound) found.set(where, [...(found.get(where) || []), ...list]);
  return found;
}

const typing = (element) =>
  element?.matches?.('input:not([type="range"], [type="checkbox"]), textarea, select, [contenteditable]');

let before = '';
let beforeMs = 0;
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (typing(event.target) && event.key !== 'Escape') return;
  if (document.querySelector('dialog[open]')) return; // a dialog has its own keys
  const now = performance.now();
  const two = now - beforeMs < 1_000 ? `${before} ${event.key}` : '';
  const binding = [...bound].reverse().flatMap((each) => each.list);
  const found = binding.find((key) => key.keys === two) ||
    binding.find((key) => key.keys === event.key);
  before = event.key;
  beforeMs = now;
  if (found) {
    event.preventDefault();
    before = '';
    found.run(event);
  }
});

// --- Theme -----------------------------------------------------------------------------------

const THEME = 'mockbroker-theme';
const preferred = matchMedia('(prefers-color-scheme: dark)');

/** "light" or "dark": the user's choice, else the system's. */
export const theme = observable('');

function applyTheme() {
  theme.set(localStorage.getItem(THEME) || (preferred.matches ? 'dark' : 'light'));
  document.documentElement.dataset.theme = theme.get();
}

/** Switch between light and dark. */
export function switchTheme() {
  localStorage.setItem(THEME, theme.get() === 'dark' ? 'light' : 'dark');
  applyTheme();
}

preferred.addEventListener('change', applyTheme);
applyTheme();
