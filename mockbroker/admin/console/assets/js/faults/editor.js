// The editor of rules: JSON with completion from the schema of `/v1`, checked while one types.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../preact.js';
import { get, post } from '../api.js';
import { refreshAll, setParams } from '../store.js';
import { CopyAs, ErrorLine, Panel, curlOf, pythonOf, toast, yamlOf } from '../ui.js';
import { Schemas, parse, pathText, placeOf } from './schema.js';

const SHOWN = 9;
const FIRST = `{
  "name": "slow-produce",
  "match": {"api": "Produce", "topic": "orders"},
  "when": {"times": 3},
  "do": {"delay": "500ms"}
}`;

/** The draft, kept while the tab is open. */
let draft = FIRST;
/** Put a rule or plan into the editor. */
export const write = (plan) => { draft = JSON.stringify(plan, null, 2); };

/** Python, YAML and curl of a rule or plan. */
export function formsOfPlan(plan) {
  const isRule = !('rules' in plan || 'timeline' in plan);
  const python = isRule
    ? `kafka.faults.add(${Object.entries(plan).map(([name, value]) => `${name}=${pythonOf(value)}`).join(', ')})`
    : `kafka.faults.add(${pythonOf(plan)})`;
  return { python, yaml: yamlOf(plan).trimStart(), curl: curlOf('POST', '/v1/faults', plan) };
}

let asked = null;
/** The schemas of `/openapi.json`, asked once. */
const schemas = () => {
  asked ||= get('/openapi.json').then((document) => new Schemas(document));
  asked.catch(() => { asked = null; });
  return asked;
};

const COMMON_APIS = ['Produce', 'Fetch', 'Metadata', 'FindCoordinator', 'JoinGroup', 'SyncGroup', 'Heartbeat', 'OffsetCommit', 'OffsetFetch', 'InitProducerId', 'EndTxn'];
/** Names that exist in this cluster, by the field that takes them. */
async function namesHere() {
  const ask = (path, name) => get(path).then((all) => [...new Set(all.flatMap(name))], () => []);
  const [topic, group, transactional, broker, clients, api] = await Promise.all([
    ask('/v1/topics', (each) => each.name),
    ask('/v1/groups', (each) => each.group),
    ask('/v1/transactions', (each) => each.transactional_id),
    ask('/v1/brokers', (each) => each.node_id),
    ask('/v1/clients', (each) => each.client_id),
    ask('/v1/clients', (each) => Object.keys(each.requests)),
  ]);
  return {
    topic, group, transactional_id: transactional, broker, node: broker, client_id: clients, from_broker: broker, to_broker: broker,
    api: [...new Set([...COMMON_APIS, ...api])],
  };
}

export function Editor() {
  const [text, setText] = useState(draft);
  const [schema, setSchema] = useState(null);
  const [names, setNames] = useState({ api: COMMON_APIS });
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [wanted, setWanted] = useState(null); // {value, cursor, force}
  const [chosen, setChosen] = useState(null); // the text of the completion that the keys are on
  const area = useRef(null);
  const place = useRef(null);
  useEffect(() => {
    schemas().then(setSchema, setError);
    namesHere().then(setNames, () => {});
  }, []);
  const root = useMemo(() => (schema ? planSchema(schema) : null), [schema]);
  const read = useMemo(() => parse(text), [text]);
  const wrong = useMemo(() => (root && read.value !== undefined ? schema.check(read.value, schemaFor(read.value, root)) : []), [read, root]);
  const ready = read.value !== undefined && wrong.length === 0;
  // The cluster's names may come after the word that they complete.
  const found = useMemo(() => (wanted && root ? completions(wanted, schema, root, names) : null), [wanted, root, names]);
  const popup = found && { ...found, at: Math.max(found.items.findIndex((each) => each.text === chosen), 0), ...caret(area.current, wanted) };
  const dismiss = () => setWanted(null);

  function change(next) {
    draft = next;
    setText(next);
    setError(null);
  }
  useLayoutEffect(() => {
    if (place.current === null || !area.current) return;
    area.current.setSelectionRange(place.current, place.current);
    place.current = null;
  });

  /** Completions are wanted at the cursor; `force` if no word stands before it. */
  function complete(force = false) {
    setWanted({ value: area.current.value, cursor: area.current.selectionStart, force });
    setChosen(null);
  }

  function take(item) {
    const before = text.slice(0, popup.from);
    let after = text.slice(popup.to);
    let insert = item.insert;
    if (popup.isKey && /^\s*:/.test(after)) insert = item.text; // the key has its value already
    if (after.startsWith('"') && insert.endsWith('"') && !popup.word) after = after.slice(1);
    place.current = before.length + insert.length - (insert === item.insert ? item.back : 0);
    change(before + insert + after);
    dismiss();
    area.current.focus();
  }

  function key(event) {
    if (popup) {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) {
        event.preventDefault();
        return setChosen(popup.items[(popup.at + by + popup.items.length) % popup.items.length].text);
      }
      if (event.key === 'Enter' || event.key === 'Tab') {
        event.preventDefault();
        return take(popup.items[popup.at]);
      }
      if (event.key === 'Escape') {
        event.preventDefault();
        event.stopPropagation();
        return dismiss();
      }
    }
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      return complete(true);
    }
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return add();
    }
    return undefined;
  }

  async function add() {
    if (!ready || busy) return;
    setBusy(true);
    try {
      const made = await post('/v1/faults', read.value);
      toast(`In force: ${made.name}.`);
      refreshAll();
      setParams({});
      location.hash = '#/faults/rules';
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }

  const first = popup ? Math.max(0, Math.min(popup.at - 4, popup.items.length - SHOWN)) : 0;
  return html`<${Panel} title="Editor" note="a rule, or a plan with rules and a timeline, as JSON" actions=${html`
      ${ready ? html`<${CopyAs} forms=${formsOfPlan(read.value)} />` : null}
      <button class="primary" disabled=${!ready || busy} onClick=${add}>Put in force</button>`}>
    <div class="editor">
      <textarea ref=${area} rows="16" spellcheck="false" autocapitalize="off" aria-label="Rule or plan, as JSON" value=${text}
        aria-controls="completions" aria-autocomplete="list" aria-haspopup="listbox"
        aria-activedescendant=${popup ? `completion-${popup.at}` : undefined} aria-describedby="editor-told"
        onInput=${(event) => { change(event.target.value); complete(); }} onKeyDown=${key}
        onClick=${dismiss} onBlur=${dismiss}></textarea>
      <ul class="popup completions" id="completions" role="listbox" aria-label="Completions" hidden=${!popup}
          style=${popup ? { left: `${popup.x}px`, top: `${popup.y}px` } : {}}>
        ${popup ? popup.items.slice(first, first + SHOWN).map((item, n) => html`<li key=${item.text} role="option" id=${`completion-${first + n}`}
          aria-selected=${String(first + n === popup.at)} onMouseDown=${(event) => event.preventDefault() /* the text keeps the focus */} onClick=${() => take(item)}>
          <code>${item.text}</code><span>${item.note}</span></li>`) : null}</ul>
    </div>
    <div id="editor-told" class="told" aria-live="polite">
      ${read.wrong ? html`<p class="bad-text">${read.wrong}</p>`
        : wrong.length > 0 ? html`<ul class="plainlist">${wrong.slice(0, 6).map((each) => html`<li class="bad-text" key=${pathText(each.path) + each.text}>
          <code>${pathText(each.path) || 'the rule'}</code>: ${each.text}</li>`)}</ul>`
          : root ? html`<p class="ok-text">This can be put in force.</p>` : null}
    </div>
    <${ErrorLine} error=${error} />
    <p class="muted"><kbd>Ctrl</kbd> <kbd>Space</kbd> completes, <kbd>Ctrl</kbd> <kbd>Enter</kbd> puts it in force. Match, when and do are described
      as you choose their fields.</p><//>`;
}

/** The schema of a plan and of a rule in the body of `POST /v1/faults`. */
function planSchema(schema) {
  const { components } = schema.document;
  return { plan: components.schemas.PlanData, rule: components.schemas.RuleData };
}
const schemaFor = (value, root) =>
  value && typeof value === 'object' && ('rules' in value || 'timeline' in value) ? root.plan : root.rule;

/** What may stand at the cursor of a text, with the place that it takes. @returns {?{items: object[], from: number, to: number}} */
function completions({ value, cursor, force }, schema, root, names) {
  const where = placeOf(value, cursor);
  if (!force && where.word === '' && value[cursor - 1] !== '"') return null;
  const schemaHere = /"(rules|timeline)"\s*:/.test(value) ? root.plan : root.rule;
  const all = where.isKey
    ? schema.fieldsAt(schemaHere, where.path).filter((each) => !where.present.includes(each.name))
      .map((each) => ({ text: JSON.stringify(each.name), note: each.note, insert: `${JSON.stringify(each.name)}: ${each.value}`, back: each.value === '' ? 0 : 1 }))
    : [...schema.valuesAt(schemaHere, where.path), ...namesFor(names, where.path)]
      .map((each) => ({ text: each, note: '', insert: each, back: 0 }));
  const word = where.word.toLowerCase();
  const items = all.filter((each) => each.text.toLowerCase().includes(word))
    .sort((a, b) => a.text.toLowerCase().indexOf(word) - b.text.toLowerCase().indexOf(word)).slice(0, 40);
  return items.length > 0 ? { items, ...where } : null;
}

function namesFor(names, path) {
  const name = [...path].reverse().find((part) => typeof part === 'string');
  return (names[name] || []).map((each) => JSON.stringify(each));
}

/** Where the cursor is in a text area, in its own pixels: monospace, so columns and rows do. */
function caret(area, { value, cursor }) {
  const before = value.slice(0, cursor).split('\n');
  const style = getComputedStyle(area);
  const line = parseFloat(style.lineHeight) || 18;
  const x = Math.min(before.at(-1).length * 7.25 + 10, Math.max(area.clientWidth - 300, 0));
  return { x, y: Math.min(before.length * line + 8 - area.scrollTop, area.clientHeight) };
}
