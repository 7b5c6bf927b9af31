// JSON Schema, as far as `/openapi.json` uses it for rules: what is wrong with a value, and what a
// place in it may be. The cluster judges in the end; this says the same while one types.

const nearest = (word, words) => {
  const [best] = words.map((each) => [distance(word, each), each]).sort(([a], [b]) => a - b);
  return best && best[0] <= Math.max(2, word.length / 3) ? best[1] : null;
};

function distance(a, b) {
  let row = [...b, 0].map((_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

const typeOf = (value) =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
const fits = (type, value) => type === typeOf(value) || (type === 'number' && typeof value === 'number');
const NAMES = { object: 'an object {…}', array: 'a list […]', string: 'text', integer: 'a whole number', number: 'a number', boolean: 'true or false', null: 'null' };

export class Schemas {
  /** @param {object} document of `GET /openapi.json` */
  constructor(document) {
    this.document = document;
  }

  /** A schema without a reference. */
  open(schema) {
    if (!schema?.$ref) return schema || {};
    return schema.$ref.slice(2).split('/').reduce((at, part) => at?.[part], this.document) || {};
  }

  /** The alternatives of a schema. */
  options(schema) {
    const found = this.open(schema);
    return (found.anyOf || found.oneOf || [found]).flatMap((each) =>
      each === found ? [found] : this.options(each));
  }

  /**
   * What is wrong.
   * @returns {{path: (string|number)[], text: string}[]} sentences with their place
   */
  check(value, schema, path = []) {
    const options = this.options(schema);
    const tried = options.map((option) => this.one(value, option, path));
    if (tried.some((found) => found.length === 0)) return [];
    // The alternative that was meant is the one of the value's type; of several, the nearest.
    const meant = tried.filter((_, n) => options[n].type && fits(options[n].type, value));
    if (meant.length > 0) {
      const depth = (found) => Math.max(...found.map((each) => each.path.length));
      return meant.sort((a, b) => depth(b) - depth(a) || a.length - b.length)[0];
    }
    const enums = options.flatMap((each) => each.enum || []).filter((each) => each !== null);
    if (typeof value === 'string' && enums.length > 0) {
      const near = nearest(value, enums.filter((each) => typeof each === 'string'));
      return [{ path, text: `${JSON.stringify(value)} is none of ${enums.map((e) => JSON.stringify(e)).join(', ')}${near ? `; did you mean ${JSON.stringify(near)}?` : ''}` }];
    }
    const types = [...new Set(options.flatMap((each) => each.type || []))];
    return [{ path, text: `it has to be ${types.map((each) => NAMES[each] || each).join(' or ') || 'another value'}` }];
  }

  one(value, schema, path) {
    const wrong = (text) => [{ path, text }];
    if (schema.enum) return schema.enum.includes(value) ? [] : wrong('another value is needed');
    if (schema.type && !fits(schema.type, value)) return wrong(`it has to be ${NAMES[schema.type] || schema.type}`);
    if (typeof value === 'number') {
      if (schema.minimum !== undefined && value < schema.minimum) return wrong(`at least ${schema.minimum}`);
      if (schema.maximum !== undefined && value > schema.maximum) return wrong(`at most ${schema.maximum}`);
    }
    if (typeof value === 'string' && schema.pattern && !new RegExp(schema.pattern).test(value)) {
      return wrong('it is no duration: 250ms, 5s, 2m');
    }
    if (Array.isArray(value)) {
      return schema.items ? value.flatMap((each, n) => this.check(each, schema.items, [...path, n])) : [];
    }
    if (typeOf(value) === 'object') return this.object(value, schema, path);
    return [];
  }

  object(value, schema, path) {
    const known = schema.properties || {};
    const found = [];
    for (const [name, each] of Object.entries(value)) {
      if (known[name]) found.push(...this.check(each, known[name], [...path, name]));
      else if (schema.additionalProperties === false || (schema.properties && !schema.additionalProperties)) {
        const near = nearest(name, Object.keys(known));
        found.push({ path: [...path, name], text: `unknown field ${JSON.stringify(name)}${near ? `; did you mean ${JSON.stringify(near)}?` : ''}` });
      } else if (typeof schema.additionalProperties === 'object') found.push(...this.check(each, schema.additionalProperties, [...path, name]));
    }
    for (const name of schema.required || []) {
      if (!(name in value)) found.push({ path, text: `${JSON.stringify(name)} is missing` });
    }
    if (schema.minProperties && Object.keys(value).length < schema.minProperties) found.push({ path, text: 'at least one is needed' });
    return found;
  }

  /** The schemas that a place may have. @param {(string|number)[]} path */
  at(schema, path) {
    let found = this.options(schema);
    for (const part of path) {
      found = found.flatMap((each) => {
        const next = typeof part === 'number' ? each.items : each.properties?.[part]
          || (typeof each.additionalProperties === 'object' ? each.additionalProperties : null);
        return next ? this.options(next) : [];
      });
    }
    return found;
  }

  /** The fields that an object at a place may have. @returns {{name: string, note: string, value: string}[]} */
  fieldsAt(schema, path) {
    const found = new Map();
    for (const each of this.at(schema, path)) {
      for (const [name, part] of Object.entries(each.properties || {})) {
        const options = this.options(part);
        const note = (options.find((one) => one.description)?.description || kindOf(options)).split('\n')[0];
        found.set(name, { name, note, value: sampleOf(options) });
      }
    }
    return [...found.values()];
  }

  /** The values that a place may have, as far as the schema lists them. @returns {string[]} JSON */
  valuesAt(schema, path) {
    const options = this.at(schema, path);
    const found = options.flatMap((each) => each.enum || []).filter((each) => each !== null).map((each) => JSON.stringify(each));
    if (options.some((each) => each.type === 'boolean')) found.push('true', 'false');
    return [...new Set(found)];
  }
}

const kindOf = (options) => [...new Set(options.filter((each) => each.type !== 'null').map((each) => NAMES[each.type] || (each.enum ? each.enum.join(' | ') : '')).filter(Boolean))].join(' or ');

/** What is written when a field is chosen, with the cursor after it. */
function sampleOf(options) {
  const types = options.map((each) => each.type);
  if (types.includes('object') && !types.includes('string') && !types.includes('integer')) return '{}';
  if (types.includes('string') || options.some((each) => each.enum?.some((one) => typeof one === 'string'))) return '""';
  return '';
}

// --- The place of the cursor in unfinished JSON ----------------------------------------------

/**
 * Where a position of JSON text is, also if the text is not finished.
 * @returns {{path: (string|number)[], isKey: boolean, word: string, from: number, to: number, present: string[]}}
 *   `from` to `to` is the word at the cursor, with its quotes
 */
export function placeOf(text, cursor) {
  const stack = [];
  let word = null;
  let n = 0;
  const top = () => stack.at(-1);
  while (n < cursor) {
    const c = text[n];
    if (c === '"') {
      const end = stringEnd(text, n);
      if (end > cursor || (end === cursor && text[end - 1] !== '"')) {
        word = { from: n, to: Math.min(end, lineEnd(text, n)) };
        break;
      }
      if (top() && !top().list && top().key === null) {
        top().key = text.slice(n + 1, end - 1);
        top().present.push(top().key);
      }
      n = end;
      continue;
    }
    if (c === '{') stack.push({ list: false, key: null, present: [] });
    else if (c === '[') stack.push({ list: true, key: 0, present: [] });
    else if (c === '}' || c === ']') stack.pop();
    else if (c === ',' && top()) top().key = top().list ? top().key + 1 : null;
    else if (c === ':' && top()) top().after = true;
    if (/[\w.+-]/.test(c)) {
      const start = n;
      while (n < text.length && /[\w.+-]/.test(text[n])) n += 1;
      if (n >= cursor) {
        word = { from: start, to: n };
        break;
      }
      continue;
    }
    n += 1;
  }
  const here = top();
  const isKey = Boolean(here) && !here.list && here.key === null;
  const path = stack.slice(0, -1).map((each) => each.key);
  if (here && !isKey) path.push(here.key);
  const found = word ? text.slice(word.from, cursor).replace(/^"/, '') : '';
  return {
    path: path.filter((each) => each !== null), isKey, word: found, from: word?.from ?? cursor, to: word?.to ?? cursor,
    present: here?.present || [],
  };
}

function stringEnd(text, start) {
  for (let n = start + 1; n < text.length; n += 1) {
    if (text[n] === '\\') n += 1;
    else if (text[n] === '"') return n + 1;
    else if (text[n] === '\n') return n;
  }
  return text.length;
}
const lineEnd = (text, from) => {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
};

/** The value of JSON text, or a sentence that says where it breaks off. @returns {{value?: any, wrong?: string}} */
export function parse(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const at = Number(/position (\d+)/.exec(error.message)?.[1] ?? text.length);
    const before = text.slice(0, at).split('\n');
    const what = error.message.replace(/ in JSON.*$| \(line.*$/, '').replace(/^JSON\.parse: /, '');
    return { wrong: `This is not JSON yet: ${what} in line ${before.length}, column ${before.at(-1).length + 1}.` };
  }
}

/** "match.topic", "rules[0].do". */
export const pathText = (path) =>
  path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('').replace(/^\./, '');
