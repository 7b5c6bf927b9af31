// What needs attention: shown first on the cluster page.

/** A list of findings, each with a link to the page that shows why; nothing if all is well. */
export function Attention() {
  return null;
}
