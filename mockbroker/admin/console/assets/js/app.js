// The console's start: the cluster, its brokers, and links to the endpoints.
import {html, render, useEffect, useState} from '/console/vendor/preact.js';

function App() {
  const [index, setIndex] = useState(null);
  useEffect(() => {
    fetch('/', {headers: {accept: 'application/json'}}).then(
      answer => answer.json()).then(setIndex);
  }, []);
  if (index === null) return html`<p>Asking the cluster …</p>`;
  return html`<h1>mockbroker ${index.version}</h1>
    ${Object.entries(index.endpoints).map(([tag, links]) => html`<h2>${tag}</h2>
      <ul>${links.map(each => html`<li><code>${each.method} ${each.path}</code> ${each.summary}</li>`)}</ul>`)}`;
}

render(html`<${App} />`, document.getElementById('app'));
