// A value with listeners.

/**
 * @template T
 * @typedef {{get: () => T, set: (value: T) => void, subscribe: (listener: (value: T) => void) => () => void}} Observable
 */

/**
 * @template T
 * @param {T} value
 * @returns {Observable<T>} listeners are called after a change, not when they subscribe
 */
export function observable(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener(value);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
