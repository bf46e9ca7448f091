// Fetches access tokens, and uses each until shortly before it expires. Node.js 18 or newer.
const AUTH_URL = "http://127.0.0.1:8000";
const RENEW_EARLIER_SECONDS = 300;

const seconds = (count) => new Promise((resolve) => setTimeout(resolve, count * 1000));

// There is no token; the text says what to do, and ends with a reference for support.
export class Refused extends Error {}

// One for each client ID; it stores one token for each taxpayer that you act for.
export class TokenClient {
  #credentials;
  #tokens = new Map();

  constructor(clientId, clientSecret) {
    this.#credentials = { client_id: clientId, client_secret: clientSecret };
  }

  // For your own taxpayer, or for another one: TIN or TIN:ROB.
  async token(onBehalfOf = "") {
    let stored = this.#tokens.get(onBehalfOf);
    if (!stored || performance.now() >= stored.renewAt) {
      const body = await this.#logIn(onBehalfOf);
      const lifetime = body.expires_in - RENEW_EARLIER_SECONDS;
      stored = { token: body.access_token, renewAt: performance.now() + lifetime * 1000 };
      this.#tokens.set(onBehalfOf, stored);
    }
    return stored.token;
  }

  async #logIn(onBehalfOf) {
    for (let attempt = 0; ; attempt++) {
      const answer = await fetch(`${AUTH_URL}/connect/token`, {
        method: "POST",
        body: new URLSearchParams({ grant_type: "client_credentials", ...this.#credentials }),
        headers: onBehalfOf ? { onbehalfof: onBehalfOf } : {},
        signal: AbortSignal.timeout(10_000),
      });
      const body = await answer.json();
      if (answer.ok) return body;
      if (![429, 503].includes(answer.status) || attempt === 4)
        throw new Refused(body.error_description);
      await seconds(Number(answer.headers.get("Retry-After") ?? 2 ** attempt));
    }
  }
}

const { CLIENT_ID, CLIENT_SECRET, ONBEHALFOF } = process.env;
try {
  if (!CLIENT_ID || !CLIENT_SECRET) throw new Refused("Set CLIENT_ID and CLIENT_SECRET.");
  const client = new TokenClient(CLIENT_ID, CLIENT_SECRET);
  for (let call = 1; call <= 2; call++) {
    // The second call uses the same token.
    const headers = { Authorization: `Bearer ${await client.token(ONBEHALFOF)}` };
    console.log(await (await fetch(`${AUTH_URL}/api/v1/me`, { headers })).text());
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
