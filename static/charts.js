// Draws every <figure data-chart>: reads the Plotly figure that the server embedded, replaces roles with the colours of
// the current theme, and redraws when theme, size or figure change.
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

  // Paper is white. A page does not know its printed width, so this is the width of a card on an A4 sheet.
  const paperWidth = 660;
  let onPaper = false;

  // A custom property may contain light-dark(), which resolves to one colour only as the colour of an element.
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

  // Replaces roles in colour properties only, because a target may be named "grid".
  function withColours(node, colours, key = "") {
    if (Array.isArray(node)) return node.map((item) => withColours(item, colours, key));
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, withColours(value, colours, name)]));
    }
    return typeof node === "string" && (key.endsWith("color") || key === "colorscale") ? (colours.get(node) ?? node) : node;
  }

  function draw(figure, colours) {
    const source = figure.querySelector('script[type="application/json"]')?.textContent;
    const plot = figure.querySelector(".plot");
    if (!source || !plot || !figure.clientWidth) return;
    const { data, layout } = withColours(JSON.parse(source), colours);
    const off = hiddenCurves.get(figure.id);
    // Hides the traces that belong to a hidden curve, too.
    for (const index of off ?? []) {
      const group = data[index]?.legendgroup;
      for (const trace of data) if (trace === data[index] || (group && trace.legendgroup === group)) trace.visible = false;
    }
    layout.font = { ...layout.font, family: getComputedStyle(document.body).fontFamily };
    layout.width = onPaper ? paperWidth : figure.clientWidth;
    layout.height = figure.clientHeight;
    drawn.set(figure, { source, plot, width: layout.width, height: layout.height });
    Plotly.react(plot, data, layout, { displayModeBar: false, showTips: false });
    if (figure.dataset.shares && !withHover.has(plot)) {
      withHover.add(plot);
      plot.on("plotly_hover", ({ points }) => markPosition(figure, points[0]?.x));
      plot.on("plotly_unhover", () => markPosition(figure, null));
    }
  }

  // Marks the hovered position in all charts that share the horizontal axis. The marker is a separate element, because
  // redrawing every chart on each mouse move would be slow.
  const withHover = new WeakSet();
  function markPosition(from, x) {
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

  // Curves that the user has hidden, by the id of their figure. They stay hidden when the figure changes.
  const hiddenCurves = new Map();
  function updateKeys() {
    for (const key of document.querySelectorAll(".key")) {
      const off = hiddenCurves.get(key.getAttribute("aria-controls"))?.has(Number(key.dataset.curve)) ?? false;
      if (key.getAttribute("aria-pressed") !== String(!off)) key.setAttribute("aria-pressed", String(!off));
    }
  }
  document.addEventListener("click", ({ target }) => {
    const key = target.closest?.(".key");
    const id = key?.getAttribute("aria-controls");
    const figure = id && document.getElementById(id);
    if (!figure) return;
    const off = hiddenCurves.get(id) ?? new Set();
    const curve = Number(key.dataset.curve);
    if (!off.delete(curve)) off.add(curve);
    hiddenCurves.set(id, off);
    updateKeys();
    if (window.Plotly) draw(figure, palette());
  });

  // Saves a chart as a file, as wide as a page of a document, in the current colours.
  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("[data-save]");
    const figure = button && document.getElementById(button.getAttribute("aria-controls"));
    const source = figure?.querySelector('script[type="application/json"]')?.textContent;
    if (!source || !window.Plotly) return;
    const colours = palette();
    const { data, layout } = withColours(JSON.parse(source), colours);
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

  // Plotly is larger than all other assets together, so it is loaded only once a page has a chart.
  const thisScript = document.currentScript;
  let isLoading = false;
  function loadPlotly() {
    if (isLoading) return;
    isLoading = true;
    const script = document.createElement("script");
    script.src = thisScript.dataset.plotly;
    script.nonce = thisScript.nonce;
    script.addEventListener("load", update);
    document.head.append(script);
  }

  // Draws new and changed figures, and removes the plots of figures that are gone.
  function update() {
    updateKeys();
    if (!window.Plotly) {
      if (document.querySelector("figure[data-chart]")) loadPlotly();
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
      // A chart in a closed <details> is drawn when that opens.
      if (!figure.checkVisibility()) continue;
      draw(figure, (colours ??= palette()));
      if (!last) sizes.observe(figure);
    }
  }

  function redraw() {
    const colours = palette();
    for (const figure of drawn.keys()) draw(figure, colours);
  }

  // Ignores the changes that Plotly makes to the page.
  const outsidePlots = ({ target, addedNodes }) =>
    !(target.nodeType === 1 ? target : target.parentElement)?.closest(".plot") && !addedNodes[0]?.classList?.contains("pointed");
  new MutationObserver((changes) => {
    if (changes.some(outsidePlots)) update();
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
  scheme.addEventListener("change", redraw);
  document.addEventListener("toggle", update, true);
  for (const [event, prints] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      onPaper = prints;
      redraw();
    });
  }

  // A fragment opens the fold that it names, or that contains it.
  function reveal() {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = named?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    named?.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
  update();
})();
