// Lag: a table by partition, lines over time, commits, and the form that resets offsets.

import { html, useMemo, useState } from './preact.js';
import { href, refreshAll } from './store.js';
import { pathOf, post } from './api.js';
import { MemberMark } from './gantt.js';
import {
  Badge, Empty, Plot, Table, askForm, clock, count, curlOf, duration, number, pythonOf, toast,
} from './ui.js';

/**
 * A member whose committed offset has not moved for so long on the cluster's clock, while records
 * wait, does not go on: two intervals of automatic commits.
 */
export const STILL_MS = 10_000;

/** Partition -> since when a member has not gone on there, from the history of its group. */
export const stillSince = (history) =>
  new Map((history?.lag || []).filter((each) => each.still_since_ms !== null).map((each) => [`${each.topic}-${each.partition}`, each.still_since_ms]));

/**
 * The lag of a group in each partition.
 * @param {{rows: object[], owners: Map<string, object[]>, legend: Map, history: object|null, nowMs: number}} props
 */
export function LagTable({ rows, owners, legend, history, nowMs }) {
  const still = useMemo(() => stillSince(history), [history]);
  const most = Math.max(1, ...rows.map((each) => each.lag));
  const key = (row) => `${row.topic}-${row.partition}`;
  const columns = [
    { key: 'partition', label: 'Partition', value: key, render: (r) => html`<a href=${href('topics', [r.topic], { partition: r.partition, offset: r.committed ?? '' })}>${key(r)}</a>` },
    { key: 'owner', label: 'Member', value: (r) => owners.get(key(r))?.[0]?.client_id ?? '', render: (r) => ownerCell(owners.get(key(r)), legend) },
    { key: 'why', label: 'Why', cls: 'grow', value: (r) => why(r, owners.get(key(r)), still.get(key(r)), nowMs).text, render: (r) => {
      const found = why(r, owners.get(key(r)), still.get(key(r)), nowMs);
      return found.to ? html`<a href=${found.to}><${Badge} kind=${found.kind}>${found.text}<//></a>` : html`<${Badge} kind=${found.kind}>${found.text}<//>`;
    } },
    { key: 'committed', label: 'Committed', num: true, render: (r) => number(r.committed) },
    { key: 'last_stable_offset', label: 'LSO', num: true, hint: 'last stable offset', render: (r) => number(r.last_stable_offset) },
    { key: 'high_watermark', label: 'HW', num: true, hint: 'high watermark', render: (r) => number(r.high_watermark) },
    { key: 'lag', label: 'Lag', num: true, render: (r) => (r.lag < 0 ? '–' : html`${r.kind === 'nothing' && r.lag > 0 ? html`<span class="muted">up to </span>` : null}${number(r.lag)}`) },
    { key: 'bar', label: 'Lag to scale', sortable: false, cls: 'fit', render: (r) => html`<${LagBar} row=${r} most=${most} />` },
  ];
  return html`<${Table} label="Lag by partition" columns=${columns} rows=${rows} rowKey=${(r) => `${key(r)} ${r.kind}`} sort="-lag" maxRows=${12}
    empty=${html`<${Empty} title="The group has committed no offset"><p>Its lag is known after its first commit.</p><//>`} />`;
}

/** What the partition's lag says, in a few words. */
function why(row, members, stillSinceMs, nowMs) {
  if (row.lag < 0) return { kind: 'bad', text: 'the partition is gone' };
  if (row.kind === 'nothing' && row.high_watermark === null) return { kind: 'none', text: 'nothing is committed' };
  if (row.kind === 'nothing') {
    return row.lag > 0 ? { kind: 'warn', text: 'its member has committed nothing' } : { kind: 'ok', text: 'empty' };
  }
  if (row.lag === 0) return { kind: 'ok', text: 'at the end' };
  if (row.lag_read_committed === 0 && row.lag > 0) {
    return { kind: 'warn', text: 'an open transaction holds it', to: href('transactions') };
  }
  if (row.pending) return { kind: 'info', text: 'a commit waits for its transaction', to: href('transactions') };
  if (!members?.length) return { kind: 'bad', text: 'no member has it' };
  if (members.every((each) => each.connected === false)) return { kind: 'bad', text: 'its member is not connected' };
  if (stillSinceMs !== undefined && nowMs - stillSinceMs >= STILL_MS) {
    return { kind: 'warn', text: `does not go on for ${duration(nowMs - stillSinceMs)}` };
  }
  return { kind: 'none', text: 'being read' };
}

function ownerCell(members, legend) {
  if (!members?.length) return html`<span class="muted">none</span>`;
  return members.map((each) => html`<span key=${each.member_id} title=${each.member_id}><${MemberMark} legend=${legend} id=${each.member_id} /> ${each.client_id} </span>`);
}

function LagBar({ row, most }) {
  const width = 110;
  const all = (Math.max(row.lag, 0) / most) * width;
  const free = (Math.max(row.lag_read_committed, 0) / most) * width;
  return html`<svg class="lagbar" width=${width} height="10" viewBox=${`0 0 ${width} 10`} role="img"
      aria-label=${`lag ${row.lag}, ${row.lag_read_committed} of committed records`}>
    <rect class="held" width=${all} height="10" /><rect class="lag" width=${free} height="10" /></svg>`;
}

/** Lag of each partition over time, or the offsets of one. `lag` is that of the history. */
export function LagOverTime({ lag }) {
  const [chosen, setChosen] = useState('');
  const most = useMemo(() => [...lag].sort((a, b) => lagAt(b.points.at(-1)) - lagAt(a.points.at(-1))).slice(0, 8), [lag]);
  const one = lag.find((each) => `${each.topic}-${each.partition}` === chosen);
  const drawn = useMemo(() => (one ? offsetsOf(one) : lagsOf(most)), [one, most]);
  if (lag.every((each) => each.points.length === 0)) {
    return html`<${Empty} title="The journal has no commit of this group"><p>Lines begin with its first commit.</p><//>`;
  }
  return html`<div class="stack tight"><label class="row">Show <select value=${chosen} onChange=${(event) => setChosen(event.target.value)}>
      <option value="">lag of ${count(most.length, 'partition')}${lag.length > most.length ? ' with the most' : ''}</option>
      ${lag.map((each) => { const name = `${each.topic}-${each.partition}`; return html`<option key=${name} value=${name}>offsets of ${name}</option>`; })}</select></label>
    <${Plot} label=${one ? `Committed offset, LSO and HW of ${chosen} over time` : 'Lag by partition over time'} data=${drawn.data} series=${drawn.series} height=${200} /></div>`;
}

const lagAt = (point) => (point && point[1] !== null ? Math.max(point[3] - point[1], 0) : 0);

function lagsOf(lag) {
  const times = [...new Set(lag.flatMap((each) => each.points.map((point) => point[0])))].sort((a, b) => a - b);
  const lines = lag.map((each) => {
    let n = 0;
    let last = null;
    return times.map((ms) => {
      while (n < each.points.length && each.points[n][0] <= ms) last = each.points[n++];
      return last === null || last[1] === null ? null : lagAt(last);
    });
  });
  return {
    data: [times.map((ms) => ms / 1_000), ...lines],
    series: lag.map((each, n) => ({ label: `${each.topic}-${each.partition}`, colour: `c${n}`, dash: n > 3 ? [5, 3] : undefined })),
  };
}

function offsetsOf({ points }) {
  return {
    data: [points.map((p) => p[0] / 1_000), points.map((p) => p[1]), points.map((p) => p[2]), points.map((p) => p[3])],
    series: [
      { label: 'committed', colour: 'c0', step: true },
      { label: 'last stable offset', colour: 'c1', dash: [5, 3] },
      { label: 'high watermark', colour: 'c2', dash: [2, 3] },
    ],
  };
}

/** The newest commits. */
export function Commits({ commits }) {
  const rows = useMemo(() => [...commits].reverse().slice(0, 500), [commits]);
  const columns = [
    { key: 'at_ms', label: 'Time', num: true, cls: 'fit', render: (c) => clock(c.at_ms, 3) },
    { key: 'partition', label: 'Partition', cls: 'grow', value: (c) => `${c.topic}-${c.partition}`, render: (c) => `${c.topic}-${c.partition}` },
    { key: 'offset', label: 'Offset', num: true, render: (c) => number(c.offset) },
    { key: 'seq', label: 'Entry', num: true, cls: 'fit', render: (c) => html`<a href=${href('timeline', [], { seq: c.seq })}>#${c.seq}</a>` },
  ];
  return html`<${Table} label="Commits" columns=${columns} rows=${rows} rowKey=${(c) => `${c.seq} ${c.topic} ${c.partition}`} maxRows=${8}
    empty=${html`<${Empty} title="No commit yet" />`} />`;
}

/** Ask where to, and reset the offsets of a group without members. */
export function resetOffsets(view) {
  const path = pathOf('/v1/groups/{}/offsets/reset', view.group);
  const body = ({ topic, to, at_ms: atMs, partitions }) => ({
    topic,
    ...(atMs === undefined ? { to: /^\d+$/.test(String(to ?? '')) ? Number(to) : to ?? 'earliest' } : { at_ms: atMs }),
    ...(partitions === undefined ? {} : { partitions }),
  });
  askForm({
    title: `Reset offsets of ${view.group}`, yes: 'Reset', value: { to: 'earliest' },
    note: 'The group must have no members.',
    schema: {
      required: ['topic'],
      properties: {
        topic: { type: 'string' },
        to: { type: 'string', description: 'earliest, latest, or an offset' },
        at_ms: { type: 'integer', title: 'or at (ms since the epoch)', description: 'the first record at or after this time' },
        partitions: { type: 'array', description: 'a JSON list; by default all' },
      },
    },
    submit: async (value) => {
      const found = await post(path, body(value));
      toast(`${count(found.length, 'offset')} of ${view.group} set.`);
      refreshAll();
    },
    copy: (value) => {
      const sent = body(value);
      const { topic, to, at_ms: atMs, partitions } = sent;
      const words = [pythonOf(topic), atMs === undefined ? `to=${pythonOf(to)}` : `at_ms=${atMs}`, partitions ? `partitions=${pythonOf(partitions)}` : ''].filter(Boolean);
      return { python: `kafka.group(${pythonOf(view.group)}).reset_offsets(${words.join(', ')})`, curl: curlOf('POST', path, sent) };
    },
  });
}
