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
    return typeof node === "string" && (key.endsWith("color") || key === "colorscale") ? (colours.get(node) ?? node) : node;
  }

  function draw(figure, colours) {
    const source = figure.querySelector('script[type="application/json"]')?.textContent;
    const plot = figure.querySelector(".plot");
    if (!source || !plot || !figure.clientWidth) return;
    const { data, layout } = painted(JSON.parse(source), colours);
    const off = switchedOff.get(figure.id);
    // What belongs to a curve goes with it.
    for (const place of off ?? []) {
      const group = data[place]?.legendgroup;
      for (const trace of data) if (trace === data[place] || (group && trace.legendgroup === group)) trace.visible = false;
    }
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    layout.width = onPaper ? paperWidth : figure.clientWidth;
    layout.height = figure.clientHeight;
    drawn.set(figure, { source, plot, width: layout.width, height: layout.height });
    Plotly.react(plot, data, layout, { displayModeBar: false, showTips: false });
    if (figure.dataset.shares && !pointing.has(plot)) {
      pointing.add(plot);
      plot.on("plotly_hover", ({ points }) => point(figure, points[0]?.x));
      plot.on("plotly_unhover", () => point(figure, null));
    }
  }

  // What is pointed at in one chart is marked in all that share its horizontal axis; a line of our own, as drawing all of
  // them anew for every move of the mouse would be slow.
  const pointing = new WeakSet();
  function point(from, x) {
    for (const [figure, { plot }] of drawn) {
      if (figure.dataset.shares !== from.dataset.shares) continue;
      let line = figure.querySelector(".pointed");
      const { xaxis, yaxis } = plot._fullLayout ?? {};
      const at = typeof x === "number" && xaxis ? xaxis.l2p(x) : NaN;
      if (!(at >= 0 && at <= xaxis._length)) {
        line?.remove();
        continue;
      }
      if (!line) {
        line = document.createElement("i");
        line.className = "pointed";
        figure.append(line);
      }
      line.style.cssText = `left:${xaxis._offset + at}px;top:${yaxis._offset}px;height:${yaxis._length}px`;
    }
  }

  // Curves that somebody switched off, by the id of their figure: they stay off when the figure changes.
  const switchedOff = new Map();
  function showKeys() {
    for (const key of document.querySelectorAll(".key")) {
      const off = switchedOff.get(key.getAttribute("aria-controls"))?.has(Number(key.dataset.curve)) ?? false;
      if (key.getAttribute("aria-pressed") !== String(!off)) key.setAttribute("aria-pressed", String(!off));
    }
  }
  document.addEventListener("click", ({ target }) => {
    const key = target.closest?.(".key");
    const id = key?.getAttribute("aria-controls");
    const figure = id && document.getElementById(id);
    if (!figure) return;
    const off = switchedOff.get(id) ?? new Set();
    const curve = Number(key.dataset.curve);
    if (!off.delete(curve)) off.add(curve);
    switchedOff.set(id, off);
    showKeys();
    if (window.Plotly) draw(figure, palette());
  });

  // A chart as a file, as wide as a page of a document, in the present colours.
  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("[data-save]");
    const figure = button && document.getElementById(button.getAttribute("aria-controls"));
    const source = figure?.querySelector('script[type="application/json"]')?.textContent;
    if (!source || !window.Plotly) return;
    const colours = palette();
    const { data, layout } = painted(JSON.parse(source), colours);
    const head = figure.closest("section")?.querySelector("h2")?.textContent ?? "";
    layout.title = { text: head, x: 0.02, xanchor: "left", font: { color: colours.get("ink"), size: 16 } };
    layout.margin = { ...layout.margin, t: 48 };
    layout.paper_bgcolor = colours.get("card");
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    layout.showlegend = figure.closest("section")?.querySelector(".keys") !== null;
    const size = { width: 960, height: Math.max(figure.clientHeight, 440) };
    Plotly.downloadImage({ data, layout }, { ...size, format: button.dataset.save, filename: figure.id });
  });

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
    showKeys();
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
  const outsidePlots = ({ target, addedNodes }) =>
    !(target.nodeType === 1 ? target : target.parentElement)?.closest(".plot") && !addedNodes[0]?.classList?.contains("pointed");
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
