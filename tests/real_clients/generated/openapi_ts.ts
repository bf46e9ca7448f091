// The story with the functions of openapi-ts.
import { client as portal } from "./management/client.gen.js";
import { changeTaxpayer, createTaxpayer, listTaxpayers } from "./management/sdk.gen.js";
import { logIn } from "./public/sdk.gen.js";

declare const process: { env: Record<string, string> };
const { URL: baseUrl, TIN: tin, CLIENT_ID: client_id, CLIENT_SECRET: client_secret, SCOPE: scope } = process.env;
const login = { grant_type: "client_credentials" as const, client_id, client_secret };
const refused = await logIn({ baseUrl, body: { ...login, scope: "x" } });
const token = await logIn({ baseUrl, body: { ...login, scope } });
portal.setConfig({ baseUrl, auth: token.data!.access_token });
const created = await createTaxpayer({ body: { taxpayer: tin, name: "Kedai" } });
const rename = {
  path: { taxpayer: tin },
  headers: { "If-Match": created.response!.headers.get("ETag")! },
  body: { name: "Kedai Runcit", reason: "A new sign" },
};
const renamed = await changeTaxpayer(rename);
const stale = await changeTaxpayer(rename);
const blank = await createTaxpayer({ body: { taxpayer: tin, name: " " } });
const found = await listTaxpayers({ query: { tin } });
console.log(JSON.stringify({
  refused: refused.error!.error,
  name: renamed.data!.name,
  registered_at: renamed.data!.registered_at,
  stale: stale.error!.status,
  pointer: blank.error!.errors![0].pointer,
  found: found.data!.items.map((one) => one.taxpayer),
}));
