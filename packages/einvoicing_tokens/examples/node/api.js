// A protected API with Node.js and jose: npm ci && AUTH_URL=http://127.0.0.1:8000 PORT=9000 node api.js
import { createServer } from "node:http";
import { inflateSync } from "node:zlib";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";

const ISSUER = process.env.AUTH_URL;
const AUDIENCE = "InvoicingAPI";
const ALGORITHMS = ["ES256", "RS256", "PS256"];
const MAX_LIST_BYTES = 2 * 1024 * 1024;

class Refused extends Error {
  constructor(status, error, description, challenge = {}) {
    super(description);
    Object.assign(this, { status, error, challenge });
  }
}
const invalid = (text) =>
  new Refused(401, "invalid_token", text, { "WWW-Authenticate": 'Bearer error="invalid_token"' });
const insufficient = (text) =>
  new Refused(403, "insufficient_scope", text, {
    "WWW-Authenticate": 'Bearer error="insufficient_scope"',
  });
const unavailable = () =>
  new Refused(503, "temporarily_unavailable", "Tokens cannot be checked right now. Try again.", {
    "Retry-After": "5",
  });

// Keys are stored for a minute; an unknown one is looked up at most every 5 seconds.
const metadata = await (await fetch(`${ISSUER}/.well-known/oauth-authorization-server`)).json();
if (metadata.issuer !== ISSUER) throw new Error("These metadata are of another issuer.");
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri), {
  cacheMaxAge: 60_000,
  cooldownDuration: 5_000,
  timeoutDuration: 3_000,
});

export async function verify(authorization) {
  // All headers of that name: a proxy could read another one than this API.
  const match = authorization?.length === 1 && /^Bearer +([\w.-]+)$/i.exec(authorization[0]);
  if (!match) throw invalid("Send the header Authorization: Bearer, followed by one token.");
  const token = await payloadOf(match[1], {
    typ: "at+jwt",
    issuer: ISSUER,
    audience: AUDIENCE,
    clockTolerance: 10,
    requiredClaims: ["sub", "client_id", "jti", "iat", "exp", "scope", "taxpayer"],
  });
  if ("cnf" in token) throw invalid("The token is bound to a key of its client.");
  if ("act" in token && !Array.isArray(token.permissions)) throw invalid("Log in again.");
  if ("status" in token) await checkStatus(token.status.status_list);
  return token;
}

async function payloadOf(encoded, expected) {
  try {
    return (await jwtVerify(encoded, keys, { algorithms: ALGORITHMS, ...expected })).payload;
  } catch (error) {
    // What a token itself can cause. Anything else (no keys, no network) is not its fault.
    const causes = [
      errors.JWTInvalid, errors.JWTExpired, errors.JWTClaimValidationFailed, errors.JWSInvalid,
      errors.JWSSignatureVerificationFailed, errors.JWKSNoMatchingKey,
      errors.JOSEAlgNotAllowed, errors.JOSENotSupported,
    ];
    if (!causes.some((cause) => error instanceof cause)) throw unavailable();
    throw invalid("The token is expired, foreign or meant for another API. Log in again.");
  }
}

// Without `permissions` the taxpayer acts for itself, and may do everything.
const may = (token, permission) =>
  !("permissions" in token) || token.permissions.includes(permission);

function require(token, scope, permission) {
  if (!token.scope.split(" ").includes(scope)) throw insufficient(`The scope ${scope} is needed.`);
  if (!may(token, permission)) throw insufficient(`The permission ${permission} is needed.`);
}

// Status lists: the bit of an ended token is set. Each is stored for its `ttl`, and used until its `exp`.
const lists = new Map();

async function checkStatus({ idx, uri }) {
  // Never ask an address that is not the issuer's own.
  if (typeof uri !== "string" || !uri.startsWith(`${ISSUER}/status/`)) throw invalid("Log in again.");
  const { bits, bytes } = await statusList(uri);
  const perByte = 8 / bits;
  if (!Number.isInteger(idx) || idx < 0 || idx >= bytes.length * perByte) throw unavailable();
  const status = (bytes[Math.floor(idx / perByte)] >> ((idx % perByte) * bits)) & (2 ** bits - 1);
  if (status !== 0) throw invalid("The token is no longer active. Log in again.");
}

async function statusList(uri) {
  const stored = lists.get(uri);
  const now = Date.now() / 1000;
  if (stored && now < stored.freshUntil) return stored;
  try {
    const answer = await fetch(uri, { signal: AbortSignal.timeout(3_000), redirect: "error" });
    if (answer.status !== 200) throw unavailable();
    const { exp, ttl, status_list: list } = await payloadOf(await answer.text(), {
      typ: "statuslist+jwt",
      subject: uri,
      clockTolerance: 10,
      requiredClaims: ["iat", "exp", "status_list"],
    });
    const bytes = inflateSync(Buffer.from(list.lst, "base64url"), { maxOutputLength: MAX_LIST_BYTES });
    lists.set(uri, { bits: list.bits, bytes, freshUntil: now + (ttl ?? 5), exp });
    return lists.get(uri);
  } catch {
    if (stored && now < stored.exp + 10) return stored;
    throw unavailable();
  }
}

const NEEDED = { GET: "documents:view", POST: "documents:submit" };

createServer(async (request, response) => {
  const answer = (status, headers, body) =>
    response
      .writeHead(status, { "Content-Type": "application/json", ...headers })
      .end(JSON.stringify(body));
  try {
    const token = await verify(request.headersDistinct.authorization);
    require(token, "InvoicingAPI", NEEDED[request.method]);
    const body = { taxpayer: token.sub };
    if (request.method === "POST") answer(201, {}, body);
    else answer(200, {}, { ...body, actor: token.act?.sub ?? null });
  } catch (error) {
    if (!(error instanceof Refused)) error = unavailable();
    answer(error.status, error.challenge, { error: error.error, error_description: error.message });
  }
}).listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
