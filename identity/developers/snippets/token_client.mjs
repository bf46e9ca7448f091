// Fetches access tokens, renews each in time, and uses it meanwhile. Node.js 18 or newer.
const AUTH_URL = "http://127.0.0.1:8000";

const now = () => performance.now() / 1000; // only goes forward
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

  // Calls an API. A token that it does not take any more (401) is replaced once.
  async get(url, onBehalfOf = "") {
    for (let attempt = 1; ; attempt++) {
      const headers = { Authorization: `Bearer ${await this.token(onBehalfOf)}` };
      const answer = await fetch(url, { headers });
      if (answer.status !== 401 || attempt === 2) return answer;
      this.#tokens.delete(onBehalfOf);
    }
  }

  // For your own taxpayer, or for another one: TIN or TIN:ROB.
  async token(onBehalfOf = "") {
    let stored = this.#tokens.get(onBehalfOf);
    if (!stored || now() >= Math.min(stored.renewAt, stored.endsAt)) {
      stored = await this.#renewed(stored, onBehalfOf);
      this.#tokens.set(onBehalfOf, stored);
    }
    return stored.token;
  }

  // The next token. While the service is away the old one, until it ends.
  async #renewed(old, onBehalfOf) {
    if (old) await seconds(Math.max(0, old.renewAt - now())); // it ended before the pause
    for (let failures = old?.failures ?? 0; ; failures++) {
      const askedAt = now(); // before the answer, which may be slow
      const { status, body, retryAfter } = await this.#logIn(onBehalfOf);
      if (status === 200) {
        // At a random moment, so that not all clients come at once.
        const renewAt = askedAt + body.expires_in * (0.5 + 0.4 * Math.random());
        return { token: body.access_token, renewAt, endsAt: askedAt + body.expires_in, failures: 0 };
      }
      const isUsable = old && now() < old.endsAt;
      if (![0, 429, 503].includes(status) || (failures >= 4 && !isUsable))
        throw new Refused(body.error_description);
      console.error(body.error_description); // your log
      // Longer after each failure, but not the same for all.
      const pause = retryAfter * 2 ** Math.min(failures, 6) * (1 + Math.random() / 2);
      if (isUsable) return { ...old, renewAt: now() + pause, failures: failures + 1 };
      await seconds(pause);
    }
  }

  // `status` is 0 without an answer.
  async #logIn(onBehalfOf) {
    try {
      const answer = await fetch(`${AUTH_URL}/connect/token`, {
        method: "POST",
        body: new URLSearchParams({ grant_type: "client_credentials", ...this.#credentials }),
        headers: onBehalfOf ? { onbehalfof: onBehalfOf } : {},
        signal: AbortSignal.timeout(10_000),
      });
      const retryAfter = Number(answer.headers.get("Retry-After") ?? 1);
      return { status: answer.status, body: await answer.json(), retryAfter };
    } catch (error) {
      return { status: 0, body: { error_description: error.message }, retryAfter: 1 };
    }
  }
}

const { CLIENT_ID, CLIENT_SECRET, ONBEHALFOF = "", CALLS = "2" } = process.env;
try {
  if (!CLIENT_ID || !CLIENT_SECRET) throw new Refused("Set CLIENT_ID and CLIENT_SECRET.");
  const client = new TokenClient(CLIENT_ID, CLIENT_SECRET);
  for (let call = 1; call <= Number(CALLS); call++) {
    // The second call uses the same token.
    for (const taxpayer of ONBEHALFOF.split(" ")) {
      console.log(await (await client.get(`${AUTH_URL}/api/v1/me`, taxpayer)).text());
    }
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
