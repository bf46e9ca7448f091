// A protected API with Node.js and jose: npm ci && AUTH_URL=http://127.0.0.1:8000 PORT=9000 node api.js
import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { createLocalJWKSet, errors, jwtVerify } from "jose";

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

// What the service publishes: a timer fetches it again before it is too old, without a request that
// waits for it; while the service is away the last answer is used, for as long as `read` says. In
// FOLDER it outlives a restart.
const answers = new Map();

async function published(url, read) {
  const known = answers.get(url);
  const now = Date.now() / 1000;
  // The timer is late only if this process was stopped for a while.
  if (known?.value && now < Math.min(known.usableUntil, known.freshUntil + 5)) return known.value;
  await renew(url, read);
  return answers.get(url).value;
}

function renew(url, read) {
  const known = answers.get(url) ?? { read };
  answers.set(url, known);
  known.underWay ??= fetchAnswer(url, read, known).finally(() => (known.underWay = null));
  return known.underWay;
}

// How old the oldest answer is, and how long tokens can be checked if nothing newer comes.
function status() {
  const now = Date.now() / 1000;
  const known = [...answers].filter(([, { value }]) => value);
  return {
    age_seconds: Math.max(0, ...known.map(([, { made }]) => now - made)),
    usable_seconds: Math.min(...known.map(([, { usableUntil }]) => usableUntil - now)),
    failed: [...answers].filter(([, { hasFailed }]) => hasFailed).map(([url]) => url),
  };
}

let toldAt = 0;
setInterval(() => {
  const now = Date.now() / 1000;
  for (const [url, { read, freshUntil }] of answers)
    if (now >= freshUntil - 1) renew(url, read).catch(() => {});
  if (status().failed.length && now >= toldAt + 60) {
    toldAt = now;
    console.warn("The identity service cannot be reached:", JSON.stringify(status()));
  }
}, 500).unref();

async function fetchAnswer(url, read, known) {
  const file = process.env.FOLDER && join(process.env.FOLDER, encodeURIComponent(url));
  known.triedAt = Date.now() / 1000;
  const take = async (body, at) => Object.assign(known, await read(body, at, known));
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(3_000), redirect: "error" });
    if (answer.status !== 200) throw unavailable();
    const body = await answer.text();
    await take(body, Date.now() / 1000);
    known.hasFailed = false;
    if (file) {
      await writeFile(`${file}.new`, body, { mode: 0o600 });
      await rename(`${file}.new`, file);
    }
  } catch {
    known.hasFailed = true;
    known.freshUntil = Date.now() / 1000 + 2; // the next try is a second before
    if (!known.value && file)
      await take(await readFile(file, "utf8"), (await stat(file)).mtimeMs / 1000).catch(() => {});
    if (!known.value || Date.now() / 1000 >= known.usableUntil) throw unavailable();
  }
}

async function readMetadata(body, at) {
  const value = JSON.parse(body);
  if (value.issuer !== ISSUER) throw new Error("These metadata are of another issuer.");
  return { value, made: at, freshUntil: at + 300, usableUntil: at + 86_400 };
}

async function readKeys(body, at) {
  return { value: createLocalJWKSet(JSON.parse(body)), made: at, freshUntil: at + 60, usableUntil: at + 3600 };
}

// An unknown key is looked up, at most every 5 seconds.
async function keys(header, token) {
  const { jwks_uri: uri } = await published(`${ISSUER}/.well-known/oauth-authorization-server`, readMetadata);
  try {
    return await (await published(uri, readKeys))(header, token);
  } catch (error) {
    const known = answers.get(uri);
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    if (Date.now() / 1000 >= known.triedAt + 5) await renew(uri, readKeys);
    if (known.hasFailed) throw unavailable(); // it may be a new key
    return known.value(header, token);
  }
}

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

// Status lists: the bit of an ended token is set. Each is fresh for its `ttl`, and used until its `exp`.
async function checkStatus({ idx, uri }) {
  // Never ask an address that is not the issuer's own.
  if (typeof uri !== "string" || !uri.startsWith(`${ISSUER}/status/`)) throw invalid("Log in again.");
  const { bits, bytes } = await published(uri, readList(uri));
  const perByte = 8 / bits;
  if (!Number.isInteger(idx) || idx < 0 || idx >= bytes.length * perByte) throw invalid("Log in again.");
  const status = (bytes[Math.floor(idx / perByte)] >> ((idx % perByte) * bits)) & (2 ** bits - 1);
  if (status !== 0) throw invalid("The token is no longer active. Log in again.");
}

const readList = (uri) => async (body, at, known) => {
  const { iat, exp, ttl, status_list: list } = await payloadOf(body, {
    typ: "statuslist+jwt",
    subject: uri,
    clockTolerance: 10,
    requiredClaims: ["iat", "exp", "status_list"],
  });
  // A node that has lost its database answers with its last list: never go back to an older one.
  if (iat < known.iat) throw unavailable();
  const bytes = inflateSync(Buffer.from(list.lst, "base64url"), { maxOutputLength: MAX_LIST_BYTES });
  const made = iat === known.iat ? known.made : at; // it is no newer than before
  const value = { bits: list.bits, bytes };
  return { value, iat, made, freshUntil: at + (ttl ?? 5), usableUntil: exp + 10 };
};

const NEEDED = { GET: "documents:view", POST: "documents:submit" };

createServer(async (request, response) => {
  const answer = (status, headers, body) =>
    response
      .writeHead(status, { "Content-Type": "application/json", ...headers })
      .end(JSON.stringify(body));
  try {
    if (request.url === "/health") return answer(200, {}, status());
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
