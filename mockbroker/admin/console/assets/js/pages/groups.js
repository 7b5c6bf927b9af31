// Groups of all types: a list, and of the chosen one its states, members, assignments over time,
// lag, commits, share partitions and tasks.

import { html, useEffect, useMemo, useState } from '../preact.js';
import { del, get, pathOf } from '../api.js';
import { ANY_TIME, go, href, refreshAll, setParams, useKeys, useMoment, usePoll } from '../store.js';
import { act } from '../actions.js';
import { Gantt, MemberMark, legendOf } from '../gantt.js';
import { Commits, LagOverTime, LagTable, resetOffsets } from '../lag.js';
import { SharePartitions, StreamsTasks } from '../share.js';
import { StateDiagram } from '../diagram.js';
import {
  ActionButton, Badge, Choice, CopyAs, Empty, Facts, Icon, Loaded, Panel, Table, confirm, count, curlOf,
  formsOfAction, number, toast,
} from '../ui.js';

export const needsCluster = false;

const STATES = {
  Stable: 'ok', Empty: 'none', Dead: 'off', PreparingRebalance: 'warn', CompletingRebalance: 'warn',
  Assigning: 'warn', Reconciling: 'warn', NotReady: 'warn',
};
const TYPES = [['', 'All'], ['classic', 'Classic'], ['consumer', 'Consumer'], ['share', 'Share'], ['streams', 'Streams']];

/** A group's state as a badge. */
export const stateBadge = (state) => html`<${Badge} kind=${STATES[state] || 'none'}>${state ?? 'unknown'}<//>`;

export function Page({ path, params }) {
  const live = useMoment() === null;
  const poll = usePoll('/v1/groups', {}, 1_500, (state) =>
    state.groups?.map((each) => ({ ...each, members: each.members || [], untold: each.members === null })));
  const name = path[0];
  useKeys([{ keys: 'b', what: 'back to the list', run: () => go('groups', [], params) }], 'Groups');
  if (name !== undefined) {
    const view = poll.data?.find((each) => each.group === name);
    return html`<div class="pagehead"><h1><span class="crumb"><a href=${href('groups')}>Groups</a> / </span>${name}</h1>
        ${view ? html`<${Badge} kind="info">${view.type}<//>${stateBadge(view.state)}` : null}
        <span class="grow"></span>${view && live ? html`<${GroupActions} view=${view} />` : null}</div>
      <${Loaded} poll=${poll} what="this group">${() => view
        ? html`<${Group} key=${name} view=${view} live=${live} />`
        : html`<${Empty} title="There is no group of this name"><p>It has been deleted, or its coordinator has not loaded it${live ? '' : ' at this moment'}.
          <a href=${href('groups')}>See all groups</a></p><//>`}<//>`;
  }
  return html`<div class="pagehead"><h1>Groups</h1></div><${Loaded} poll=${poll} what="the groups">${(groups) =>
    html`<${Groups} groups=${groups} params=${params} />`}<//>`;
}

// --- The list --------------------------------------------------------------------------------

function Groups({ groups, params }) {
  const lags = usePoll('/v1/lag/groups', {}, 2_000, (state) => state.lag && totals(state.lag));
  const byGroup = useMemo(() => new Map((lags.data || []).map((each) => [each.group, each])), [lags.data]);
  const text = (params.q || '').toLowerCase();
  const type = params.type || '';
  const rows = useMemo(() => groups
    .filter((each) => (!type || each.type === type) && each.group.toLowerCase().includes(text))
    .map((each) => ({ ...each, total: byGroup.get(each.group) })), [groups, byGroup, text, type]);
  const columns = useMemo(() => [
    { key: 'group', label: 'Group', cls: 'grow', render: (g) => html`<a href=${href('groups', [g.group])}>${g.group}</a>` },
    { key: 'type', label: 'Type' },
    { key: 'state', label: 'State', render: (g) => stateBadge(g.state) },
    { key: 'generation', label: 'Generation', num: true, hint: 'generation or epoch', render: (g) => (g.generation < 0 ? '–' : number(g.generation)) },
    { key: 'members', label: 'Members', num: true, value: (g) => g.members.length, render: membersCell },
    { key: 'coordinator', label: 'Coordinator', num: true },
    { key: 'partitions', label: 'Partitions', num: true, value: (g) => g.total?.partitions ?? -1, render: (g) => number(g.total?.partitions) },
    { key: 'lag', label: 'Lag', num: true, value: (g) => g.total?.lag ?? -1, render: (g) => lagCell(g.total) },
  ], []);
  return html`<${Panel} title=${count(rows.length, 'group')} flush actions=${html`
      <label class="search"><${Icon} name="search" /><input type="search" placeholder="Group" aria-label="Groups with this in their name"
        value=${params.q || ''} onInput=${(event) => setParams({ q: event.target.value })} /></label>
      <${Choice} label="Type" options=${TYPES} value=${type} onChange=${(id) => setParams({ type: id })} />`}>
    <${Table} label="Groups" columns=${columns} rows=${rows} rowKey=${(g) => g.group} sort="group" maxRows=${26}
      onOpen=${(g) => go('groups', [g.group])} empty=${groups.length ? html`<${Empty} title="No group matches" />`
        : html`<${Empty} title="There are no groups yet"><p>A consumer with a <code>group.id</code> makes one when it joins or commits an offset.</p><//>`} /><//>`;
}

/** What `/v1/lag/groups` gives, from the lags at a moment. */
function totals(lags) {
  const found = new Map();
  for (const each of lags) {
    const sum = found.get(each.group) || { group: each.group, partitions: 0, lag: 0, lag_read_committed: 0, pending: false };
    sum.partitions += 1;
    sum.lag += Math.max(each.lag, 0);
    sum.lag_read_committed += Math.max(each.lag_read_committed, 0);
    sum.pending ||= Boolean(each.pending);
    found.set(each.group, sum);
  }
  return [...found.values()];
}

function membersCell(group) {
  const gone = group.members.filter((each) => each.connected === false).length;
  return html`${gone ? html`<span class="warn-text" title=${`${count(gone, 'member')} without a connection`}>▲ </span>` : null}${number(group.members.length)}`;
}

function lagCell(total) {
  if (!total) return html`<span class="muted">–</span>`;
  const held = total.lag - total.lag_read_committed;
  return html`${held > 0 ? html`<span class="warn-text" title=${`${number(held)} of them are held back by an open transaction`}>▲ </span>` : null}${number(total.lag)}`;
}

// --- One group -------------------------------------------------------------------------------

function GroupActions({ view }) {
  const group = view.group;
  const path = pathOf('/v1/groups/{}', group);
  async function remove() {
    const yes = await confirm({ title: `Delete ${group}?`, body: 'The group and its committed offsets are gone.', yes: 'Delete' });
    if (!yes) return;
    await del(path);
    toast(`${group} is deleted.`);
    refreshAll();
    go('groups');
  }
  return html`<div class="row">
    ${view.members.length ? html`<${ActionButton} run=${() => act('rebalance_group', { group }, { said: `${group} rebalances.` })}>Rebalance<//>` : null}
    ${view.type === 'share' ? null : html`<button onClick=${() => resetOffsets(view)} disabled=${view.members.length > 0}
      title=${view.members.length ? 'A group with members keeps its offsets: stop them first' : 'Commit other offsets'}>Reset offsets</button>`}
    <${ActionButton} kind="danger" disabled=${view.members.length > 0} title=${view.members.length ? 'It has members' : 'Delete it'} run=${remove}>Delete<//>
    <${CopyAs} forms=${{ ...formsOfAction('rebalance_group', { group }), curl: curlOf('POST', '/v1/actions', { rebalance_group: { group } }) }} label="Copy rebalance as" /></div>`;
}

function Group({ view, live }) {
  const at = useMoment();
  const told = usePoll(pathOf('/v1/journal/groups/{}', view.group), { points: 300 }, 2_000, ANY_TIME);
  const history = useMemo(() => ({ ...told, data: until(told.data, at) }), [told.data, told.error, at]);
  const lag = usePoll('/v1/lag', { group: view.group }, 1_500, (state) => (state.lag || []).filter((each) => each.group === view.group));
  const clockPoll = usePoll('/v1/clock', {}, 2_000, (state) => ({ now_ms: state.at_ms }));
  const found = history.data;
  const rows = useUncommitted(view, lag.data);
  const isShare = view.type === 'share'; // it commits no offsets
  const assignments = found?.assignments || [];
  const legend = useMemo(() => legendOf(assignments, view.members), [assignments, view.members]);
  const owners = useMemo(() => ownersOf(view.members), [view.members]);
  const now = clockPoll.data?.now_ms ?? Date.now();
  return html`<div class="cols">
      <${States} view=${view} history=${found} />
      <${Members} view=${view} live=${live} legend=${legend} lags=${rows} />
    </div>
    ${isShare ? html`<${SharePartitions} group=${view.group} live=${live} legend=${legend} />` : html`<${Panel} title="Lag by partition" flush note=${lag.data ? lagNote(rows) : null}>
      <${Loaded} poll=${lag} what="the lag">${() => html`<${LagTable} rows=${rows} owners=${owners} legend=${legend} history=${found} nowMs=${now} />`}<//><//>`}
    <${Panel} title="Assignments over time" note="who has had which partition; a bar leads to the timeline">
      <${HistoryOf} poll=${history}>${(data) => data.assignments.length + data.states.length === 0
        ? html`<${Empty} title="The journal has no assignment of this group"><p>It shows here when a member joins.</p><//>`
        : html`<${Gantt} history=${data} nowMs=${now} legend=${legend} current=${view.state} />
          <${Legend} legend=${legend} />`}<//><//>
    ${isShare ? null : html`<div class="cols">
      <${Panel} title="Lag over time"><${HistoryOf} poll=${history}>${(data) => html`<${LagOverTime} lag=${data.lag} />`}<//><//>
      <${Panel} title="Commits" flush><${HistoryOf} poll=${history}>${(data) => html`<${Commits} commits=${data.commits} />`}<//><//>
    </div>`}
    ${view.type === 'streams' ? html`<${StreamsTasks} group=${view.group} live=${live} />` : null}`;
}

/** The lags, and a row for each partition that a member has and for which nothing is committed. */
function useUncommitted(view, lags) {
  const known = new Set((lags || []).map((each) => `${each.topic}-${each.partition}`));
  const missing = view.type === 'share' ? [] : view.members.flatMap((member) => Object.entries(member.assigned || {})
    .flatMap(([topic, list]) => list.filter((index) => !known.has(`${topic}-${index}`)).map((index) => [topic, index])));
  const topics = [...new Set(missing.map(([topic]) => topic))].slice(0, 20);
  const [found, setFound] = useState([]);
  const live = useMoment() === null;
  useEffect(() => {
    if (!topics.length || !live) return undefined;
    let over = false;
    const ask = () => Promise.all(topics.map((topic) => get('/v1/partitions/page', { topic, exact: true, limit: 1_000 })))
      .then((pages) => { if (!over) setFound(pages.flatMap((page) => page.partitions)); }, () => {});
    ask();
    const timer = setInterval(() => { if (!document.hidden) ask(); }, 2_000);
    return () => { over = true; clearInterval(timer); };
  }, [topics.join(' '), live]);
  const past = usePoll(live ? null : '/v1/partitions/page', {}, Infinity, (state) => state.partitions);
  const views = new Map((live ? found : past.data || []).map((each) => [`${each.topic}-${each.partition}`, each]));
  const rows = missing.map(([topic, partition]) => {
    const at = views.get(`${topic}-${partition}`);
    const lag = (end) => (at ? Math.max(end - at.log_start_offset, 0) : 0);
    return { group: view.group, topic, partition, committed: null, last_stable_offset: at?.last_stable_offset ?? null,
      high_watermark: at?.high_watermark ?? null, lag: lag(at?.high_watermark), lag_read_committed: lag(at?.last_stable_offset),
      pending: false, kind: 'nothing' };
  });
  return [...(lags || []), ...rows];
}

/** The history up to a moment, or all of it. */
function until(history, seq) {
  if (!history || seq === null) return history;
  const lastMs = Math.max(0, ...history.states.filter((each) => each.seq <= seq).map((each) => each.at_ms),
    ...history.commits.filter((each) => each.seq <= seq).map((each) => each.at_ms));
  return {
    ...history,
    states: history.states.filter((each) => each.seq <= seq),
    assignments: history.assignments.filter((each) => each.from_seq <= seq).map((each) =>
      (each.to_seq !== null && each.to_seq > seq ? { ...each, to_seq: null, to_ms: null } : each)),
    lag: history.lag.map((each) => lagUntil(each, lastMs)),
    commits: history.commits.filter((each) => each.seq <= seq),
  };
}

/** Since when a member does not go on is told for the end of the journal: before, it is the last change of its offset. */
function lagUntil(lag, lastMs) {
  const points = lag.points.filter((point) => point[0] <= lastMs);
  const committed = points.at(-1)?.[1] ?? null;
  const moved = committed === null ? null : points[points.findLastIndex((point) => point[1] !== committed) + 1][0];
  return { ...lag, points, still_since_ms: moved };
}

/** The history of a group; without a journal it says so. */
function HistoryOf({ poll, children }) {
  if (poll.error?.status === 409) {
    return html`<${Empty} title="There is no journal"><p>Start the cluster with a journal to see what was.</p><//>`;
  }
  return html`<${Loaded} poll=${poll} what="the history">${children}<//>`;
}

const lagNote = (rows) => {
  const all = rows.reduce((sum, each) => sum + Math.max(each.lag, 0), 0);
  const held = rows.reduce((sum, each) => sum + Math.max(each.lag, 0) - Math.max(each.lag_read_committed, 0), 0);
  return `${count(all, 'record')} behind${held > 0 ? `, ${number(held)} of them held back by open transactions` : ''}`;
};

/** Partition -> member, from what the members have. */
function ownersOf(members) {
  const owners = new Map();
  for (const member of members) {
    for (const [topic, partitions] of Object.entries(member.assigned || {})) {
      for (const index of partitions) {
        const key = `${topic}-${index}`;
        owners.set(key, [...(owners.get(key) || []), member]);
      }
    }
  }
  return owners;
}

function States({ view, history }) {
  const machines = usePoll('/v1/state-machines', {}, Infinity, ANY_TIME);
  const machine = machines.data?.find((each) => each.name === `${view.type} group`);
  const last = history?.states?.at(-1);
  return html`<${Panel} title="State" note=${last?.reason || null}>
    <div class="stack">${machine ? html`<${StateDiagram} machine=${machine} state=${view.state} former=${last?.former} />` : stateBadge(view.state)}
    <${Facts} items=${[
      [view.type === 'classic' ? 'Generation' : 'Epoch', view.generation < 0 ? '–' : number(view.generation)],
      ['Protocol', view.protocol || 'none'],
      ['Coordinator', view.coordinator < 0 ? 'none' : `broker ${view.coordinator}`],
      ['Members', number(view.members.length)],
    ]} /></div><//>`;
}

function Members({ view, live, legend, lags }) {
  const lagOf = (member) => lags.reduce((sum, each) =>
    sum + ((member.assigned?.[each.topic] || []).includes(each.partition) ? Math.max(each.lag, 0) : 0), 0);
  const owned = (member) => Object.values(member.assigned || {}).reduce((n, each) => n + each.length, 0);
  const columns = [
    { key: 'client_id', label: 'Member', cls: 'grow', render: (m) => html`<span title=${`${m.member_id} at ${m.host}`}><${MemberMark} legend=${legend} id=${m.member_id} /> ${m.client_id || m.member_id}${m.instance_id ? html` <span class="muted">${m.instance_id}</span>` : null}</span>` },
    { key: 'connected', label: 'Connection', value: (m) => Number(m.connected), render: (m) => m.connected === undefined || m.connected === null
      ? html`<span class="muted">unknown</span>` : m.connected ? html`<${Badge} kind="ok">open<//>` : html`<${Badge} kind="bad">closed<//>` },
    { key: 'assigned', label: 'Partitions', num: true, value: owned, render: (m) => html`<span title=${assignedText(m)}>${m.assigned === null ? '?' : number(owned(m))}</span>` },
    ...(view.type === 'share' ? [] : [{ key: 'lag', label: 'Lag', num: true, value: lagOf, render: (m) => number(lagOf(m)) }]),
    ...(live ? [{ key: 'do', label: '', sortable: false, cls: 'fit', render: (m) => html`<span class="row tight nowrap">
      <${ActionButton} kind="small" label=${`Kick ${m.client_id}`} title="It must join again" run=${() => act('kick_member', { group: view.group, member: m.member_id }, { said: `${m.client_id} is out of the group.` })}>Kick<//>
      <${ActionButton} kind="small" label=${`Expire ${m.client_id}`} title="Its session times out" run=${() => act('expire_member', { group: view.group, member: m.member_id }, { said: `The session of ${m.client_id} has expired.` })}>Expire<//></span>` }] : []),
  ];
  return html`<${Panel} title="Members" flush><${Table} label="Members" columns=${columns} rows=${view.members} rowKey=${(m) => m.member_id} maxRows=${9}
    empty=${view.untold ? html`<${Empty} title="The journal does not tell its members at this moment" />`
      : html`<${Empty} title="The group has no members"><p>Its offsets are kept until they expire. Reset them, or start a consumer with this <code>group.id</code>.</p><//>`} /><//>`;
}

const assignedText = (member) => Object.entries(member.assigned || {}).map(([topic, list]) => `${topic}: ${list.join(', ')}`).join('\n') || 'none';

function Legend({ legend }) {
  return html`<p class="legend">${[...legend].slice(0, 24).map(([id, each]) => html`<span key=${id} title=${id}><${MemberMark} legend=${legend} id=${id} />${each.name}</span>`)}</p>`;
}
