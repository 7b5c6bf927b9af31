// The page holds still while something on it is pressed: answers of the server wait until it is
// released. A browser sends no click if what was pressed has moved away from the pointer by then.

// What reacts to a click. Sliders and scroll bars are no part of it: the page follows those.
const PRESSED = 'a, button, label, summary, tr, g, [role="option"]';

let release = null;
let held = null;

function end() {
  if (!release) return;
  // The click comes after the pointer's events and before any timer.
  setTimeout(release);
  release = null;
}

addEventListener('pointerdown', (event) => {
  if (!release && event.target.closest?.(PRESSED)) held = new Promise((done) => { release = done; });
}, true);
for (const name of ['pointerup', 'pointercancel', 'keydown']) addEventListener(name, end, true);
addEventListener('blur', end); // of the window: that of an element does not bubble
// It was released where no browser tells of it, outside the window for example.
addEventListener('pointermove', (event) => { if (event.buttons === 0) end(); }, true);

/** Wait until nothing is pressed. @returns {Promise<void>} */
export async function released() {
  while (release) await held;
}
