// The story with the types of openapi-typescript, and openapi-fetch.
import createClient from "openapi-fetch";
import type { paths as Management } from "./management.js";
import type { paths as Public } from "./public.js";

declare const process: { env: Record<string, string> };
const { URL: baseUrl, TIN: tin, CLIENT_ID: client_id, CLIENT_SECRET: client_secret, SCOPE: scope } = process.env;
const login = { grant_type: "client_credentials" as const, client_id, client_secret };
const logIn = (body: typeof login & { scope: string }) =>
  createClient<Public>({ baseUrl }).POST("/connect/token", {
    body,
    bodySerializer: (form) => new URLSearchParams(form as Record<string, string>),
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
  });
const refused = await logIn({ ...login, scope: "x" });
const { data: token } = await logIn({ ...login, scope });
const portal = createClient<Management>({ baseUrl, headers: { Authorization: `Bearer ${token!.access_token}` } });
const taxpayers = "/api/v1/management/taxpayers";
const created = await portal.POST(taxpayers, { body: { taxpayer: tin, name: "Kedai" } });
const rename = {
  params: { path: { taxpayer: tin }, header: { "If-Match": created.response.headers.get("ETag")! } },
  body: { name: "Kedai Runcit", reason: "A new sign" },
};
const renamed = await portal.PATCH(`${taxpayers}/{taxpayer}`, rename);
const stale = await portal.PATCH(`${taxpayers}/{taxpayer}`, rename);
const blank = await portal.POST(taxpayers, { body: { taxpayer: tin, name: " " } });
const found = await portal.GET(taxpayers, { params: { query: { tin } } });
console.log(JSON.stringify({
  refused: refused.error!.error,
  name: renamed.data!.name,
  registered_at: renamed.data!.registered_at,
  stale: stale.error!.status,
  pointer: blank.error!.errors![0].pointer,
  found: found.data!.items.map((one) => one.taxpayer),
}));
