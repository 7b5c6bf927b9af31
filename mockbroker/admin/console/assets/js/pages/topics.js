// Topics.

import { html } from '../preact.js';
import { Empty } from '../ui.js';

export const needsCluster = false;

export function Page() {
  return html`<h1>Topics</h1><${Empty} title="Topics" />`;
}
