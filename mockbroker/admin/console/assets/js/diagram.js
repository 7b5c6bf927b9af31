// A state machine as a picture, from `GET /v1/state-machines`: the tables of the cluster's own code.

import { html } from './preact.js';
import { Svg } from './ui.js';

const BOX_H = 26;
const ROW = 78;

/** Columns and rows of the states of machines whose order tells a story. */
const PLACES = {
  'transactional id': {
    Empty: [0, 0], Ongoing: [1, 0], PrepareCommit: [2, 0], CompleteCommit: [3, 0],
    PrepareEpochFence: [1, 1], PrepareAbort: [2, 1], CompleteAbort: [3, 1], Dead: [0, 1],
  },
  'classic group': { Empty: [0, 0], PreparingRebalance: [1, 0], CompletingRebalance: [2, 0], Stable: [3, 0], Dead: [1, 1] },
  'consumer group': { Empty: [0, 0], Assigning: [1, 0], Reconciling: [2, 0], Stable: [3, 0], Dead: [1, 1] },
  'share group': { Empty: [0, 0], Stable: [1, 0], Dead: [2, 0] },
  'streams group': { Empty: [0, 0], NotReady: [1, 0], Assigning: [2, 0], Reconciling: [3, 0], Stable: [4, 0], Dead: [1, 1] },
};

function placesOf(machine) {
  const known = PLACES[machine.name] || {};
  let free = 0;
  return Object.fromEntries(machine.states.map((state) => [state, known[state] || [free++ % 4, 2 + Math.floor(free / 5)]]));
}

/**
 * @param {{machine: {name: string, states: string[], edges: {from: string, to: string, on: string[]}[]},
 *   state: string, label?: string, former?: string}} props `state` is lit; `former` is the one before
 */
export function StateDiagram({ machine, state, former, label }) {
  const places = placesOf(machine);
  const cells = Object.values(places);
  const columns = Math.max(...cells.map(([x]) => x)) + 1;
  const rows = Math.max(...cells.map(([, y]) => y)) + 1;
  const height = 26 + (rows - 1) * ROW + BOX_H + 36;
  const text = label || `States of a ${machine.name}; now ${state}`;
  return html`<div class="diagram"><${Svg} height=${height} label=${text}>${(width) => {
    const cell = width / columns;
    const boxW = Math.min(Math.max(cell - 34, 60), 150);
    const box = (name) => {
      const [x, y] = places[name];
      return { x: cell * x + cell / 2, y: 26 + y * ROW + BOX_H / 2 };
    };
    const edges = machine.edges.filter((edge) => edge.from !== edge.to && places[edge.from] && places[edge.to]);
    const key = (a, b) => `${a}>${b}`;
    const all = new Set(edges.map((edge) => key(edge.from, edge.to)));
    return html`<defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="arrowhead" d="M0 0L8 4L0 8z" /></marker>
        <marker id="arrow-lit" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="arrowhead lit" d="M0 0L8 4L0 8z" /></marker></defs>
      ${edges.map((edge) => {
        const lit = edge.from === state || (edge.from === former && edge.to === state);
        return html`<path key=${key(edge.from, edge.to)} class=${`edge${lit ? ' lit' : ''}`}
          d=${way(box(edge.from), box(edge.to), boxW, all.has(key(edge.to, edge.from)), places[edge.from], places[edge.to])}
          marker-end=${`url(#arrow${lit ? '-lit' : ''})`}><title>${`${edge.from} → ${edge.to}: ${edge.on.join(', ')}`}</title></path>`;
      })}
      ${machine.states.map((name) => {
        const { x, y } = box(name);
        const lit = name === state;
        const short = name.length * 6.4 > boxW - 8 ? name.replace(/(?!^)([A-Z])/g, ' $1').split(' ') : [name];
        return html`<g key=${name} class=${`state${lit ? ' lit' : ''}`}>
          <rect x=${x - boxW / 2} y=${y - BOX_H / 2} width=${boxW} height=${BOX_H} rx="13" />
          <text x=${x} y=${short.length > 1 ? y - 1 : y + 4} text-anchor="middle">${short.length > 1
            ? html`<tspan x=${x}>${short.slice(0, -1).join('')}</tspan><tspan x=${x} dy="10">${short.at(-1)}</tspan>` : name}</text></g>`;
      })}`;
  }}<//></div>`;
}

/** A path from box to box: straight to a neighbour, an arc over what lies between. */
function way(from, to, boxW, isBoth, a, b) {
  const half = boxW / 2;
  const columns = b[0] - a[0];
  if (a[1] === b[1] && Math.abs(columns) === 1) {
    const sign = Math.sign(columns);
    const shift = isBoth ? 5 * sign : 0;
    return `M${from.x + sign * half} ${from.y - shift}L${to.x - sign * half} ${to.y - shift}`;
  }
  if (a[1] === b[1]) {
    const up = columns > 0 ? -1 : 1;
    const edge = (BOX_H / 2) * up;
    const lift = 14 + Math.abs(columns) * 6;
    const x1 = from.x + Math.sign(columns) * half * 0.4;
    const x2 = to.x - Math.sign(columns) * half * 0.4;
    return `M${x1} ${from.y + edge}C${x1} ${from.y + edge + up * lift} ${x2} ${to.y + edge + up * lift} ${x2} ${to.y + edge}`;
  }
  const down = Math.sign(to.y - from.y);
  const side = columns === 0 ? 0 : Math.sign(columns) * half * 0.5;
  const shift = columns === 0 && isBoth ? 8 * down : 0;
  const y1 = from.y + (down * BOX_H) / 2;
  const y2 = to.y - (down * BOX_H) / 2;
  const middle = (y1 + y2) / 2;
  return `M${from.x + side + shift} ${y1}C${from.x + side + shift} ${middle} ${to.x - side + shift} ${middle} ${to.x - side + shift} ${y2}`;
}
