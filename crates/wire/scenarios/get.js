// GET ROUTE: any path of any server. ROUTE begins with a slash, such as /health.
import http from 'k6/http';
import { check } from 'k6';

const base = __ENV.BASE_URL || 'http://127.0.0.1:8080';
const route = __ENV.ROUTE || '/';

if (!route.startsWith('/')) {
  throw new Error(`ROUTE is ${route}; it must begin with /`);
}

export const options = { vus: 10, duration: '30s' };

const params = { tags: { name: route } };

export default function () {
  const response = http.get(`${base}${route}`, params);
  check(response, { 'status is 200': (r) => r.status === 200 });
}
