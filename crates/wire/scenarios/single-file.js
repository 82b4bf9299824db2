// GET /file/{PAYLOAD}: one file over and over. PAYLOAD is 1k, 10k, 100k or 1m.
import http from 'k6/http';
import { check } from 'k6';

const base = __ENV.BASE_URL || 'http://127.0.0.1:8080';
const payload = __ENV.PAYLOAD || '1k';

const lengths = { '1k': 1024, '10k': 10240, '100k': 102400, '1m': 1048576 };
const length = lengths[payload];
if (length === undefined) {
  throw new Error(`PAYLOAD is ${payload}; it can be ${Object.keys(lengths).join(', ')}`);
}

export const options = { vus: 10, duration: '30s' };

// The body is read and dropped: handing a megabyte to the script would cost k6 more than fetching it.
const params = { responseType: 'none', tags: { name: `/file/${payload}` } };

export default function () {
  const response = http.get(`${base}/file/${payload}`, params);
  check(response, {
    'status is 200': (r) => r.status === 200,
    'length is right': (r) => Number(r.headers['Content-Length']) === length,
  });
}
