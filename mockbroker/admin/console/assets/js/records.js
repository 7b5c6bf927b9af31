// The browser of a partition's log: batches as they lie there, their records, and what is in them.

import { html, useEffect, useMemo, useRef, useState } from './preact.js';
import { get, pathOf } from './api.js';
import { href, setParams, useKeys, useMoment, useStore } from './store.js';
import { addSchema, bytesOf, decode, schemas } from './decode.js';
import {
  BackToLive, Badge, Choice, CopyAs, Dialog, Empty, ErrorLine, Facts, Field, Icon, Loaded, bytes, clock, count, curlOf, number,
  pythonOf,
} from './ui.js';

const PAGE = 50;
const WHOLE_BYTES = 1 << 20;
const FORMATS = [['auto', 'Auto'], ['text', 'Text'], ['json', 'JSON'], ['hex', 'Hex'], ['base64', 'Base64'], ['schema', 'Schema']];

/**
 * @param {{topic: string, view: object, params: Object<string, string>}} props `view` is a
 *   PartitionView; `params` of the address: offset, time, q, format
 */
export function Records({ topic, view, params }) {
  const at = useMoment();
  const format = FORMATS.some(([id]) => id === params.format) ? params.format : 'auto';
  const [open, setOpen] = useState(null);
  const [pasting, setPasting] = useState(false);
  const path = pathOf('/v1/topics/{}/partitions/{}/batches', topic, view.partition);
  const newest = params.offset === undefined && !params.time && !params.q;
  const end = view.log_end_offset;
  const start = view.log_start_offset;
  const query = params.time
    ? { timestamp_ms: timeOf(params.time), limit: PAGE, text: params.q }
    : { offset: newest ? Math.max(end - PAGE, start, 0) : Number(params.offset || start), limit: PAGE, text: params.q };
  const poll = useLog(at === null ? path : null, query, newest ? end : null);
  useStore(schemas);
  const seen = poll.data;
  const first = seen?.batches[0]?.base_offset ?? query.offset ?? 0; // the page is in the order of the log
  const goto = (offset) => setParams({ offset: String(Math.max(offset, start)), time: '' });
  const older = () => goto(first - PAGE);
  const newer = () => { if (seen && seen.next < seen.log_end_offset) goto(seen.next); else setParams({ offset: '', time: '' }); };
  useKeys([
    { keys: 'p', what: 'older records', run: older },
    { keys: 'n', what: 'newer records', run: newer },
    { keys: 'e', what: 'newest records', run: () => setParams({ offset: '', time: '', q: '' }) },
    { keys: 's', what: 'oldest records', run: () => goto(start) },
  ], 'Records', [first, seen, start]);
  if (at !== null) {
    return html`<${Empty} title="Records are shown live"><p>The journal has the offsets of a moment, not its records. <${BackToLive} /></p><//>`;
  }
  return html`<div class="toolbar records-bar">
      <label class="search"><${Icon} name="search" /><input type="search" placeholder="Key, value or header" aria-label="Records with this in their key, value or headers"
        value=${params.q || ''} onChange=${(event) => setParams({ q: event.target.value, offset: event.target.value ? String(start) : '', time: '' })} /></label>
      <${Jump} params=${params} start=${start} end=${end} />
      <span class="grow"></span>
      <${Choice} label="Shown as" options=${FORMATS} value=${format} onChange=${(id) => setParams({ format: id === 'auto' ? '' : id })} />
      <button class="small" onClick=${() => setPasting(true)}>Schemas</button>
    </div>
    <div class="toolbar pager"><button class="small" disabled=${!seen || first <= start} onClick=${() => goto(start)}>Oldest</button>
      <button class="small" disabled=${!seen || first <= start} onClick=${older}><${Icon} name="back" />Older</button>
      <button class="small" disabled=${!seen || newest} onClick=${newer}>Newer<${Icon} name="on" /></button>
      <button class="small" aria-pressed=${String(newest)} disabled=${newest} onClick=${() => setParams({ offset: '', time: '', q: '' })}>Newest</button>
      <span class="muted num">${seen ? told(seen, params.q) : ''}</span></div>
    <${Loaded} poll=${poll} what="the records">${(page) => page.batches.length === 0
      ? html`<${NoRecords} page=${page} params=${params} topic=${topic} onOn=${() => goto(page.next)} />`
      : html`<${Batches} page=${newest ? descending(page) : page} format=${format} onOpen=${setOpen} view=${view} />
        ${params.q && page.next < page.log_end_offset ? html`<button class="small" onClick=${() => goto(page.next)}>Search on from offset ${number(page.next)}</button>` : null}`}<//>
    ${open ? html`<${RecordDialog} topic=${topic} index=${view.partition} path=${path} record=${open.record} batch=${open.batch} format=${format} onClose=${() => setOpen(null)} />` : null}
    ${pasting ? html`<${SchemaDialog} onClose=${() => setPasting(false)} />` : null}`;
}

/** The newest first. */
const descending = (page) => ({ ...page, batches: [...page.batches].reverse(), descending: true });

const told = (page, text) => {
  const records = page.batches.reduce((n, each) => n + each.records.length, 0);
  return text ? `${count(page.batches.length, 'batch', 'batches')} of ${number(page.looked_at)} that were searched, to offset ${number(page.next)}`
    : `${count(records, 'record')} in ${count(page.batches.length, 'batch', 'batches')}`;
};

/** A page of the log: asked for when the query changes, and for the newest when the log grows. */
function useLog(path, query, grown) {
  const [state, setState] = useState({ data: null, error: null, stale: false });
  const key = JSON.stringify([path, { ...query, offset: grown === null ? query.offset : 'newest' }]);
  const wanted = useRef(query);
  wanted.current = query;
  const shown = useRef('');
  const newestKey = useRef('');
  newestKey.current = key;
  const ask = () => get(path, wanted.current).then(
    (data) => {
      if (newestKey.current !== key) return; // the answer to an older question
      shown.current = key;
      setState({ data, error: null, stale: false });
    },
    (error) => {
      if (newestKey.current !== key) return;
      setState((before) => ({ data: shown.current === key ? before.data : null, error, stale: true }));
    },
  );
  useEffect(() => { if (path !== null) ask(); }, [key]);
  useEffect(() => { if (path !== null && grown !== null && shown.current === key) ask(); }, [grown]);
  return { ...state, past: false, refresh: ask };
}

/** "2026-11-24 10:00", "10:00:05" (today, UTC) or ms since the epoch. */
function timeOf(text) {
  if (/^\d{6,}$/.test(text)) return Number(text);
  const today = new Date().toISOString().slice(0, 10);
  const parsed = Date.parse(`${/^\d{1,2}:\d/.test(text) ? `${today}T${text.padStart(5, '0')}` : text.replace(' ', 'T')}Z`);
  return Number.isNaN(parsed) ? 0 : parsed;
}

function Jump({ params, start, end }) {
  const [text, setText] = useState('');
  function jump(event) {
    event.preventDefault();
    const given = text.trim();
    if (/^\d+$/.test(given) && given.length < 12) setParams({ offset: String(Math.min(Math.max(Number(given), start), end)), time: '' });
    else if (given) setParams({ time: given, offset: '' });
  }
  return html`<form class="row" onSubmit=${jump}><input class="jump" aria-label="Offset or time" placeholder="Offset or time (UTC)" value=${text}
    onInput=${(event) => setText(event.target.value)} /><button class="small">Go</button>
    ${params.time ? html`<span class="muted">from ${new Date(timeOf(params.time)).toISOString().replace('T', ' ').slice(0, 19)}</span>` : null}</form>`;
}

function NoRecords({ page, params, topic, onOn }) {
  if (params.q) {
    return html`<${Empty} title="No record has this text"><p>${number(page.looked_at)} batches were searched, up to offset ${number(page.next)}.</p>
      ${page.next < page.log_end_offset ? html`<p><button onClick=${onOn}>Search on</button></p>` : null}<//>`;
  }
  if (params.time) return html`<${Empty} title="No record is as young as that" />`;
  if (page.log_end_offset > page.log_start_offset) return html`<${Empty} title="There are no records from this offset on" />`;
  return html`<${Empty} title="This partition is empty"><p>Produce a record with the button above, or with any client: <code>kafka.topic(${pythonOf(topic)}).produce("hello")</code></p><//>`;
}

/** The rows of a page: a heading for each batch, a row for each record. */
function Batches({ page, format, onOpen, view }) {
  const body = useRef(null);
  function move(event) {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const rows = [...body.current.querySelectorAll('tr[tabindex]')];
    const at = rows.indexOf(event.target);
    if (at < 0) return;
    if (by) {
      event.preventDefault();
      rows[at + by]?.focus();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      event.target.click();
    }
  }
  return html`<div class="tablebox records" tabindex="-1"><table class="opens" aria-label="Records">
    <thead><tr><th scope="col" class="num fit">Offset</th><th scope="col" class="time">Time</th><th scope="col">Key</th><th scope="col">Value</th><th scope="col" class="wide-only">Headers</th><th scope="col" class="batchcell">Batch</th></tr></thead>
    <tbody ref=${body} onKeyDown=${move}>${page.batches.map((batch) => html`<${Batch} key=${batch.base_offset} batch=${batch} format=${format} onOpen=${onOpen} page=${page} view=${view} />`)}</tbody>
  </table></div>`;
}

function Batch({ batch, format, onOpen, page }) {
  // A batch of one record has its data in the record's row: the heading would double the list.
  const alone = batch.records.length === 1 && batch.count <= 1 && !batch.note;
  const heading = alone ? null : html`<tr class="batch"><th scope="rowgroup" colspan="6"><span class="row">
      <span class="num">batch ${number(batch.base_offset)}${batch.last_offset > batch.base_offset ? ` – ${number(batch.last_offset)}` : ''}</span>
      ${marks(batch, page)}<span class="muted num">${batchText(batch)}</span></span></th></tr>`;
  const records = page.descending ? [...batch.records].reverse() : batch.records;
  return html`${heading}
    ${records.map((record) => html`<${Row} key=${record.offset} record=${record} batch=${batch} format=${format} onOpen=${onOpen} page=${page} alone=${alone} />`)}
    ${batch.note ? html`<tr class="note"><td colspan="6" class="warn-text">${batch.note}</td></tr>` : null}`;
}

function marks(batch, page) {
  return html`${batch.control ? html`<${Badge} kind="info">control<//>` : batch.transactional ? html`<${Badge} kind="info">transactional<//>` : null}
    ${batch.base_offset >= page.high_watermark ? html`<${Badge} kind="bad" title="Above the high watermark: no consumer gets it">not replicated<//>`
      : batch.base_offset >= page.last_stable_offset ? html`<${Badge} kind="warn" title="Above the last stable offset: readers of committed records wait">not stable<//>` : null}`;
}

const batchText = (batch) => [
  `${bytes(batch.bytes)}${batch.codec === 'none' ? '' : `, ${batch.codec}`}`, `epoch ${batch.leader_epoch}`,
  batch.producer_id < 0 ? '' : `producer ${batch.producer_id} epoch ${batch.producer_epoch}`,
  batch.base_sequence < 0 ? '' : `sequence ${batch.base_sequence}`,
].filter(Boolean).join(' · ');

function Row({ record, batch, format, onOpen, page, alone }) {
  const schema = useStore(schemas);
  const key = useMemo(() => decode(bytesOf(record.key), format, { cut: record.key_bytes > 1_000 }), [record, format, schema]);
  const value = useMemo(() => decode(bytesOf(record.value), format, { cut: record.value_bytes > 1_000 }), [record, format, schema]);
  const show = () => { if (String(getSelection()) === '') onOpen({ record, batch }); };
  return html`<tr tabindex="0" class=${`${record.found ? 'hit ' : ''}${alone ? '' : 'inner'}`} onClick=${show}>
    <td class="num fit">${number(record.offset)}</td><td class="num fit" title=${new Date(record.timestamp_ms).toISOString()}>${clock(record.timestamp_ms, 3)}</td>
    ${record.control ? html`<td colspan="3"><${Badge} kind=${record.control === 'abort' ? 'bad' : 'ok'}>${record.control} marker<//> <span class="muted">ends the transaction of producer ${batch.producer_id}</span></td>`
      : html`<td class="mono keycell">${cell(key)}</td><td class="mono valuecell">${cell(value)}${record.value_bytes > 1_000 ? html` <span class="muted">${bytes(record.value_bytes)}</span>` : null}</td>
        <td class="mono muted wide-only">${record.headers.map(([name]) => name).join(', ')}</td>`}
    <td class="batchcell muted" title=${batchText(batch)}>${alone ? html`<span class="row nowrap">${marks(batch, page)}${batchText(batch)}</span>` : null}</td></tr>`;
}

const cell = (found) => (found.kind === 'null' ? html`<span class="muted">null</span>`
  : html`${found.note ? html`<span class="tagged" title=${found.note}>${found.note.split(/[,:]/)[0].replace(' is not known', ' ?')}</span> ` : null}${found.text.slice(0, 300)}`);

function RecordDialog({ topic, index, path, record, batch, format, onClose }) {
  const [shownAs, setShownAs] = useState(format);
  const [whole, setWhole] = useState(record);
  const [error, setError] = useState(null);
  useEffect(() => {
    // The list has the first bytes; a record that is looked at is asked for again, up to 1 MiB.
    if (Math.max(record.value_bytes, record.key_bytes) <= 1_000) return;
    get(path, { offset: record.offset, limit: 1 + record.offset - batch.base_offset, value_bytes_max: WHOLE_BYTES }).then((page) => {
      const found = page.batches.flatMap((each) => each.records).find((each) => each.offset === record.offset);
      if (found) setWhole(found);
    }, setError);
  }, [record]);
  const curl = curlOf('GET', `${path}?offset=${record.offset}&limit=1`);
  const python = `kafka.partition(${pythonOf(topic)}, ${index}).batches(${record.offset}, limit=1)`;
  return html`<${Dialog} wide title=${`${topic}-${index} at offset ${number(record.offset)}`} onClose=${onClose}>
    <div class="stack"><div class="toolbar"><${Choice} label="Shown as" options=${FORMATS} value=${shownAs} onChange=${setShownAs} /><span class="grow"></span>
      <${CopyAs} forms=${{ python, curl }} /></div>
    ${error ? html`<${ErrorLine} error=${error} />` : null}
    ${record.control ? null : html`<${Part} title="Key" base64=${whole.key} size=${whole.key_bytes} format=${shownAs} />`}
    ${record.control ? html`<${Facts} items=${[['Control record', record.control], ['Producer', batch.producer_id], ['Producer epoch', batch.producer_epoch]]} />`
      : html`<${Part} title="Value" base64=${whole.value} size=${whole.value_bytes} format=${shownAs} />`}
    ${whole.headers.length ? html`<div><h3>Headers</h3><table aria-label="Headers" class="headers"><tbody>${whole.headers.map(([name, value], n) => html`<tr key=${n}>
      <th scope="row">${name}</th><td class="mono wrap">${decode(bytesOf(value), shownAs).text}</td></tr>`)}</tbody></table></div>` : null}
    <${Facts} items=${[['Timestamp', new Date(record.timestamp_ms).toISOString().replace('T', ' ').replace('Z', '')], ['Timestamp type', batch.timestamp_type.replaceAll('_', ' ')],
      ['Batch', `${batch.base_offset} to ${batch.last_offset}`], ['Batch size', bytes(batch.bytes)], ['Codec', batch.codec], ['Leader epoch', batch.leader_epoch],
      ['Producer', batch.producer_id < 0 ? 'none' : `${batch.producer_id}, epoch ${batch.producer_epoch}`], ['Sequence', record.sequence < 0 ? 'none' : record.sequence],
      ['Transactional', batch.transactional ? 'yes' : 'no']]} />
    <p><a href=${href('timeline', [], { topic })}>Requests for this topic on the timeline</a></p></div><//>`;
}

function Part({ title, base64, size, format }) {
  const data = useMemo(() => bytesOf(base64), [base64]);
  const cut = data !== null && data.length < size;
  const found = decode(data, format, { pretty: true, cut });
  return html`<div><h3>${title} <span class="muted">${size < 0 ? '' : bytes(size)}${found.note ? `, ${found.note}` : ''}</span></h3>
    <pre class="payload" tabindex="0">${found.text}</pre>
    ${cut ? html`<p class="warn-text">▲ The first ${bytes(data.length)} of ${bytes(size)} are shown.</p>` : null}</div>`;
}

function SchemaDialog({ onClose }) {
  const known = useStore(schemas);
  const [id, setId] = useState('');
  const [text, setText] = useState('');
  const [error, setError] = useState(null);
  function add(event) {
    event.preventDefault();
    try {
      addSchema(Number(id), text);
      setText('');
      setId('');
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  }
  return html`<${Dialog} title="Schemas" onClose=${onClose}>
    <p class="muted">Values of a schema registry begin with the schema's id. Paste an Avro schema, or what the registry answers at <code>/schemas/ids/ID</code>; this tab keeps it.</p>
    ${Object.keys(known).length ? html`<p>Known: ${Object.entries(known).map(([each, { type }]) => html`<${Badge} kind="info" key=${each}>${each} ${type}<//> `)}</p>` : null}
    <form onSubmit=${add} class="stack"><${Field} label="Id" required control=${(props) => html`<input ...${props} inputmode="numeric" pattern="[0-9]+" required value=${id} onInput=${(e) => setId(e.target.value)} />`} />
      <${Field} label="Schema" required error=${error?.message} control=${(props) => html`<textarea ...${props} rows="8" required value=${text} onInput=${(e) => setText(e.target.value)}></textarea>`} />
      <div class="buttons"><button class="primary">Keep</button></div></form><//>`;
}
