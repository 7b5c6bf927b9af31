// Components that pages share. All text is set as text.

import { h, html, render, useEffect, useLayoutEffect, useMemo, useRef, useState } from './preact.js';
import { allKeys, ending, theme, useStore } from './store.js';

const ROW_PX = 29; // as --row in style.css
const VIRTUAL_ABOVE = 200;
const OVERSCAN = 12;

// --- Icons -----------------------------------------------------------------------------------

const ICONS = {
  back: 'M10 3 5 8l5 5',
  on: 'M6 3l5 5-5 5',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.5 1.5M11.5 11.5 13 13M13 3l-1.5 1.5M4.5 11.5 3 13',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5 14 14',
  plus: 'M8 3v10M3 8h10',
  stop: 'M4 4h8v8H4z',
  play: 'M5 3l8 5-8 5z',
  pause: 'M5 3v10M11 3v10',
  skull: 'M3 3l10 10M13 3 3 13',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  down: 'M3 6l5 5 5-5',
  up: 'M3 10l5-5 5 5',
  cut: 'M2 8h3.5M10.5 8H14M6.5 4.5l3 7M9.5 4.5l-3 7',
  heal: 'M2 8h12M5 5l-3 3 3 3M11 5l3 3-3 3',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3',
};

/** A 16 px line icon; it has no name of its own: its button has a label. */
export function Icon({ name }) {
  return html`<svg class="i" viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
}

// --- Text ------------------------------------------------------------------------------------

/** A number with separators; null is an en dash. */
export const number = (n) => (n === null || n === undefined ? '–' : Number(n).toLocaleString('en'));

/** A duration: 950 ms, 4.2 s, 3 min 10 s, 2 h 5 min. @param {number} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/** A time of day of the cluster's clock, UTC. @param {number} ms */
export const clock = (ms, digits = 0) =>
  ms === null || ms === undefined || ms < 0
    ? '–'
    : new Date(ms).toISOString().slice(11, digits ? 20 + digits : 19);

/** Bytes: 512 B, 1.5 kB, 20 MB. */
export function bytes(n) {
  if (n < 1_000) return `${n} B`;
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}

/** "1 broker", "3 brokers". */
export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

// --- Small parts -----------------------------------------------------------------------------

const MARKS = { ok: '●', warn: '▲', bad: '✖', off: '■', pause: '❚❚', info: '◆', none: '○' };

/**
 * A state: a shape, a colour and its word, so that it does not depend on colour.
 * @param {{kind: 'ok'|'warn'|'bad'|'off'|'pause'|'info'|'none', title?: string}} props
 */
export function Badge({ kind = 'none', title, children }) {
  return html`<span class=${`badge ${kind}`} title=${title}
    ><span class="mark" aria-hidden="true">${MARKS[kind]}</span>${children}</span
  >`;
}

/** What a page says when it has nothing: what it would show, and what to do. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>
    ${children ? html`<div>${children}</div>` : null}</div>`;
}

/** An error in its place, as a sentence. */
export function ErrorLine({ error, onRetry }) {
  if (!error) return null;
  return html`<div class="error" role="alert"><span class="mark" aria-hidden="true">✖</span>
    <span>${error.message}</span>
    ${onRetry ? html`<button class="small" onClick=${onRetry}>Try again</button>` : null}</div>`;
}

/**
 * What a poll has: an error in its place, a skeleton before the first answer, or the children.
 * @param {{poll: import('./store.js').Polled, what: string}} props `what` is "the groups"
 */
export function Loaded({ poll, what, children }) {
  if (poll.untold && !poll.error) {
    return html`<${Empty} title="This is known of the present only">
      <p>The journal does not tell ${what} of a moment. <${BackToLive} /></p>
    <//>`;
  }
  if (poll.data === null) {
    if (poll.error) return html`<${ErrorLine} error=${poll.error} onRetry=${poll.refresh} />`;
    return html`<div class="skeleton" role="status" aria-label=${`Loading ${what}`}>
      <i></i><i></i><i></i></div>`;
  }
  // The line below the header says once that nothing answers; the data stay.
  const told = poll.error && ![0, 503].includes(poll.error.status);
  return html`${told ? html`<${ErrorLine} error=${poll.error} onRetry=${poll.refresh} />` : null}
    ${typeof children === 'function' ? children(poll.data) : children}`;
}

/** How to go back to live; nothing for a saved journal, which has no present. */
export function BackToLive() {
  return useStore(ending) === null ? html`Press <kbd>l</kbd> to go back to live.` : null;
}

/** A titled part of a page. `actions` are buttons on its right. */
export function Panel({ title, note, actions, children, id, flush = false }) {
  return html`<section class=${`panel${flush ? ' flush' : ''}`} aria-label=${title} id=${id}>
    <header><h2>${title}</h2>${note ? html`<span class="muted note">${note}</span>` : null}
      ${actions ? html`<div class="actions">${actions}</div>` : null}</header>
    <div class="body">${children}</div></section>`;
}

/** Names and values, in aligned columns. @param {{items: [string, any][]}} props */
export function Facts({ items }) {
  return html`<dl class="facts">${items
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value ?? '–'}</dd></div>`)}</dl>`;
}

/**
 * Tabs with arrow keys.
 * @param {{tabs: {id: string, label: string, count?: number}[], value: string, onChange: (id: string) => void, label: string}} props
 */
export function Tabs({ tabs, value, onChange, label, children }) {
  const list = useRef(null);
  function move(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = tabs.findIndex((each) => each.id === value);
    const next = tabs[(at + by + tabs.length) % tabs.length];
    onChange(next.id);
    requestAnimationFrame(() => list.current?.querySelector('[aria-selected="true"]')?.focus());
  }
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
      ${tabs.map((each) => html`<button key=${each.id} role="tab" id=${`tab-${each.id}`}
          aria-selected=${String(each.id === value)} aria-controls=${`panel-${each.id}`}
          tabindex=${each.id === value ? 0 : -1} onClick=${() => onChange(each.id)}
          >${each.label}${each.count === undefined ? null : html` <span class="count">${number(each.count)}</span>`}</button
        >`)}
    </div>
    <div role="tabpanel" id=${`panel-${value}`} aria-labelledby=${`tab-${value}`} class="tabpanel">${children}</div>`;
}

/** One of a few, as buttons side by side. @param {{options: [string, string][]}} props value and label */
export function Choice({ options, value, onChange, label }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(([id, text]) => html`<button key=${id} aria-pressed=${String(id === value)}
        onClick=${() => onChange(id)}>${text}</button>`)}
  </div>`;
}

/** A button that runs something async: disabled meanwhile, its error is a toast. */
export function ActionButton({ run, label, kind = '', title, children, disabled }) {
  const [busy, setBusy] = useState(false);
  async function act(event) {
    event.stopPropagation();
    setBusy(true);
    try {
      await run();
    } catch (error) {
      toast(error.message, 'bad');
    }
    setBusy(false);
  }
  return html`<button class=${kind} aria-label=${label} title=${title ?? label}
    disabled=${busy || disabled} aria-busy=${String(busy)} onClick=${act}>${children ?? label}</button>`;
}

// --- Table -----------------------------------------------------------------------------------

/**
 * @typedef {Object} Column
 * @property {string} key
 * @property {string} label
 * @property {(row: any) => any} [value] by which rows are sorted; default `row[key]`
 * @property {(row: any) => any} [render] content of the cell; default the value
 * @property {boolean} [num] right-aligned, tabular numerals
 * @property {string} [cls]
 * @property {boolean} [sortable] default true
 * @property {string} [hint] title of the heading
 */

/**
 * A table: sortable, with arrow keys, and with virtual rows above 200.
 * @param {{columns: Column[], rows: any[], rowKey: (row: any) => string, label: string,
 *   onOpen?: (row: any) => void, selected?: string, empty?: any, sort?: string,
 *   rowClass?: (row: any) => string, maxRows?: number}} props
 *   `onOpen`: a click or Enter on a row. `sort` is the first sorted column, "-name" descends.
 *   `maxRows`: how many rows are shown before it scrolls; 0 never scrolls.
 */
export function Table({
  columns, rows, rowKey, label, onOpen, selected, empty, sort, rowClass, maxRows = 18,
}) {
  const [order, setOrder] = useState(sort || '');
  const [focus, setFocus] = useState(0);
  const [top, setTop] = useState(0);
  const box = useRef(null);
  const moved = useRef(false);

  const sorted = useMemo(() => {
    const key = order.replace(/^-/, '');
    const column = columns.find((each) => each.key === key);
    if (!column) return rows;
    const value = column.value || ((row) => row[key]);
    const sign = order.startsWith('-') ? -1 : 1;
    const keyed = rows.map((row, at) => [value(row), at, row]);
    keyed.sort(([a, i], [b, j]) => sign * compare(a, b) || i - j);
    return keyed.map((each) => each[2]);
  }, [rows, order, columns]);

  const virtual = sorted.length > VIRTUAL_ABOVE;
  const height = maxRows * ROW_PX;
  const first = virtual ? Math.max(0, Math.floor(top / ROW_PX) - OVERSCAN) : 0;
  const last = virtual
    ? Math.min(sorted.length, Math.ceil((top + height) / ROW_PX) + OVERSCAN)
    : sorted.length;
  const at = Math.min(focus, sorted.length - 1);

  useLayoutEffect(() => {
    if (!moved.current || !box.current) return;
    moved.current = false;
    box.current.querySelector(`tr[data-at="${at}"]`)?.focus({ preventScroll: true });
  });

  function move(event) {
    const page = Math.max(1, maxRows - 2);
    const to = {
      ArrowDown: at + 1, ArrowUp: at - 1, j: at + 1, k: at - 1,
      PageDown: at + page, PageUp: at - page, Home: 0, End: sorted.length - 1,
    }[event.key];
    if (event.target.tagName !== 'TR') return;
    if (event.key === 'Enter' && onOpen) {
      event.preventDefault();
      onOpen(sorted[at]);
    } else if (to !== undefined) {
      event.preventDefault();
      const next = Math.min(Math.max(to, 0), sorted.length - 1);
      reveal(next);
      moved.current = true;
      setFocus(next);
    }
  }

  function reveal(index) {
    const area = box.current;
    if (!area) return;
    const y = index * ROW_PX;
    const seen = area.clientHeight - ROW_PX; // the heading stays
    if (y < area.scrollTop) area.scrollTop = y;
    else if (y + ROW_PX > area.scrollTop + seen) area.scrollTop = y + ROW_PX - seen;
    setTop(area.scrollTop);
  }

  if (rows.length === 0 && empty) return empty;
  const style = maxRows ? { maxHeight: `${height + ROW_PX + 2}px` } : {};
  return html`<div class="tablebox" ref=${box} style=${style}
      onScroll=${virtual ? (event) => setTop(event.currentTarget.scrollTop) : undefined}>
    <table aria-label=${label} aria-rowcount=${sorted.length + 1} class=${onOpen ? 'opens' : ''}>
      <thead><tr>${columns.map((column) => heading(column, order, setOrder))}</tr></thead>
      <tbody onKeyDown=${move}>
        ${first > 0 ? html`<tr key="above" class="space" aria-hidden="true"><td colspan=${columns.length}
            style=${{ height: `${first * ROW_PX}px` }}></td></tr>` : null}
        ${sorted.slice(first, last).map((row, n) => {
          const index = first + n;
          const key = rowKey(row);
          const cls = `${key === selected ? 'selected ' : ''}${rowClass ? rowClass(row) : ''}`;
          return html`<tr key=${key} data-at=${index} class=${cls} aria-rowindex=${index + 2}
              tabindex=${index === Math.max(at, 0) ? 0 : -1} onFocus=${() => setFocus(index)}
              aria-current=${key === selected ? 'true' : undefined}
              onClick=${onOpen ? (event) => clicked(event, () => onOpen(row)) : undefined}
            >${columns.map((column) => html`<td key=${column.key}
                class=${`${column.num ? 'num ' : ''}${column.cls || ''}`}
                >${column.render ? column.render(row) : row[column.key]}</td>`)}</tr>`;
        })}
        ${last < sorted.length ? html`<tr key="below" class="space" aria-hidden="true"><td
            colspan=${columns.length} style=${{ height: `${(sorted.length - last) * ROW_PX}px` }}></td></tr>` : null}
      </tbody>
    </table>
  </div>`;
}

function clicked(event, open) {
  if (event.target.closest('a, button, input, select')) return;
  if (String(getSelection()) !== '') return; // text was selected, not a row
  open();
}

function heading(column, order, setOrder) {
  const cls = `${column.num ? 'num ' : ''}${column.cls || ''}`;
  if (column.sortable === false) {
    return html`<th key=${column.key} scope="col" class=${cls} title=${column.hint}>${column.label || html`<span class="sr">Actions</span>`}</th>`;
  }
  const mine = order.replace(/^-/, '') === column.key;
  const down = mine && order.startsWith('-');
  const next = mine && !down ? `-${column.key}` : column.key;
  return html`<th key=${column.key} scope="col" class=${cls} title=${column.hint}
    aria-sort=${mine ? (down ? 'descending' : 'ascending') : undefined}>
    <button class="sort" onClick=${() => setOrder(next)}>${column.label}<span aria-hidden="true"
      >${mine ? (down ? ' ↓' : ' ↑') : ''}</span></button></th>`;
}

const collator = new Intl.Collator('en', { numeric: true });
function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a ?? ''), String(b ?? ''));
}

// --- Dialogs ---------------------------------------------------------------------------------

/** A modal dialog. Escape and its close button call `onClose`. */
export function Dialog({ title, onClose, children, wide = false }) {
  const ref = useRef(null);
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    if (!dialog.open) dialog.showModal();
    return () => {
      if (dialog.open) dialog.close();
      before?.focus?.();
    };
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'wide' : ''} aria-label=${title}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}
      onClick=${(event) => { if (event.target === ref.current) onClose(); }}>
    <div class="dialog">
      <header><h2>${title}</h2>
        <button class="icon" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></header>
      <div class="body">${children}</div>
    </div></dialog>`;
}

/** Dialogs that functions open are drawn here. */
function opened(draw) {
  const at = document.createElement('div');
  document.body.append(at);
  const close = () => {
    render(null, at);
    at.remove();
  };
  render(draw(close), at);
  return close;
}

/**
 * Ask before something that destroys.
 * @param {{title: string, body: string, yes: string, danger?: boolean}} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, body, yes, danger = true }) {
  return new Promise((done) => {
    opened((close) => {
      const answer = (value) => {
        close();
        done(value);
      };
      return html`<${Dialog} title=${title} onClose=${() => answer(false)}>
        <p>${body}</p>
        <div class="buttons"><button onClick=${() => answer(false)}>Cancel</button>
          <button class=${danger ? 'danger' : 'primary'} autofocus onClick=${() => answer(true)}>${yes}</button></div>
      <//>`;
    });
  });
}

/**
 * A dialog with a form of a JSON schema.
 * @param {{title: string, schema: object, value?: object, yes: string, note?: any,
 *   submit: (value: object) => Promise<any>, copy?: (value: object) => object}} props
 *   `submit` throws an ApiError whose field is shown at its place; `copy` gives what CopyAs takes
 */
export function askForm({ title, schema, value = {}, yes, submit, note, copy }) {
  return opened((close) => html`<${FormDialog}
    ...${{ title, schema, value, yes, submit, note, copy, onClose: close }} />`);
}

function FormDialog({ title, schema, value, yes, submit, note, copy, onClose }) {
  const [draft, setDraft] = useState(value);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  async function send(event) {
    event.preventDefault();
    setBusy(true);
    try {
      await submit(draft);
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }
  const field = error?.field || '';
  const known = Object.keys(schema.properties || {}).some((name) => field.split(/[.[]/)[0] === name);
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${note ? html`<p class="muted">${note}</p>` : null}
    <form onSubmit=${send}>
      <${Form} schema=${schema} value=${draft} onChange=${setDraft} errors=${error?.fields || {}} />
      ${error && !known ? html`<${ErrorLine} error=${error} />` : null}
      <div class="buttons">
        ${copy ? html`<${CopyAs} forms=${copy(draft)} />` : null}<span class="grow"></span>
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class="primary" disabled=${busy}>${yes}</button>
      </div>
    </form><//>`;
}

// --- Forms -----------------------------------------------------------------------------------

let fieldNumber = 0;

/** A labelled control with its error. `control` gets `id` and `describedby`. */
export function Field({ label, hint, error, required, control }) {
  const id = useMemo(() => `f${(fieldNumber += 1)}`, []);
  const told = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
  return html`<div class=${`field${error ? ' wrong' : ''}`}>
    <label for=${id}>${label}${required ? html`<span class="required" title="required"> *</span>` : null}</label>
    ${control({ id, 'aria-describedby': told || undefined, 'aria-invalid': error ? 'true' : undefined })}
    ${hint ? html`<div class="hint" id=${`${id}-hint`}>${hint}</div>` : null}
    ${error ? html`<div class="bad-text" id=${`${id}-error`}>${error}</div>` : null}</div>`;
}

/** The schema behind a `$ref` of an OpenAPI document. */
export function resolve(schema, root = {}) {
  if (!schema?.$ref) return schema || {};
  const found = schema.$ref.replace(/^#\//, '').split('/').reduce((at, part) => at?.[part], root);
  return found || {};
}

/**
 * The fields of an object's JSON schema. Numbers, booleans and enums have controls of their own;
 * a union, list or object is typed as JSON.
 * @param {{schema: object, value: object, onChange: (value: object) => void,
 *   errors?: Object<string, string>, root?: object}} props `root` resolves `$ref`
 */
export function Form({ schema, value, onChange, errors = {}, root = {} }) {
  const required = new Set(schema.required || []);
  return html`<div class="form">${Object.entries(schema.properties || {}).map(([name, given]) => {
    const part = resolve(given, root);
    const wrong = Object.entries(errors).find(([path]) => path.split(/[.[]/)[0] === name);
    return html`<${SchemaField} key=${name} name=${name} schema=${part} root=${root}
      required=${required.has(name)} value=${value[name]} error=${wrong?.[1]}
      onChange=${(next) => {
        const changed = { ...value };
        if (next === undefined) delete changed[name];
        else changed[name] = next;
        onChange(changed);
      }} />`;
  })}</div>`;
}

function kinds(schema, root) {
  const parts = schema.anyOf || schema.oneOf || [schema];
  return parts.map((part) => resolve(part, root));
}

function SchemaField({ name, schema, root, required, value, error, onChange }) {
  const parts = kinds(schema, root);
  const choices = parts.flatMap((part) => part.enum || (part.const !== undefined ? [part.const] : []));
  const types = new Set(parts.map((part) => part.type).filter(Boolean));
  types.delete('null');
  const only = types.size === 1 && !parts.some((part) => part.type === 'array' || part.type === 'object')
    ? [...types][0] : '';
  const label = schema.title || name.replaceAll('_', ' ');
  const [text, setText] = useState(() => shown(value));
  const [wrong, setWrong] = useState('');

  function typed(given) {
    setText(given);
    setWrong('');
    if (given === '') return onChange(undefined);
    if (only === 'string') return onChange(given);
    try {
      return onChange(JSON.parse(given));
    } catch {
      if (types.has('string') || types.size === 0) return onChange(given);
      setWrong(only ? 'A number is needed.' : 'This is no JSON.');
      return onChange(given);
    }
  }

  const control = (props) => {
    if (choices.length > 0 && choices.length === parts.flatMap((part) => part.enum || [part]).filter((p) => p.type !== 'null').length) {
      return html`<select ...${props} value=${value ?? ''} onChange=${(event) => {
        const found = choices.find((each) => String(each) === event.target.value);
        onChange(found);
      }}>${required ? null : html`<option value=""></option>`}
        ${choices.map((each) => html`<option key=${each} value=${each}>${String(each)}</option>`)}</select>`;
    }
    if (only === 'boolean') {
      return html`<input type="checkbox" ...${props} checked=${value === true}
        onChange=${(event) => onChange(event.target.checked || (required ? false : undefined))} />`;
    }
    if (schema.format === 'text' || (!only && types.size > 0 && !types.has('string') && !types.has('integer'))) {
      return html`<textarea ...${props} rows="3" spellcheck=${false} value=${text}
        placeholder=${only === 'string' ? '' : 'JSON'} onInput=${(event) => typed(event.target.value)}></textarea>`;
    }
    return html`<input ...${props} value=${text} required=${required} autocomplete="off" spellcheck=${false}
      inputmode=${only === 'integer' || only === 'number' ? 'decimal' : undefined}
      onInput=${(event) => typed(event.target.value)} />`;
  };
  return html`<${Field} label=${label} hint=${schema.description} error=${error || wrong}
    required=${required} control=${control} />`;
}

const shown = (value) =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);

// --- Copy as ---------------------------------------------------------------------------------

/** Text for a shell, in single quotes. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A call of `/v1` as a curl command. */
export function curlOf(method, path, body) {
  const parts = ['curl', '-sS'];
  if (method !== 'GET') parts.push('-X', method);
  if (body !== undefined) parts.push('-H', quoted('content-type: application/json'), '-d', quoted(JSON.stringify(body)));
  return [...parts, quoted(location.origin + path)].join(' ');
}

/** A JSON value as a Python expression. */
export function pythonOf(value) {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return pythonText(value);
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`;
  return `{${Object.entries(value).map(([k, v]) => `${pythonText(k)}: ${pythonOf(v)}`).join(', ')}}`;
}

const pythonText = (text) =>
  JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A JSON value as YAML, one level of indentation for each level of the value. */
export function yamlOf(value, indent = '') {
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    if (value.every((each) => typeof each !== 'object' || each === null)) return `[${value.map(yamlOf).join(', ')}]`;
    return value.map((each) => `\n${indent}- ${yamlOf(each, `${indent}  `).replace(/^\n\s*/, '')}`).join('');
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return '{}';
    return entries.map(([key, each]) => {
      const text = yamlOf(each, `${indent}  `);
      return `\n${indent}${yamlText(key)}:${text.startsWith('\n') ? text : ` ${text}`}`;
    }).join('');
  }
  return typeof value === 'string' ? yamlText(value) : String(value);
}

const PLAIN_YAML = /^[A-Za-z_][A-Za-z0-9_./ -]*$/;
const YAML_WORD = /^(true|false|yes|no|on|off|null|y|n)$/i;
function yamlText(text) {
  const plain = PLAIN_YAML.test(text) && !YAML_WORD.test(text) && !text.endsWith(' ');
  return plain ? text : JSON.stringify(text);
}

/**
 * The three forms of an action: of `POST /v1/actions`, of a timeline, and of the Python API.
 * @param {string} name @param {object} args
 */
export function formsOfAction(name, args) {
  const words = Object.entries(args).map(([key, value]) => `, ${key}=${pythonOf(value)}`).join('');
  return {
    python: `kafka.act(${pythonText(name)}${words})`,
    yaml: yamlOf([{ at: '0ms', do: { [name]: args } }]).trimStart(),
    curl: curlOf('POST', '/v1/actions', { [name]: args }),
  };
}

/** "Copy as" Python, YAML or curl. @param {{forms: {python?: string, yaml?: string, curl?: string}}} props */
export function CopyAs({ forms, label = 'Copy as' }) {
  const [open, setOpen] = useState(false);
  const [done, setDone] = useState('');
  const box = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    const away = (event) => { if (!box.current?.contains(event.target)) setOpen(false); };
    document.addEventListener('pointerdown', away);
    return () => document.removeEventListener('pointerdown', away);
  }, [open]);
  async function copy(kind) {
    await copyText(forms[kind]);
    setDone(kind);
    setOpen(false);
    toast(`Copied as ${NAMES[kind]}.`);
  }
  return html`<div class="menu" ref=${box} onKeyDown=${(event) => {
      if (event.key === 'Escape' && open) { event.stopPropagation(); event.preventDefault(); setOpen(false); }
    }}>
    <button type="button" class="small" aria-expanded=${String(open)} aria-haspopup="true"
      onClick=${(event) => { event.stopPropagation(); setOpen(!open); }}><${Icon} name="copy" />${label}</button>
    ${open ? html`<div class="popup" role="menu" data-last=${done}>${Object.keys(NAMES)
      .filter((kind) => forms[kind])
      .map((kind) => html`<button type="button" key=${kind} role="menuitem" onClick=${(event) => { event.stopPropagation(); copy(kind); }}>
        ${NAMES[kind]}<code>${forms[kind].split('\n')[0].slice(0, 60)}</code></button>`)}</div>` : null}</div>`;
}
const NAMES = { python: 'Python', yaml: 'YAML', curl: 'curl' };

/** Put text on the clipboard, also where the Clipboard API needs a secure origin. */
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // Refused: the old way below may be allowed.
    }
  }
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('dialog[open]') || document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// --- Toasts ----------------------------------------------------------------------------------

/** A short message at the bottom. @param {'ok'|'bad'} kind an error stays longer */
export function toast(text, kind = 'ok') {
  let box = document.querySelector('.toasts');
  if (!box) {
    box = document.createElement('div');
    box.className = 'toasts';
    box.setAttribute('role', 'status');
    document.body.append(box);
  }
  const one = document.createElement('div');
  one.className = `toast ${kind}`;
  one.textContent = text;
  box.append(one);
  const end = () => one.remove();
  one.addEventListener('click', end);
  setTimeout(end, kind === 'bad' ? 8_000 : 2_500);
}

// --- Keys ------------------------------------------------------------------------------------

/** The list of keys, at `?`. */
export function Keys({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <div class="keys">${[...allKeys()].map(([where, list]) => html`<div key=${where}><h3>${where}</h3>
      <dl>${list.map((key) => html`<div key=${key.keys}><dt>${key.keys.split(' ').map((each) =>
        html`<kbd>${each === 'Escape' ? 'Esc' : each}</kbd> `)}</dt><dd>${key.what}</dd></div>`)}</dl></div>`)}
      <div><h3>In a table</h3><dl>
        <div><dt><kbd>j</kbd> <kbd>k</kbd> <kbd>↓</kbd> <kbd>↑</kbd></dt><dd>next and previous row</dd></div>
        <div><dt><kbd>Enter</kbd></dt><dd>open the row</dd></div>
        <div><dt><kbd>Home</kbd> <kbd>End</kbd></dt><dd>first and last row</dd></div></dl></div>
    </div><//>`;
}

// --- SVG and plots ---------------------------------------------------------------------------

/** A colour of the theme by the name of its custom property, for canvas. */
export const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** An element's width, as it changes. @returns {[import('preact').Ref, number]} */
export function useWidth(first = 600) {
  const ref = useRef(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    if (!ref.current) return undefined;
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(ref.current);
    setWidth(Math.floor(ref.current.clientWidth) || first);
    return () => watch.disconnect();
  }, []);
  return [ref, width];
}

/**
 * An SVG as wide as its place. `children` is a function of the width; `interactive` if there are
 * links or buttons in it.
 */
export function Svg({ height, label, children, cls = '', interactive = false }) {
  const [ref, width] = useWidth();
  return html`<div class=${`svgbox ${cls}`} ref=${ref}>
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role=${interactive ? 'group' : 'img'} aria-label=${label}
      >${children(width)}</svg></div>`;
}

let plotLibrary = null;
/** uPlot, loaded when the first plot is drawn. */
function loadPlot() {
  plotLibrary ||= new Promise((done, failed) => {
    const css = document.createElement('link');
    css.rel = 'stylesheet';
    css.href = '/console/vendor/uplot.css';
    const script = document.createElement('script');
    script.src = '/console/vendor/uplot.js';
    script.onload = () => done(globalThis.uPlot);
    script.onerror = failed;
    document.head.append(css, script);
  });
  return plotLibrary;
}

/**
 * Lines over time.
 * @param {{label: string, data: number[][], series: {label: string, colour: string, dash?: number[],
 *   step?: boolean, fill?: boolean}[], height?: number, value?: (n: number) => string}} props
 *   `data[0]` are seconds since the epoch; `colour` names a custom property
 */
export function Plot({ label, data, series, height = 180, value = number }) {
  const [ref, width] = useWidth();
  const plot = useRef(null);
  const mode = useStore(theme);
  const shape = JSON.stringify([series, mode, height]);
  useEffect(() => {
    let over = false;
    loadPlot().then((uPlot) => {
      if (over || !ref.current) return;
      plot.current = new uPlot(plotOptions(uPlot, { series, width: ref.current.clientWidth, height, value }), data, ref.current);
    }).catch(() => {});
    return () => {
      over = true;
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => plot.current?.setSize({ width, height }), [width]);
  return html`<div class="plot" role="img" aria-label=${label} ref=${ref} style=${{ minHeight: `${height}px` }}></div>`;
}

function plotOptions(uPlot, { series, width, height, value }) {
  const axis = {
    stroke: colour('muted'), grid: { stroke: colour('grid'), width: 1 }, ticks: { show: false },
    font: '11px system-ui, sans-serif',
  };
  const stepped = uPlot.paths.stepped({ align: 1 });
  return {
    width,
    height,
    legend: { live: true },
    cursor: { y: false },
    tzDate: (s) => uPlot.tzDate(new Date(s * 1_000), 'Etc/UTC'),
    scales: { x: { time: true } },
    axes: [{ ...axis, size: 28, space: 70, values: (_, all) => all.map((at) => new Date(at * 1_000).toISOString().slice(11, 19)) }, { ...axis, size: 58, values: (_, all) => all.map((n) => (n === null ? '' : value(n))) }],
    series: [
      { value: (_, s) => (s === null ? '' : new Date(s * 1_000).toISOString().slice(11, 19)) },
      ...series.map((each) => ({
        label: each.label,
        stroke: colour(each.colour),
        width: 1.5,
        dash: each.dash,
        paths: each.step ? stepped : undefined,
        fill: each.fill ? `${colour(each.colour)}22` : undefined,
        points: { show: false },
        value: (_, n) => (n === null ? '–' : value(n)),
      })),
    ],
  };
}

export { h, html };
