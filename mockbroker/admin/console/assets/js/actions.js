// Actions of a cluster: carried out, told, and kept so that they can be copied as a scenario.

import { post } from './api.js';
import { observable, refreshAll } from './store.js';
import { confirm, formsOfAction, toast } from './ui.js';

const KEPT = 100;

/** The actions of this tab, oldest first: name, arguments and the time of day in ms. */
export const done = observable([]);

/**
 * Carry out an action by `POST /v1/actions`, and show what it changed.
 * @param {string} name
 * @param {object} args
 * @param {{ask?: {title: string, body: string, yes: string}, said?: string}} [options] `ask` first;
 *   `said` is the toast
 * @returns {Promise<object|null>} the answer, or null if the user refused; throws ApiError
 */
export async function act(name, args, { ask, said } = {}) {
  if (ask && !(await confirm(ask))) return null;
  const answer = await post('/v1/actions', { [name]: args });
  done.set([...done.get(), { name, args, atMs: Date.now() }].slice(-KEPT));
  toast(said || `Done: ${name.replaceAll('_', ' ')}.`);
  refreshAll();
  return answer;
}

export { formsOfAction };
