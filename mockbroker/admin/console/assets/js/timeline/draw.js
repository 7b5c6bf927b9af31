// The timeline's picture: lanes of bars on a canvas. Only what is seen is drawn, and bars that are
// narrower than a pixel are drawn once for each pixel, so the cost is bound by the size of the canvas.

import { familyOf } from './model.js';

export const LANE_PX = 26;
export const HEAD_PX = 44; // the axis and the marks
const BAR_PX = 16;
const STEPS_MS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5,
];

/**
 * @typedef {{from: number, to: number, width: number, height: number, top: number, now: number}} View
 *   `from` and `to` in ms of the model, `top` the scrolled px, `now` where open spans end
 */

/** The x of a time. */
export const xOf = (view, at) => ((at - view.from) / (view.to - view.from)) * view.width;
/** The time of an x. */
export const timeOf = (view, x) => view.from + (x / view.width) * (view.to - view.from);

/** Distance of the axis's lines in ms, and the first one. */
export function ticksOf(view, wall) {
  const least = ((view.to - view.from) / view.width) * 92;
  const step = STEPS_MS.find((each) => each >= least) || STEPS_MS.at(-1);
  const first = Math.ceil((wall + view.from) / step) * step - wall;
  return { step, first };
}

function tickText(ms, step) {
  const text = new Date(ms).toISOString();
  if (step >= 1_000) return text.slice(11, 19);
  const fraction = Math.floor((ms % 1_000) * 10) / 10;
  return `${text.slice(17, 19)}.${fraction.toFixed(step < 1 ? 1 : 0).padStart(step < 1 ? 5 : 3, '0')}`;
}

/**
 * Draw.
 * @param {CanvasRenderingContext2D} canvas in CSS pixels
 * @param {import('./model.js').Timeline} model
 * @param {object[]} lanes that are shown, in order
 * @param {View} view
 * @param {Object<string, string>} colours by name of the custom property
 * @param {{selected: number|null, hovered: number|null, moment: number|null}} on
 * @returns {Array<{x: number, w: number, y: number, h: number, span?: object, mark?: object}>} what can be hit
 */
export function draw(canvas, model, lanes, view, colours, on) {
  const hits = [];
  canvas.clearRect(0, 0, view.width, view.height);
  canvas.font = '11px system-ui, sans-serif';
  canvas.textBaseline = 'middle';
  if (model.origin === null) return hits;
  const wall = model.wall(0);
  const { step, first } = ticksOf(view, wall);
  canvas.strokeStyle = colours.grid;
  canvas.lineWidth = 1;
  canvas.fillStyle = colours.muted;
  canvas.beginPath();
  for (let at = first; at <= view.to; at += step) {
    const x = Math.round(xOf(view, at)) + 0.5;
    canvas.moveTo(x, 18);
    canvas.lineTo(x, view.height);
    const text = tickText(wall + at, step);
    if (x > 2 && x + 60 < view.width) canvas.fillText(text, x + 3, 9);
  }
  canvas.stroke();

  canvas.save();
  canvas.beginPath();
  canvas.rect(0, HEAD_PX, view.width, view.height - HEAD_PX);
  canvas.clip();
  const firstLane = Math.max(0, Math.floor(view.top / LANE_PX));
  const lastLane = Math.min(lanes.length, Math.ceil((view.top + view.height - HEAD_PX) / LANE_PX));
  for (let n = firstLane; n < lastLane; n += 1) {
    drawLane(canvas, model, lanes[n], HEAD_PX + n * LANE_PX - view.top, view, colours, on, hits);
  }
  canvas.restore();
  drawMarks(canvas, model, view, colours, on, hits);
  if (on.moment !== null) line(canvas, xOf(view, on.moment), view, colours.warn, []);
  return hits;
}

function drawLane(canvas, model, lane, y, view, colours, on, hits) {
  canvas.strokeStyle = colours.grid;
  canvas.beginPath();
  canvas.moveTo(0, y + LANE_PX - 0.5);
  canvas.lineTo(view.width, y + LANE_PX - 0.5);
  canvas.stroke();
  const rows = Math.min(lane.depth, 3);
  const height = rows === 1 ? BAR_PX : (LANE_PX - 4) / rows - 1;
  const drawn = [];
  for (const span of model.within(lane, view.from, view.to)) {
    const from = xOf(view, span.from);
    const to = Math.max(from + 1, xOf(view, span.to ?? Math.max(view.now, span.from)));
    const row = Math.min(span.row, rows - 1);
    const top = rows === 1 ? y + (LANE_PX - BAR_PX) / 2 : y + 2 + row * (height + 1);
    const plain = span.state === 'answered';
    // A pixel that has a bar of its kind already looks the same with another one.
    const pixel = Math.floor(from);
    if (to - from < 2 && plain && drawn[row] === pixel && span.seq !== on.selected) continue;
    if (to - from < 2 && plain) drawn[row] = pixel;
    drawBar(canvas, span, from, to, top, height, colours, on);
    hits.push({ x: from, w: to - from, y: top, h: height, span });
  }
}

function drawBar(canvas, span, from, to, y, height, colours, on) {
  const x = Math.max(from, -2);
  const width = Math.min(to, from < 0 ? 1e5 : to) - x;
  const colour = colours[familyOf(span.api)[1]];
  const open = span.state === 'waiting' || span.state === 'held';
  const long = /Fetch$/.test(span.api) && (span.state === 'answered' || span.state === 'touched');
  canvas.fillStyle = colour;
  canvas.globalAlpha = open ? 0.25 : long ? 0.55 : 0.9;
  canvas.fillRect(x, y, width, height);
  canvas.globalAlpha = 1;
  if (span.state === 'failed' || span.state === 'lost') {
    canvas.fillStyle = colours.bad;
    canvas.fillRect(x, y + height - 3, width, 3);
  }
  if (span.state === 'held' || span.state === 'touched') {
    canvas.strokeStyle = colours.warn;
    canvas.lineWidth = 2;
    canvas.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), height - 2);
    canvas.lineWidth = 1;
  } else if (open) {
    canvas.strokeStyle = colour;
    canvas.setLineDash([3, 2]);
    canvas.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), height - 1);
    canvas.setLineDash([]);
  }
  if (span.seq === on.selected || span.seq === on.hovered) {
    canvas.strokeStyle = span.seq === on.selected ? colours.text : colours['line-strong'];
    canvas.lineWidth = 2;
    canvas.strokeRect(x - 1, y - 1, Math.max(width, 2) + 2, height + 2);
    canvas.lineWidth = 1;
  }
  const signs = { failed: '!', lost: '×', held: '❚❚' }[span.state];
  if (width > 34 && height > 10) {
    const text = `${signs ? `${signs} ` : ''}${span.api}${span.errors.length > 0 ? ` ${span.errors[0]}` : ''}`;
    canvas.save();
    canvas.beginPath();
    canvas.rect(Math.max(x, 0), y, width, height);
    canvas.clip();
    canvas.fillStyle = open || long ? colours.text : colours.panel;
    canvas.fillText(text, Math.max(x, 0) + 4, y + height / 2 + 0.5);
    canvas.restore();
  } else if (signs && height > 10) {
    canvas.fillStyle = span.state === 'failed' || span.state === 'lost' ? colours.bad : colours.warn;
    canvas.font = 'bold 12px system-ui, sans-serif';
    canvas.fillText(signs, x + width + 2, y + height / 2);
    canvas.font = '11px system-ui, sans-serif';
  }
}

/** The shape of a mark says its kind without a colour. */
const MARKS = {
  election: ['◆', 'c0'], broker: ['■', 'c1'], group: ['●', 'c3'], transaction: ['▲', 'c4'], fault: ['✖', 'bad'],
  action: ['▶', 'accent'], clock: ['◷', 'text'], topics: ['▼', 'c2'], configs: ['✚', 'c5'],
};
export const markOf = (kind) => MARKS[kind] || ['·', 'muted'];

function drawMarks(canvas, model, view, colours, on, hits) {
  canvas.textAlign = 'center';
  const taken = new Set();
  for (const mark of model.marks.values()) {
    if (mark.at < view.from || mark.at > view.to) continue;
    const x = xOf(view, mark.at);
    const place = Math.round(x / 12);
    const [shape, colour] = markOf(mark.kind);
    const strong = mark.seq === on.hovered || mark.seq === on.selected;
    if (strong) line(canvas, x, view, colours[colour], [4, 3]);
    if (taken.has(place) && !strong) continue;
    taken.add(place);
    canvas.fillStyle = colours[colour];
    canvas.fillText(shape, x, 31);
    hits.push({ x: x - 6, w: 12, y: 22, h: 18, mark });
  }
  canvas.textAlign = 'start';
}

function line(canvas, at, view, colour, dash) {
  const x = Math.round(at) + 0.5;
  canvas.strokeStyle = colour;
  canvas.setLineDash(dash);
  canvas.beginPath();
  canvas.moveTo(x, 18);
  canvas.lineTo(x, view.height);
  canvas.stroke();
  canvas.setLineDash([]);
}
