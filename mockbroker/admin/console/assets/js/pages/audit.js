// Audit.

import { html } from '../preact.js';
import { Empty } from '../ui.js';

export const needsCluster = false;

export function Page() {
  return html`<h1>Audit</h1><${Empty} title="Audit" />`;
}
