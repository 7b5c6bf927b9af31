// Share partitions with their records in flight, and tasks of streams groups.

import { html, useState } from './preact.js';
import { href, usePoll } from './store.js';
import { act } from './actions.js';
import { MemberMark } from './gantt.js';
import {
  ActionButton, Badge, Empty, Loaded, Panel, Svg, Table, clock, count, duration, number,
} from './ui.js';

const KINDS = { Available: 'info', Acquired: 'warn', Acknowledged: 'ok', Archived: 'off' };

/** The share partitions of a group (KIP-932); the chosen one shows its records in flight. */
export function SharePartitions({ group, live, legend }) {
  const poll = usePoll('/v1/share-partitions', { group }, 1_000, (state) =>
    (state.share_partitions || []).filter((each) => each.group === group));
  const [chosen, setChosen] = useState('');
  const name = (each) => `${each.topic}-${each.partition}`;
  const columns = [
    { key: 'partition', label: 'Share partition', value: name, render: (p) => html`<a href=${href('topics', [p.topic], { partition: p.partition, offset: p.start_offset })}>${name(p)}</a>` },
    { key: 'state', label: 'State', render: (p) => html`<${Badge} kind=${p.state === 'Active' ? 'ok' : 'none'}>${p.state}<//>` },
    { key: 'leader', label: 'Leader', num: true },
    { key: 'coordinator', label: 'Coordinator', num: true },
    { key: 'state_epoch', label: 'Epoch', num: true, hint: 'state epoch' },
    { key: 'start_offset', label: 'Start', num: true, hint: 'share-partition start offset (SPSO)', render: (p) => number(p.start_offset) },
    { key: 'end_offset', label: 'End', num: true, hint: 'last offset that was ever acquired', render: (p) => number(p.end_offset) },
    ...['available', 'acquired', 'acknowledged', 'archived'].map((state) => ({
      key: state, label: state[0].toUpperCase() + state.slice(1), num: true, value: (p) => p.counts[state], render: (p) => number(p.counts[state]),
    })),
    { key: 'bar', label: 'In flight', sortable: false, render: (p) => html`<${FlightBar} view=${p} />` },
  ];
  return html`<${Panel} title="Share partitions" flush note="records in flight between start and end"><${Loaded} poll=${poll} what="the share partitions">${(rows) => {
    const view = rows.find((each) => name(each) === chosen);
    return html`<${Table} label="Share partitions" columns=${columns} rows=${rows} rowKey=${name} selected=${chosen} maxRows=${10}
        onOpen=${(p) => setChosen(chosen === name(p) ? '' : name(p))}
        empty=${html`<${Empty} title="The group reads no partition yet"><p>Share partitions appear with the first fetch of a member.</p><//>`} />
      ${view ? html`<${InFlight} view=${view} live=${live} legend=${legend} />` : null}`;
  }}<//><//>`;
}

function FlightBar({ view }) {
  const width = 150;
  const { start_offset: start, end_offset: end } = view;
  const span = Math.max(end - start + 1, 1);
  const told = view.in_flight.map((each) => `${each.first_offset} to ${each.last_offset} ${each.state}`).join(', ') || 'nothing';
  return html`<svg class="flight" width=${width} height="12" viewBox=${`0 0 ${width} 12`} role="img" aria-label=${`In flight: ${told}`}>
    <rect class="track" width=${width} height="12" rx="2" />${view.in_flight.map((each) => {
      const x = ((each.first_offset - start) / span) * width;
      return html`<rect key=${each.first_offset} class=${each.state.toLowerCase()} x=${Math.max(x, 0)} width=${Math.max(((each.last_offset - each.first_offset + 1) / span) * width - 0.5, 1)} height="12" />`;
    })}</svg>`;
}

function InFlight({ view, live, legend }) {
  const at = { group: view.group, topic: view.topic, partition: view.partition };
  const now = Date.now();
  const columns = [
    { key: 'first_offset', label: 'Offsets', num: true, cls: 'fit', render: (r) => (r.first_offset === r.last_offset ? number(r.first_offset) : `${number(r.first_offset)} – ${number(r.last_offset)}`) },
    { key: 'state', label: 'State', render: (r) => html`<${Badge} kind=${KINDS[r.state] || 'none'}>${r.state}${r.is_changing ? ', being written' : ''}<//>` },
    { key: 'delivery_count', label: 'Deliveries', num: true, render: (r) => html`${r.delivery_count}<span class="muted"> / ${view.delivery_count_limit}</span>` },
    { key: 'member_id', label: 'Member', cls: 'grow', render: (r) => (r.member_id ? html`<span title=${r.member_id}><${MemberMark} legend=${legend} id=${r.member_id} /> ${legend.get(r.member_id)?.name ?? r.member_id}</span>` : html`<span class="muted">none</span>`) },
    { key: 'locked_until_ms', label: 'Lock until', num: true, render: (r) => (r.locked_until_ms === null ? '–' : html`<span title=${duration(Math.max(r.locked_until_ms - now, 0))}>${clock(r.locked_until_ms, 3)}</span>`) },
  ];
  const button = (label, name, said, args = {}) => html`<${ActionButton} kind="small" run=${() => act(name, { ...at, ...args }, { said })}>${label}<//>`;
  return html`<div class="subpanel"><div class="row"><b>${view.topic}-${view.partition}</b><span class="muted">${count(view.in_flight.length, 'range')} in flight</span><span class="grow"></span>
      ${live ? html`${button('Expire locks', 'expire_acquisition_locks', 'The acquisition locks have expired.')}
        ${button('Hand out twice', 'hand_out_twice', 'Its acquired records are available to other members too.')}
        ${button('Unload coordinator', 'unload_share_coordinator', 'The share coordinator loads its state anew.')}` : null}</div>
    <${Table} label="Records in flight" columns=${columns} rows=${view.in_flight} rowKey=${(r) => String(r.first_offset)} maxRows=${8}
      empty=${html`<${Empty} title="No record is in flight" />`} /></div>`;
}

/** The tasks of a streams group (KIP-1071). */
export function StreamsTasks({ group, live }) {
  const poll = usePoll('/v1/streams-tasks', { group }, 1_500, (state) => (state.streams_tasks || []).filter((each) => each.group === group));
  const columns = [
    { key: 'subtopology', label: 'Task', value: (t) => `${t.subtopology}_${t.partition}`, render: (t) => html`<span class="mono">${t.subtopology}_${t.partition}</span>` },
    { key: 'kind', label: 'Kind' },
    { key: 'state', label: 'State', render: (t) => html`<${Badge} kind=${{ assigned: 'ok', revoking: 'warn', target: 'info' }[t.state] || 'none'}>${t.state}<//>` },
    { key: 'client_id', label: 'Member', cls: 'grow', render: (t) => html`<span title=${t.member_id}>${t.client_id || t.member_id}</span>` },
    { key: 'process_id', label: 'Process', render: (t) => html`<span class="mono">${t.process_id}</span>` },
  ];
  return html`<${Panel} title="Tasks" flush actions=${live ? html`<${ActionButton} kind="small" run=${() => act('shut_down_application', { group }, {
      ask: { title: 'Shut the application down?', body: 'All members of the group are told to stop.', yes: 'Shut down' } })}>Shut down application<//>` : null}>
    <${Loaded} poll=${poll} what="the tasks">${(rows) => html`<${Table} label="Tasks" columns=${columns} rows=${rows} rowKey=${(t) => `${t.subtopology}_${t.partition} ${t.kind} ${t.state} ${t.member_id}`} maxRows=${12}
      empty=${html`<${Empty} title="The group has no tasks"><p>They appear when members have sent a topology.</p><//>`} />`}<//><//>`;
}
