// Faults: rules in force, held requests, recipes, the editor, and the clock.

import { html, useEffect, useMemo, useState } from '../preact.js';
import { del, pathOf, post } from '../api.js';
import { act, done } from '../actions.js';
import { go, href, refreshAll, useMoment, usePoll, useStore } from '../store.js';
import {
  ActionButton, Badge, Choice, CopyAs, Empty, ErrorLine, Field, Icon, Loaded, Panel, Table, Tabs, clock, count, curlOf, duration,
  formsOfAction, number, pythonOf, toast, yamlOf,
} from '../ui.js';
import { useGet } from '../entry.js';
import { Editor, formsOfPlan, write } from '../faults/editor.js';

export const needsCluster = true;

const TABS = [['rules', 'Rules'], ['held', 'Held'], ['recipes', 'Recipes'], ['editor', 'Editor'], ['clock', 'Clock'], ['done', 'Done']];

export function Page({ path }) {
  const past = useMoment() !== null;
  const plans = usePoll('/v1/faults', {}, 1_000);
  const held = usePoll('/v1/held', {}, 1_000);
  const acted = useStore(done);
  const tab = TABS.some(([id]) => id === path[0]) ? path[0] : 'rules';
  const rules = (plans.data || []).flatMap((plan) => plan.rules);
  const counts = { rules: plans.data ? rules.length : undefined, held: held.data?.length, done: acted.length || undefined };
  return html`<div class="pagehead"><h1>Faults</h1>
      ${past ? html`<span class="muted">Rules, held requests and the clock are of the present.</span>` : null}</div>
    <${Tabs} label="Faults" value=${tab} onChange=${(id) => go('faults', [id])}
      tabs=${TABS.map(([id, label]) => ({ id, label, count: counts[id] }))}>
      ${past && tab !== 'recipes' && tab !== 'editor' && tab !== 'done'
        ? html`<${Empty} title="This is of the present only"><p>Press <kbd>l</kbd> to go back to live.</p><//>`
        : tab === 'rules' ? html`<${Rules} plans=${plans} />`
          : tab === 'held' ? html`<${HeldRequests} poll=${held} chosen=${path[1]} />`
            : tab === 'recipes' ? html`<${Recipes} />`
              : tab === 'editor' ? html`<${Editor} />`
                : tab === 'clock' ? html`<${ClockTab} />` : html`<${Done} acted=${acted} />`}
    <//>`;
}

// --- Rules -----------------------------------------------------------------------------------

function Rules({ plans }) {
  const [open, setOpen] = useState(null);
  const rows = useMemo(() => (plans.data || []).flatMap((plan) => {
    const declared = plan.plan.rules || [plan.plan];
    return plan.rules.map((rule) => ({ ...rule, declared: declared.find((each) => each.name === rule.name) || plan.plan, whole: plan }));
  }), [plans.data]);
  const timelines = (plans.data || []).filter((plan) => plan.plan.timeline?.length > 0);
  const chosen = rows.find((row) => row.name === open);
  const columns = [
    { key: 'name', label: 'Rule' },
    { key: 'match', label: 'Match', sortable: false, render: (row) => html`<code>${brief(row.declared.match) || 'every request'}</code>` },
    { key: 'do', label: 'Do', sortable: false, render: (row) => html`<code>${brief(row.declared.do)}</code>` },
    { key: 'hits', label: 'Hits', num: true, render: (row) => html`<strong class=${row.hits > 0 ? 'warn-text' : 'muted'}>${number(row.hits)}</strong>` },
    { key: 'left', label: 'Left', num: true, render: (row) => (row.left === null ? '∞' : number(row.left)) },
    { key: 'matched', label: 'Matched', num: true },
    { key: 'evaluated', label: 'Evaluated', num: true },
    { key: 'remove', label: 'Action', sortable: false, cls: 'fit', render: (row) => html`<${ActionButton} kind="small" label="Remove"
      run=${async () => { await del(pathOf('/v1/faults/{}', row.name)); toast(`Removed: ${row.name}.`); refreshAll(); }} />` },
  ];
  return html`<${Panel} title="Rules in force" flush=${true} note=${rows.length ? 'a click shows why a rule fired or did not' : ''}
      actions=${rows.length === 0 ? null : html`
        <${CopyAs} label="Copy all as" forms=${formsOfAll(plans.data)} />
        <${ActionButton} kind="small danger" label="Remove all" run=${async () => { await del('/v1/faults'); toast('No rule is in force.'); refreshAll(); }} />`}>
      <${Loaded} poll=${plans} what="the rules">
        <${Table} label="Rules" columns=${columns} rows=${rows} rowKey=${(row) => row.name} selected=${open}
          onOpen=${(row) => setOpen(open === row.name ? null : row.name)}
          empty=${html`<${Empty} title="No rule is in force">
            <p>Clients get what Kafka would answer. Take a <a href=${href('faults', ['recipes'])}>recipe</a>, or write a rule in the
            <a href=${href('faults', ['editor'])}>editor</a>.</p><//>`} /><//><//>
    ${chosen ? html`<${OneRule} row=${chosen} />` : null}
    ${timelines.map((plan) => html`<${Panel} key=${plan.name} title=${`Timeline of ${plan.name}`}>
      <ul class="plainlist">${plan.plan.timeline.map((each) => html`<li key=${each.at}><code>${each.at}</code> ${brief(each.do)}</li>`)}</ul><//>`)}`;
}

/** A mapping in few words: `api=Produce topic=orders`. */
function brief(value) {
  if (!value || typeof value !== 'object') return value === undefined || value === null ? '' : String(value);
  return Object.entries(value)
    .map(([name, each]) => {
      if (each === null || each === true || (typeof each === 'object' && Object.keys(each).length === 0)) return name;
      if (Array.isArray(each)) return `${name}=${JSON.stringify(each).replaceAll('"', '')}`;
      return typeof each === 'object' ? `${name}(${brief(each)})` : `${name}=${each}`;
    })
    .join(' ');
}

function formsOfAll(plans) {
  const all = plans.map((plan) => plan.plan);
  const forms = all.map(formsOfPlan);
  return {
    python: forms.map((each) => each.python).join('\n'),
    yaml: forms.map((each) => each.yaml).join('\n---\n'),
    curl: forms.map((each) => each.curl).join('\n'),
  };
}

function OneRule({ row }) {
  const list = (counts, what) => Object.entries(counts).map(([name, n]) => html`<li key=${name}>${count(n, 'request')} ${what} <code>${name}</code></li>`);
  return html`<${Panel} title=${row.name} note=${row.plan === row.name ? '' : `of the plan ${row.plan}`} actions=${html`
      <button class="small" onClick=${() => go('timeline', [], { rules_only: '1' })}>On the timeline</button>
      <button class="small" onClick=${() => { write(row.whole.plan); go('faults', ['editor']); }}>Edit a copy</button>
      <${CopyAs} forms=${formsOfPlan(row.declared)} />`}>
    <div class="stack"><p><strong>${row.why}</strong></p>
      <ul class="plainlist">${list(row.failed, 'failed first at')}${list(row.stopped, 'matched, and were stopped by')}</ul>
      ${row.last ? html`<p class="muted">Last evaluated: <code>${brief(row.last)}</code></p>` : null}
      <pre class="message">${yamlOf(row.declared).trimStart()}</pre></div><//>`;
}

// --- Held requests ---------------------------------------------------------------------------

function HeldRequests({ poll, chosen }) {
  const rows = poll.data || [];
  const shown = rows.find((each) => String(each.id) === chosen) || rows[0];
  const now = useClock();
  const columns = [
    { key: 'id', label: 'No.', num: true, cls: 'fit' },
    { key: 'api', label: 'API' },
    { key: 'client_id', label: 'Client' },
    { key: 'rule', label: 'Rule' },
    { key: 'phase', label: 'Held', render: (row) => (row.response === null ? 'before it is applied' : 'with its answer') },
    { key: 'held_ms', label: 'For', num: true, render: (row) => duration(Math.max(now - row.held_ms, 0)) },
  ];
  return html`<${Loaded} poll=${poll} what="the held requests">${rows.length === 0
    ? html`<${Empty} title="Nothing is held"><p>A rule with <code>hold</code> stops a request before it is applied, or its answer before it is
        sent. Then you edit its fields, answer it, drop it or let it go.</p>
        <p><button onClick=${() => { write({ name: 'breakpoint', match: { api: 'Produce' }, when: { times: 1 }, do: { hold: {} } }); go('faults', ['editor']); }}
          >Hold the next Produce</button></p><//>`
    : html`<${Panel} title="Held requests" flush=${true}><${Table} label="Held requests" columns=${columns} rows=${rows}
        rowKey=${(row) => String(row.id)} selected=${String(shown.id)} onOpen=${(row) => go('faults', ['held', row.id])} /><//>
      <${OneHeld} key=${shown.id} held=${shown} />`}<//>`;
}

const VERDICTS = [
  ['drop', 'Drop', 'It gets no answer, and the connection stays open'],
  ['close', 'Close', 'The connection is closed (FIN)'],
  ['reset', 'Reset', 'The connection is reset (RST)'],
];
const ERRORS = [
  'NOT_LEADER_OR_FOLLOWER', 'REQUEST_TIMED_OUT', 'COORDINATOR_NOT_AVAILABLE', 'NOT_COORDINATOR', 'UNKNOWN_SERVER_ERROR', 'NOT_ENOUGH_REPLICAS',
  'UNKNOWN_TOPIC_OR_PARTITION', 'TOPIC_AUTHORIZATION_FAILED', 'OUT_OF_ORDER_SEQUENCE_NUMBER', 'PRODUCER_FENCED', 'ILLEGAL_GENERATION',
  'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS', 'MESSAGE_TOO_LARGE', 'THROTTLING_QUOTA_EXCEEDED', 'KAFKA_STORAGE_ERROR',
];

function OneHeld({ held }) {
  const [edit, setEdit] = useState({});
  const [code, setCode] = useState('');
  const [error, setError] = useState(null);
  const message = held.response ?? held.request;
  const leaves = useMemo(() => leavesOf(message), [held.id]);
  const decide = (body, said) => async () => {
    setError(null);
    const full = Object.keys(edit).length > 0 ? { ...body, edit } : body;
    try {
      await post(`/v1/held/${held.id}`, full);
    } catch (problem) {
      setError(problem);
      return;
    }
    toast(said);
    refreshAll();
  };
  const changed = Object.keys(edit).length;
  return html`<${Panel} title=${`${held.api} of ${held.client_id || 'a client'}`}
      note=${held.response === null ? 'not applied yet: edit the request' : 'applied: edit its answer'}
      actions=${html`<${ActionButton} kind="primary" label=${changed ? `Release with ${count(changed, 'edit')}` : 'Release'}
          run=${decide({ verdict: 'release' }, 'Released.')} />
        ${VERDICTS.map(([verdict, label, title]) => html`<${ActionButton} key=${verdict} kind="small" label=${label} title=${title} run=${decide({ verdict }, `${label}: done.`)} />`)}
        <${CopyAs} forms=${{ python: pythonOfHeld(edit), curl: curlOf('POST', `/v1/held/${held.id}`, { verdict: 'release', ...(changed ? { edit } : {}) }) }} />`}>
    <div class="stack">
      <form class="row" onSubmit=${(event) => { event.preventDefault(); if (code) decide({ verdict: 'answer', error: code }, `Answered with ${code}.`)(); }}>
        <label for="held-error">Answer with</label>
        <input id="held-error" list="error-codes" value=${code} placeholder="an error code" autocomplete="off" spellcheck="false"
          onInput=${(event) => setCode(event.target.value.trim().toUpperCase())} />
        <datalist id="error-codes">${ERRORS.map((each) => html`<option key=${each} value=${each} />`)}</datalist>
        <button disabled=${!code}>Answer</button></form>
      <${ErrorLine} error=${error} />
      <div class="tablebox heldfields"><table aria-label="Fields"><thead><tr><th scope="col">Field</th><th scope="col">Value</th></tr></thead>
        <tbody>${leaves.map((leaf) => html`<tr key=${leaf.place} class=${leaf.path in edit ? 'selected' : ''}>
          <td><code title=${leaf.path}>${leaf.place}</code></td>
          <td>${leaf.fixed ? html`<code class="muted">${leaf.text}</code>` : html`<${LeafInput} leaf=${leaf} edit=${edit} setEdit=${setEdit} />`}</td></tr>`)}</tbody></table></div>
      <p class="muted">An edit of a field in a list changes this field in all items of the list, as in a rule's <code>rewrite</code>.</p>
    </div><//>`;
}

function LeafInput({ leaf, edit, setEdit }) {
  const isChanged = leaf.path in edit;
  const shown = isChanged ? edit[leaf.path] : leaf.value;
  const text = typeof shown === 'string' ? shown : JSON.stringify(shown);
  function type(given) {
    const next = { ...edit };
    let value = given;
    if (typeof leaf.value === 'number' && /^-?\d+(\.\d+)?$/.test(given)) value = Number(given);
    else if (leaf.value === null || typeof leaf.value === 'boolean') {
      try {
        value = JSON.parse(given);
      } catch {
        value = given;
      }
    }
    if (given === (typeof leaf.value === 'string' ? leaf.value : JSON.stringify(leaf.value))) delete next[leaf.path];
    else next[leaf.path] = value;
    setEdit(next);
  }
  return html`<input class="mono leaf" aria-label=${leaf.path} value=${text} autocomplete="off" spellcheck="false" onInput=${(event) => type(event.target.value)} />`;
}

/** The scalar fields of a message: their place, and their path as a rule has it. */
function leavesOf(message, place = '', path = '') {
  return Object.entries(message).flatMap(([name, value]) => {
    const here = place ? `${place}.${name}` : name;
    const there = path ? `${path}.${name}` : name;
    if (name === 'records') return [{ place: here, path: there, fixed: true, text: JSON.stringify(value) }];
    if (Array.isArray(value)) {
      if (value.length > 0 && typeof value[0] === 'object' && value[0] !== null) {
        return value.slice(0, 20).flatMap((each, n) => leavesOf(each, `${here}[${n}]`, `${there}[]`));
      }
      return [{ place: here, path: there, fixed: true, text: JSON.stringify(value) }];
    }
    if (value !== null && typeof value === 'object') return leavesOf(value, here, there);
    return [{ place: here, path: there, value, fixed: value === '[hidden]', text: String(value) }];
  });
}

function pythonOfHeld(edit) {
  const lines = ['held = kafka.faults.wait_held()'];
  if (Object.keys(edit).length > 0) lines.push(`held.edit(${pythonOf(edit)})`);
  return [...lines, 'held.release()'].join('\n');
}

// --- Recipes ---------------------------------------------------------------------------------

function Recipes() {
  const [query, setQuery] = useState('');
  const book = useGet('/v1/cookbook');
  const topics = usePoll('/v1/topics', {}, 5_000);
  const groups = usePoll('/v1/groups', {}, 5_000);
  const brokers = usePoll('/v1/brokers', {}, 5_000);
  const clients = usePoll('/v1/clients', {}, 5_000);
  const ids = usePoll('/v1/transactions', {}, 5_000);
  const own = (topics.data || []).filter((each) => !each.internal).map((each) => each.name);
  const known = {
    topic: own, group: (groups.data || []).map((each) => each.group), broker: (brokers.data || []).map((each) => String(each.node_id)),
    partition: ['0'], client: (clients.data || []).map((each) => each.client_id).filter(Boolean),
    transactional_id: (ids.data || []).map((each) => each.transactional_id),
  };
  const [given, setGiven] = useState({});
  const values = Object.fromEntries(Object.entries(known).map(([name, all]) => [name, given[name] ?? all[0] ?? '']));
  const all = book.data || [];
  const found = all.filter((each) => `${each.name} ${each.sentence} ${each.chapter}`.toLowerCase().includes(query.toLowerCase()));
  const chapters = [...new Set(found.map((each) => each.chapter))];
  const needs = [...new Set(all.flatMap((each) => each.needs))];
  if (book.error) return html`<${ErrorLine} error=${book.error} />`;
  return html`<${Panel} title="Cookbook" note="failures from production; one click does each to this cluster">
      <div class="toolbar"><span class="search"><${Icon} name="search" /><input type="search" aria-label="Search recipes" placeholder="Search recipes" value=${query}
          onInput=${(event) => setQuery(event.target.value)} /></span>
        ${needs.map((name) => html`<label class="check" key=${name}>${nameOfNeed(name)}
          <input class="place" list=${`recipe-${name}`} value=${values[name] || ''} onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} />
          <datalist id=${`recipe-${name}`}>${(known[name] || []).map((each) => html`<option key=${each} value=${each} />`)}</datalist></label>`)}</div><//>
    ${found.length === 0 && book.data ? html`<${Empty} title="No recipe has these words"><button onClick=${() => setQuery('')}>Show all</button><//>` : null}
    ${chapters.map((chapter) => html`<section key=${chapter} class="stack" aria-label=${chapter}><h2>${chapter}</h2>
      <div class="recipes">${found.filter((each) => each.chapter === chapter).map((each) => html`<${Recipe} key=${each.id} recipe=${each} values=${values} />`)}</div></section>`)}`;
}

function Recipe({ recipe, values }) {
  const missing = recipe.needs.filter((name) => !values[name]);
  const plan = recipe.plan && filled(recipe.plan, values);
  const actions = recipe.actions.map((each) => filled(each, values));
  const calls = [
    ...(plan ? [formsOfPlan(plan)] : []),
    ...actions.flatMap((each) => Object.entries(each).map(([name, args]) => formsOfAction(name, args))),
  ];
  const forms = Object.fromEntries(['python', 'yaml', 'curl'].map((kind) => [kind, calls.map((each) => each[kind]).join('\n')]));
  async function run() {
    if (plan) await post('/v1/faults', plan);
    for (const each of actions) for (const [name, args] of Object.entries(each)) await act(name, args);
    toast(plan ? 'The rule is in force.' : 'Done.');
    refreshAll();
  }
  return html`<article class="recipe panel"><h3><span class="muted num">${recipe.number}</span> ${recipe.name}</h3>
    <p>${recipe.sentence}</p>
    <code class="muted">${[plan && brief((plan.rules?.[0] || plan).do), ...actions.map((each) => Object.keys(each).join(' '))].filter(Boolean).join(', ')}</code>
    ${calls.length === 0 ? html`<p class="muted">A client's own code brings this about: the cookbook has the test.</p>`
      : html`<div class="row"><${ActionButton} kind="small primary" label="Do it" disabled=${missing.length > 0}
        title=${missing.length > 0 ? `It needs a ${missing.map(nameOfNeed).join(' and a ')}` : 'Do this to the cluster now'} run=${run} />
      ${plan ? html`<button class="small" onClick=${() => { write(plan); go('faults', ['editor']); }}>Edit</button>` : null}
      <${CopyAs} forms=${forms} />
      ${missing.length > 0 ? html`<span class="muted">needs a ${missing.map(nameOfNeed).join(', a ')}</span>` : null}</div>`}</article>`;
}

const nameOfNeed = (name) => name.replaceAll('_', ' ');

/** A recipe with its placeholders replaced; one that is the whole text of a number becomes it. */
function filled(value, values) {
  if (typeof value === 'string') {
    const whole = /^\{(broker|partition)\}$/.exec(value);
    if (whole) return Number(values[whole[1]]);
    return value.replace(/\{(topic|group|client|transactional_id|broker|partition)\}/g, (_, name) => values[name]);
  }
  if (Array.isArray(value)) return value.map((each) => filled(each, values));
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [filled(name, values), filled(each, values)]));
  }
  return value;
}

// --- Clock -----------------------------------------------------------------------------------

/** The cluster's clock, as it goes on between two answers. */
function useClock() {
  const poll = usePoll('/v1/clock', {}, 1_000);
  const [, tick] = useState(0);
  const seen = useMemo(() => ({ at: performance.now() }), [poll.data]);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => clearInterval(timer);
  }, []);
  const found = poll.data;
  return found ? found.now_ms + (performance.now() - seen.at) * (found.rate ?? 1) : Date.now();
}

const STEPS = [['1 s', 1_000], ['10 s', 10_000], ['1 min', 60_000], ['5 min', 300_000], ['1 h', 3_600_000], ['1 day', 86_400_000]];

function ClockTab() {
  const poll = usePoll('/v1/clock', {}, 1_000);
  const timers = usePoll('/v1/timers', { limit: 50 }, 1_000);
  const now = useClock();
  const [amount, setAmount] = useState('');
  const [only, setOnly] = useState('');
  const [extend, setExtend] = useState(true);
  const rate = poll.data?.rate;
  const change = async (body, said) => {
    await post('/v1/clock', body);
    toast(said);
    refreshAll();
  };
  const advance = (ms) => change({ advance_ms: ms, ...(only ? { only } : {}), ...(extend ? {} : { extend_sessions: false }) }, `Advanced by ${duration(ms)}.`);
  const next = timers.data?.[0];
  const left = (timer) => Math.max(timer.due_ms - now, 0);
  const columns = [
    { key: 'name', label: 'Timer' },
    { key: 'about', label: 'Of' },
    { key: 'due_ms', label: 'Due at', num: true, render: (row) => clock(row.due_ms, 3) },
    { key: 'in', label: 'In', num: true, value: (row) => row.due_ms, render: (row) => duration(left(row)) },
    { key: 'count', label: 'Number', num: true },
    { key: 'go', label: 'Action', sortable: false, cls: 'fit', render: (row) => html`<${ActionButton} kind="small" label="Advance to it"
      run=${() => change({ advance_ms: Math.ceil(left(row)), extend_sessions: false }, `${row.name}: due now.`)} />` },
  ];
  return html`<${Loaded} poll=${poll} what="the clock">${() => html`
    <${Panel} title="Clock" note="all timers of the cluster run by it" actions=${html`
        <${CopyAs} forms=${{ python: 'kafka.clock.advance("10s")', yaml: 'advance: 10s', curl: curlOf('POST', '/v1/clock', { advance_ms: 10_000 }) }} />`}>
      <div class="stack"><div class="row clockrow"><time class="bigclock num">${new Date(now).toISOString().slice(0, 19).replace('T', ' ')}</time>
          ${rate === 0 ? html`<${Badge} kind="pause">frozen: no timer runs<//>` : rate === null ? html`<${Badge}>of the caller's own run<//>`
            : rate === 1 ? html`<${Badge} kind="ok">runs<//>` : html`<${Badge} kind="info">${rate} × real time<//>`}
          <${ActionButton} kind=${rate === 0 ? 'primary' : ''} label=${rate === 0 ? 'Let it run' : 'Freeze'} disabled=${rate === null}
            run=${() => change({ freeze: rate !== 0 }, rate === 0 ? 'The clock runs.' : 'The clock is frozen.')} />
          ${rate ? html`<${Choice} label="Rate" value=${String(rate)} options=${[['0.1', '0.1 ×'], ['1', '1 ×'], ['10', '10 ×'], ['100', '100 ×']]}
            onChange=${(value) => change({ rate: Number(value) }, `The clock runs at ${value} times real time.`).catch((error) => toast(error.message, 'bad'))} />` : null}</div>
        <div class="row"><span>Advance by</span>${STEPS.map(([label, ms]) => html`<${ActionButton} key=${ms} kind="small" label=${label} run=${() => advance(ms)} />`)}
          <form class="row tight" onSubmit=${(event) => { event.preventDefault(); advance(Number(amount)).catch((error) => toast(error.message, 'bad')); }}>
            <input class="place num" inputmode="numeric" aria-label="Milliseconds" placeholder="ms" value=${amount} onInput=${(event) => setAmount(event.target.value)} />
            <button class="small" disabled=${!/^\d+$/.test(amount)}>Go</button></form></div>
        <div class="row"><${Field} label="Only" control=${(props) => html`<select ...${props} value=${only} onChange=${(event) => setOnly(event.target.value)}>
            <option value="">all timers</option>${['retention', 'compaction', 'groups', 'locks', 'transactions'].map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select>`} />
          <label class="check"><input type="checkbox" checked=${extend} onChange=${(event) => setExtend(event.target.checked)} />sessions of connected members are extended</label></div>
        ${next ? html`<div class="note-line"><span>Next: <strong>${next.name}</strong>${next.about ? ` of ${next.about}` : ''}, due in ${duration(left(next))}.</span>
          <span class="grow"></span><${ActionButton} kind="small primary" label="Advance to the next timer"
            run=${() => change({ advance_ms: Math.ceil(left(next)), extend_sessions: false }, `${next.name}: due now.`)} /></div>` : null}
      </div><//>
    <${Panel} title="Timers" flush=${true} note="soonest first"><${Loaded} poll=${timers} what="the timers">
      <${Table} label="Timers" columns=${columns} rows=${timers.data || []} rowKey=${(row) => `${row.name} ${row.about} ${row.due_ms}`} sort="in"
        empty=${html`<${Empty} title="No timer waits"><p>A member's session, a transaction or a parked Fetch starts one.</p><//>`} /><//><//>`}<//>`;
}

// --- Done ------------------------------------------------------------------------------------

/** What was clicked in this tab, as a scenario to paste into a test. */
function Done({ acted }) {
  if (acted.length === 0) {
    return html`<${Empty} title="Nothing was done in this tab yet">
      <p>Actions that you click on any page are kept here, and can be copied as a scenario for a test.</p><//>`;
  }
  const steps = acted.map(({ name, args }) => ({ action: { [name]: args } }));
  const forms = {
    python: acted.map(({ name, args }) => formsOfAction(name, args).python).join('\n'),
    yaml: yamlOf({ name: 'from the console', steps }).trimStart(),
    curl: acted.map(({ name, args }) => formsOfAction(name, args).curl).join('\n'),
  };
  return html`<${Panel} title="Actions of this tab" note=${count(acted.length, 'action')} actions=${html`<${CopyAs} forms=${forms} />
      <button class="small" onClick=${() => done.set([])}>Forget</button>`}>
    <ol class="donelist">${acted.map((each, n) => html`<li key=${n}><span class="muted num">${clock(each.atMs)}</span> <code>${each.name}</code> ${brief(each.args)}</li>`)}</ol>
    <pre class="message">${forms.yaml}</pre><//>`;
}
