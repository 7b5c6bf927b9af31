// Topics: a list, and of the chosen one its partitions, its records and its configs.

import { html, useMemo, useState } from '../preact.js';
import { del, patch, pathOf, post } from '../api.js';
import { go, href, refreshAll, setParams, useKeys, useMoment, usePoll } from '../store.js';
import { act } from '../actions.js';
import { ReplicaIds, health } from '../partition.js';
import { Records } from '../records.js';
import {
  ActionButton, Badge, Empty, Icon, Loaded, Panel, Table, Tabs, askForm, confirm, count, curlOf, formsOfAction,
  number, pythonOf, toast,
} from '../ui.js';

export const needsCluster = false;

export function Page({ path, params }) {
  const live = useMoment() === null;
  const name = path[0];
  useKeys([{ keys: 'b', what: 'back to the list', run: () => go('topics') }], 'Topics');
  if (name !== undefined) return html`<${Topic} key=${name} name=${name} params=${params} live=${live} />`;
  return html`<${Topics} params=${params} live=${live} />`;
}

// --- The list --------------------------------------------------------------------------------

const COLUMNS = [
  { key: 'name', label: 'Topic', cls: 'grow', render: (t) => html`<a href=${href('topics', [t.name])}>${t.name}</a>${t.internal ? html` <${Badge}>internal<//>` : null}` },
  { key: 'partitions', label: 'Partitions', num: true, render: (t) => number(t.partitions) },
  { key: 'replication_factor', label: 'Replicas', num: true, render: (t) => number(t.replication_factor) },
  { key: 'records', label: 'Offsets', num: true, hint: 'from log start to log end, gaps and markers included', render: (t) => number(t.records) },
  { key: 'configs', label: 'Own configs', value: (t) => Object.keys(t.configs || {}).length, render: (t) => {
    const own = Object.entries(t.configs || {});
    return own.length ? html`<span class="mono muted">${own.slice(0, 2).map(([k, v]) => `${k}=${v}`).join(', ')}${own.length > 2 ? ` +${own.length - 2}` : ''}</span>` : html`<span class="muted">–</span>`;
  } },
];

function Topics({ params, live }) {
  const poll = usePoll('/v1/topics', {}, 2_500, (state) => state.topics);
  const text = (params.q || '').toLowerCase();
  const internal = params.internal === '1';
  const rows = useMemo(() => (poll.data || []).filter((t) => (internal || !t.internal) && t.name.toLowerCase().includes(text)), [poll.data, text, internal]);
  return html`<div class="pagehead"><h1>Topics</h1><span class="grow"></span>${live ? html`<button class="primary" onClick=${createTopic}><${Icon} name="plus" />New topic</button>` : null}</div>
    <${Loaded} poll=${poll} what="the topics">${(topics) => html`<${Panel} title=${count(rows.length, 'topic')} flush actions=${html`
        <label class="check"><input type="checkbox" checked=${internal} onChange=${(event) => setParams({ internal: event.target.checked ? '1' : '' })} /> Internal</label>
        <label class="search"><${Icon} name="search" /><input type="search" placeholder="Topic" aria-label="Topics with this in their name" value=${params.q || ''}
          onInput=${(event) => setParams({ q: event.target.value })} /></label>`}>
      <${Table} label="Topics" columns=${COLUMNS} rows=${rows} rowKey=${(t) => t.name} sort="name" maxRows=${26} onOpen=${(t) => go('topics', [t.name])}
        empty=${topics.some((t) => !t.internal) ? html`<${Empty} title="No topic matches" />`
          : html`<${Empty} title="There are no topics yet">${live ? html`<p><button class="primary" onClick=${createTopic}>Create a topic</button></p>` : null}<//>`} /><//>`}<//>`;
}

const NEW_TOPIC = {
  required: ['name'],
  properties: {
    name: { type: 'string' },
    partitions: { type: 'integer', description: "by default the broker's num.partitions" },
    replication_factor: { type: 'integer' },
    configs: { type: 'object', description: 'for example {"cleanup.policy": "compact"}' },
  },
};

function createTopic() {
  askForm({
    title: 'Create a topic', yes: 'Create', schema: NEW_TOPIC,
    submit: async (value) => {
      const topic = await post('/v1/topics', value);
      toast(`${topic.name} has ${count(topic.partitions, 'partition')}.`);
      refreshAll();
      go('topics', [topic.name]);
    },
    copy: ({ name = '', ...rest }) => ({
      python: `kafka.topic(${pythonOf(name)}).create(${Object.entries(rest).map(([k, v]) => `${k}=${pythonOf(v)}`).join(', ')})`,
      curl: curlOf('POST', '/v1/topics', { name, ...rest }),
    }),
  });
}

// --- One topic -------------------------------------------------------------------------------

function Topic({ name, params, live }) {
  const partitions = usePoll('/v1/partitions/page', { topic: name, exact: true, limit: 1_000 }, 1_000, (state) => ({ partitions: state.partitions || [] }));
  const mine = useMemo(() => (partitions.data?.partitions || []).filter((p) => p.topic === name), [partitions.data, name]);
  const index = /^\d+$/.test(params.partition || '') ? Number(params.partition) : busiest(mine);
  const view = mine.find((p) => p.partition === index) || mine[0];
  const tab = ['records', 'partitions', 'configs'].includes(params.tab) ? params.tab : 'records';
  return html`<div class="pagehead"><h1><span class="crumb"><a href=${href('topics')}>Topics</a> / </span>${name}</h1><span class="grow"></span>
      ${live && mine.length ? html`<${TopicActions} name=${name} view=${view} count=${mine.length} />` : null}</div>
    <${Loaded} poll=${partitions} what="this topic">${() => mine.length === 0
      ? html`<${Empty} title="There is no topic of this name"><p>It has been deleted${live ? '' : ', or did not exist at this moment'}. <a href=${href('topics')}>See all topics</a></p><//>`
      : html`<${Tabs} label="Topic" value=${tab} onChange=${(id) => setParams({ tab: id === 'records' ? '' : id })}
          tabs=${[{ id: 'records', label: 'Records' }, { id: 'partitions', label: 'Partitions', count: mine.length }, { id: 'configs', label: 'Configs' }]}>
        ${tab === 'records' ? html`<div class="browser"><${PartitionList} partitions=${mine} index=${view.partition} />
            <${Panel} title=${`${name}-${view.partition}`} note=${`offsets ${number(view.log_start_offset)} to ${number(view.log_end_offset)}`}><div class="stack"><${Records} key=${view.partition} topic=${name} view=${view} params=${params} /></div><//></div>`
          : tab === 'partitions' ? html`<${PartitionTable} partitions=${mine} />` : html`<${Configs} name=${name} live=${live} />`}<//>`}<//>`;
}

/** The partition with the most offsets: the records that somebody looks for are there. */
const busiest = (partitions) => partitions.reduce((best, p) =>
  (p.log_end_offset - p.log_start_offset > best.size ? { size: p.log_end_offset - p.log_start_offset, index: p.partition } : best), { size: 0, index: 0 }).index;

function PartitionList({ partitions, index }) {
  const columns = [
    { key: 'partition', label: 'Partition', num: true, render: (p) => html`<b>${p.partition}</b>` },
    { key: 'leader_id', label: 'Leader', num: true, render: (p) => (p.leader_id < 0 ? html`<span class="bad-text">✖ none</span>` : p.leader_id) },
    { key: 'size', label: 'Offsets', num: true, value: (p) => p.log_end_offset - p.log_start_offset, render: (p) => number(p.log_end_offset - p.log_start_offset) },
  ];
  return html`<${Panel} title="Partitions" flush><${Table} label="Partitions" columns=${columns} rows=${partitions} rowKey=${(p) => String(p.partition)} selected=${String(index)}
    sort="partition" maxRows=${22} onOpen=${(p) => setParams({ partition: String(p.partition), offset: '', time: '' })} /><//>`;
}

const TABLE = [
  { key: 'partition', label: 'Partition', num: true, cls: 'fit', render: (p) => html`<b>${p.partition}</b>` },
  { key: 'state', label: 'State', value: (p) => p.isr.length - p.replicas.length, render: (p) => health(p) },
  { key: 'leader_id', label: 'Leader', num: true },
  { key: 'leader_epoch', label: 'Epoch', num: true },
  { key: 'replicas', label: 'Replicas', sortable: false, render: (p) => html`<${ReplicaIds} view=${p} />` },
  { key: 'log_start_offset', label: 'Start', num: true, render: (p) => number(p.log_start_offset) },
  { key: 'last_stable_offset', label: 'LSO', num: true, render: (p) => number(p.last_stable_offset) },
  { key: 'high_watermark', label: 'HW', num: true, render: (p) => number(p.high_watermark) },
  { key: 'log_end_offset', label: 'End', num: true, render: (p) => number(p.log_end_offset) },
  { key: 'producers', label: 'Producers', num: true, value: (p) => (p.producers || []).length, render: (p) => number((p.producers || []).length) },
];

function PartitionTable({ partitions }) {
  return html`<${Panel} title="Partitions" flush note="a row opens its replicas"><${Table} label="Partitions" columns=${TABLE} rows=${partitions} rowKey=${(p) => String(p.partition)}
    sort="partition" maxRows=${24} onOpen=${(p) => go('cluster', ['partitions', p.topic, String(p.partition)])} /><//>`;
}

function TopicActions({ name, view, count: partitions }) {
  const path = pathOf('/v1/topics/{}', name);
  const produce = () => askForm({
    title: `Produce to ${name}`, yes: 'Produce', note: 'Key and value are texts; without a partition the key decides.',
    schema: { properties: {
      key: { type: 'string' }, value: { type: 'string', format: 'text' }, headers: { type: 'object', description: 'for example {"trace": "1"}' },
      partition: { type: 'integer', description: `0 to ${partitions - 1}` }, timestamp_ms: { type: 'integer' } } },
    value: { partition: view.partition },
    submit: async (value) => {
      const [placed] = await post(`${path}/records`, value);
      toast(`Appended at offset ${placed.offset} of partition ${placed.partition}.`);
      refreshAll();
    },
    copy: ({ value, partition, ...rest }) => {
      const words = [...(value === undefined ? [] : [pythonOf(value)]), ...Object.entries(rest).map(([k, v]) => `${k}=${pythonOf(v)}`)].join(', ');
      const on = partition === undefined ? `kafka.topic(${pythonOf(name)})` : `kafka.partition(${pythonOf(name)}, ${partition})`;
      return { python: `${on}.produce(${words})`, curl: curlOf('POST', `${path}/records`, { value, partition, ...rest }) };
    },
  });
  const grow = () => askForm({
    title: `Partitions of ${name}`, yes: 'Add', schema: { required: ['partitions'], properties: { partitions: { type: 'integer', description: 'the new number of all' } } },
    value: { partitions: partitions + 1 },
    submit: async (value) => { await patch(path, value); toast(`${name} has ${count(value.partitions, 'partition')}.`); refreshAll(); },
    copy: (value) => ({ python: `kafka.topic(${pythonOf(name)}).alter(partitions=${value.partitions})`, curl: curlOf('PATCH', path, value) }),
  });
  async function remove() {
    if (!(await confirm({ title: `Delete ${name}?`, body: 'The topic and all its records are gone.', yes: 'Delete' }))) return;
    await del(path);
    toast(`${name} is deleted.`);
    go('topics');
    refreshAll();
  }
  return html`<div class="row"><button class="primary" onClick=${produce}>Produce</button><button onClick=${grow}>Add partitions</button>
    <${ActionButton} run=${() => act('delete_records', { topic: name }, { ask: { title: `Empty ${name}?`, body: 'All records up to the high watermark are deleted.', yes: 'Delete the records' }, said: `${name} is empty.` })}>Empty<//>
    <${ActionButton} kind="danger" run=${remove}>Delete<//></div>`;
}

// --- Configs ---------------------------------------------------------------------------------

function Configs({ name, live }) {
  const poll = usePoll(pathOf('/v1/topics/{}/configs', name), {}, 3_000, (state) => {
    const own = (state.topics || []).find((t) => t.name === name)?.configs || {};
    return Object.entries(own).map(([key, value]) => ({ name: key, value, source: 'dynamic_topic', default: null, documentation: null }));
  });
  const [own, setOwn] = useState(false);
  const path = pathOf('/v1/topics/{}', name);
  const change = async (configs, said) => { await patch(path, { configs }); toast(said); refreshAll(); };
  const edit = (config) => askForm({
    title: config.name, yes: 'Set', note: config.documentation || null,
    schema: { required: ['value'], properties: { value: { type: 'string', description: config.default === null ? undefined : `by default ${config.default}` } } },
    value: { value: config.value ?? '' },
    submit: ({ value }) => change({ [config.name]: String(value) }, `${config.name} is ${value}.`),
    copy: ({ value }) => ({
      ...formsOfAction('alter_configs', { kind: 'topic', name, configs: { [config.name]: value } }),
      python: `kafka.topic(${pythonOf(name)}).alter(configs={${pythonOf(config.name)}: ${pythonOf(value)}})`,
    }),
  });
  const columns = [
    { key: 'name', label: 'Config', render: (c) => html`<span class="mono">${c.name}</span>` },
    { key: 'value', label: 'Value', render: (c) => html`<span class=${`mono${c.source === 'dynamic_topic' ? ' own' : ''}`}>${c.value === '' ? html`<span class="muted">empty</span>` : c.value ?? '–'}</span>` },
    { key: 'source', label: 'Source', render: (c) => (c.source === 'dynamic_topic' ? html`<${Badge} kind="info">this topic<//>` : html`<span class="muted">${c.source.replaceAll('_', ' ')}</span>`) },
    { key: 'documentation', label: 'Meaning', cls: 'grow wide-only', sortable: false, render: (c) => html`<span class="muted" title=${c.documentation}>${c.documentation || ''}</span>` },
    ...(live ? [{ key: 'do', label: '', sortable: false, cls: 'fit', render: (c) => html`<span class="row tight nowrap"><button class="small" aria-label=${`Set ${c.name}`} onClick=${() => edit(c)}>Set</button>
      ${c.source === 'dynamic_topic' ? html`<${ActionButton} kind="small" label=${`Reset ${c.name}`} run=${() => change({ [c.name]: null }, `${c.name} has its default.`)}>Reset<//>` : null}</span>` }] : []),
  ];
  return html`<${Panel} title="Configs" flush actions=${html`<label class="check"><input type="checkbox" checked=${own} onChange=${(event) => setOwn(event.target.checked)} /> Only its own</label>`}>
    <${Loaded} poll=${poll} what="the configs">${(rows) => html`<${Table} label="Configs" columns=${columns} rows=${own ? rows.filter((c) => c.source === 'dynamic_topic') : rows}
      rowKey=${(c) => c.name} sort="name" maxRows=${24} empty=${html`<${Empty} title="The topic has no configs of its own"><p>The brokers' defaults apply.</p><//>`} />`}<//><//>`;
}
