// Transactions: transactional ids, what each holds back, and since when.
//
// An open transaction holds the last stable offset (LSO) of its partitions at its first record there:
// consumers with isolation.level=read_committed get nothing behind it until it ends.

import { html, useMemo } from '../preact.js';
import { act } from '../actions.js';
import { go, href, useMoment, usePoll } from '../store.js';
import { ActionButton, Badge, CopyAs, Empty, Facts, Icon, Loaded, Panel, Table, clock, count, duration, formsOfAction, number } from '../ui.js';
import { StateDiagram } from '../diagram.js';
import { useGet } from '../entry.js';

export const needsCluster = false;

const KINDS = {
  Empty: 'none', Ongoing: 'info', PrepareCommit: 'info', PrepareAbort: 'info', PrepareEpochFence: 'warn',
  CompleteCommit: 'ok', CompleteAbort: 'off', Dead: 'off',
};
/** What each state means for a reader. */
const MEANS = {
  Empty: 'It has an epoch and no transaction.',
  Ongoing: 'A transaction is open: readers of committed records stop at its first record.',
  PrepareCommit: 'It was committed; the markers are on their way to its partitions.',
  PrepareAbort: 'It was aborted; the markers are on their way to its partitions.',
  PrepareEpochFence: 'The producer is being fenced.',
  CompleteCommit: 'The last transaction was committed.',
  CompleteAbort: 'The last transaction was aborted.',
  Dead: 'The id has expired.',
};

/**
 * Open transactions with what they hold back.
 * @returns {{topic: string, partition: number, producerId: number, epoch: number, hangs: boolean,
 *   first: number, id: string, view: object|null, waiting: number, holds: boolean, groups: string[]}[]}
 */
export function heldBack(open, transactions, partitions, lag) {
  const byProducer = new Map(transactions.map((each) => [each.producer_id, each]));
  const byPlace = new Map(partitions.map((each) => [`${each.topic}\n${each.partition}`, each]));
  return open.map((each) => {
    const view = byProducer.get(each.producer_id) || null;
    const place = byPlace.get(`${each.topic}\n${each.partition}`);
    const groups = lag
      .filter((row) => row.topic === each.topic && row.partition === each.partition
        && row.lag > row.lag_read_committed && row.committed <= each.first_offset)
      .map((row) => row.group);
    return {
      topic: each.topic, partition: each.partition, producerId: each.producer_id, epoch: each.producer_epoch,
      hangs: each.hangs, first: each.first_offset, id: view?.transactional_id || '', view,
      waiting: place ? Math.max(place.high_watermark - place.last_stable_offset, 0) : 0,
      holds: place ? place.last_stable_offset === each.first_offset : false,
      groups: [...new Set(groups)],
    };
  });
}

/** What ends a transaction: its id, or else its producer and partition. */
export const endOf = (held) =>
  held.id ? { transactional_id: held.id } : { producer_id: held.producerId, topic: held.topic, partition: held.partition };

export function useOpen(ms = 2_000) {
  const open = usePoll('/v1/transactions/open', {}, ms, (state) => state.open_transactions);
  const ids = usePoll('/v1/transactions', {}, ms, (state) => state.transactions);
  const any = open.data?.length > 0;
  const page = usePoll(any ? '/v1/partitions/page' : null, { only: 'transaction', limit: 500 }, ms, (state) => state);
  const lag = usePoll(any ? '/v1/lag' : null, {}, ms, (state) => state.lag);
  const held = useMemo(
    () => heldBack(open.data || [], ids.data || [], page.data?.partitions || [], lag.data || []),
    [open.data, ids.data, page.data, lag.data],
  );
  return { open, ids, held };
}

export function Page({ path, params }) {
  const { open, ids, held } = useOpen();
  const past = useMoment() !== null;
  const clockPoll = usePoll('/v1/clock', {}, 2_000, (state) => ({ now_ms: state.at_ms }));
  const now = clockPoll.data?.now_ms ?? Date.now();
  const id = path[0];
  const rows = useMemo(() => {
    const wanted = (params.q || '').toLowerCase();
    return (ids.data || []).filter((each) => each.transactional_id.toLowerCase().includes(wanted));
  }, [ids.data, params.q]);
  const columns = [
    { key: 'transactional_id', label: 'Transactional id' },
    { key: 'state', label: 'State', render: (row) => html`<${Badge} kind=${KINDS[row.state]} title=${MEANS[row.state]}>${row.state}<//>` },
    { key: 'since', label: 'Open for', num: true, value: (row) => (row.start_ms > 0 ? now - row.start_ms : -1), render: (row) => (row.start_ms > 0 ? duration(Math.max(now - row.start_ms, 0)) : '–') },
    { key: 'left', label: 'Times out in', num: true, value: (row) => (row.start_ms > 0 ? row.start_ms + row.timeout_ms : 0), render: (row) => (row.start_ms > 0 ? duration(Math.max(row.start_ms + row.timeout_ms - now, 0)) : '–') },
    { key: 'partitions', label: 'Partitions', num: true, value: (row) => row.partitions.length, render: (row) => number(row.partitions.length) },
    { key: 'producer_id', label: 'Producer', num: true },
    { key: 'producer_epoch', label: 'Epoch', num: true },
    { key: 'coordinator', label: 'Coordinator', num: true },
  ];
  const found = id === undefined ? null : (ids.data || []).find((each) => each.transactional_id === id);
  return html`
    <div class="pagehead"><h1>${id === undefined ? 'Transactions' : html`<span class="crumb"><a href=${href('transactions')}>Transactions</a> / </span>${id}`}</h1></div>
    ${id !== undefined && ids.data ? found
      ? html`<${One} view=${found} held=${held.filter((each) => each.id === id)} now=${now} past=${past} />`
      : html`<${Empty} title="There is no such transactional id"><a href=${href('transactions')}>Show all<//><//>` : null}
    <${Held} poll=${open} held=${id === undefined ? held : held.filter((each) => each.id === id)} now=${now} past=${past} hidden=${id !== undefined} />
    ${id === undefined ? html`<${Panel} title="Transactional ids" flush=${true} note=${ids.data ? count(ids.data.length, 'id') : ''}>
      <${Loaded} poll=${ids} what="the transactional ids">
        <${Table} label="Transactional ids" columns=${columns} rows=${rows} rowKey=${(row) => row.transactional_id} sort="-since"
          onOpen=${(row) => go('transactions', [row.transactional_id])}
          empty=${html`<${Empty} title="No producer has a transactional id yet">
            <p>Set <code>transactional.id</code> on a producer and call <code>init_transactions()</code>: it appears here.</p><//>`} />
      <//><//>` : null}`;
}

function Held({ poll, held, now, past, hidden }) {
  if (hidden && held.length === 0) return null;
  const columns = [
    { key: 'place', label: 'Partition', value: (row) => `${row.topic} ${row.partition}`, render: (row) => html`<a href=${href('topics', [row.topic])}>${row.topic}-${row.partition}</a>` },
    { key: 'first', label: 'LSO held at', num: true, render: (row) => (row.holds ? number(row.first) : html`<span title="an older transaction holds it at a lower offset">${number(row.first)} (not first)</span>`) },
    { key: 'waiting', label: 'Records waiting', num: true },
    { key: 'who', label: 'By', value: (row) => row.id, render: (row) => (row.id ? html`<a href=${href('transactions', [row.id])}>${row.id}</a>` : html`producer ${row.producerId}`) },
    { key: 'since', label: 'Since', num: true, value: (row) => row.view?.start_ms ?? 0, render: (row) => (row.view?.start_ms > 0 ? duration(Math.max(now - row.view.start_ms, 0)) : '–') },
    { key: 'hangs', label: 'Hangs', sortable: false, render: (row) => (row.hangs ? html`<${Badge} kind="bad" title="No coordinator has this transaction: nobody will end it">hangs<//>` : null) },
    { key: 'groups', label: 'Groups that wait', sortable: false, render: (row) => (row.groups.length > 0 ? row.groups.map((group, n) => html`${n ? ', ' : ''}<a href=${href('groups', [group])}>${group}</a>`) : '–') },
    { key: 'do', label: 'Action', sortable: false, cls: 'fit', render: (row) => (past ? null : html`<${Abort} held=${row} />`) },
  ];
  return html`<${Panel} title="Held back by open transactions" flush=${true}
      note="readers of committed records stop at the last stable offset (LSO)">
    <${Loaded} poll=${poll} what="the open transactions">
      <${Table} label="Open transactions by partition" columns=${columns} rows=${held}
        rowKey=${(row) => `${row.topic} ${row.partition} ${row.producerId}`} sort="since"
        empty=${html`<${Empty} title="No transaction is open"><p>Nothing holds the last stable offset back.</p><//>`} /><//><//>`;
}

/** Abort an open transaction with one click. */
export function Abort({ held }) {
  return html`<${ActionButton} kind="small danger" label="Abort" title="Abort this transaction: its records become invisible to readers of committed records"
    run=${() => act('abort_transaction', endOf(held), { said: `Aborted: ${held.id || `producer ${held.producerId}`}.` })} />`;
}

function One({ view, held, now, past }) {
  const machines = useGet('/v1/state-machines');
  const machine = machines.data?.find((each) => each.name === 'transactional id');
  const moves = useGet('/v1/journal', { kind: ['transaction', 'marker'], transactional_id: view.transactional_id, limit: 500, messages: false }, `${view.state} ${view.start_ms}`);
  const id = { transactional_id: view.transactional_id };
  const isOpen = view.start_ms > 0;
  const events = (moves.data?.events || []).filter((each) => each.kind === 'transaction');
  const former = events.at(-1)?.former;
  const actions = [
    ['abort_transaction', 'Abort', 'Abort it as EndTxn does; the producer gets no response', isOpen],
    ['expire_transaction', 'Time out', 'End it as if transaction.timeout.ms were over', view.state === 'Ongoing'],
    ['hang_transaction', 'Withhold markers', 'Its end will not reach its partitions until the markers are sent', true],
    ['fence_producer', 'Fence', 'Raise the epoch: the producer gets PRODUCER_FENCED', true],
  ];
  return html`<div class="stack">
    <${Panel} title="State" note=${MEANS[view.state]} actions=${past ? null : html`
        ${actions.map(([name, label, title, on]) => html`<${ActionButton} key=${name} kind="small" label=${label} title=${title} disabled=${!on}
          run=${() => act(name, id)} />`)}
        <${ActionButton} kind="small" label="Send markers" title="Send the markers that were withheld" run=${() => act('hang_transaction', { ...id, release: true })} />
        <${CopyAs} forms=${formsOfAction('abort_transaction', id)} label="Copy abort as" />`}>
      <div class="stack">${machine ? html`<${StateDiagram} machine=${machine} state=${view.state} former=${former} />` : html`<${Badge} kind=${KINDS[view.state]}>${view.state}<//>`}
        <${Facts} items=${[
          ['Producer id', view.producer_id], ['Epoch', view.producer_epoch], ['Coordinator', `broker ${view.coordinator}`],
          ['Open for', isOpen ? duration(Math.max(now - view.start_ms, 0)) : 'not open'],
          ['Times out in', isOpen ? duration(Math.max(view.start_ms + view.timeout_ms - now, 0)) : '–'],
          ['Partitions', view.partitions.length ? view.partitions.map((each) => each.join('-')).join(', ') : 'none'],
          ['Holds back', held.length ? held.map((each) => `${each.topic}-${each.partition} at ${each.first}`).join(', ') : 'nothing'],
        ]} /></div><//>
    <${Panel} title="What happened" note=${moves.data ? count(events.length, 'move') : ''}>
      ${events.length === 0 ? html`<p class="muted">${moves.error ? moves.error.message : 'The journal has no move of this id.'}</p>` : html`<ul class="links">
        ${events.slice(-40).reverse().map((each) => html`<li key=${each.seq}><a href=${href('timeline', [], { seq: each.seq })}>
          <span class="relation num">${clock(each.virtual_ms, 3)}</span>${each.former} <${Icon} name="on" /> ${each.state}
          <span class="muted"> epoch ${[each.producer_epoch].flat()[0]}</span></a></li>`)}</ul>`}<//></div>`;
}
