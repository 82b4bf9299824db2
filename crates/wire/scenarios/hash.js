// GET /hash: a small answer that costs the target some computing.
import http from 'k6/http';
import { check } from 'k6';

const base = __ENV.BASE_URL || 'http://127.0.0.1:8080';

export const options = { vus: 10, duration: '30s' };

export default function () {
  const response = http.get(`${base}/hash`, { tags: { name: '/hash' } });
  check(response, {
    'status is 200': (r) => r.status === 200,
    'answer has a hash': (r) => r.body !== null && r.body.includes('"hash"'),
  });
}
