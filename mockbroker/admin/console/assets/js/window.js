// A table over a long list that the server holds: only the pages in view are asked for.

import { html, useEffect, useRef, useState } from './preact.js';
import { usePoll } from './store.js';
import { Loaded, number } from './ui.js';

const ROW_PX = 29; // as --row in style.css
const PAGE = 100;

/**
 * @param {{label: string, columns: import('./ui.js').Column[], path: string, params: object, of: string,
 *   ms: number, ofState: (state: object) => any[], rowKey: (row: any) => string,
 *   onOpen: (row: any) => void, selected?: string, maxRows: number, empty: any}} props
 *   the answer has a page in its field `of`, and `total`; it takes `offset` and `limit`
 */
export function WindowTable({ label, columns, path, params, of, ms, ofState, rowKey, onOpen, selected, maxRows, empty }) {
  const [top, setTop] = useState(0);
  const [focus, setFocus] = useState(0);
  const box = useRef(null);
  const moved = useRef(false);
  const page = Math.floor(top / ROW_PX / PAGE);
  const pick = (state) => {
    const all = ofState(state);
    return { [of]: all, total: all.length, whole: true };
  };
  const near = Math.max(0, page * PAGE - PAGE / 2);
  const poll = usePoll(path, { ...params, offset: near, limit: 2 * PAGE }, ms, pick);
  const kept = useRef(null); // rows stay while the next page comes
  const query = JSON.stringify(params);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
    setFocus(0);
  }, [query]);
  if (poll.data) kept.current = { data: poll.data, from: poll.data.whole ? 0 : near, query };
  const found = poll.data ? kept.current : kept.current && !poll.error && !poll.past ? kept.current : null;
  const shown = { ...poll, data: found ? found.data : null };

  function move(event) {
    const last = (found?.data.total || 1) - 1;
    const to = { ArrowDown: focus + 1, ArrowUp: focus - 1, j: focus + 1, k: focus - 1, PageDown: focus + maxRows - 2,
      PageUp: focus - maxRows + 2, Home: 0, End: last }[event.key];
    if (event.target.tagName !== 'TR') return;
    if (event.key === 'Enter') {
      event.preventDefault();
      const row = found?.data[of][focus - found.from];
      if (row) onOpen(row);
    } else if (to !== undefined) {
      event.preventDefault();
      const next = Math.min(Math.max(to, 0), last);
      const area = box.current;
      const seen = area.clientHeight - ROW_PX;
      const y = next * ROW_PX;
      if (y < area.scrollTop) area.scrollTop = y;
      else if (y + ROW_PX > area.scrollTop + seen) area.scrollTop = y + ROW_PX - seen;
      setTop(area.scrollTop);
      moved.current = true;
      setFocus(next);
    }
  }

  useEffect(() => {
    if (!moved.current) return;
    const row = box.current?.querySelector(`tr[data-at="${focus}"]`);
    if (row) {
      moved.current = false;
      row.focus({ preventScroll: true });
    }
  });

  return html`<${Loaded} poll=${shown} what="the list">${({ total, [of]: rows }) => {
    if (total === 0) return empty;
    const from = found.from;
    const first = Math.max(from, Math.floor(top / ROW_PX) - 10);
    const last = Math.min(from + rows.length, Math.ceil(top / ROW_PX) + maxRows + 10);
    const above = Math.min(first, total) * ROW_PX;
    const below = Math.max(total - Math.max(last, first), 0) * ROW_PX;
    return html`<div class="tablebox" ref=${box} style=${{ maxHeight: `${(maxRows + 1) * ROW_PX + 2}px` }}
        onScroll=${(event) => setTop(event.currentTarget.scrollTop)}>
      <table aria-label=${label} aria-rowcount=${total + 1} class="opens">
        <thead><tr>${columns.map((each) => html`<th key=${each.key} scope="col" title=${each.hint} class=${`${each.num ? 'num ' : ''}${each.cls || ''}`}>${each.label}</th>`)}</tr></thead>
        <tbody onKeyDown=${move}>
          ${above ? html`<tr key="above" class="space" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${above}px` }}></td></tr>` : null}
          ${rows.slice(first - from, Math.max(last - from, 0)).map((row, n) => {
            const at = first + n;
            const key = rowKey(row);
            return html`<tr key=${key} data-at=${at} aria-rowindex=${at + 2} class=${key === selected ? 'selected' : ''}
                aria-current=${key === selected ? 'true' : undefined} tabindex=${at === focus ? 0 : -1} onFocus=${() => setFocus(at)}
                onClick=${(event) => { if (!event.target.closest('a, button') && !String(getSelection())) onOpen(row); }}>
              ${columns.map((each) => html`<td key=${each.key} class=${`${each.num ? 'num ' : ''}${each.cls || ''}`}>${each.render ? each.render(row) : row[each.key]}</td>`)}</tr>`;
          })}
          ${below ? html`<tr key="below" class="space" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${below}px` }}></td></tr>` : null}
        </tbody></table></div>
      ${total > maxRows ? html`<p class="tablefoot muted num">${number(total)} in all</p>` : null}`;
  }}<//>`;
}
