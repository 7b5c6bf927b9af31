// Preact with its hooks and htm: the one place that knows the name of the vendored file.
//
// Text is set as text: `html` builds elements, never markup, and nothing here uses innerHTML.

export * from '../vendor/preact.js';
