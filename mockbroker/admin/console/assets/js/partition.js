// One partition: its replicas drawn to scale, its producers, and what can be done with it.

import { html, useEffect, useState } from './preact.js';
import { href, usePoll } from './store.js';
import { act } from './actions.js';
import {
  ActionButton, Badge, CopyAs, Facts, Loaded, Panel, Svg, Table, clock, formsOfAction, number,
} from './ui.js';
import { pathOf } from './api.js';

const ROW = 30;
const LEFT = 92;
const RIGHT = 14;

/** A partition's name. */
export const nameOf = (view) => `${view.topic}-${view.partition}`;

/** In sync, or why not, as a badge. */
export function health(view) {
  if (view.leader_id < 0) return html`<${Badge} kind="bad">offline<//>`;
  if (view.isr.length < view.replicas.length) {
    const missing = view.replicas.map((each) => each.node_id).filter((id) => !view.isr.includes(id));
    return html`<${Badge} kind="warn" title=${`Not in the ISR: ${missing.join(', ')}`}>under-replicated<//>`;
  }
  if (view.last_stable_offset < view.high_watermark) {
    return html`<${Badge} kind="info" title="A transaction is open: readers of committed records wait at the last stable offset">transaction<//>`;
  }
  return html`<${Badge} kind="ok">in sync<//>`;
}

/** Its replicas in order: the leader is underlined, those outside of the ISR are struck. */
export function ReplicaIds({ view }) {
  return html`<span class="replicas">${view.replicas.map((each) => html`<span key=${each.node_id}
    class=${`replica${each.node_id === view.leader_id ? ' leads' : ''}${view.isr.includes(each.node_id) ? '' : ' out'}`}
    title=${`Broker ${each.node_id}: ${each.node_id === view.leader_id ? 'leader' : 'follower'}, ${view.isr.includes(each.node_id) ? 'in sync' : 'not in the ISR'}`}
    >${each.node_id}</span>`)}</span>`;
}

/** The leader's offsets in one small bar: the part below LSO, HW and log end. */
export function MiniBar({ view }) {
  const { log_start_offset: start, last_stable_offset: lso, high_watermark: hw, log_end_offset: end } = view;
  const span = Math.max(end - start, 1);
  const x = (offset) => Math.round(((Math.min(Math.max(offset, start), end) - start) / span) * 96);
  return html`<svg class="minibar" width="96" height="10" viewBox="0 0 96 10" role="img"
      aria-label=${`stable to ${lso}, replicated to ${hw}, end ${end}`}>
    <rect class="all" width=${end > start ? 96 : 0} height="10" /><rect class="hw" width=${x(hw)} height="10" />
    <rect class="lso" width=${x(lso)} height="10" /></svg>`;
}

/** The offsets of each replica to scale, from the smallest start to the largest end. */
export function ReplicaBars({ view }) {
  const starts = view.replicas.map((each) => each.log_start_offset);
  const ends = view.replicas.map((each) => each.log_end_offset);
  const low = Math.min(view.log_start_offset, ...starts);
  const high = Math.max(view.log_end_offset, ...ends, low + 1);
  const height = view.replicas.length * ROW + 26;
  return html`<${Svg} height=${height} cls="replicabars" label=${`Replicas of ${nameOf(view)}: ${view.replicas
      .map((each) => `broker ${each.node_id} from ${each.log_start_offset} to ${each.log_end_offset}, high watermark ${each.high_watermark}`).join('; ')}`}>
    ${(width) => bars(width, view, low, high)}<//>
    <p class="legend"><span><i class="swatch lso"></i>below the last stable offset</span>
      <span><i class="swatch hw"></i>below the high watermark</span><span><i class="swatch all"></i>not replicated</span>
      <span><i class="swatch tick"></i>high watermark of the replica</span></p>`;
}

function bars(width, view, low, high) {
  const scale = (width - LEFT - RIGHT) / (high - low);
  const x = (offset) => LEFT + (Math.min(Math.max(offset, low), high) - low) * scale;
  return html`${view.replicas.map((each, n) => {
      const y = n * ROW + 4;
      const leads = each.node_id === view.leader_id;
      const lso = Math.min(view.last_stable_offset, each.log_end_offset);
      const hw = Math.min(each.high_watermark, each.log_end_offset);
      const bar = (cls, from, to) => html`<rect class=${cls} x=${x(from)} y=${y} width=${Math.max(x(to) - x(from), 0)} height="16" />`;
      return html`<g key=${each.node_id}>
        <text class="strong" x="0" y=${y + 12}>${each.node_id}</text>
        <text x="18" y=${y + 12}>${leads ? 'leader' : each.in_sync ? 'in sync' : '▲ behind'}</text>
        <rect class="track" x=${LEFT} y=${y} width=${width - LEFT - RIGHT} height="16" rx="2" />
        ${bar('all', each.log_start_offset, each.log_end_offset)}
        ${bar('hw', each.log_start_offset, Math.max(hw, each.log_start_offset))}
        ${bar('lso', each.log_start_offset, Math.max(Math.min(lso, hw), each.log_start_offset))}
        <path class="tick" d=${`M${x(each.high_watermark)} ${y - 2}v20`} />
        ${x(each.log_end_offset) - x(each.log_start_offset) > 60
          ? html`<text class="inbar" x=${x(each.log_end_offset) - 5} y=${y + 12} text-anchor="end">${number(each.log_end_offset)}</text>`
          : html`<text x=${Math.min(x(each.log_end_offset) + 5, width - 40)} y=${y + 12}>${number(each.log_end_offset)}</text>`}
      </g>`;
    })}
    <text x=${LEFT} y=${view.replicas.length * ROW + 20}>${number(low)}</text>
    <text x=${width - RIGHT} y=${view.replicas.length * ROW + 20} text-anchor="end">${number(high)}</text>`;
}

/**
 * Everything of one partition.
 * @param {{topic: string, index: number, live: boolean, onClose?: () => void}} props
 */
export function PartitionPanel({ topic, index, live, onClose }) {
  const poll = usePoll(pathOf('/v1/topics/{}/partitions/{}', topic, index), {}, 1_000, (state) =>
    (state.partitions || []).find((each) => each.topic === topic && each.partition === index) ?? null);
  const title = `${topic}-${index}`;
  useEffect(() => document.getElementById('partition')?.scrollIntoView({ block: 'nearest' }), [title]);
  return html`<${Panel} title=${title} id="partition" actions=${html`
      <a class="button small" href=${href('topics', [topic], { partition: index })}>Records</a>
      ${onClose ? html`<button class="small" onClick=${onClose}>Close</button>` : null}`}>
    <${Loaded} poll=${poll} what="this partition">${(view) => html`<div class="stack">
      <${ReplicaBars} view=${view} />
      <${Facts} items=${[
        ['Leader', view.leader_id < 0 ? 'none' : view.leader_id],
        ['Leader epoch', number(view.leader_epoch)],
        ['ISR', view.isr.join(', ') || 'empty'],
        ['Log start', number(view.log_start_offset)],
        ['Last stable offset', number(view.last_stable_offset)],
        ['High watermark', number(view.high_watermark)],
        ['Log end', number(view.log_end_offset)],
        ['State', health(view)],
      ]} />
      ${live ? html`<${PartitionActions} view=${view} />` : null}
      ${(view.producers || []).length > 0 ? html`<${Producers} view=${view} live=${live} />` : null}
    </div>`}<//><//>`;
}

function PartitionActions({ view }) {
  const at = { topic: view.topic, partition: view.partition };
  const others = view.replicas.map((each) => each.node_id).filter((id) => id !== view.leader_id);
  const [node, setNode] = useState(String(others[0] ?? ''));
  const to = others.includes(Number(node)) ? Number(node) : others[0];
  const name = nameOf(view);
  const button = (label, action, args, said) => html`<${ActionButton} kind="small"
    run=${() => act(action, { ...at, ...args }, { said })}>${label}<//>`;
  return html`<div class="stack tight"><div class="row">
    ${others.length ? html`<label class="check">Broker <select value=${String(to)} onChange=${(event) => setNode(event.target.value)}>
        ${others.map((id) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>
      ${button('Move leader to it', 'move_leader', { node: to }, `${to} leads ${name}.`)}
      ${button('Let it lag', 'lag_follower', { node: to }, `Broker ${to} has stopped fetching ${name}.`)}
      ${button('End its lag', 'lag_follower', { node: to, release: true }, `Broker ${to} fetches ${name} again.`)}
      ${view.isr.includes(to) ? html`<${ActionButton} kind="small" run=${() => act('shrink_isr', { ...at, nodes: [to] }, { said: `${to} has left the ISR of ${name}.` })}>Out of the ISR<//>` : null}
      ${html`<${ActionButton} kind="small" run=${() => act('elect_unclean', { ...at, node: to }, {
        ask: { title: 'Elect it uncleanly?', yes: 'Elect', body: `Broker ${to} becomes the leader of ${name} as it is. Records that it has not replicated are lost.` } })}>Elect uncleanly<//>`}`
      : html`<span class="muted">This partition has one replica.</span>`}
    </div><div class="row">
    ${view.leader_id >= 0 ? button('Drop leader', 'drop_leader', {}, `${name} has no leader.`) : null}
    ${button('Hold high watermark', 'hold_high_watermark', {}, `The high watermark of ${name} does not move.`)}
    ${button('Release it', 'hold_high_watermark', { release: true }, `The high watermark of ${name} moves.`)}
    ${button('Hold LSO', 'hold_last_stable_offset', {}, `The last stable offset of ${name} does not move.`)}
    ${button('Release LSO', 'hold_last_stable_offset', { release: true }, `The last stable offset of ${name} moves.`)}
    <span class="grow"></span>
    ${to === undefined ? null : html`<${CopyAs} forms=${formsOfAction('move_leader', { ...at, node: to })} label="Copy the move as" />`}
  </div></div>`;
}

function Producers({ view, live }) {
  const columns = [
    { key: 'producer_id', label: 'Producer', num: true, value: (p) => p.producer_id },
    { key: 'epoch', label: 'Epoch', num: true },
    { key: 'last_sequence', label: 'Last sequence', num: true, render: (p) => number(p.last_sequence) },
    { key: 'last_timestamp', label: 'Last batch', num: true, render: (p) => clock(p.last_timestamp) },
    { key: 'transaction_start', label: 'Transaction from', num: true,
      render: (p) => (p.transaction_start < 0 ? html`<span class="muted">none</span>` : number(p.transaction_start)) },
    { key: 'do', label: '', sortable: false, render: (p) => live && p.transaction_start >= 0
      ? html`<${ActionButton} kind="small" run=${() => act('abort_transaction', { producer_id: p.producer_id, topic: view.topic, partition: view.partition })}>Abort<//>` : null },
  ];
  return html`<${Table} label="Producers" columns=${columns} rows=${view.producers} rowKey=${(p) => String(p.producer_id)} maxRows=${8} />`;
}
