// The requests of a page view, as a browser has them in flight at once: assets and redirects from site-mix.json.
import http from 'k6/http';
import { check } from 'k6';
import { SharedArray } from 'k6/data';

const base = __ENV.BASE_URL || 'http://127.0.0.1:8080';

const entries = new SharedArray('site-mix', () => JSON.parse(open('./site-mix.json')));

export const options = { vus: 10, duration: '30s' };

const requests = entries.map(({ path }) => ({
  method: 'GET',
  url: `${base}${path}`,
  params: { redirects: 0, responseType: 'none', tags: { name: path } },
}));

// One check an entry; made once, since making them anew for each page view would cost k6 time.
const checks = entries.map(({ path, status }) => ({ [`${path} is ${status}`]: (r) => r.status === status }));

export default function () {
  http.batch(requests).forEach((response, i) => check(response, checks[i]));
}
