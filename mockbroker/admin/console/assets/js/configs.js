// The configs that brokers, groups and client metrics subscriptions have of their own. Those of a
// topic are on its page.

import { html } from './preact.js';
import { act } from './actions.js';
import { usePoll } from './store.js';
import { ActionButton, Empty, Icon, Loaded, Panel, Table, askForm, formsOfAction } from './ui.js';

/** A resource with configs, in words. */
export function resourceOf({ resource_type: type, resource_name: name }) {
  return type === 'broker' && name === '' ? 'all brokers' : `${type.replaceAll('_', ' ')} ${name}`;
}

const SCHEMA = {
  required: ['kind', 'config', 'value'],
  properties: {
    kind: { enum: ['broker', 'group', 'client_metrics'] },
    name: { type: 'string', description: 'of a broker its id, or empty for all brokers' },
    config: { type: 'string', description: 'for example log.retention.ms' },
    value: { type: 'string' },
  },
};
const argumentsOf = ({ kind, name, config, value }) => ({ kind, name: name ?? '', configs: { [config]: value === null ? null : String(value ?? '') } });

function set(value) {
  askForm({
    title: 'Set a config', yes: 'Set', schema: SCHEMA, value,
    submit: (given) => act('alter_configs', argumentsOf(given), { said: `${given.config} is ${given.value}.` }),
    copy: (given) => formsOfAction('alter_configs', argumentsOf(given)),
  });
}

const rowsOf = (views) => views.flatMap((view) => Object.entries(view.configs).map(([config, value]) => ({
  kind: view.resource_type, name: view.resource_name, resource: resourceOf(view), config, value,
})));

/** Named by resource and config, live or at a moment. */
export function Configs({ live }) {
  const poll = usePoll('/v1/configs', {}, 2_500, (state) => state.configs);
  const columns = [
    { key: 'resource', label: 'Resource', cls: 'fit' },
    { key: 'config', label: 'Config', cls: 'grow', render: (c) => html`<span class="mono">${c.config}</span>` },
    { key: 'value', label: 'Value', render: (c) => html`<span class="mono own">${c.value}</span>` },
    ...(live ? [{ key: 'do', label: 'Actions', sortable: false, cls: 'fit', render: (c) => html`<span class="row tight nowrap">
      <button class="small" aria-label=${`Set ${c.config} of ${c.resource}`} onClick=${() => set(c)}>Set</button>
      <${ActionButton} kind="small" label=${`Reset ${c.config} of ${c.resource}`}
        run=${() => act('alter_configs', argumentsOf({ ...c, value: null }), { said: `${c.config} has its default.` })}>Reset<//></span>` }] : []),
  ];
  return html`<${Panel} title="Configs of brokers and groups" flush actions=${live ? html`<button class="small"
      onClick=${() => set({ kind: 'broker', name: '' })}><${Icon} name="plus" />Set a config</button>` : null}>
    <${Loaded} poll=${poll} what="the configs">${(views) => html`<${Table} label="Configs of brokers and groups" columns=${columns}
      rows=${rowsOf(views)} rowKey=${(c) => `${c.resource} ${c.config}`} maxRows=${7}
      empty=${html`<${Empty} title="No broker and no group has configs of its own"><p>Those of a topic are on its page.</p><//>`} />`}<//><//>`;
}
