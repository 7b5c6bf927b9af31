// Bytes of keys and values as text, JSON, hex, base64, or by a schema.
//
// Serializers with a schema registry write a zero byte and the schema's id in four bytes first.
// The page cannot ask a registry (its policy allows this server only), so schemas are pasted; the
// tab keeps them. Avro needs its schema. Protobuf is readable by field numbers, JSON as it is.

import { observable } from './observable.js';

const KEPT = 'mockbroker-schemas';

/** Schemas by id: `{type: 'AVRO'|'PROTOBUF'|'JSON', schema: any}`. */
export const schemas = observable(read());

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) || '{}');
  } catch {
    return {};
  }
}

/**
 * Keep a schema: an Avro schema as JSON, or what a registry answers at `/schemas/ids/ID`.
 * Throws an Error whose text is a sentence.
 */
export function addSchema(id, text) {
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    throw new Error('The schema is no JSON. Paste an Avro schema, or the answer of the registry at /schemas/ids/ID.');
  }
  const isAnswer = given && typeof given.schema === 'string';
  const type = isAnswer ? given.schemaType || 'AVRO' : 'AVRO';
  const schema = isAnswer && type !== 'PROTOBUF' ? JSON.parse(given.schema) : isAnswer ? given.schema : given;
  schemas.set({ ...schemas.get(), [id]: { type, schema } });
  sessionStorage.setItem(KEPT, JSON.stringify(schemas.get()));
}

/** @param {string|null} text base64 @returns {Uint8Array|null} */
export function bytesOf(text) {
  if (text === null || text === undefined) return null;
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

const strict = new TextDecoder('utf-8', { fatal: true });
const lax = new TextDecoder('utf-8');

const isText = (data) => {
  try {
    // eslint-disable-next-line no-control-regex
    return !/[\u0000-\u0008\u000e-\u001f]/.test(strict.decode(data));
  } catch {
    return false;
  }
};

/** The schema's id of bytes in a registry's format, or null. */
export function schemaIdOf(data) {
  if (!data || data.length < 6 || data[0] !== 0) return null;
  const id = new DataView(data.buffer, data.byteOffset).getUint32(1);
  return id > 0 && id < 1_000_000 ? id : null;
}

export const hexOf = (data) => [...data].map((b) => b.toString(16).padStart(2, '0')).join(' ');

/** Hex with offsets and characters, 16 bytes a line. */
export function hexDump(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const part = data.subarray(at, at + 16);
    const text = [...part].map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '.')).join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hexOf(part).padEnd(47)}  ${text}`);
  }
  return lines.join('\n');
}

/**
 * Bytes in one format; "auto" chooses. `note` says what was found, or why it is not shown so.
 * @param {Uint8Array|null} data @param {'auto'|'text'|'json'|'hex'|'base64'|'schema'} format
 * @param {{pretty?: boolean, cut?: boolean}} options `cut`: the value is longer than the data
 * @returns {{text: string, note: string, kind: string}}
 */
export function decode(data, format, { pretty = false, cut = false } = {}) {
  if (data === null) return { text: 'null', note: '', kind: 'null' };
  if (format === 'hex') return { text: pretty ? hexDump(data) : hexOf(data), note: '', kind: 'hex' };
  if (format === 'base64') return { text: btoa(String.fromCharCode(...data)), note: '', kind: 'base64' };
  if (format === 'text') return { text: lax.decode(data), note: isText(data) ? '' : 'not all of it is text', kind: 'text' };
  const id = schemaIdOf(data);
  if (format === 'schema' || (format === 'auto' && id !== null)) {
    const found = bySchema(data, id, pretty, cut);
    if (found.kind !== 'hex' || format === 'schema') return found;
    return found;
  }
  if (!isText(data)) {
    if (cut && isText(data.subarray(0, Math.max(data.length - 4, 0)))) return { text: lax.decode(data), note: '', kind: 'text' };
    return { text: pretty ? hexDump(data) : hexOf(data), note: 'bytes', kind: 'hex' };
  }
  const text = lax.decode(data);
  const json = jsonOf(text, pretty);
  if (json !== null) return { text: json, note: '', kind: 'json' };
  return { text, note: format === 'json' ? (cut ? 'it is cut, so it is no JSON' : 'this is no JSON') : '', kind: 'text' };
}

function jsonOf(text, pretty) {
  if (!/^\s*[[{"\d-tfn]/.test(text)) return null;
  try {
    const value = JSON.parse(text);
    return pretty && typeof value === 'object' ? JSON.stringify(value, null, 2) : text;
  } catch {
    return null;
  }
}

function bySchema(data, id, pretty, cut) {
  if (id === null) return { text: hexOf(data), note: 'no schema id: the first byte is not 0', kind: 'hex' };
  const known = schemas.get()[id];
  const body = data.subarray(5);
  const label = `schema ${id}`;
  const show = (value) => JSON.stringify(value, bigint, pretty ? 2 : undefined);
  try {
    if (known?.type === 'AVRO') return { text: show(new Avro(known.schema).read(body)), note: `${label}, Avro`, kind: 'json' };
    if (known?.type === 'PROTOBUF') return { text: show(protobuf(body.subarray(messageIndex(body)))), note: `${label}, Protobuf by field numbers`, kind: 'json' };
  } catch (error) {
    return { text: hexOf(data), note: `${label}: ${cut ? 'the value is cut' : error.message}`, kind: 'hex' };
  }
  const json = isText(body) ? jsonOf(lax.decode(body), pretty) : null;
  if (json !== null) return { text: json, note: `${label}, JSON`, kind: 'json' };
  return { text: hexOf(data), note: `${label} is not known: paste it by "Schemas"`, kind: 'hex' };
}

const bigint = (_, value) => (typeof value === 'bigint' ? (Number.isSafeInteger(Number(value)) ? Number(value) : String(value)) : value);

/** Reads Avro's binary encoding by a schema. */
class Avro {
  constructor(schema) {
    this.schema = schema;
    this.named = new Map();
  }

  read(data) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.at = 0;
    const value = this.value(this.schema, '');
    if (this.at !== data.length) throw new Error(`${data.length - this.at} bytes are left over`);
    return value;
  }

  long() {
    let result = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (this.at >= this.data.length || shift > 63n) throw new Error('the bytes end too early');
      const byte = this.data[this.at++];
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return (result >> 1n) ^ -(result & 1n);
    }
  }

  take(length) {
    if (length < 0 || this.at + length > this.data.length) throw new Error('the bytes end too early');
    return this.data.subarray(this.at, (this.at += length));
  }

  value(schema, space) {
    if (Array.isArray(schema)) {
      const branch = schema[Number(this.long())];
      if (branch === undefined) throw new Error('a union has no such branch');
      return this.value(branch, space);
    }
    if (typeof schema === 'string') return this.primitive(schema, space);
    if (schema.name) {
      const inner = schema.namespace ?? (schema.name.includes('.') ? schema.name.replace(/\.[^.]*$/, '') : space);
      this.named.set(schema.name, schema);
      this.named.set(inner && !schema.name.includes('.') ? `${inner}.${schema.name}` : schema.name, schema);
      space = inner;
    }
    switch (schema.type) {
      case 'record':
        return Object.fromEntries(schema.fields.map((field) => [field.name, this.value(field.type, space)]));
      case 'enum':
        return schema.symbols[Number(this.long())];
      case 'fixed':
        return hexOf(this.take(schema.size));
      case 'array':
        return this.blocks(() => this.value(schema.items, space));
      case 'map':
        return Object.fromEntries(this.blocks(() => [this.primitive('string', space), this.value(schema.values, space)]));
      default:
        return this.value(schema.type, space);
    }
  }

  blocks(item) {
    const found = [];
    for (let count = Number(this.long()); count !== 0; count = Number(this.long())) {
      if (count < 0) {
        count = -count;
        this.long(); // the size of the block
      }
      if (count > this.data.length) throw new Error('the bytes end too early');
      for (let n = 0; n < count; n += 1) found.push(item());
    }
    return found;
  }

  primitive(type, space) {
    switch (type) {
      case 'null': return null;
      case 'boolean': return this.take(1)[0] === 1;
      case 'int': case 'long': return this.long();
      case 'float': { this.take(4); return this.view.getFloat32(this.at - 4, true); }
      case 'double': { this.take(8); return this.view.getFloat64(this.at - 8, true); }
      case 'string': return lax.decode(this.take(Number(this.long())));
      case 'bytes': return hexOf(this.take(Number(this.long())));
      default: {
        const found = this.named.get(type) || this.named.get(`${space}.${type}`);
        if (!found) throw new Error(`the schema has no type ${type}`);
        return this.value(found, space);
      }
    }
  }
}

/** How many bytes the list of message indexes has that Protobuf's serializer writes first. */
function messageIndex(body) {
  const reader = new Avro(null);
  reader.data = body;
  reader.at = 0;
  const count = Number(reader.long());
  for (let n = 0; n < count; n += 1) reader.long();
  return reader.at;
}

/** A Protobuf message by its field numbers; bytes are a message, text or hex, as they can be read. */
function protobuf(data, depth = 0) {
  const fields = {};
  let at = 0;
  const varint = () => {
    let result = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (at >= data.length || shift > 63n) throw new Error('the bytes end too early');
      const byte = data[at++];
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
  };
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  while (at < data.length) {
    const tag = Number(varint());
    const [field, wire] = [tag >>> 3, tag & 7];
    let value;
    if (field === 0) throw new Error('a field has the number 0');
    if (wire === 0) value = varint();
    else if (wire === 1) { value = view.getFloat64(at, true); at += 8; }
    else if (wire === 5) { value = view.getFloat32(at, true); at += 4; }
    else if (wire === 2) {
      const length = Number(varint());
      if (at + length > data.length) throw new Error('the bytes end too early');
      value = inner(data.subarray(at, at + length), depth);
      at += length;
    } else throw new Error(`there is no wire type ${wire}`);
    if (field in fields) fields[field] = [].concat(fields[field], [value]);
    else fields[field] = value;
  }
  return fields;
}

function inner(part, depth) {
  if (part.length > 0 && isText(part)) return lax.decode(part);
  if (depth < 20) {
    try {
      return protobuf(part, depth + 1);
    } catch {
      // Not a message: bytes.
    }
  }
  return hexOf(part);
}
