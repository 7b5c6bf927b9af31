// Calls of `/v1`, the only thing below the console.
//
// A call gives parsed JSON or throws an ApiError whose text is a sentence. `connection` says
// whether the admin server and its cluster answer, and whether they want a token.
//
// What the server says arrives while nothing is pressed: see press.js.

import { observable } from './observable.js';
import { released } from './press.js';

const TOKEN = 'mockbroker-token';

/**
 * The state of the connection: "ok"; "gone": the admin server does not answer; "silent": it
 * answers, its cluster does not; "token": it wants a token.
 * @type {import('./observable.js').Observable<{state: string, detail: string, sinceMs: number}>}
 */
export const connection = observable({ state: 'ok', detail: '', sinceMs: Date.now() });

/** An answer other than 2xx. `message` is a sentence. */
export class ApiError extends Error {
  /** @param {{status: number, title: string, detail: string, field?: string, error?: string}} problem */
  constructor(problem) {
    super(sentence(problem));
    this.name = 'ApiError';
    this.status = problem.status;
    this.title = problem.title;
    this.detail = problem.detail;
    this.field = problem.field || '';
    this.error = problem.error || '';
    /** Names of wrong fields and what is wrong with each. @type {Object<string, string>} */
    this.fields = problem.field ? { [problem.field]: problem.detail } : {};
  }
}

function sentence({ title, detail }) {
  const text = (detail || title || 'the request failed').trim();
  const upper = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}

export const getToken = () => sessionStorage.getItem(TOKEN) || '';

/** Keep a token until the tab is closed. @param {string} token */
export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
  report('ok', '');
}

function report(state, detail) {
  const now = connection.get();
  if (now.state !== state || now.detail !== detail) {
    const sinceMs = now.state === state ? now.sinceMs : Date.now();
    connection.set({ state, detail, sinceMs });
  }
}

/** The URL of a path with parameters; a list repeats its name, null and '' are left out. */
export function urlOf(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== '') query.append(name, String(each));
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** A path whose `{}` are replaced by encoded parts. @returns {string} */
export function pathOf(pattern, ...parts) {
  return pattern.replace(/\{\}/g, () => encodeURIComponent(String(parts.shift())));
}

function headers(more = {}) {
  const token = getToken();
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}

function problemOf(response, text) {
  try {
    const problem = JSON.parse(text);
    if (problem && typeof problem.detail === 'string') return problem;
  } catch {
    // Not a problem document: the status has to do.
  }
  return { status: response.status, title: response.statusText, detail: `status ${response.status}` };
}

/** The response and its text; null if there is none, or if it breaks off. */
async function answerOf(url, init) {
  try {
    const response = await fetch(url, { cache: 'no-store', ...init, headers: headers(init.headers) });
    return { response, text: await response.text() };
  } catch {
    return null;
  } finally {
    await released();
  }
}

async function call(method, url, body) {
  const init = { method };
  if (body !== undefined) {
    init.headers = { 'content-type': 'application/json' };
    init.body = JSON.stringify(body);
  }
  const answer = await answerOf(url, init);
  if (answer === null) {
    const detail = 'The admin server does not answer: the cluster has stopped, or its process has died.';
    report('gone', detail);
    throw new ApiError({ status: 0, title: 'no answer', detail });
  }
  const { response, text } = answer;
  if (!response.ok) {
    const error = new ApiError(problemOf(response, text));
    if (error.status === 401) report('token', error.message);
    else if (error.status === 503) report('silent', error.message);
    else report('ok', '');
    throw error;
  }
  report('ok', '');
  if (response.status === 204) return null;
  const json = (response.headers.get('content-type') || '').startsWith('application/json');
  return json ? JSON.parse(text) : text;
}

/** GET: the parsed JSON, or the text of another type. Throws ApiError. */
export const get = (path, params) => call('GET', urlOf(path, params));
/** POST a JSON body. Throws ApiError. */
export const post = (path, body = {}) => call('POST', path, body);
/** PATCH with a JSON body. Throws ApiError. */
export const patch = (path, body = {}) => call('PATCH', path, body);
/** DELETE. Throws ApiError. */
export const del = (path, params) => call('DELETE', urlOf(path, params));
