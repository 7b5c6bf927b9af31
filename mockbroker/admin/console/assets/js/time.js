// The time slider: all pages show the cluster now, or as it was after one entry of the journal.

import { html, useEffect, useLayoutEffect, useRef, useState } from './preact.js';
import { ending, moment, travel, useKeys, useMoment, usePoll, useStore } from './store.js';
import { get } from './api.js';
import { Icon } from './ui.js';

const SETTLE_MS = 90; // a slider that moves asks for no state on its way

/** The number of the newest entry, live; null without a journal. */
export function useLastSeq() {
  const [last, setLast] = useState(null);
  useEffect(() => {
    let over = false;
    let timer = 0;
    async function ask() {
      try {
        if (!document.hidden) {
          const mark = await get('/v1/journal/last');
          if (!over) setLast(mark.last_seq);
        }
      } catch {
        // The header tells of a connection that is gone.
      }
      if (!over) timer = setTimeout(ask, 1_000);
    }
    ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  return last;
}

/** The slider below the header. */
export function TimeSlider() {
  const at = useMoment();
  const last = useLastSeq();
  const [draft, setDraft] = useState(null);
  const timer = useRef(0);
  const range = useRef(null);
  const state = usePoll(at === null ? null : '/v1/journal/state', {}, Infinity, (found) => found);
  const shown = draft ?? at ?? last ?? 0;
  const max = Math.max(last ?? 0, at ?? 0, 1);

  useLayoutEffect(() => {
    // The maximum first: a value above it would be cut.
    range.current.max = String(max);
    range.current.value = String(shown);
  }, [max, shown]);

  function slide(seq) {
    const wanted = Math.min(Math.max(seq, 1), max);
    setDraft(wanted);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setDraft(null);
      travel(wanted);
    }, SETTLE_MS);
  }
  const live = () => {
    clearTimeout(timer.current);
    setDraft(null);
    travel(null);
  };
  const step = (by) => slide((draft ?? moment.get() ?? last ?? 0) + by);

  useKeys(
    [
      { keys: '[', what: 'one journal entry back', run: () => step(-1) },
      { keys: ']', what: 'one journal entry on', run: () => step(1) },
      { keys: '{', what: '100 entries back', run: () => step(-100) },
      { keys: '}', what: '100 entries on', run: () => step(100) },
      { keys: 'l', what: 'back to live, or to the end', run: live },
    ],
    'Time',
    [last],
  );

  const end = useStore(ending);
  const isLive = (at === null || at === end) && draft === null;
  const now = state.data?.at_ms;
  return html`<section class=${`timebar${isLive ? '' : ' past'}`} aria-label="Time">
    <button class="live" aria-pressed=${String(isLive)} onClick=${live}>
      <span class="dot" aria-hidden="true"></span>${end === null ? 'Live' : 'End'}
    </button>
    <button class="icon" aria-label="One entry back" disabled=${!last} onClick=${() => step(-1)}>
      <${Icon} name="back" />
    </button>
    <input
      ref=${range}
      type="range"
      min="1"
      disabled=${!last}
      aria-label="Journal entry that is shown"
      aria-valuetext=${isLive && end === null ? 'live' : `entry ${shown} of ${max}`}
      onInput=${(event) => slide(Number(event.target.value))}
    />
    <button class="icon" aria-label="One entry on" disabled=${!last} onClick=${() => step(1)}>
      <${Icon} name="on" />
    </button>
    <output class="num">
      ${isLive
        ? last === null ? 'no journal' : `entry ${last.toLocaleString('en')}`
        : `entry ${shown.toLocaleString('en')} of ${max.toLocaleString('en')}`}
      ${!isLive && now ? html` <span class="muted">${new Date(now).toISOString().slice(11, 23)}</span>` : null}
    </output>
    ${!isLive && state.error ? html`<span class="bad-text">${state.error.message}</span>` : null}
  </section>`;
}
