// Timeline: each client connection is a lane, each request a bar; below, the same as a table.
//
// It follows the journal by `GET /v1/journal/timeline?after=…`, which samples when there is too much
// (the page says how many requests are left out). At a moment of the time slider it shows what
// came before. `#/timeline?seq=N` opens an entry.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../preact.js';
import { connection, get } from '../api.js';
import { href, setParams, theme, useKeys, useMoment, useStore } from '../store.js';
import { Badge, Choice, Empty, ErrorLine, Icon, Table, bytes, clock, colour, count, duration, number, useWidth } from '../ui.js';
import { Entry } from '../entry.js';
import { HEAD_PX, LANE_PX, draw, markOf, timeOf } from '../timeline/draw.js';
import { STATES, SPANS_MAX, Timeline, familyList, titleOf } from '../timeline/model.js';

export const needsCluster = false;

const POLL_MS = 400;
const PAINT_MS = 100;
// With more requests than these in one answer, the page looks and paints more rarely and takes fewer:
// the cluster has better things to do.
const BUSY = 200;
const BUSY_POLL_MS = 1_000;
const BUSY_PAINT_MS = 300;
const PAGE_FIRST = 2_000;
const PAGE = 600;
const WINDOW_MS = 10_000;
const WINDOW_MIN_MS = 0.5;
const LANES_LEAST = 8;
const AROUND_PX = 270; // the shell and what is above the lanes
const TABLE_ROWS = 200;
const COLOURS = ['c0', 'c1', 'c2', 'c3', 'c4', 'c7', 'grid', 'muted', 'text', 'panel', 'bad', 'warn', 'accent', 'line-strong'];
const TEXTS = [['client_id', 'client'], ['api', 'API'], ['topic', 'topic'], ['group', 'group']];
const KINDS = { failed: 'bad', lost: 'bad', held: 'pause', touched: 'warn', waiting: 'info', answered: 'ok' };

/** The filter that the address has, as parameters of `/v1/journal/timeline`. */
function filterOf(params) {
  const found = {};
  for (const [name] of TEXTS) if (params[name]) found[name] = params[name];
  if (params.connection) found.connection = params.connection;
  if (params.errors_only) found.error = 'any';
  if (params.rules_only) found.rule = '*';
  return found;
}

const clearFilters = () => setParams({ client_id: '', api: '', topic: '', group: '', connection: '', errors_only: '', rules_only: '' });

/** Follow the journal into a model. @returns {{model: Timeline, version: number, error: Error|null}} */
function useTimeline(filter, moment) {
  const model = useMemo(() => new Timeline(), []);
  const [seen, setSeen] = useState({ version: 0, error: null, ready: false });
  const key = JSON.stringify([filter, moment]);
  useEffect(() => {
    let over = false;
    let timer = 0;
    model.clear();
    setSeen({ version: model.version, error: null, ready: false });
    async function ask() {
      let wait = POLL_MS;
      try {
        if (!document.hidden || model.next === 0) {
          const params = { ...filter, limit: model.next ? PAGE : PAGE_FIRST };
          if (model.next) params.after = model.next;
          if (moment !== null) params.until = moment;
          const page = await get('/v1/journal/timeline', params);
          if (over) return;
          if (model.next && page.last_seq < model.next) model.clear(); // the journal began anew
          else model.take(page);
          model.busy = page.spans.length + page.left_out > BUSY;
          if (model.busy) wait = BUSY_POLL_MS;
          setSeen({ version: model.version, error: null, ready: true });
        }
      } catch (error) {
        if (over) return;
        setSeen((before) => ({ ...before, error }));
        wait = 2_000;
      }
      if (moment === null) timer = setTimeout(ask, wait);
    }
    ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [key]);
  return { model, ...seen };
}

export function Page({ params }) {
  const moment = useMoment();
  const filter = filterOf(params);
  const { model, version, error, ready } = useTimeline(filter, moment);
  const seq = /^\d+$/.test(params.seq || '') ? Number(params.seq) : null;
  const shape = params.as || 'lanes';
  const open = (entry) => setParams({ seq: entry === null ? '' : String(entry) });
  useKeys([
    { keys: 'v', what: 'lanes or table', run: () => setParams({ as: shape === 'lanes' ? 'table' : '' }) },
    { keys: 'x', what: 'close the entry', run: () => open(null) },
  ], 'Timeline', [shape]);
  const span = seq === null ? null : model.spans.get(seq);
  const isFiltered = Object.keys(filter).length > 0;
  return html`
    <div class="pagehead"><h1>Timeline</h1>
      <${Told} model=${model} version=${version} />
      <span class="grow"></span>
      <${Choice} label="Shown as" value=${shape} options=${[['lanes', 'Lanes'], ['table', 'Table']]}
        onChange=${(as) => setParams({ as: as === 'lanes' ? '' : as })} /></div>
    <${Filters} params=${params} model=${model} version=${version} />
    ${error ? html`<${ErrorLine} error=${error} />` : null}
    <div class=${seq === null ? 'stack' : 'cols wide-left timeline-cols'}>
      <div class="stack">
        ${model.spans.size === 0
          ? ready ? html`<${Nothing} isFiltered=${isFiltered} isPast=${moment !== null} />` : null
          : shape === 'lanes'
            ? html`<${Lanes} model=${model} version=${version} seq=${seq} moment=${moment} onOpen=${open} />`
            : html`<${Requests} model=${model} version=${version} seq=${seq} onOpen=${open} />`}
      </div>
      ${seq === null ? null : html`<${Entry} seq=${seq} answer=${span?.response_seq ?? null}
        version=${span?.response_seq || 0} onClose=${() => open(null)} linkOf=${linkOf} />`}
    </div>`;
}

/** The address of an entry, with the filters as they are. */
function linkOf(seq) {
  const params = Object.fromEntries(new URLSearchParams(location.hash.split('?')[1] || ''));
  delete params.at;
  return href('timeline', [], { ...params, seq });
}

function Nothing({ isFiltered, isPast }) {
  if (isFiltered) {
    return html`<${Empty} title="No request matches these conditions">
      <button onClick=${clearFilters}>Show all requests</button><//>`;
  }
  return html`<${Empty} title=${isPast ? 'There was no request yet' : 'No client has connected yet'}>
    <p>${isPast ? 'Move the slider on, or go back to live.'
      : 'Start a client with the bootstrap servers of this cluster: each of its requests appears here as a bar.'}</p><//>`;
}

/** How much is shown, and what is not: sampling is told. */
function Told({ model }) {
  const gone = model.leftOut + model.letGo;
  return html`<span class="muted num">${count(model.spans.size, 'request')} on ${count(model.lanes.size, 'connection')}</span>
    ${gone > 0 ? html`<${Badge} kind="info" title=${`Requests with errors, rules or a long wait are kept first. ${number(model.leftOut)} were left out by sampling, ${number(model.letGo)} are older than the ${number(SPANS_MAX)} that this page keeps. The journal has all: narrow the conditions.`}
      >sampled: ${number(gone)} left out<//>` : null}
    ${model.gap ? html`<${Badge} kind="warn" title=${`Entries ${model.gap.first_seq} to ${model.gap.last_seq} left the journal before they were read.`}>gap<//>` : null}`;
}

function Filters({ params, model, version }) {
  const known = useMemo(() => {
    const found = { client_id: new Set(), api: new Set(), topic: new Set(), group: new Set() };
    for (const lane of model.lanes.values()) if (lane.client_id) found.client_id.add(lane.client_id);
    let left = 3_000;
    for (const span of model.spans.values()) {
      found.api.add(span.api);
      for (const [topic] of span.targets) found.topic.add(topic);
      for (const group of [span.group].flat()) if (group) found.group.add(group);
      if ((left -= 1) < 0) break;
    }
    return Object.fromEntries(Object.entries(found).map(([name, all]) => [name, [...all].sort().slice(0, 100)]));
  }, [Math.floor(version / 10), model.spans.size === 0]);
  const any = [...TEXTS.map(([name]) => name), 'connection', 'errors_only', 'rules_only'].some((name) => params[name]);
  return html`<div class="toolbar filters" role="search" aria-label="Conditions">
    ${TEXTS.map(([name, label], n) => html`<${TextFilter} key=${name} name=${name} label=${label} value=${params[name] || ''}
      type=${n === 0 ? 'search' : 'text'} known=${known[name]} />`)}
    ${params.connection ? html`<button class="small" onClick=${() => setParams({ connection: '' })}>connection ${params.connection}<${Icon} name="close" /></button>` : null}
    <label class="check"><input type="checkbox" checked=${Boolean(params.errors_only)}
      onChange=${(event) => setParams({ errors_only: event.target.checked ? '1' : '' })} />errors</label>
    <label class="check"><input type="checkbox" checked=${Boolean(params.rules_only)}
      onChange=${(event) => setParams({ rules_only: event.target.checked ? '1' : '' })} />touched by rules</label>
    ${any ? html`<button class="small plain" onClick=${clearFilters}>Clear</button>` : null}
  </div>`;
}

/** A condition that is taken when it is typed to its end; new requests do not disturb the typing. */
function TextFilter({ name, label, value, type, known }) {
  const [text, setText] = useState(value);
  useLayoutEffect(() => setText(value), [value]); // an effect could run after the first key, and lose it
  return html`<span class="filter">
    <input type=${type} aria-label=${label} placeholder=${label} list=${`known-${name}`} value=${text}
      autocomplete="off" spellcheck="false" title="a glob (shop-*), or an expression between slashes"
      onInput=${(event) => setText(event.target.value)}
      onChange=${(event) => setParams({ [name]: event.target.value.trim() })} />
    <datalist id=${`known-${name}`}>${known.map((each) => html`<option key=${each} value=${each} />`)}</datalist></span>`;
}

// --- Lanes -----------------------------------------------------------------------------------

/** Open connections first, those of a client side by side. */
function inOrder(lanes) {
  const clients = new Map();
  for (const lane of lanes) if (!clients.has(lane.client_id)) clients.set(lane.client_id, lane.connection);
  const place = (lane) => [lane.closed_seq ? 1 : 0, clients.get(lane.client_id), lane.connection];
  return lanes.sort((a, b) => {
    const [x, y] = [place(a), place(b)];
    return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
  });
}

function Lanes({ model, version, seq, moment, onOpen }) {
  const [frame, width] = useWidth(900);
  const canvas = useRef(null);
  const scroll = useRef(null);
  const tip = useRef(null);
  const [hovered, setHovered] = useState(null);
  const [top, setTop] = useState(0);
  // `to` is null while the window follows the newest request.
  const [span, setSpan] = useState({ length: WINDOW_MS, to: null });
  const hits = useRef([]);
  const drag = useRef(null);
  const shade = useStore(theme);
  const linked = useStore(connection);
  const colours = useMemo(() => Object.fromEntries(COLOURS.map((name) => [name, colour(name)])), [shade]);
  const lanes = useMemo(() => inOrder([...model.lanes.values()]), [version]);
  const gutter = width < 560 ? 92 : 190;
  const drawn = Math.max(width - gutter, 100);
  const seen = Math.min(Math.max(lanes.length, 3), Math.max(LANES_LEAST, Math.floor((innerHeight - AROUND_PX) / LANE_PX)));
  const height = HEAD_PX + seen * LANE_PX;
  const isLive = moment === null && linked.state === 'ok';
  const began = useRef({ at: 0, newest: 0 });
  if (began.current.newest !== model.newest) began.current = { at: performance.now(), newest: model.newest };

  // An open request grows while its client waits: to the present, as far as the page knows it.
  const present = () => model.newest + (isLive ? Math.min(performance.now() - began.current.at, 3_600_000) : 0);
  const viewOf = () => {
    const now = present();
    const to = span.to ?? now + span.length * 0.02;
    return { from: to - span.length, to, width: drawn, height, top, now };
  };

  function paint() {
    const area = canvas.current;
    if (!area) return;
    const scale = devicePixelRatio || 1;
    if (area.width !== Math.round(drawn * scale) || area.height !== Math.round(height * scale)) {
      area.width = Math.round(drawn * scale);
      area.height = Math.round(height * scale);
    }
    const context = area.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const at = moment === null ? null : model.newest;
    hits.current = draw(context, model, lanes, viewOf(), colours, { selected: seq, hovered: hovered?.seq ?? null, moment: at });
  }

  useEffect(paint);
  useEffect(() => {
    if (!isLive || span.to !== null) return undefined;
    // Several pictures a second while it follows: the data come more rarely.
    const timer = setInterval(() => { if (!document.hidden) paint(); }, model.busy ? BUSY_PAINT_MS : PAINT_MS);
    return () => clearInterval(timer);
  });
  // An entry that is opened by a link is brought into view.
  useEffect(() => {
    const found = seq === null ? null : model.spans.get(seq) || model.marks.get(seq);
    if (!found) return;
    const view = viewOf();
    const at = found.from ?? found.at;
    if (at < view.from || at > view.to) setSpan({ length: span.length, to: at + span.length / 2 });
  }, [seq, model.spans.size === 0]);

  function zoom(factor, around = null) {
    const view = viewOf();
    const length = Math.min(Math.max(span.length * factor, WINDOW_MIN_MS), Math.max(model.newest * 1.1, 1_000));
    if (span.to === null && around === null) return setSpan({ length, to: null });
    const fixed = around ?? (view.from + view.to) / 2;
    const share = (view.to - fixed) / (view.to - view.from);
    return setSpan({ length, to: fixed + share * length });
  }
  const pan = (share) => setSpan({ length: span.length, to: viewOf().to + share * span.length });
  const follow = () => setSpan({ length: span.length, to: null });
  const all = () => setSpan({ length: Math.max(model.newest * 1.04, 10), to: model.newest * 1.02 });

  function hit(event) {
    const box = canvas.current.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const near = hits.current.filter((each) => y >= each.y - 2 && y <= each.y + each.h + 2 && x >= each.x - 3 && x <= each.x + each.w + 3);
    return near.at(-1) || null;
  }
  function move(event) {
    if (drag.current) {
      const by = event.clientX - drag.current.x;
      if (Math.abs(by) > 3) drag.current.moved = true;
      if (drag.current.moved) setSpan({ length: span.length, to: drag.current.to - (by / drawn) * span.length });
      return;
    }
    const found = hit(event);
    const what = found?.span || found?.mark || null;
    if (what !== hovered) setHovered(what);
    if (what && tip.current) {
      const box = frame.current.getBoundingClientRect();
      const x = Math.min(event.clientX - box.left + 12, width - 250);
      tip.current.style.transform = `translate(${Math.max(x, 0)}px, ${event.clientY - box.top + 16}px)`;
    }
  }
  function wheel(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault();
      const box = canvas.current.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, timeOf(viewOf(), event.clientX - box.left));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan(event.deltaX / drawn);
    }
  }

  /** The next span: in the lane by `by`, or in another lane at the same time. */
  function step(by, laneBy = 0) {
    const now = seq === null ? null : model.spans.get(seq);
    const at = lanes.findIndex((lane) => lane.connection === now?.connection);
    const lane = lanes[Math.min(Math.max((at < 0 ? 0 : at) + laneBy, 0), lanes.length - 1)];
    if (!lane || lane.spans.length === 0) return;
    let next = lane.spans.at(-1);
    if (now && laneBy === 0) {
      next = lane.spans[Math.min(Math.max(lane.spans.indexOf(now) + by, 0), lane.spans.length - 1)];
    } else if (now) {
      next = lane.spans.reduce((best, each) => (Math.abs(each.from - now.from) < Math.abs(best.from - now.from) ? each : best));
    }
    onOpen(next.seq);
  }
  const keys = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
    '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), h: () => pan(-0.25), e: () => pan(0.25), f: follow, 0: all,
  };
  useKeys([
    { keys: '+', what: 'closer', run: () => zoom(0.5) },
    { keys: '-', what: 'further', run: () => zoom(2) },
    { keys: 'h', what: 'earlier', run: () => pan(-0.25) },
    { keys: 'e', what: 'later', run: () => pan(0.25) },
    { keys: 'f', what: 'follow the newest', run: follow },
    { keys: '0', what: 'all that is kept', run: all },
  ], 'Timeline', [version, span, moment]);

  const selected = seq === null ? null : model.spans.get(seq);
  const firstLane = Math.max(0, Math.floor(top / LANE_PX) - 1);
  const shown = lanes.slice(firstLane, firstLane + seen + 3);
  return html`<section class="panel lanes" aria-label="Lanes" ref=${frame}>
    <div class="toolbar lanebar">
      <button class="small" aria-pressed=${String(span.to === null)} onClick=${follow}>Follow</button>
      <button class="small" onClick=${() => zoom(0.5)} aria-label="Closer" title="Closer (+)"><${Icon} name="plus" /></button>
      <button class="small" onClick=${() => zoom(2)} aria-label="Further" title="Further (-)">−</button>
      <button class="small" onClick=${() => pan(-0.5)} aria-label="Earlier" title="Earlier (h)"><${Icon} name="back" /></button>
      <button class="small" onClick=${() => pan(0.5)} aria-label="Later" title="Later (e)"><${Icon} name="on" /></button>
      <button class="small" onClick=${all}>All</button>
      <span class="muted num">${duration(span.length)}</span>
      <span class="grow"></span>
      <${Legend} /></div>
    <div class="lanescroll" ref=${scroll} style=${{ height: `${height}px` }} onScroll=${(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="lanesize" style=${{ height: `${HEAD_PX + lanes.length * LANE_PX}px` }}>
        <div class="laneview" style=${{ height: `${height}px` }}>
          <div class="lanenames" style=${{ width: `${gutter}px` }}>
            <div class="lanehead muted">Cluster</div>
            <div class="lanelist">${shown.map((lane, n) => html`<div class="lane" key=${lane.connection}
                style=${{ top: `${(firstLane + n) * LANE_PX - top}px` }}>
              <button class="link lanename" title=${`${lane.client_id || 'no client id'}, ${lane.client_software || 'unknown software'}, from ${lane.source || '?'}, as ${lane.principal || '?'}. Show this connection only.`}
                onClick=${() => setParams({ connection: String(lane.connection) })}>${lane.client_id || `connection ${lane.connection}`}</button>
              <span class="muted num">→ ${lane.broker ?? '?'}</span>${lane.closed_seq ? html`<span class="muted" title="closed">⊣</span>` : null}
            </div>`)}</div>
          </div>
          <canvas ref=${canvas} tabindex="0" role="application" class=${drag.current?.moved ? 'dragged' : ''}
            aria-label="Requests by connection. Arrow keys go from request to request; the table has the same."
            aria-describedby="timeline-said" style=${{ width: `${drawn}px`, height: `${height}px` }}
            onPointerMove=${move} onPointerLeave=${() => setHovered(null)}
            onPointerDown=${(event) => { if (event.button === 0) { drag.current = { x: event.clientX, to: viewOf().to, moved: false }; canvas.current.setPointerCapture(event.pointerId); } }}
            onPointerUp=${(event) => {
              const was = drag.current;
              drag.current = null;
              if (was && !was.moved) {
                const found = hit(event);
                onOpen(found ? (found.span || found.mark).seq : null);
              }
            }}
            onWheel=${wheel}
            onKeyDown=${(event) => { if (/^Arrow/.test(event.key)) { event.preventDefault(); keys[event.key](); } }}></canvas>
        </div>
      </div>
    </div>
    <p id="timeline-said" class="hidden-text" aria-live="polite">${selected ? said(selected, model.lanes.get(selected.connection)) : ''}</p>
    <div class="tip" ref=${tip} hidden=${!hovered}>${hovered ? html`<${Tip} what=${hovered} lane=${model.lanes.get(hovered.connection)} />` : null}</div>
  </section>`;
}

const said = (span, lane) =>
  `${titleOf(span, lane)}: ${STATES[span.state]?.[1] || span.state}${span.to === null ? '' : `, ${duration(span.to - span.from)}`}`;

function Tip({ what, lane }) {
  if (what.text !== undefined) return html`<strong>${what.kind}</strong><div>${what.text}</div>`;
  const targets = what.targets.slice(0, 3).map(([topic, partition]) => `${topic}-${partition}`).join(', ');
  return html`<strong>${what.api}</strong> <span class="muted">v${what.api_version}, entry ${what.seq}</span>
    <div>${lane?.client_id || 'a client'} → broker ${lane?.broker ?? '?'}</div>
    ${targets ? html`<div>${targets}${what.targets.length > 3 ? ` and ${what.targets.length - 3} more` : ''}</div>` : null}
    <div>${STATES[what.state]?.[1] || what.state}${what.to === null ? '' : ` after ${duration(what.to - what.from)}`}</div>
    ${what.errors.length > 0 ? html`<div class="bad-text">${what.errors.join(', ')}</div>` : null}
    ${what.rules.length > 0 ? html`<div class="warn-text">rules: ${what.rules.join(', ')}</div>` : null}`;
}

function Legend() {
  return html`<ul class="legend" aria-label="Legend">
    ${familyList.map(([name, tint]) => html`<li key=${name}><span class=${`swatch s-${tint}`}></span>${name}</li>`)}
    <li><span class="swatch open"></span>waiting</li><li><span class="sign warn-text">❚❚</span>held</li>
    <li><span class="sign bad-text">!</span>error</li><li><span class="sign bad-text">×</span>lost</li><li><span class="swatch touched"></span>touched by a rule</li></ul>`;
}

// --- Table -----------------------------------------------------------------------------------

function Requests({ model, version, seq, onOpen }) {
  const rows = useMemo(() => [...model.spans.values()].slice(-TABLE_ROWS).reverse(), [version]);
  const lane = (row) => model.lanes.get(row.connection) || {};
  const columns = [
    { key: 'seq', label: 'Entry', num: true, cls: 'fit' },
    { key: 'start_ms', label: 'Clock', num: true, cls: 'fit', render: (row) => clock(row.start_ms, 3) },
    { key: 'client', label: 'Client', value: (row) => lane(row).client_id, render: (row) => lane(row).client_id || '–' },
    { key: 'broker', label: 'Broker', num: true, cls: 'fit', value: (row) => lane(row).broker, render: (row) => lane(row).broker ?? '–' },
    { key: 'api', label: 'API' },
    { key: 'targets', label: 'Topics', sortable: false, render: (row) => row.targets.slice(0, 2).map((each) => each.join('-')).join(', ') + (row.targets.length > 2 ? ` +${row.targets.length - 2}` : '') },
    { key: 'state', label: 'State', render: (row) => html`<${Badge} kind=${KINDS[row.state]} title=${STATES[row.state]?.[1]}>${row.errors[0] || STATES[row.state]?.[0] || row.state}<//>` },
    { key: 'took', label: 'Took', num: true, value: (row) => (row.to === null ? Infinity : row.to - row.from), render: (row) => (row.to === null ? '…' : duration(row.to - row.from)) },
    { key: 'bytes_in', label: 'In', num: true, render: (row) => bytes(row.bytes_in ?? 0) },
    { key: 'bytes_out', label: 'Out', num: true, render: (row) => (row.bytes_out === null ? '–' : bytes(row.bytes_out)) },
    { key: 'rules', label: 'Rules', sortable: false, render: (row) => row.rules.join(', ') },
  ];
  const marks = [...model.marks.values()].slice(-30).reverse();
  return html`<section class="panel flush" aria-label="Requests"><header><h2>Requests</h2>
      <span class="muted note">the newest ${number(rows.length)} of ${number(model.spans.size)}</span></header>
    <div class="body"><${Table} label="Requests" columns=${columns} rows=${rows} rowKey=${(row) => String(row.seq)}
      selected=${String(seq)} onOpen=${(row) => onOpen(row.seq)} maxRows=${20} /></div></section>
    ${marks.length > 0 ? html`<section class="panel" aria-label="Events of the cluster"><header><h2>Events of the cluster</h2></header>
      <div class="body"><ul class="links">${marks.map((mark) => html`<li key=${mark.seq}><a href=${linkOf(mark.seq)}>
        <span class="relation num">${clock(mark.at_ms, 3)}</span><span aria-hidden="true">${markOf(mark.kind)[0]} </span>${mark.text}</a></li>`)}</ul></div></section>` : null}`;
}
