// The cluster: what needs attention, brokers, the network between them, partitions, and what has
// changed in the last minute.

import { html, useEffect, useMemo, useRef, useState } from '../preact.js';
import { get } from '../api.js';
import { go, href, setParams, useKeys, useMoment, usePoll } from '../store.js';
import { act } from '../actions.js';
import { Attention } from '../attention.js';
import { Configs, resourceOf } from '../configs.js';
import { PartitionPanel, ReplicaIds, MiniBar, health, nameOf } from '../partition.js';
import { Topology } from '../topology.js';
import { WindowTable } from '../window.js';
import {
  ActionButton, Badge, Choice, Empty, Icon, Loaded, Panel, Table, askForm, clock, formsOfAction, number,
} from '../ui.js';

export const needsCluster = false;

export function Page({ path, params }) {
  const live = useMoment() === null;
  const chosen = path[0] === 'partitions' && path.length === 3 ? { topic: path[1], index: Number(path[2]) } : null;
  useKeys([{ keys: 'u', what: 'under-replicated partitions', run: () => setParams({ only: 'under_replicated' }) }], 'Cluster');
  return html`<div class="pagehead"><h1>Cluster</h1></div>
    <${Attention} />
    <${Summary} />
    <div class="cols wide-left">
      <div class="stack"><${Brokers} live=${live} />${live ? html`<${Changes} />` : null}</div>
      <div class="stack"><${Network} live=${live} /><${Configs} live=${live} /></div>
    </div>
    ${chosen ? html`<${PartitionPanel} key=${path.join('/')} ...${chosen} live=${live} onClose=${() => go('cluster', [], params)} />` : null}
    <${Partitions} params=${params} chosen=${chosen} />`;
}

function Summary() {
  const poll = usePoll('/v1/cluster', {}, 1_500, (state) => state.cluster);
  return html`<${Loaded} poll=${poll} what="the cluster">${(view) => html`<div class="stats">
    <${Stat} label="Brokers" value=${number(view.brokers)} />
    <${Stat} label="Controller" value=${view.controller_id < 0 ? 'none' : view.controller_id} bad=${view.controller_id < 0} />
    <${Stat} label="Topics" value=${number(view.topics)} to=${href('topics')} />
    <${Stat} label="Partitions" value=${number(view.partitions)} />
    <${Stat} label="Under-replicated" value=${number(view.under_replicated)} warn=${view.under_replicated > 0}
      to=${view.under_replicated > 0 ? href('cluster', [], { only: 'under_replicated' }) : null} />
    <${Stat} label="Offline" value=${number(view.offline)} bad=${view.offline > 0}
      to=${view.offline > 0 ? href('cluster', [], { only: 'offline' }) : null} />
  </div>`}<//>`;
}

function Stat({ label, value, to, warn, bad }) {
  const inside = html`<span class="stat-value">${bad ? '✖ ' : warn ? '▲ ' : ''}${value}</span><span class="stat-label">${label}</span>`;
  const cls = `stat${bad ? ' bad' : warn ? ' warn' : ''}`;
  return to ? html`<a class=${cls} href=${to}>${inside}</a>` : html`<div class=${cls}>${inside}</div>`;
}

// --- Brokers ---------------------------------------------------------------------------------

const STATES = { running: 'ok', paused: 'pause', stopped: 'off' };

function Brokers({ live }) {
  const poll = usePoll('/v1/brokers', {}, 1_500, (state) => state.brokers);
  const columns = useMemo(() => [
    { key: 'node_id', label: 'Id', num: true, cls: 'fit', render: (b) => html`<b>${b.node_id}</b>` },
    { key: 'state', label: 'State', render: (b) => brokerState(b) },
    { key: 'rack', label: 'Rack', render: (b) => b.rack ?? html`<span class="muted">–</span>` },
    { key: 'leads', label: 'Leads', num: true, render: (b) => number(b.leads), hint: 'partitions that it leads' },
    { key: 'in_sync', label: 'In sync', num: true, value: (b) => b.in_sync - b.replicas,
      render: (b) => html`<span class=${b.in_sync < b.replicas ? 'warn-text' : ''}>${number(b.in_sync)}<span class="muted"> / ${number(b.replicas)}</span></span>` },
    { key: 'listeners', label: 'Listener', cls: 'huge-only', value: (b) => listener(b), render: (b) => html`<span class="mono">${listener(b)}</span>` },
    ...(live ? [{ key: 'do', label: 'Actions', sortable: false, cls: 'fit', render: (b) => html`<${BrokerActions} broker=${b} />` }] : []),
  ], [live]);
  const add = () => askForm({
    title: 'Add a broker', yes: 'Add',
    schema: { required: ['node'], properties: { node: { type: 'integer', description: 'Its node id.' }, rack: { type: 'string' } } },
    value: { node: Math.max(0, ...poll.data.map((b) => b.node_id)) + 1 },
    submit: (value) => act('add_broker', value, { said: `Broker ${value.node} runs. It has no replicas yet.` }),
    copy: (value) => formsOfAction('add_broker', value),
  });
  return html`<${Panel} title="Brokers" flush actions=${live && poll.data ? html`<button class="small" onClick=${add}><${Icon} name="plus" />Add broker</button>` : null}>
    <${Loaded} poll=${poll} what="the brokers">${(brokers) => html`<${Table} label="Brokers" columns=${columns} rows=${brokers}
      rowKey=${(b) => String(b.node_id)} sort="node_id" maxRows=${10}
      onOpen=${(b) => setParams({ broker: String(b.node_id) })} empty=${html`<${Empty} title="No broker is known at this moment" />`} />`}<//><//>`;
}

const listener = (broker) => Object.values(broker.listeners || {})[0] || '–';

function brokerState(broker) {
  return html`<span class="row tight nowrap"><${Badge} kind=${STATES[broker.state] || 'none'}>${broker.state ?? 'unknown'}<//>
    ${broker.controller ? html`<${Badge} kind="info">controller<//>` : null}
    ${broker.fenced ? html`<${Badge} kind="bad" title="The controller has fenced it: it leads nothing">fenced<//>` : null}
    ${broker.registered === false ? html`<${Badge} kind="bad">not registered<//>` : null}</span>`;
}

function BrokerActions({ broker }) {
  const at = { node: broker.node_id };
  const id = broker.node_id;
  const button = (label, name, args, said) => html`<${ActionButton} kind="small" label=${`${label} broker ${id}`}
    title=${said} run=${() => act(name, args, { said })}>${label}<//>`;
  if (broker.state === 'stopped') {
    return html`<span class="row tight nowrap">${button('Start', 'start_broker', at, `Broker ${id} starts.`)}
      <${ActionButton} kind="small" label=${`Remove broker ${id}`} run=${() => act('remove_broker', at, {
        ask: { title: `Remove broker ${id}?`, body: 'Its registration and its logs are gone.', yes: 'Remove' } })}>Remove<//></span>`;
  }
  return html`<span class="row tight nowrap">
    ${broker.state === 'paused'
      ? button('Resume', 'resume_broker', at, `Broker ${id} runs again.`)
      : button('Pause', 'pause_broker', at, `Broker ${id} accepts connections and does not answer.`)}
    ${button('Stop', 'stop_broker', { ...at, how: 'controlled' }, `Broker ${id} moves its leaders and stops.`)}
    ${button('Kill', 'stop_broker', { ...at, how: 'unclean' }, `Broker ${id} dies without moving its leaders.`)}
    ${button('Cut off', 'cut_network', { nodes: id }, `Broker ${id} reaches no other broker.`)}
  </span>`;
}

// --- Network ---------------------------------------------------------------------------------

function Network({ live }) {
  const poll = usePoll('/v1/network', {}, 1_500, (state) => state.network ?? networkOf(state));
  const brokers = usePoll('/v1/brokers', {}, 1_500, (state) => state.brokers);
  const healAll = () => act('heal_network', {}, { said: 'All links are up.' });
  return html`<${Panel} title="Network" actions=${live ? html`<${ActionButton} kind="small" run=${healAll}>Heal all<//>` : null}>
    <${Loaded} poll=${poll} what="the network">${(network) => html`<${Topology} network=${network}
      brokers=${brokers.data || []} live=${live} onBroker=${(node) => setParams({ broker: String(node) })} />`}<//><//>`;
}

/** The state at a moment has links without their nodes. */
function networkOf(state) {
  return {
    nodes: (state.brokers || []).map((each) => each.node_id),
    controller_id: state.cluster?.controller_id ?? -1,
    links: state.links || [],
    clients: [],
  };
}

// --- Partitions ------------------------------------------------------------------------------

const TROUBLES = [['any', 'All'], ['under_replicated', 'Under-replicated'], ['offline', 'Offline'],
  ['not_preferred', 'Not preferred leader'], ['transaction', 'Open transaction']];

const COLUMNS = [
  { key: 'topic', label: 'Partition', cls: 'grow', render: (p) => nameOf(p) },
  { key: 'health', label: 'State', render: (p) => health(p) },
  { key: 'leader_id', label: 'Leader', num: true, render: (p) => (p.leader_id < 0 ? html`<span class="bad-text">none</span>` : p.leader_id) },
  { key: 'leader_epoch', label: 'Epoch', num: true, render: (p) => number(p.leader_epoch) },
  { key: 'replicas', label: 'Replicas', render: (p) => html`<${ReplicaIds} view=${p} />` },
  { key: 'log_start_offset', label: 'Start', num: true, render: (p) => number(p.log_start_offset) },
  { key: 'last_stable_offset', label: 'LSO', num: true, hint: 'last stable offset', render: (p) => number(p.last_stable_offset) },
  { key: 'high_watermark', label: 'HW', num: true, hint: 'high watermark', render: (p) => number(p.high_watermark) },
  { key: 'log_end_offset', label: 'End', num: true, hint: 'log end offset', render: (p) => number(p.log_end_offset) },
  { key: 'bar', label: 'To scale', cls: 'fit', render: (p) => html`<${MiniBar} view=${p} />` },
];

function Partitions({ params, chosen }) {
  const only = TROUBLES.some(([id]) => id === params.only) ? params.only : 'any';
  const broker = /^\d+$/.test(params.broker || '') ? params.broker : '';
  const query = { topic: params.topic || '', broker, only };
  const open = (p) => go('cluster', ['partitions', p.topic, String(p.partition)], params);
  const note = broker ? html`on broker ${broker} <button class="link" onClick=${() => setParams({ broker: '' })}>all brokers</button>` : null;
  return html`<${Panel} title="Partitions" note=${note} flush actions=${html`
      <label class="search"><${Icon} name="search" /><input type="search" placeholder="Topic" aria-label="Topics with this in their name"
        value=${params.topic || ''} onInput=${(event) => setParams({ topic: event.target.value })} /></label>
      <${Choice} label="Which partitions" options=${TROUBLES} value=${only} onChange=${(id) => setParams({ only: id === 'any' ? '' : id })} />`}>
    <${WindowTable} label="Partitions" columns=${COLUMNS} path="/v1/partitions/page" params=${query} of="partitions" ms=${1_500}
      ofState=${(state) => filtered(state, query)} rowKey=${nameOf} onOpen=${open} maxRows=${14}
      selected=${chosen ? `${chosen.topic}-${chosen.index}` : ''}
      empty=${html`<${Empty} title=${only === 'any' ? 'No partition matches' : 'No partition is like that'}>
        ${only === 'any' ? html`<p>No topic has this in its name${broker ? ' and a replica on this broker' : ''}.</p>` : html`<p>All is well here.</p>`}<//>`} /><//>`;
}

/** At a moment the state has all partitions; the page filters them, internal topics last. */
function filtered(state, { topic, broker, only }) {
  const text = topic.toLowerCase();
  const internal = new Set((state.topics || []).filter((each) => each.internal).map((each) => each.name));
  const all = state.partitions || [];
  const ordered = [...all.filter((p) => !internal.has(p.topic)), ...all.filter((p) => internal.has(p.topic))];
  return ordered.filter((p) => p.topic.toLowerCase().includes(text) &&
    (!broker || p.replicas.some((each) => each.node_id === Number(broker))) && is(p, only));
}

const is = (p, only) => ({
  any: true,
  under_replicated: p.isr.length < p.replicas.length,
  offline: p.leader_id < 0,
  not_preferred: p.leader_id !== p.replicas[0]?.node_id,
  transaction: p.last_stable_offset < p.high_watermark,
})[only];

// --- What has changed ------------------------------------------------------------------------

// Transactions have a page of their own: a busy producer would fill the list.
const KINDS = ['election', 'broker', 'topics', 'configs', 'group', 'action', 'fault', 'clock'];
const MINUTE_MS = 60_000;
const SHOWN = 100;

/** The events of the last minute, newest first: the first call looks back, others go on. */
function useChanges() {
  const [state, setState] = useState({ events: null, error: null, left: 0 });
  const after = useRef(0);
  useEffect(() => {
    let timer = 0;
    let over = false;
    async function ask() {
      try {
        if (!document.hidden) {
          const page = await get('/v1/journal', {
            kind: KINDS, within_ms: MINUTE_MS, after: after.current, limit: 1_000,
          });
          after.current = page.next;
          const news = page.events.filter((event) => event.kind !== 'gap').reverse();
          if (!over) {
            setState((before) => {
              const last = news[0] || before.events?.[0];
              const since = last ? last.virtual_ms - MINUTE_MS : 0;
              const all = [...news, ...(before.events || [])].filter((event) => event.virtual_ms >= since);
              return { events: all.slice(0, SHOWN), left: Math.max(all.length - SHOWN, 0), error: null };
            });
          }
        }
      } catch (error) {
        if (!over) setState((before) => ({ ...before, error }));
      }
      if (!over) timer = setTimeout(ask, 2_000);
    }
    ask();
    return () => { over = true; clearTimeout(timer); };
  }, []);
  return state;
}

function Changes() {
  const { events, error, left } = useChanges();
  const poll = { data: events, error: error?.status === 409 ? null : error, past: false, refresh: () => {} };
  if (error?.status === 409) {
    return html`<${Panel} title="What has changed in the last minute"><${Empty} title="This cluster keeps no journal">
      <p>Start it with a journal to see what changes.</p><//><//>`;
  }
  const columns = [
    { key: 'at', label: 'Time', value: (e) => e.virtual_ms, num: true, cls: 'fit', render: (e) => clock(e.virtual_ms, 3) },
    { key: 'kind', label: 'Kind', cls: 'fit', render: (e) => html`<${Badge} kind=${kindOf(e)}>${e.kind}<//>` },
    { key: 'what', label: 'What', sortable: false, cls: 'grow', render: (e) => html`${sentenceOf(e)}${causeOf(e) ? html` <span class="muted">${causeOf(e)}</span>` : null}` },
    { key: 'seq', label: 'Entry', num: true, cls: 'fit', render: (e) => html`<a href=${href('timeline', [], { seq: e.seq })}>#${e.seq}</a>` },
  ];
  return html`<${Panel} title="What has changed in the last minute" flush note=${left ? `${number(left)} older ones are not shown` : null}>
    <${Loaded} poll=${poll} what="what has changed">${(rows) => html`<${Table} label="Changes of the last minute" columns=${columns} rows=${rows}
      rowKey=${(e) => `${e.seq}.${e.part || 0}`} maxRows=${7}
      empty=${html`<${Empty} title="Nothing has changed in the last minute"><p>Elections, brokers, topics, configs, groups, rules and actions appear here.</p><//>`} />`}<//><//>`;
}

const causeOf = (event) => (event.kind === 'fault' || event.kind === 'action' ? '' : [event.reason, event.message?.cause].filter(Boolean).join(', by '));
const kindOf = (event) => ({ fault: 'warn', action: 'info', election: 'info', broker: event.change === 'running' || event.change === 'unfenced' ? 'ok' : 'warn' }[event.kind] || 'none');

/** An event in words. */
export function sentenceOf(event) {
  const { kind, message = {} } = event;
  const part = event.topic === undefined ? '' : `${event.topic}-${event.partition}`;
  switch (kind) {
    case 'election':
      if (message.leader_id !== undefined && part) {
        return message.leader_id < 0 ? `${part} has lost its leader${was(message.former_leader_id)}`
          : message.leader_id === message.former_leader_id ? `${part}: leader ${message.leader_id} has epoch ${message.leader_epoch}`
            : `${part}: ${message.leader_id} leads${was(message.former_leader_id)}${message.unclean ? ', elected uncleanly' : ''}`;
      }
      if (message.isr) return `${part}: ISR ${list(event.former ?? message.former)} → ${list(message.isr)}`;
      if (message.replicas) return `${part}: replicas ${list(event.former ?? message.former)} → ${list(message.replicas)}`;
      if (part) return `${part}: the preferred leader was not elected`;
      return event.broker === -1 ? 'There is no controller' : `Broker ${event.broker} is the controller`;
    case 'broker':
      if (message.path) return `Broker ${event.broker}: log directory ${message.path} has failed`;
      if (message.from_nodes) return `Links from ${list(message.from_nodes)} to ${list(message.to_nodes)}: ${event.change}${message.delay_ms ? ` by ${message.delay_ms} ms` : ''}`;
      return `Broker ${event.broker} is ${event.change}`;
    case 'topics':
      return [names('created', message.created), names('deleted', message.deleted)].filter(Boolean).join('; ');
    case 'configs':
      return `${resourceOf(message)}: ${(message.configs || []).map(valueOf).join(', ')}`;
    case 'group':
      return `${event.group}: ${event.former} → ${event.state}${event.generation === undefined ? '' : `, generation ${event.generation}`}`;
    case 'transaction':
      return `${event.transactional_id}: ${event.former} → ${event.state}`;
    case 'action':
      return `${(event.change || '').replaceAll('_', ' ')} ${JSON.stringify(message.arguments ?? {})}`;
    case 'fault':
      return `rule ${(event.rules || []).join(', ')} fired${event.api ? ` on ${event.api}` : ''}${event.client_id ? ` of ${event.client_id}` : ''}`;
    default:
      return `${kind} ${event.change || event.state || ''}`;
  }
}

const list = (value) => (Array.isArray(value) ? `[${value.join(', ')}]` : String(value ?? '?'));
const valueOf = ({ name, former, value }) => `${name} ${former ?? 'default'} → ${value ?? 'default'}`;
const was = (id) => (id === undefined || id < 0 ? '' : ` after ${id}`);
const names = (word, topics) => (topics?.length ? `${word} ${topics.slice(0, 5).map((each) => each.topic ?? each).join(', ')}${topics.length > 5 ? ` and ${topics.length - 5} more` : ''}` : '');
