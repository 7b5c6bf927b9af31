// The network between brokers as a drawing: brokers by rack, a line for each pair.

import { html, useState } from './preact.js';
import { act } from './actions.js';
import { ActionButton, Badge, CopyAs, Icon, Svg, duration, formsOfAction } from './ui.js';

const HEIGHT = 236;
const NODE = 19;

/**
 * What a pair of brokers has, both directions together.
 * @typedef {{a: number, b: number, cut: 'no'|'both'|'one', delayMs: number, loss: number, rules: string[], text: string}} Pair
 */

/** @returns {Pair[]} one for each pair of nodes, lower id first */
export function pairsOf(network) {
  const links = new Map(network.links.map((link) => [`${link.from} ${link.to}`, link]));
  const ideal = { up: true, delay_ms: 0, loss: 0, rules: [] };
  const pairs = [];
  network.nodes.forEach((a, i) => network.nodes.slice(i + 1).forEach((b) => {
    const there = links.get(`${a} ${b}`) || ideal;
    const back = links.get(`${b} ${a}`) || ideal;
    const down = [there, back].filter((link) => !link.up).length;
    const delayMs = Math.max(there.delay_ms || 0, back.delay_ms || 0);
    const loss = Math.max(there.loss || 0, back.loss || 0);
    const rules = [...new Set([...(there.rules || []), ...(back.rules || [])])];
    const cut = ['no', 'one', 'both'][down];
    const parts = [
      down === 2 ? 'cut' : down === 1 ? `cut from ${there.up ? `${b} to ${a}` : `${a} to ${b}`}` : '',
      delayMs ? `delayed by ${duration(delayMs)}` : '',
      loss ? `loses ${Math.round(loss * 100)} %` : '',
      rules.length ? `rule ${rules.join(', ')}` : '',
    ].filter(Boolean);
    pairs.push({ a, b, cut, delayMs, loss, rules, text: parts.join(', ') || 'up' });
  }));
  return pairs;
}

/** The drawing, the links that differ, and what can be done with the chosen pair. */
export function Topology({ network, brokers, live, onBroker }) {
  const [chosen, setChosen] = useState('');
  const pairs = pairsOf(network);
  const pair = pairs.find((each) => `${each.a}-${each.b}` === chosen);
  const odd = pairs.filter((each) => each.text !== 'up');
  return html`<${Svg} interactive height=${HEIGHT} label=${`Network of ${network.nodes.length} brokers: ${odd.length
      ? odd.map((each) => `${each.a} and ${each.b} ${each.text}`).join('; ') : 'all links are up'}`} cls="topology">
      ${(width) => draw(width, network, brokers, pairs, chosen, setChosen, onBroker)}<//>
    ${live ? html`<div class="topology-foot">
      ${pair ? html`<${PairLine} pair=${pair} key=${chosen} onClose=${() => setChosen('')} />`
        : odd.length === 0
          ? html`<p class="muted">All links are up. Choose a line to cut or delay it.</p>`
          : odd.map((each) => html`<${PairLine} key=${`${each.a}-${each.b}`} pair=${each} />`)}
      ${(network.clients || []).map((each) => html`<p key=${each.rule} class="warn-text">▲ ${cutClients(each)}</p>`)}
    </div>` : null}`;
}

/** A cut between brokers and some clients, in words. */
function cutClients({ rule, brokers, match, both_ways: bothWays }) {
  const who = Object.entries(match).map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`).join(', ');
  const where = brokers ? `broker ${brokers.join(', ')}` : 'all brokers';
  return `Clients (${who || 'all'}) and ${where} do not reach each other${bothWays ? '' : ', one way'}: ${rule}`;
}

function PairLine({ pair, onClose }) {
  const args = { nodes: pair.a, to: pair.b };
  const cut = pair.cut !== 'no';
  const name = cut || pair.delayMs ? 'heal_network' : 'cut_network';
  return html`<div class="row pairline"><span class="mono">${pair.a} ↔ ${pair.b}</span>
    <${Badge} kind=${pair.text === 'up' ? 'ok' : pair.cut === 'both' ? 'bad' : 'warn'}>${pair.text}<//>
    <span class="grow"></span>
    ${cut ? null : html`<${ActionButton} kind="small" run=${() => act('cut_network', args, { said: `Brokers ${pair.a} and ${pair.b} do not reach each other.` })}>Cut<//>`}
    ${cut ? null : html`<${ActionButton} kind="small" run=${() => delay(pair)}>${pair.delayMs ? 'Other delay' : 'Delay'}<//>`}
    ${cut || pair.delayMs ? html`<${ActionButton} kind="small" run=${() => act('heal_network', args, { said: `The link of ${pair.a} and ${pair.b} is up.` })}>Heal<//>` : null}
    <${CopyAs} forms=${formsOfAction(name, args)} />
    ${onClose ? html`<button class="icon" aria-label="Choose no link" onClick=${onClose}><${Icon} name="close" /></button>` : null}
  </div>`;
}

const DELAYS_MS = [50, 250, 1_000, 5_000];
async function delay(pair) {
  const longer = DELAYS_MS.find((ms) => ms > pair.delayMs) ?? DELAYS_MS[0];
  await act('delay_network', { nodes: pair.a, to: pair.b, by: `${longer}ms` },
    { said: `Messages between ${pair.a} and ${pair.b} take ${duration(longer)} longer.` });
}

/** Nodes on an ellipse, those of one rack side by side. */
function places(width, network, brokers) {
  const rack = new Map(brokers.map((each) => [each.node_id, each.rack || '']));
  const order = [...network.nodes].sort((a, b) =>
    (rack.get(a) || '').localeCompare(rack.get(b) || '', 'en', { numeric: true }) || a - b);
  const angles = order.map((_, n) => -Math.PI / 2 + (2 * Math.PI * n) / order.length);
  const xs = fitted(angles.map(Math.cos), 60, width - 60, 420);
  const ys = fitted(angles.map(Math.sin), 44, HEIGHT - 50, HEIGHT);
  return new Map(order.map((node, n) => [node, [xs[n], ys[n]]]));
}

/** Numbers moved and stretched so that they fill from `low` to `high`, at most `most` wide. */
function fitted(values, low, high, most) {
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const middle = (low + high) / 2;
  const span = Math.min(high - low, most);
  return values.map((each) => (max - min < 1e-6 ? middle : middle + ((each - min) / (max - min) - 0.5) * span));
}

function draw(width, network, brokers, pairs, chosen, setChosen, onBroker) {
  const at = places(width, network, brokers);
  const states = new Map(brokers.map((each) => [each.node_id, each]));
  return html`${pairs.map((pair) => link(pair, at.get(pair.a), at.get(pair.b), `${pair.a}-${pair.b}` === chosen, setChosen))}
    ${network.nodes.map((node) => box(node, at.get(node), states.get(node), network.controller_id === node, onBroker))}`;
}

function link(pair, [x1, y1], [x2, y2], isChosen, setChosen) {
  const id = `${pair.a}-${pair.b}`;
  const kind = pair.cut === 'both' ? 'cut' : pair.cut === 'one' ? 'half' : pair.text !== 'up' ? 'slow' : 'up';
  const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const label = kind === 'up' ? '' : pair.cut === 'both' ? '✖ cut' : pair.cut === 'one' ? `✖ ${pair.text}` : `▲ ${pair.delayMs ? `+${duration(pair.delayMs)}` : pair.text}`;
  const choose = () => setChosen(isChosen ? '' : id);
  return html`<g key=${id} class=${`link ${kind}${isChosen ? ' chosen' : ''}`} role="button" tabindex="0"
      aria-label=${`Link of brokers ${pair.a} and ${pair.b}: ${pair.text}`} aria-pressed=${String(isChosen)}
      onClick=${choose} onKeyDown=${(event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); } }}>
    <path class="hit" d=${strip(x1, y1, x2, y2)} /><line class="wire" x1=${x1} y1=${y1} x2=${x2} y2=${y2} />
    ${label ? html`<g transform=${`translate(${mx} ${my})`}><rect class="tag" x=${-label.length * 3.4 - 6} y="-9" width=${label.length * 6.8 + 12} height="18" rx="9" />
      <text class="linktext" text-anchor="middle" y="4">${label}</text></g>` : null}
  </g>`;
}

/** An area along a line that is wide enough to be hit. */
function strip(x1, y1, x2, y2) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [nx, ny] = [((y1 - y2) / length) * 9, ((x2 - x1) / length) * 9];
  return `M${x1 + nx} ${y1 + ny}L${x2 + nx} ${y2 + ny}L${x2 - nx} ${y2 - ny}L${x1 - nx} ${y1 - ny}z`;
}

const KINDS = { running: 'ok', paused: 'warn', stopped: 'off' };

function box(node, [x, y], broker, isController, onBroker) {
  const state = broker ? broker.state : 'unknown';
  const kind = broker?.fenced && state === 'running' ? 'bad' : KINDS[state] || 'off';
  const word = state === 'running' ? (broker?.fenced ? 'fenced' : '') : state;
  const lower = [broker?.rack, word].filter(Boolean).join(' · ');
  return html`<g key=${node} class=${`node ${kind}`} transform=${`translate(${x} ${y})`}
      onClick=${() => onBroker?.(node)}>
    <circle r=${NODE} />${state === 'stopped' ? html`<path class="strike" d="M-13 13 13-13" />` : null}
    <text class="strong" text-anchor="middle" y="4">${node}</text>
    ${isController ? html`<path class="crown" d="M-8-30l2 6h12l2-6-4.5 3L0-33l-3.5 6z"><title>controller</title></path>` : null}
    ${lower ? html`<text text-anchor="middle" y=${NODE + 14}>${lower}</text>` : null}
  </g>`;
}

