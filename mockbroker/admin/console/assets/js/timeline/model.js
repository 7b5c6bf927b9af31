// What the timeline knows: lanes, spans and marks, from pages of `GET /v1/journal/timeline`.
//
// A *lane* is a client's connection, a *span* is one of its requests with the wait for the answer, a
// *mark* is an event of the cluster. Times are `start_ns` and `end_ns` of real time, kept in ms
// since `origin`, so that they are small numbers: a bar is as long as its client waited, also while
// the cluster's clock is frozen.

/** Spans that are kept; older ones are let go, and counted. */
export const SPANS_MAX = 24_000;
const MARKS_MAX = 2_000;

/** The states of a span: label, and what it means. `/v1` tells failed and touched answers by their errors and rules. */
export const STATES = {
  answered: ['answered', 'the answer was sent'],
  waiting: ['waiting', 'the client still waits for the answer'],
  held: ['held', 'a rule holds it: see Faults'],
  touched: ['touched', 'answered, and a rule touched it'],
  lost: ['lost', 'no answer reaches the client'],
  failed: ['failed', 'the answer has an error code'],
};

/** Kinds of APIs: which colour, and what they are. */
const FAMILIES = [
  ['Produce', 'c0', /^Produce$/],
  ['Fetch', 'c2', /Fetch$|^ListOffsets$|^ShareAcknowledge$|^OffsetForLeaderEpoch$/],
  ['groups', 'c3', /Group|Offset|Heartbeat|FindCoordinator/],
  ['transactions', 'c4', /Txn|Transaction|InitProducerId/],
  ['others', 'c7', /./],
];

const families = new Map();
/** The family of an API: its name and colour. @param {string} api @returns {[string, string, RegExp]} */
export function familyOf(api) {
  let found = families.get(api);
  if (!found) {
    found = FAMILIES.find(([, , pattern]) => pattern.test(api));
    families.set(api, found);
  }
  return found;
}
export const familyList = FAMILIES.map(([name, colour]) => [name, colour]);

const ENDED = new Set(['answered', 'failed', 'lost', 'touched']);

function stateOf(span) {
  if (span.state !== 'answered') return span.state;
  if (span.errors.length > 0) return 'failed';
  return span.rules.length > 0 ? 'touched' : 'answered';
}

export class Timeline {
  constructor() {
    this.clear();
  }

  clear() {
    /** @type {Map<number, object>} by connection, in order of their first request */
    this.lanes = new Map();
    /** @type {Map<number, object>} by sequence number */
    this.spans = new Map();
    this.marks = new Map();
    this.next = 0;
    this.origin = null;
    this.leftOut = 0;
    this.letGo = 0;
    this.gap = null;
    this.newest = 0;
    this.lastSeq = 0;
    this.version = 0;
  }

  /** ms since the origin of ns since the epoch. */
  at(ns) {
    return (ns - this.origin) / 1e6;
  }

  /** Milliseconds since the epoch, of the real clock. */
  wall(at) {
    return this.origin / 1e6 + at;
  }

  /** Take a page of the answer in. @returns {boolean} whether there was anything new */
  take(page) {
    const before = this.next;
    if (this.origin === null) {
      const first = [...page.spans.map((span) => span.start_ns), ...page.marks.map((mark) => mark.at_ns)];
      if (first.length > 0) this.origin = first.reduce((a, b) => Math.min(a, b));
    }
    for (const lane of page.lanes) {
      const known = this.lanes.get(lane.connection);
      if (known) Object.assign(known, lane);
      else this.lanes.set(lane.connection, { ...lane, spans: [], depth: 1 });
    }
    for (const span of page.spans) this.put(span);
    for (const mark of page.marks) {
      this.marks.set(mark.seq, { ...mark, at: this.at(mark.at_ns) });
      this.newest = Math.max(this.newest, this.at(mark.at_ns));
    }
    this.leftOut += page.left_out;
    // Entries that left the journal before this page asked for them.
    if (before > 0 && page.from_seq > before + 1) this.gap = { first_seq: before + 1, last_seq: page.from_seq - 1 };
    this.next = page.next;
    this.lastSeq = page.last_seq;
    this.trim();
    const changed = before !== page.next || page.spans.length > 0 || page.marks.length > 0;
    if (changed) this.version += 1;
    return changed;
  }

  put(span) {
    let lane = this.lanes.get(span.connection);
    if (!lane) {
      lane = { connection: span.connection, client_id: '', spans: [], depth: 1 };
      this.lanes.set(span.connection, lane);
    }
    const known = this.spans.get(span.seq);
    const times = { state: stateOf(span), from: this.at(span.start_ns), to: span.end_ns === null ? null : this.at(span.end_ns) };
    this.newest = Math.max(this.newest, times.from, times.to ?? 0);
    if (known) {
      Object.assign(known, span, times);
      return;
    }
    const made = { ...span, ...times, row: 0 };
    this.spans.set(span.seq, made);
    const spans = lane.spans;
    let place = spans.length;
    while (place > 0 && spans[place - 1].from > made.from) place -= 1;
    spans.splice(place, 0, made);
    // Requests of one connection overlap if the client does not wait: they get rows of their own.
    const open = spans.slice(Math.max(0, place - 8), place).filter((each) => each.to === null || each.to > made.from);
    while (open.some((each) => each.row === made.row) && made.row < 3) made.row += 1;
    lane.depth = Math.max(lane.depth, made.row + 1);
  }

  trim() {
    const over = this.spans.size - SPANS_MAX;
    if (over > 0) {
      // A tenth more than is needed, so that this is rare.
      let left = over + SPANS_MAX / 10;
      const gone = new Set();
      for (const [seq, span] of this.spans) {
        if (left <= 0) break;
        if (!ENDED.has(span.state)) continue;
        gone.add(seq);
        left -= 1;
      }
      for (const seq of gone) this.spans.delete(seq);
      this.letGo += gone.size;
      for (const [connection, lane] of this.lanes) {
        lane.spans = lane.spans.filter((span) => !gone.has(span.seq));
        if (lane.spans.length === 0 && lane.closed_seq) this.lanes.delete(connection);
      }
    }
    while (this.marks.size > MARKS_MAX) this.marks.delete(this.marks.keys().next().value);
  }

  /** The spans of a lane that overlap a window, in order of their start. */
  *within(lane, from, to) {
    const { spans } = lane;
    let low = 0;
    let high = spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[middle].from < from) low = middle + 1;
      else high = middle;
    }
    // Long ones that began before the window: as many as can be open in a lane.
    for (let n = Math.max(0, low - 8); n < low; n += 1) {
      if (spans[n].to === null || spans[n].to >= from) yield spans[n];
    }
    for (let n = low; n < spans.length && spans[n].from <= to; n += 1) yield spans[n];
  }
}

/** "Produce v11 of shop to broker 2". */
export function titleOf(span, lane) {
  const who = lane?.client_id || 'a client';
  return `${span.api} v${span.api_version} of ${who}${lane?.broker === undefined ? '' : ` to broker ${lane.broker}`}`;
}
