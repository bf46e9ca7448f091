// oidc-provider with only the client credentials grant, on PostgreSQL: a process for each worker.
import cluster from "node:cluster";
import { generateKeyPairSync } from "node:crypto";

import Provider from "oidc-provider";
import pg from "pg";

const { DATABASE_URL, ISSUER, PORT, TOKENS, WORKERS, SIGNING_KEY } = process.env;
const SCOPE = "InvoicingAPI";
const API = "https://127.0.0.1/api";

// Where it finds its clients and stores its tokens: the only two models of this grant. Each
// statement commits by itself, and is prepared once on each connection.
class Adapter {
  // Without an end for idle ones: PostgreSQL would end them while another server is measured.
  static pool = new pg.Pool({ connectionString: DATABASE_URL, max: 32, idleTimeoutMillis: 0 });

  constructor(model) {
    this.table = model === "Client" ? "clients" : "tokens";
  }

  async find(id) {
    const { rows } = await Adapter.pool.query({
      name: `find in ${this.table}`,
      text: `SELECT payload FROM ${this.table} WHERE id = $1`,
      values: [id],
    });
    return rows[0]?.payload;
  }

  async upsert(id, payload, seconds) {
    await Adapter.pool.query({
      name: `upsert into ${this.table}`,
      text: `INSERT INTO ${this.table} (id, payload, expires_at)
        VALUES ($1, $2, now() + $3 * interval '1 second')
        ON CONFLICT (id) DO UPDATE SET payload = excluded.payload, expires_at = excluded.expires_at`,
      values: [id, JSON.stringify(payload), seconds],
    });
  }
}

function serve() {
  const off = { enabled: false };
  const provider = new Provider(ISSUER, {
    adapter: Adapter,
    clientAuthMethods: ["client_secret_post"],
    clientDefaults: { id_token_signed_response_alg: "ES256" }, // of the only key
    scopes: [SCOPE],
    routes: { token: "/connect/token" },
    ttl: { ClientCredentials: 3600 },
    jwks: { keys: [JSON.parse(SIGNING_KEY)] },
    features: {
      clientCredentials: { enabled: true },
      // A token for a resource server can be a JWT, which is not stored; the default is opaque.
      resourceIndicators: {
        enabled: TOKENS === "signed",
        defaultResource: () => API,
        getResourceServerInfo: () => ({
          scope: SCOPE,
          audience: SCOPE,
          accessTokenTTL: 3600,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
      // This grant has no use for what else is on by default.
      devInteractions: off,
      dPoP: off,
      pushedAuthorizationRequests: off,
      rpInitiatedLogout: off,
      userinfo: off,
    },
  });
  provider.proxy = true; // which ends TLS
  provider.listen(Number(PORT), "127.0.0.1");
}

if (cluster.isPrimary) {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = { ...privateKey.export({ format: "jwk" }), alg: "ES256", use: "sig" };
  for (let i = 0; i < Number(WORKERS); i++) cluster.fork({ SIGNING_KEY: JSON.stringify(key) });
  cluster.on("exit", () => process.exit(1));
} else {
  serve();
}
