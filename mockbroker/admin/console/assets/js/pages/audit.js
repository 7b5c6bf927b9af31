// Audit: what happened so far, checked against what Kafka promises. Each finding has its evidence in
// the journal.

import { html, useState } from '../preact.js';
import { post } from '../api.js';
import { href, observable, useKeys, useMoment, useStore } from '../store.js';
import { Badge, Choice, CopyAs, Empty, ErrorLine, Facts, Panel, Table, count, curlOf, duration, number } from '../ui.js';
import { about } from '../app.js';

export const needsCluster = false;

/** The last audit: kept while the tab is open. */
const last = observable({ found: null, error: null, running: false });

const VERDICTS = {
  bug: ['bad', 'bug', 'nothing that was asked for explains it'],
  report: ['warn', 'explained', 'a rule or an action of yours, or the application, explains it'],
  undecided: ['none', 'undecided', 'the journal does not have what would decide it'],
};

async function run() {
  if (last.get().running) return;
  last.set({ ...last.get(), running: true, error: null });
  try {
    last.set({ found: await post('/v1/audit', {}), error: null, running: false });
  } catch (error) {
    last.set({ ...last.get(), error, running: false });
  }
}

export function Page() {
  const { found, error, running } = useStore(last);
  const [only, setOnly] = useState('');
  const past = useMoment() !== null;
  const told = useStore(about);
  useKeys([{ keys: 'r', what: 'run the audit', run }], 'Audit');
  const findings = found?.findings || [];
  const shown = only ? findings.filter((each) => each.verdict === only) : findings;
  const newer = found && told?.journal ? told.journal.last_seq - found.seq : 0;
  const counts = Object.keys(VERDICTS).map((name) => [name, findings.filter((each) => each.verdict === name).length]);
  return html`<div class="pagehead"><h1>Audit</h1>
      ${found ? html`<span class="muted num">up to entry ${number(found.seq)}${newer > 0 ? `; ${number(newer)} entries are newer` : ''}</span>` : null}
      <span class="grow"></span>
      <${CopyAs} forms=${{ python: 'audit = kafka.audit()\naudit.assert_clean()', curl: curlOf('POST', '/v1/audit', {}) }} />
      <button class="primary" disabled=${running} aria-busy=${String(running)} onClick=${run}>${running ? 'Running…' : found ? 'Run again' : 'Run the audit'}</button></div>
    ${past ? html`<div class="note-line">The audit checks the whole journal, not the moment of the slider.</div>` : null}
    <${ErrorLine} error=${error} onRetry=${run} />
    <div aria-live="polite" class="stack">
      ${running && !found ? html`<div class="skeleton" role="status" aria-label="The audit runs"><i></i><i></i><i></i></div>` : null}
      ${!found && !running && !error ? html`<${Empty} title="Was any record lost, duplicated, reordered or read too early?">
        <p>The audit checks all that the journal has: acknowledged writes, reads, commits, transactions and watermarks. It takes
          some seconds, and the cluster goes on.</p>
        <p><button class="primary" onClick=${run}>Run the audit</button></p><//>` : null}
      ${found ? html`
        <${Panel} title=${verdictOf(findings)} note=${found.whole ? 'the journal is whole' : 'the journal is not whole: see what was not checked'}>
          <div class="stack"><${Facts} items=${[...counts.map(([name, n]) => [VERDICTS[name][1], number(n)]), ['Engine', found.engine], ['Took', duration(found.took_ms)]]} />
            ${found.not_checked.length > 0 ? html`<div><h3>Not checked</h3><ul class="plainlist">${found.not_checked.map((each) => html`<li class="muted" key=${each}>${each}</li>`)}</ul></div>` : null}</div><//>
        ${findings.length > 1 ? html`<div><${Choice} label="Verdicts" value=${only} onChange=${setOnly}
          options=${[['', `all ${findings.length}`], ...counts.filter(([, n]) => n > 0).map(([name, n]) => [name, `${VERDICTS[name][1]} ${n}`])]} /></div>` : null}
        ${shown.map((each, n) => html`<${Finding} key=${n} finding=${each} />`)}
        <${Outcomes} outcomes=${found.outcomes} />` : null}
    </div>`;
}

const verdictOf = (findings) => {
  const bugs = findings.filter((each) => each.verdict === 'bug').length;
  if (bugs > 0) return `${count(bugs, 'bug')} found`;
  return findings.length > 0 ? `No bug; ${count(findings.length, 'finding')} explained or undecided` : 'Nothing was found';
};

function Finding({ finding }) {
  const [kind, label, meaning] = VERDICTS[finding.verdict] || VERDICTS.undecided;
  const place = finding.topic ? `${finding.topic}${finding.partition === null ? '' : `-${finding.partition}`}` : '';
  const where = `${place}${finding.offset === null ? '' : ` at offset ${number(finding.offset)}`}`;
  return html`<${Panel} title=${nameOf(finding.anomaly)} note=${where || finding.subject || ''}
      actions=${html`${finding.topic ? html`<a href=${href('topics', [finding.topic])}>Topic</a>` : null}<${Badge} kind=${kind} title=${meaning}>${label}<//>`}>
    <div class="stack"><p>${upper(finding.meaning)}${finding.rule ? html`: the cause is <code>${finding.rule}</code>` : null}.</p>
      ${finding.details ? html`<p class="muted">${finding.details}</p>` : null}
      <ul class="plainlist">${finding.subject ? html`<li><span class="muted">of</span> ${finding.subject}</li>` : null}
        ${finding.facts.map(([name, value]) => html`<li key=${name}><span class="muted">${name}</span> ${value}</li>`)}</ul>
      ${finding.evidence.length > 0 ? html`<div><h3>Evidence${finding.left_out ? ` (${number(finding.left_out)} more entries)` : ''}</h3>
        <ul class="links evidence">${finding.evidence.map((each, n) => html`<li key=${n} class=${each.evidence ? 'proof' : ''}>
          <a href=${href('timeline', [], { seq: each.seq })}><span class="relation num">#${each.seq}</span>${each.evidence ? html`<strong>${each.text}</strong>` : each.text}</a></li>`)}</ul></div>` : null}
    </div><//>`;
}

const nameOf = (anomaly) => anomaly.replaceAll('_', ' ');
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const OUTCOMES = { clean: 'ok', bugs: 'bad', reports: 'warn', undecided: 'none', 'not applicable': 'off' };

/** What was checked, also what was found clean. */
function Outcomes({ outcomes }) {
  const columns = [
    { key: 'anomaly', label: 'Checked', render: (row) => nameOf(row.anomaly) },
    { key: 'outcome', label: 'Outcome', render: (row) => html`<${Badge} kind=${OUTCOMES[row.outcome] || 'none'}>${row.outcome}<//>` },
    { key: 'meaning', label: 'What it would mean', cls: 'wrap', render: (row) => row.meaning },
    { key: 'why', label: 'Why', cls: 'wrap' },
  ];
  return html`<${Panel} title="What was checked" flush=${true} note=${`${outcomes.filter((each) => each.outcome === 'clean').length} of ${outcomes.length} are clean`}>
    <${Table} label="What was checked" columns=${columns} rows=${outcomes} rowKey=${(row) => row.anomaly} maxRows=${0} /><//>`;
}
