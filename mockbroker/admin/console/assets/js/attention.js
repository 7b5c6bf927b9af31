// What needs attention: why something stands still, in sentences, with what ends it.
//
// Each case is a function of what `/v1` shows. A case names its culprit (a broker, a transaction, a
// member, a rule), says who waits for it, links to the evidence, and offers the action that ends it.

import { html, useEffect, useState } from './preact.js';
import { get, pathOf, post } from './api.js';
import { act } from './actions.js';
import { href, refreshAll, useMoment, usePoll } from './store.js';
import { ActionButton, Badge, CopyAs, Panel, count, duration, formsOfAction, number } from './ui.js';
import { STILL_MS, stillSince } from './lag.js';
import { endOf, heldBack } from './pages/transactions.js';

const POLL_MS = 2_000;
const GROUPS_ASKED = 8;
const PARTITIONS_ASKED = 200;
const NAMED = 3;

/** "a, b, c and 4 more". */
function listed(names) {
  const shown = names.slice(0, NAMED).join(', ');
  return names.length > NAMED ? `${shown} and ${names.length - NAMED} more` : shown;
}
const placeOf = (each) => `${each.topic}-${each.partition}`;

/**
 * @typedef {{id: string, kind: 'bad'|'warn'|'info', title: string, text: string, links: [string, string][],
 *   fix?: {label: string, action: string, args: object, title?: string}, run?: [string, () => Promise<any>]}} Case
 */

/** Brokers that do not serve. @returns {Case[]} */
export function brokerCases({ brokers, partitions, groups, lag }) {
  return brokers.filter(isSick).map((broker) => {
    const led = partitions.filter((each) => each.leader_id === broker.node_id);
    const own = led.filter((each) => !each.topic.startsWith('__'));
    const places = new Set(own.map(placeOf));
    const waiting = new Set(lag.filter((each) => places.has(placeOf(each))).map((each) => each.group));
    for (const group of groups) {
      const assigned = group.members.some((member) => Object.entries(member.assigned || {})
        .some(([topic, list]) => list.some((n) => places.has(`${topic}-${n}`))));
      if (assigned || group.coordinator === broker.node_id) waiting.add(group.group);
    }
    const paused = broker.state === 'paused';
    const what = paused ? 'is paused' : broker.state === 'running' ? 'is fenced' : `is ${broker.state}`;
    const leads = own.length > 0 ? `It leads ${listed([...places])}, and nobody can read or write there.`
      : led.length > 0 ? 'It leads internal partitions only: groups or transactions wait for their coordinator.'
        : 'It leads no partition, so clients go on.';
    return {
      id: `broker ${broker.node_id}`, kind: led.length > 0 ? 'bad' : 'warn', title: `Broker ${broker.node_id} ${what}`,
      text: `${paused ? 'It accepts connections and answers nothing. ' : ''}${leads}${waiting.size > 0 && led.length > 0 ? ` Waiting: ${listed([...waiting])}.` : ''}`,
      links: [['Its connections', href('timeline')]],
      fix: paused ? { label: `Resume broker ${broker.node_id}`, action: 'resume_broker', args: { node: broker.node_id } }
        : broker.state === 'stopped' ? { label: `Start broker ${broker.node_id}`, action: 'start_broker', args: { node: broker.node_id } } : undefined,
    };
  });
}

/** Partitions without a leader, or with replicas that are not in sync. @returns {Case[]} */
export function partitionCases({ partitions, brokers }) {
  const down = new Set(brokers.filter((each) => each.state !== 'running').map((each) => each.node_id));
  const offline = partitions.filter((each) => each.leader_id < 0);
  const found = [];
  if (offline.length > 0) {
    found.push({
      id: 'offline', kind: 'bad', title: `${count(offline.length, 'partition')} without a leader`,
      text: `${listed(offline.map(placeOf))}: nobody can read or write there until a replica that may lead comes back.`,
      links: [...new Set(offline.map((each) => each.topic))].slice(0, NAMED).map((topic) => [topic, href('topics', [topic])]),
    });
  }
  const behind = partitions.filter((each) => each.leader_id >= 0
    && each.replicas.some((replica) => !each.isr.includes(replica.node_id) && !down.has(replica.node_id)));
  if (behind.length > 0) {
    found.push({
      id: 'behind', kind: 'warn', title: `${count(behind.length, 'partition')} with a follower out of sync`,
      text: `${listed(behind.map(placeOf))}: a follower that runs has left the in-sync replicas.`,
      links: [...new Set(behind.map((each) => each.topic))].slice(0, NAMED).map((topic) => [topic, href('topics', [topic])]),
    });
  }
  return found;
}

/** Open transactions that hold readers back. @returns {Case[]} */
export function transactionCases({ open, transactions, partitions, lag, now }) {
  const held = heldBack(open, transactions, partitions, lag).filter((each) => each.holds && each.waiting > 0);
  const ids = [...new Set(held.map((each) => `${each.id}\n${each.producerId}`))];
  return ids.map((id) => {
    const mine = held.filter((each) => `${each.id}\n${each.producerId}` === id);
    const [one] = mine;
    const who = one.id || `Producer ${one.producerId}`;
    const since = one.view?.start_ms > 0 ? ` for ${duration(Math.max(now - one.view.start_ms, 0))}` : '';
    const groups = [...new Set(mine.flatMap((each) => each.groups))];
    const records = mine.reduce((sum, each) => sum + each.waiting, 0);
    return {
      id: `transaction ${id}`, kind: 'bad',
      title: `${who} holds back ${listed(mine.map(placeOf))}`,
      text: `Its transaction is open${since}${one.hangs ? ', and no coordinator will end it' : ''}. Consumers with isolation.level=read_committed stop at offset ${one.first} of ${placeOf(one)}: ${count(records, 'record')} wait behind it.${groups.length > 0 ? ` Waiting: ${listed(groups)}.` : ''}`,
      links: [['The transaction', one.id ? href('transactions', [one.id]) : href('transactions')], ...groups.slice(0, NAMED).map((group) => [`Group ${group}`, href('groups', [group])])],
      fix: { label: 'Abort the transaction', action: 'abort_transaction', args: endOf(one) },
    };
  });
}

/**
 * Members that have a partition with records, and whose committed offset does not move.
 * @returns {Case[]}
 */
export function memberCases({ groups, partitions, lag, histories, open, brokers, now }) {
  const places = new Map(partitions.map((each) => [placeOf(each), each]));
  const held = new Set(open.map(placeOf));
  const silent = new Set(brokers.filter(isSick).map((each) => each.node_id));
  const committed = new Map(lag.map((each) => [`${each.group}\n${placeOf(each)}`, each]));
  const found = [];
  for (const group of groups) {
    if (group.type === 'share') continue;
    const still = stillSince(histories.get(group.group));
    const idle = group.members.filter((member) => member.assigned && Object.values(member.assigned).every((list) => list.length === 0));
    for (const member of group.members) {
      const stuck = [];
      for (const [topic, list] of Object.entries(member.assigned || {})) {
        for (const n of list) {
          const place = places.get(`${topic}-${n}`);
          const row = committed.get(`${group.group}\n${topic}-${n}`);
          if (!place || silent.has(place.leader_id) || (held.has(placeOf(place)) && (row?.lag_read_committed ?? 0) <= 0)) continue;
          const waits = row ? row.lag : place.high_watermark - place.log_start_offset;
          const forMs = now - (still.get(`${topic}-${n}`) ?? now);
          if (waits > 0 && forMs >= STILL_MS) stuck.push({ place: `${topic}-${n}`, waits, forMs, never: !row });
        }
      }
      if (stuck.length === 0) continue;
      const name = member.client_id || member.member_id;
      const waits = stuck.reduce((sum, each) => sum + each.waits, 0);
      const what = stuck.every((each) => each.never) ? 'it has never committed there' : `its committed offset has not moved for ${duration(Math.min(...stuck.map((each) => each.forMs)))}`;
      found.push({
        id: `member ${group.group} ${member.member_id}`, kind: idle.length > 0 ? 'bad' : 'warn',
        title: `${name} does not go on in ${listed(stuck.map((each) => each.place))}`,
        text: `It is the member of ${group.group} that has ${stuck.length === 1 ? 'this partition' : 'these partitions'}, and ${what}: ${count(waits, 'record')} wait.${idle.length > 0 ? ` ${listed(idle.map((each) => each.client_id || each.member_id))} could read them, and has no partition.` : ''}${member.connected === false ? ' Its connection is closed.' : ''}`,
        links: [[`Group ${group.group}`, href('groups', [group.group])], ['Its requests', href('timeline', [], { client_id: member.client_id })]],
        fix: { label: `Kick ${name}`, action: 'kick_member', args: { group: group.group, member: member.member_id }, title: 'Remove the member: the group gives its partitions to others' },
      });
    }
  }
  return found;
}

const isRebalancing = (group) => /Rebalance|Assigning|Reconciling|NotReady/.test(group.state);

/** Groups that are between two assignments. @returns {Case[]} */
export function rebalanceCases({ groups, histories, now }) {
  return groups.filter(isRebalancing).flatMap((group) => {
    const last = histories.get(group.group)?.states.at(-1);
    const forMs = last?.state === group.state ? now - last.at_ms : 0;
    if (forMs < STILL_MS) return [];
    return [{
      id: `rebalance ${group.group}`, kind: 'warn', title: `${group.group} is rebalancing`,
      text: `It has been ${group.state} for ${duration(forMs)}: it waits for one of its ${count(group.members.length, 'member')} to join again.`,
      links: [[`Group ${group.group}`, href('groups', [group.group])]],
    }];
  });
}

/** What somebody has done to the cluster and perhaps forgotten. @returns {Case[]} */
export function leftCases({ held, clock, network, plans, now }) {
  const found = [];
  if (held.length > 0) {
    const [one] = held;
    found.push({
      id: 'held', kind: 'warn', title: held.length === 1 ? `A ${one.api} of ${one.client_id || 'a client'} is held` : `${count(held.length, 'request')} are held`,
      text: `The rule ${one.rule} holds it${one.response === null ? ' before it is applied' : ' with its answer'}, for ${duration(Math.max(now - one.held_ms, 0))}. Its client waits.`,
      links: [['Inspect, edit or release it', href('faults', ['held'])]],
      run: [held.length === 1 ? 'Release it' : 'Release all', () => Promise.all(held.map((each) => post(`/v1/held/${each.id}`, { verdict: 'release' })))],
    });
  }
  if (clock?.rate === 0) {
    found.push({
      id: 'clock', kind: 'warn', title: 'The clock is frozen',
      text: 'No timer of the cluster runs: sessions, long polls, retention and timeouts wait until it is advanced.',
      links: [['The clock', href('faults', ['clock'])]], run: ['Let it run', () => post('/v1/clock', { freeze: false })],
    });
  }
  const cut = (network?.links || []).filter((each) => !each.up);
  if (cut.length > 0) {
    found.push({
      id: 'network', kind: 'bad', title: `${count(cut.length, 'link')} between brokers ${cut.length === 1 ? 'is' : 'are'} cut`,
      text: `${listed(cut.map((each) => `${each.from} → ${each.to}`))}: followers and the controller do not hear each other there.`,
      links: [['The network', href('cluster')]], fix: { label: 'Heal all links', action: 'heal_network', args: {} },
    });
  }
  const clients = network?.clients || [];
  if (clients.length > 0) {
    found.push({
      id: 'clients', kind: 'bad', title: 'Links to clients are cut', text: `${listed(clients.map((each) => each.text))}.`,
      links: [], fix: { label: 'Heal all links', action: 'heal_network', args: {} },
    });
  }
  const fired = plans.flatMap((plan) => plan.rules).filter((rule) => rule.hits > 0);
  if (fired.length > 0) {
    const hits = fired.reduce((sum, rule) => sum + rule.hits, 0);
    found.push({
      id: 'rules', kind: 'info', title: `${count(fired.length, 'rule')} changed ${count(hits, 'request')}`,
      text: `${listed(fired.map((rule) => `${rule.name} (${number(rule.hits)})`))}: what clients see there is not what Kafka would answer.`,
      links: [['The rules', href('faults', ['rules'])], ['These requests', href('timeline', [], { rules_only: '1' })]],
    });
  }
  return found;
}

/**
 * Ask several things anew, again and again, while `keys` stay: what only some objects need.
 * @param {string[]} keys @param {(key: string) => Promise<any>} ask
 * @returns {Map<string, any>} answers by key; what failed is left out
 */
function useEach(keys, ask) {
  const [found, setFound] = useState(new Map());
  const wanted = JSON.stringify(keys);
  useEffect(() => {
    let over = false;
    let timer = 0;
    async function round() {
      if (!document.hidden) {
        const all = await Promise.all(keys.map((key) => ask(key).catch(() => null)));
        if (over) return;
        setFound(new Map(keys.map((key, n) => [key, all[n]]).filter(([, each]) => each !== null)));
      }
      timer = setTimeout(round, POLL_MS);
    }
    if (keys.length > 0) round();
    else if (found.size > 0) setFound(new Map());
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [wanted]);
  return found;
}

/** A group that may stand still: its lag, its history, and the partitions of its members. */
async function askGroup(group) {
  const told = get(pathOf('/v1/journal/groups/{}', group.group), { points: 2, newest: 1 }).catch(() => null); // without a journal
  const topics = [...new Set(group.members.flatMap((member) => Object.keys(member.assigned || {})))].slice(0, NAMED);
  const [history, lag, ...partitions] = await Promise.all([
    told, get('/v1/lag', { group: group.group }), ...topics.map((topic) => get('/v1/partitions', { topic })),
  ]);
  return { history, lag, partitions: partitions.flat() };
}

const isSick = (broker) => broker.state !== 'running' || broker.fenced;

/** What is known now, of the parts that may need attention only: the cluster may be large. */
function useLive(isPast) {
  const ask = (path, params = {}, ms = POLL_MS) => usePoll(isPast ? null : path, params, ms);
  const page = (only) => ask('/v1/partitions/page', { only, limit: PARTITIONS_ASKED });
  const first = {
    brokers: ask('/v1/brokers'), groups: ask('/v1/groups'), lags: ask('/v1/lag/groups'), open: ask('/v1/transactions/open'),
    transactions: ask('/v1/transactions'), clock: ask('/v1/clock'),
  };
  const pages = [page('offline'), page('under_replicated'), page('transaction')];
  const more = { held: ask('/v1/held'), network: ask('/v1/network'), plans: ask('/v1/faults') };
  const data = Object.fromEntries(Object.entries({ ...first, ...more }).map(([name, poll]) => [name, poll.data]));
  const sick = (data.brokers || []).filter(isSick).map((each) => String(each.node_id));
  const led = useEach(sick, (node) => get('/v1/partitions/page', { broker: node, limit: PARTITIONS_ASKED }));
  const lags = new Map((data.lags || []).map((each) => [each.group, each]));
  const doubtful = (data.lags ? data.groups || [] : [])
    .filter((each) => isRebalancing(each) || (each.members.length > 0 && (lags.get(each.group)?.lag ?? 1) > 0) || (lags.get(each.group)?.lag ?? 0) > 0)
    .slice(0, GROUPS_ASKED);
  const asked = useEach(doubtful.map((each) => each.group), (name) => askGroup(doubtful.find((each) => each.group === name)));
  if ([...Object.values(first), ...pages].some((poll) => poll.data === null)) return null;
  const partitions = new Map();
  for (const list of [...pages.map((poll) => poll.data.partitions), ...[...led.values()].map((each) => each.partitions), ...[...asked.values()].map((each) => each.partitions)]) {
    for (const each of list) partitions.set(placeOf(each), each);
  }
  return {
    ...data, partitions: [...partitions.values()], lag: [...asked.values()].flatMap((each) => each.lag), now: data.clock.now_ms,
    histories: new Map([...asked].map(([name, each]) => [name, each.history])),
    held: data.held || [], plans: data.plans || [],
  };
}

/** All cases, the worst first; null before the first answers. @returns {Case[]|null} */
export function useCases() {
  const past = useMoment() !== null;
  const state = usePoll(past ? '/v1/journal/state' : null, {}, Infinity, (found) => found);
  const live = useLive(past);
  const known = past ? state.data && {
    ...state.data, open: state.data.open_transactions, clock: null, now: state.data.at_ms, held: [], network: null, plans: [],
    groups: state.data.groups.map((each) => ({ ...each, members: each.members || [] })),
  } : live;
  if (!known) return null;
  const order = { bad: 0, warn: 1, info: 2 };
  return [
    ...transactionCases(known), ...(past ? [] : memberCases(known)), ...brokerCases(known), ...partitionCases(known), ...(past ? [] : rebalanceCases(known)), ...leftCases(known),
  ].sort((x, y) => order[x.kind] - order[y.kind]);
}

/** The list for the start page. */
export function Attention() {
  const cases = useCases();
  const past = useMoment() !== null;
  if (cases === null) return null;
  const bad = cases.filter((each) => each.kind !== 'info').length;
  return html`<${Panel} title="What needs attention" note=${bad === 0 ? '' : count(bad, 'thing')}>
    ${cases.length === 0
      ? html`<p class="ok-text"><${Badge} kind="ok">nothing<//> Every broker runs, no transaction holds a reader back, and every group goes on.</p>`
      : html`<ul class="cases">${cases.map((each) => html`<${CaseRow} key=${each.id} one=${each} past=${past} />`)}</ul>`}<//>`;
}

function CaseRow({ one, past }) {
  const words = { bad: 'stands still', warn: 'look', info: 'note' };
  return html`<li class=${`case ${one.kind}`}>
    <${Badge} kind=${one.kind}>${words[one.kind]}<//>
    <div class="casetext"><strong>${one.title}</strong><p>${one.text}</p>
      <div class="row">${one.links.map(([label, to]) => html`<a key=${label} href=${to}>${label}</a>`)}</div></div>
    ${past ? null : html`<div class="row casedo">
      ${one.fix ? html`<${ActionButton} kind="small primary" label=${one.fix.label} title=${one.fix.title || one.fix.label} run=${() => act(one.fix.action, one.fix.args)} />
        <${CopyAs} forms=${formsOfAction(one.fix.action, one.fix.args)} />` : null}
      ${one.run ? html`<${ActionButton} kind="small primary" label=${one.run[0]} run=${async () => { await one.run[1](); refreshAll(); }} />` : null}</div>`}</li>`;
}
