// Draws every <figure data-chart>: reads the Plotly figure that the server put into it, turns roles into the colours of
// the present scheme, and draws again when scheme, size or figure change.
"use strict";
(() => {
  const roles = new Map([
    ["ink", "--ink"],
    ["soft ink", "--soft"],
    ["grid", "--line"],
    ["card", "--card"],
    ["faint", "--faint"],
    ["good", "--good"],
    ["bad", "--bad"],
    ["doubtful", "--warn"],
  ]);
  for (let n = 1; n <= 8; n++) roles.set(`target ${n}`, `--t${n}`);

  const drawn = new Map();
  const scheme = matchMedia("(prefers-color-scheme: dark)");

  // Paper is white, and as wide as an A4 sheet leaves room for in a card; a page does not tell its printed width.
  const paperWidth = 660;
  let onPaper = false;

  // A custom property may hold light-dark(): only as the colour of an element does it become one colour.
  function palette() {
    const probe = document.createElement("i");
    if (onPaper) probe.style.colorScheme = "light";
    document.body.append(probe);
    const colours = new Map();
    for (const [role, property] of roles) {
      probe.style.color = `var(${property})`;
      colours.set(role, getComputedStyle(probe).color);
    }
    probe.remove();
    return colours;
  }

  // Only what stands under a colour's name is a role: a target may well be called "grid".
  function painted(node, colours, key = "") {
    if (Array.isArray(node)) return node.map((item) => painted(item, colours, key));
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, painted(value, colours, name)]));
    }
    return typeof node === "string" && key.endsWith("color") ? (colours.get(node) ?? node) : node;
  }

  function draw(figure, colours) {
    const source = figure.querySelector('script[type="application/json"]')?.textContent;
    const plot = figure.querySelector(".plot");
    if (!source || !plot || !figure.clientWidth) return;
    const { data, layout } = painted(JSON.parse(source), colours);
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    layout.width = onPaper ? paperWidth : figure.clientWidth;
    layout.height = figure.clientHeight;
    drawn.set(figure, { source, plot, width: layout.width, height: layout.height });
    Plotly.react(plot, data, layout, { displayModeBar: false, showTips: false });
  }

  const sizes = new ResizeObserver((entries) => {
    const colours = palette();
    for (const { target } of entries) {
      const last = drawn.get(target);
      if (onPaper) continue;
      if (last?.width !== target.clientWidth || last?.height !== target.clientHeight) draw(target, colours);
    }
  });

  // Plotly is larger than everything else together: it comes with the first chart of a page, not with a page without one.
  const here = document.currentScript;
  let comes = false;
  function summon() {
    if (comes) return;
    comes = true;
    const script = document.createElement("script");
    script.src = here.dataset.plotly;
    script.nonce = here.nonce;
    script.addEventListener("load", survey);
    document.head.append(script);
  }

  // Finds what came, what changed and what went.
  function survey() {
    if (!window.Plotly) {
      if (document.querySelector("figure[data-chart]")) summon();
      return;
    }
    for (const [figure, { plot }] of drawn) {
      if (figure.isConnected) continue;
      sizes.unobserve(figure);
      Plotly.purge(plot);
      drawn.delete(figure);
    }
    let colours;
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const last = drawn.get(figure);
      const source = figure.querySelector('script[type="application/json"]')?.textContent;
      if (last && last.source === source && last.plot.isConnected) continue;
      draw(figure, (colours ??= palette()));
      if (!last) sizes.observe(figure);
    }
  }

  function redraw() {
    const colours = palette();
    for (const figure of drawn.keys()) draw(figure, colours);
  }

  // Plotly changes the page as well: those changes are not news.
  const outsidePlots = ({ target }) => !(target.nodeType === 1 ? target : target.parentElement)?.closest(".plot");
  new MutationObserver((changes) => {
    if (changes.some(outsidePlots)) survey();
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
  scheme.addEventListener("change", redraw);
  for (const [event, is] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      onPaper = is;
      redraw();
    });
  }
  survey();
})();
