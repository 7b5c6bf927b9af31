// The assignments of a group over time: a row for each partition, a bar for each owner, and above
// them the states of the group.

import { html, useState } from './preact.js';
import { Svg, clock, count, duration, number } from './ui.js';
import { href } from './store.js';

const ROW = 20;
const TOP = 40;
const LEFT = 118;
const ROWS_MAX = 60;
const SERIES = 8;

/** Letters and colours of members, in the order in which they appear. */
export function legendOf(assignments, members = []) {
  const legend = new Map();
  const add = (id, name) => {
    if (!legend.has(id)) legend.set(id, { name: name || id, letter: letterOf(legend.size), series: legend.size % SERIES });
  };
  for (const each of assignments) add(each.member, each.client_id);
  for (const each of members) add(each.member_id, each.client_id);
  return legend;
}

const letterOf = (n) => (n < 26 ? String.fromCharCode(65 + n) : `${String.fromCharCode(65 + (n % 26))}${Math.floor(n / 26)}`);

/** A member's letter in its colour. */
export function MemberMark({ legend, id }) {
  const found = legend.get(id);
  return found ? html`<span class=${`mark-letter s${found.series}`} aria-hidden="true">${found.letter}</span>` : null;
}

const STATE_CLASS = {
  Stable: 'ok', Empty: 'none', Dead: 'none', PreparingRebalance: 'warn', CompletingRebalance: 'warn',
  Assigning: 'warn', Reconciling: 'warn', NotReady: 'warn',
};

/**
 * @param {{history: object, nowMs: number, legend: Map, current: string}} props `history` as
 *   `/v1/journal/groups/{group}` gives it
 */
export function Gantt({ history, nowMs, legend, current }) {
  const [over, setOver] = useState('');
  const { assignments, states } = history;
  const rows = [...new Set(assignments.map((each) => `${each.topic}-${each.partition}`))]
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const shown = rows.slice(0, ROWS_MAX);
  const begin = Math.min(...assignments.map((each) => each.from_ms), ...states.map((each) => each.at_ms));
  const end = Math.max(nowMs, begin + 1_000);
  const height = TOP + shown.length * ROW + 22;
  const at = new Map(shown.map((name, n) => [name, TOP + n * ROW]));
  return html`<${Svg} interactive height=${height} cls="gantt" label=${`Assignments of ${count(shown.length, 'partition')} over ${duration(end - begin)}`}>
    ${(width) => {
      const left = width < 480 ? 76 : LEFT;
      const x = (ms) => left + ((Math.min(Math.max(ms, begin), end) - begin) / (end - begin)) * (width - left - 8);
      return html`${axis(begin, end, x, height, width)}
        <text x="0" y="26">state</text>
        ${states.map((each, n) => band(each, states[n + 1]?.at_ms ?? end, x))}
        ${states.filter((each) => isNew(each, states)).map((each) => html`<path key=${`g${each.seq}`} class="generation" d=${`M${x(each.at_ms)} ${TOP - 2}V${height - 20}`} />`)}
        ${shown.map((name) => html`<g key=${name}><path class="lane" d=${`M${left} ${at.get(name) + ROW - 1}H${width - 8}`} />
          <text class=${over === name ? 'strong' : ''} x="0" y=${at.get(name) + 14}>${short(name, left)}</text></g>`)}
        ${assignments.filter((each) => at.has(`${each.topic}-${each.partition}`)).map((each) => {
          const name = `${each.topic}-${each.partition}`;
          const found = legend.get(each.member);
          const x1 = x(each.from_ms);
          const wide = Math.max(x(each.to_ms ?? end) - x1, 2);
          const told = `${name}: ${found?.name ?? each.member} from ${clock(each.from_ms, 3)} ${each.to_ms === null ? 'until now' : `to ${clock(each.to_ms, 3)}`}`;
          return html`<a key=${`${name} ${each.from_seq} ${each.member}`} href=${href('timeline', [], { seq: each.from_seq })}
              onMouseEnter=${() => setOver(name)} onFocus=${() => setOver(name)} aria-label=${told}>
            <rect class=${`bar s${found?.series ?? 7}${each.to_ms === null ? '' : ' past'}`} x=${x1} y=${at.get(name) + 2} width=${wide} height=${ROW - 5} rx="3"><title>${told}</title></rect>
            ${wide > 14 ? html`<text class="letter" x=${x1 + 5} y=${at.get(name) + 14}>${found?.letter}${wide > 90 ? ` ${found?.name}`.slice(0, Math.floor(wide / 7)) : ''}</text>` : null}</a>`;
        })}`;
    }}<//>
    ${rows.length > shown.length ? html`<p class="muted">${number(rows.length - shown.length)} more partitions are not drawn.</p>` : null}
    ${history.left_out ? html`<p class="muted">${number(history.left_out)} older changes are left out.</p>` : null}`;
}

const isNew = (each, states) => {
  const before = states[states.indexOf(each) - 1];
  return before && before.generation !== each.generation;
};

function band(each, until, x) {
  const x1 = x(each.at_ms);
  const wide = Math.max(x(until) - x1, 1.5);
  return html`<g key=${each.seq}><rect class=${`band ${STATE_CLASS[each.state] || 'none'}`} x=${x1} y="14" width=${wide} height="17" rx="2">
    <title>${`${each.former ?? 'nothing'} → ${each.state} at ${clock(each.at_ms, 3)}, generation ${each.generation}${each.reason ? `: ${each.reason}` : ''}`}</title></rect>
    ${wide > each.state.length * 6.2 + 10 ? html`<text class="bandtext" x=${x1 + 6} y="26">${each.state}${each.generation >= 0 && wide > 140 ? ` · ${each.generation}` : ''}</text>` : null}</g>`;
}

const short = (name, left) => {
  const max = Math.floor((left - 8) / 6.2);
  return name.length > max ? `…${name.slice(name.length - max + 1)}` : name;
};

const STEPS_MS = [100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000];

function axis(begin, end, x, height, width) {
  const step = STEPS_MS.find((ms) => (end - begin) / ms <= width / 110) ?? STEPS_MS.at(-1);
  const ticks = [];
  for (let ms = Math.ceil(begin / step) * step; ms <= end; ms += step) ticks.push(ms);
  return ticks.map((ms) => html`<g key=${ms}><path class="gridline" d=${`M${x(ms)} 12V${height - 18}`} />
    <text x=${x(ms)} y=${height - 5} text-anchor=${x(ms) > width - 40 ? 'end' : 'middle'}>${clock(ms, step < 1_000 ? 3 : 0)}</text></g>`);
}
