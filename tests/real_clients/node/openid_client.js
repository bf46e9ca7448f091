// The life of a token with openid-client: discover, log in, introspect, revoke.
import * as oauth from "openid-client";
import { answer, asked, privateKey } from "./asked.js";

const authentication = {
  client_secret_post: () => oauth.ClientSecretPost(asked.client_secret),
  client_secret_basic: () => oauth.ClientSecretBasic(asked.client_secret),
  private_key_jwt: async () => oauth.PrivateKeyJwt(await privateKey()),
};

// It has no parameter for headers of a login: one's own fetch adds them.
const fetchOnBehalf = (url, options) =>
  fetch(url, { ...options, headers: { ...options.headers, ...asked.headers } });

const discover = (clientId, proof) =>
  oauth.discovery(new URL(asked.issuer), clientId, undefined, proof, {
    algorithm: "oauth2",
    execute: [oauth.allowInsecureRequests], // the service of a test has no TLS
  });

await answer(async (returned) => {
  const client = await discover(asked.client_id, await authentication[asked.method]());
  client[oauth.customFetch] = fetchOnBehalf;
  returned.metadata = client.serverMetadata();
  const bound = asked.is_bound
    ? { DPoP: oauth.getDPoPHandle(client, await oauth.randomDPoPKeyPair(asked.algorithm_of_proofs)) }
    : {};
  returned.token = await oauth.clientCredentialsGrant(client, { scope: "InvoicingAPI" }, bound);

  const token = returned.token.access_token;
  if (asked.is_bound) {
    const url = new URL(asked.resource);
    const none = [null, new Headers()];
    const answer = await oauth.fetchProtectedResource(client, token, url, "GET", ...none, bound);
    returned.resource = await answer.json();
    return;
  }
  const api = await discover(
    asked.api.client_id,
    oauth.ClientSecretBasic(asked.api.client_secret),
  );
  returned.introspected = await oauth.tokenIntrospection(api, token);
  await oauth.tokenRevocation(client, token);
  returned.revoked = await oauth.tokenIntrospection(api, token);
});
