// Updates charts during a run. The page's event stream adds elements with JSON to #news: points that replace all points
// after a given time. The `meta` of a trace names the values of its points; charts.js redraws changed figures.
"use strict";
(() => {
  const waiting = [];
  let isScheduled = false;

  const at = (point, path) => path.split(".").reduce((value, name) => value?.[name], point) ?? null;

  // Returns how many of the times stay.
  function countKept(times, after) {
    if (after === null) return 0;
    let count = times.length;
    while (count > 0 && times[count - 1] > after) count--;
    return count;
  }

  function extend(trace, points, after, layout) {
    const { meta, x } = trace;
    if ("constant" in meta) {
      x[x.length - 1] = points.at(-1).at_s;
      return;
    }
    const count = countKept(x, after);
    x.splice(count, Infinity, ...points.map((point) => point.at_s));
    if (meta.buckets) extendHeatmap(trace, count, points, layout);
    else trace.y.splice(count, Infinity, ...points.map((point) => scaled(at(point, meta.y), meta.unit)));
  }

  const scaled = (value, unit = 1) => (value === null ? null : value / unit);

  // One column per second, one row per latency band. Band n ends at 2^(n ÷ per_doubling) seconds.
  function extendHeatmap(trace, count, points, layout) {
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

  function apply(figure, portion) {
    for (const trace of figure.data) {
      const from = trace.meta?.from;
      if (from && portion[from].length) extend(trace, portion[from], portion[`${from}_after_s`], figure.layout);
    }
    const warmUp = figure.layout.shapes?.[0];
    if (warmUp && portion.phase === "warming_up" && portion.seconds.length) warmUp.x1 = portion.seconds.at(-1).at_s;
  }

  function flush() {
    isScheduled = false;
    const portions = waiting.splice(0);
    for (const source of document.querySelectorAll('figure[data-shares] > script[type="application/json"]')) {
      const figure = JSON.parse(source.textContent);
      for (const portion of portions) apply(figure, portion);
      const text = JSON.stringify(figure);
      if (text !== source.textContent) source.textContent = text;
    }
  }

  // Load and resource samples arrive shortly after each other: waits, to redraw once.
  function collect() {
    const news = document.getElementById("news");
    if (!news?.firstElementChild) return;
    waiting.push(...Array.from(news.children, (child) => JSON.parse(child.textContent)));
    news.replaceChildren();
    if (!isScheduled) setTimeout(flush, 100);
    isScheduled = true;
  }
  new MutationObserver(collect).observe(document.body, { childList: true, subtree: true });
  collect();
})();
