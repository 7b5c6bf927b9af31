// One entry of the journal, opened: its fields and their bytes, what caused it and what it caused,
// and which rules fired. The timeline and the audit show it.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './preact.js';
import { get } from './api.js';
import { href, travel } from './store.js';
import { Badge, Empty, ErrorLine, Facts, Icon, Panel, Tabs, bytes, clock, count, duration } from './ui.js';

const HEX_ROW = 16;
const HEX_PX = 18;
const HEX_ROWS_SEEN = 12;
const DEEP = 5; // levels of fields that are open at first

/** Ask once for each URL; null does not ask. @returns {{data: any, error: Error|null}} */
export function useGet(path, params, again = 0) {
  const [found, setFound] = useState({ data: null, error: null, key: '' });
  const key = path === null ? '' : `${path}?${JSON.stringify(params || {})}#${again}`;
  useEffect(() => {
    if (path === null) return undefined;
    let over = false;
    get(path, params).then(
      (data) => { if (!over) setFound({ data, error: null, key }); },
      (error) => { if (!over) setFound({ data: null, error, key }); },
    );
    return () => { over = true; };
  }, [key]);
  return found.key === key ? found : { data: null, error: null };
}

/**
 * A request with its answer, or a fact.
 * @param {{seq: number, answer?: number|null, version?: number, onClose?: () => void,
 *   linkOf: (seq: number) => string}} props `answer` is the number of a request's answer;
 *   `version` changes when it may have new effects
 */
export function Entry({ seq, answer = null, version = 0, onClose, linkOf }) {
  const [side, setSide] = useState('request');
  const entry = useGet(`/v1/journal/entries/${seq}`);
  const links = useGet(`/v1/journal/entries/${seq}/links`, {}, version);
  const link = links.data?.effects.find((each) => each.relation === 'response');
  const answerSeq = answer ?? link?.seq ?? null;
  const other = useGet(answerSeq === null ? null : `/v1/journal/entries/${answerSeq}`);
  const first = entry.data?.events[0];
  const isRequest = first?.kind === 'request' || first?.kind === 'hop';
  useLayoutEffect(() => setSide('request'), [seq]);
  return html`<${Panel} title=${first ? headOf(first) : `Entry ${seq}`} note=${`entry ${seq}`} actions=${html`
      <button class="small" onClick=${() => travel(seq)} title="All pages show the cluster as it was after this entry">
        Go to this moment</button>
      ${onClose ? html`<button class="icon" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button>` : null}`}>
    ${entry.error ? html`<${ErrorLine} error=${entry.error} />` : null}
    ${first ? html`<div class="stack">
      <${Head} event=${first} answer=${other.data?.events[0]} waits=${isRequest && links.data && answerSeq === null} />
      <${Links} links=${links} linkOf=${linkOf} />
      ${isRequest ? html`<${Rules} rules=${links.data?.rules} />` : null}
      ${isRequest ? html`<${Tabs} label="Message" value=${side} onChange=${setSide}
          tabs=${[{ id: 'request', label: 'Request' }, { id: 'answer', label: 'Answer' }]}>
        ${side === 'request' ? html`<${Message} entry=${entry.data} />`
          : other.data ? html`<${Message} entry=${other.data} />`
            : html`<${Empty} title="There is no answer yet">
              <p>It appears here as soon as the broker sends one.</p><//>`}<//>`
        : html`<${Message} entry=${entry.data} />`}
    </div>` : entry.error ? null : html`<div class="skeleton" role="status" aria-label="Loading the entry"><i></i><i></i><i></i></div>`}
  <//>`;
}

/** A sentence about an event, short enough for a heading. */
export function headOf(event) {
  if (event.kind === 'request') return `${event.api} of ${event.client_id || 'a client'}`;
  if (event.kind === 'response') return `Answer to ${event.api}`;
  const place = event.topic ? ` ${event.topic}${event.partition === undefined ? '' : `-${event.partition}`}` : '';
  const what = event.state ? ` ${event.former ? `${event.former} → ` : ''}${event.state}` : event.change ? ` ${event.change}` : '';
  const who = [event.group].flat()[0] || [event.transactional_id].flat()[0] || '';
  return `${event.kind}${who ? ` ${who}` : ''}${place}${what}`;
}

function Head({ event, answer, waits }) {
  const list = (value) => (Array.isArray(value) ? value.join(', ') : value);
  const items = [
    ['Clock', clock(event.virtual_ms, 3)],
    ['Client', event.client_id],
    ['Connection', event.connection],
    ['Broker', event.broker],
    ['Version', event.api_version],
    ['Topic', event.topic ? `${event.topic}${event.partition === undefined ? '' : `-${event.partition}`}` : targetsOf(event)],
    ['Group', list(event.group)],
    ['Transactional id', list(event.transactional_id)],
    ['Producer', event.producer_id === undefined ? undefined : `${list(event.producer_id)} epoch ${list(event.producer_epoch) ?? '–'}`],
    ['Offsets', event.first_offset === undefined ? event.offset : `${event.first_offset} to ${event.last_offset}`],
    ['Reason', event.reason],
  ].filter(([, value]) => value !== undefined && value !== '' && value !== null);
  const errors = (answer || event).errors || [];
  return html`<div class="stack">
    <div class="row">${waits ? html`<${Badge} kind="warn">not answered yet<//>` : null}
      ${answer ? html`<${Badge} kind=${answer.outcome ? 'bad' : errors.length > 0 ? 'bad' : 'ok'}
        >${answer.outcome ? `answer ${answer.outcome}` : `answered in ${duration((answer.elapsed_ns || 0) / 1e6)}`}<//>` : null}
      ${errors.map((error) => html`<${Badge} key=${error} kind="bad">${error}<//>`)}
      ${(answer?.rules || event.rules || []).map((rule) => html`<${Badge} key=${rule} kind="warn">rule ${rule}<//>`)}</div>
    <${Facts} items=${items} /></div>`;
}

function targetsOf(event) {
  const targets = event.targets || [];
  if (targets.length === 0) return undefined;
  const shown = targets.slice(0, 4).map(([topic, partition]) => `${topic}-${partition}`).join(', ');
  return targets.length > 4 ? `${shown} and ${targets.length - 4} more` : shown;
}

function Links({ links, linkOf }) {
  if (links.error) return html`<${ErrorLine} error=${links.error} />`;
  if (!links.data) return null;
  const { causes, effects, left_out: leftOut } = links.data;
  const part = (title, list, none) => html`<div><h3>${title}</h3>${list.length === 0
    ? html`<p class="muted">${none}</p>`
    : html`<ul class="links">${list.map((each) => html`<li key=${`${each.seq} ${each.relation} ${each.text}`}>
        <a href=${linkOf(each.seq)}><span class="relation">${each.relation}</span>${each.text}</a></li>`)}</ul>`}</div>`;
  return html`<div class="cols links-cols">${part('Caused by', causes, 'Nothing that the journal has: it began here.')}
    ${part(`What it caused${leftOut ? ` (${count(leftOut, 'more effect')})` : ''}`, effects, 'Nothing yet.')}</div>`;
}

function Rules({ rules }) {
  if (!rules) return null;
  return html`<div><h3>Rules</h3>${rules.length === 0
    ? html`<p class="muted">No rule is in force. <a href=${href('faults')}>Add one</a> to break such a request.</p>`
    : html`<ul class="plainlist">${rules.map((each) => html`<li key=${each.rule}>
        <${Badge} kind=${each.fired ? 'warn' : 'none'}>${each.rule}<//> ${each.fired ? 'fired' : 'did not fire'}: ${each.why}</li>`)}</ul>`}</div>`;
}

// --- Fields and bytes ------------------------------------------------------------------------

/** The fields of a frame as a tree, by the parts of their paths. */
function treeOf(fields) {
  const root = { name: '', fields: [], known: new Map() };
  for (const { start, end, path, text, wrong } of fields) {
    let node = root;
    for (const part of path.match(/\[\d+\]|[^.[\]]+/g) || [path]) {
      let next = node.known.get(part);
      if (!next) {
        next = { name: part, from: start, to: end, fields: [], known: new Map(), text: '' };
        node.known.set(part, next);
        node.fields.push(next);
      }
      next.to = end;
      node = next;
    }
    node.text = text;
    node.wrong = wrong;
  }
  return root.fields;
}

function Message({ entry }) {
  const [mark, setMark] = useState(null);
  const [kept, setKept] = useState(null);
  const { frame, events } = entry;
  const fields = useMemo(() => (frame ? treeOf(frame.fields) : []), [frame]);
  const shown = mark || kept;
  const message = events[0]?.message;
  const plain = message && Object.keys(message).length > 0 ? html`<pre class="message">${JSON.stringify(message, null, 2)}</pre>` : null;
  if (!frame) return plain || html`<p class="muted">This entry has no message: what it says is above.</p>`;
  return html`<div class="stack">
    <p class="muted">${bytes(frame.bytes)}${frame.left_out ? `; ${count(frame.left_out, 'more field')} not shown` : ''}.
      ${frame.note ? html` ${frame.note}` : null}${fields.length > 0 ? ' Point at a field to see its bytes.' : ''}</p>
    ${fields.length > 0 ? html`<div class="decoded">
      <div class="fields" role="tree" aria-label="Fields" onMouseLeave=${() => setMark(null)}>
        ${fields.map((field) => html`<${FieldRow} key=${field.name} field=${field} level=${1} path=${field.name}
          onMark=${setMark} onKeep=${setKept} kept=${kept} />`)}</div>
      <${Hex} hex=${frame.hex} mark=${shown} /></div>` : plain}</div>`;
}

function FieldRow({ field, level, path, onMark, onKeep, kept }) {
  const leaf = field.fields.length === 0;
  const [open, setOpen] = useState(level <= DEEP);
  const me = { path, from: field.from, to: field.to };
  return html`<div role="treeitem" aria-level=${level} aria-expanded=${leaf ? undefined : String(open)} aria-selected=${String(kept?.path === path)}>
    <button class=${`fieldrow${kept?.path === path ? ' kept' : ''} level${Math.min(level, 8)}`} onMouseEnter=${() => onMark(me)} onFocus=${() => onMark(me)}
      title=${`${count(field.to - field.from, 'byte')} at ${field.from}`} onClick=${() => { onKeep(me); if (!leaf) setOpen(!open); }}>
      <span class="twist" aria-hidden="true">${leaf ? '' : open ? '▾' : '▸'}</span>
      <span class="fieldname">${field.name}</span><span class=${`fieldvalue${field.wrong ? ' bad-text' : ''}`}>${field.text}</span>
    </button>
    ${open && !leaf ? html`<div role="group">${field.fields.map((each) => html`<${FieldRow} key=${each.name} field=${each}
      level=${level + 1} path=${`${path}.${each.name}`} onMark=${onMark} onKeep=${onKeep} kept=${kept} />`)}</div>` : null}
  </div>`;
}

function Hex({ hex, mark }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const size = hex.length / 2;
  const rows = Math.ceil(size / HEX_ROW);
  useEffect(() => {
    if (!mark || !box.current) return;
    const y = Math.floor(mark.from / HEX_ROW) * HEX_PX;
    const area = box.current;
    if (y < area.scrollTop || y > area.scrollTop + area.clientHeight - HEX_PX) area.scrollTop = Math.max(0, y - HEX_PX * 2);
  }, [mark]);
  const first = Math.max(0, Math.floor(top / HEX_PX) - 4);
  const last = Math.min(rows, first + HEX_ROWS_SEEN + 12);
  const lines = useMemo(() => {
    const made = [];
    for (let row = first; row < last; row += 1) made.push(row);
    return made;
  }, [first, last]);
  return html`<div class="hex" ref=${box} tabindex="0" role="region" aria-label="Bytes"
      onScroll=${(event) => setTop(event.currentTarget.scrollTop)}>
    <div class="hexbody" style=${{ height: `${rows * HEX_PX}px` }}>
      ${lines.map((row) => html`<div class="hexrow" key=${row} style=${{ top: `${row * HEX_PX}px` }}>${hexRow(hex, row, mark, size)}</div>`)}
    </div></div>`;
}

function hexRow(hex, row, mark, size) {
  const from = row * HEX_ROW;
  const to = Math.min(from + HEX_ROW, size);
  const low = mark ? Math.min(Math.max(mark.from, from), to) : from;
  const high = mark ? Math.min(Math.max(mark.to, from), to) : from;
  const code = (n) => parseInt(hex.slice(n * 2, n * 2 + 2), 16);
  const pairs = (a, b) => {
    let text = '';
    for (let n = a; n < b; n += 1) text += `${hex.slice(n * 2, n * 2 + 2)}${n === from + 7 ? '  ' : ' '}`;
    return text;
  };
  const letters = (a, b) => {
    let text = '';
    for (let n = a; n < b; n += 1) text += code(n) >= 32 && code(n) < 127 ? String.fromCharCode(code(n)) : '·';
    return text;
  };
  const space = '   '.repeat(HEX_ROW - (to - from)) + (to - from <= 7 ? ' ' : '');
  return html`<span class="muted">${from.toString(16).padStart(5, '0')}  </span>${pairs(from, low)}<mark>${pairs(low, high)}</mark
    >${pairs(high, to)}${space} ${letters(from, low)}<mark>${letters(low, high)}</mark>${letters(high, to)}`;
}
