// Draws on while a run goes on. The page's stream puts what is new into #news, each time an element with JSON: points that
// take the place of all that are later than a time. Figures say in `meta` where the next points of a curve are; charts.js
// draws what has changed.
"use strict";
(() => {
  const waiting = [];
  let due = false;

  const at = (point, path) => path.split(".").reduce((value, name) => value?.[name], point) ?? null;

  // How many points of a list of times stay.
  function kept(times, after) {
    if (after === null) return 0;
    let count = times.length;
    while (count > 0 && times[count - 1] > after) count--;
    return count;
  }

  function draw(trace, points, after, layout) {
    const { meta, x } = trace;
    if ("constant" in meta) {
      x[x.length - 1] = points.at(-1).at_s;
      return;
    }
    const count = kept(x, after);
    x.splice(count, Infinity, ...points.map((point) => point.at_s));
    if (meta.buckets) heat(trace, count, points, layout);
    else trace.y.splice(count, Infinity, ...points.map((point) => divided(at(point, meta.y), meta.unit)));
  }

  const divided = (value, unit = 1) => (value === null ? null : value / unit);

  // A column a second, a row a band of latencies; band n ends at 2^(n ÷ per_doubling) seconds.
  function heat(trace, count, points, layout) {
    const { y, z, customdata, meta } = trace;
    const band = (ms) => Math.ceil(meta.per_doubling * Math.log2(Math.max(ms, 0.001) / 1000) - 0.01);
    const columns = points.map((point) => {
      const bands = new Map();
      for (const [ms, requests] of at(point, meta.buckets) ?? []) bands.set(band(ms), (bands.get(band(ms)) ?? 0) + requests);
      return bands;
    });
    const rowsOf = [z, customdata];
    for (const row of columns.flatMap((bands) => [...bands.keys()])) {
      while (row < y[0]) {
        y.unshift(y[0] - 1);
        for (const rows of rowsOf) rows.unshift(Array(count).fill(null));
      }
      while (row > y.at(-1)) {
        y.push(y.at(-1) + 1);
        for (const rows of rowsOf) rows.push(Array(count).fill(null));
      }
    }
    y.forEach((row, place) => {
      const counts = columns.map((bands) => bands.get(row) ?? null);
      customdata[place].splice(count, Infinity, ...counts);
      const shade = (requests) => requests && Math.round(Math.log10(1 + requests) * 1000) / 1000;
      z[place].splice(count, Infinity, ...counts.map(shade));
    });
    layout.yaxis.range = [y[0] - 0.5, y.at(-1) + 0.5];
  }

  function take(figure, portion) {
    for (const trace of figure.data) {
      const from = trace.meta?.from;
      if (from && portion[from].length) draw(trace, portion[from], portion[`${from}_after_s`], figure.layout);
    }
    const warmUp = figure.layout.shapes?.[0];
    if (warmUp && portion.phase === "warming_up" && portion.seconds.length) warmUp.x1 = portion.seconds.at(-1).at_s;
  }

  function flush() {
    due = false;
    const portions = waiting.splice(0);
    for (const source of document.querySelectorAll('figure[data-shares] > script[type="application/json"]')) {
      const figure = JSON.parse(source.textContent);
      for (const portion of portions) take(figure, portion);
      const text = JSON.stringify(figure);
      if (text !== source.textContent) source.textContent = text;
    }
  }

  // Load and resources come a moment apart: both are one drawing.
  function look() {
    const news = document.getElementById("news");
    if (!news?.firstElementChild) return;
    waiting.push(...Array.from(news.children, (child) => JSON.parse(child.textContent)));
    news.replaceChildren();
    if (!due) setTimeout(flush, 100);
    due = true;
  }
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
})();
