// The life of a token with oauth4webapi: discover, log in, check as a protected API, introspect, revoke.
import * as oauth from "oauth4webapi";
import { answer, asked, privateKey } from "./asked.js";

const options = { [oauth.allowInsecureRequests]: true }; // the service of a test has no TLS
const authentication = {
  client_secret_post: () => oauth.ClientSecretPost(asked.client_secret),
  client_secret_basic: () => oauth.ClientSecretBasic(asked.client_secret),
  private_key_jwt: async () => oauth.PrivateKeyJwt(await privateKey()),
};

await answer(async (returned) => {
  const issuer = new URL(asked.issuer);
  const server = await oauth
    .discoveryRequest(issuer, { algorithm: "oauth2", ...options })
    .then((response) => oauth.processDiscoveryResponse(issuer, response));
  returned.metadata = server;

  const client = { client_id: asked.client_id };
  const proof = await authentication[asked.method]();
  const bound = asked.is_bound
    ? { DPoP: oauth.DPoP(client, await oauth.generateKeyPair(asked.algorithm_of_proofs)) }
    : {};
  const logIn = () =>
    oauth
      .clientCredentialsGrantRequest(
        server,
        client,
        proof,
        { scope: "InvoicingAPI" },
        { headers: asked.headers, ...bound, ...options },
      )
      .then((response) => oauth.processClientCredentialsResponse(server, client, response));
  returned.token = await logIn().catch((error) => {
    if (oauth.isDPoPNonceError(error)) return logIn(); // it has stored the nonce
    throw error;
  });

  const token = returned.token.access_token;
  if (asked.is_bound) {
    const url = new URL(asked.resource);
    const answer = await oauth.protectedResourceRequest(token, "GET", url, new Headers(), null, {
      ...bound,
      ...options,
    });
    returned.resource = await answer.json();
    return;
  }
  const headers = { authorization: `Bearer ${token}` };
  const request = new Request("http://127.0.0.1/documents", { headers });
  returned.claims = await oauth.validateJwtAccessToken(server, request, "InvoicingAPI", options);

  const api = { client_id: asked.api.client_id };
  const secret = oauth.ClientSecretBasic(asked.api.client_secret);
  const introspect = async (more = {}) => {
    const wanted = { ...options, ...more };
    const response = await oauth.introspectionRequest(server, api, secret, token, wanted);
    const introspected = await oauth.processIntrospectionResponse(server, api, response);
    if (more.requestJwtResponse) {
      await oauth.validateApplicationLevelSignature(server, response, options);
    }
    return introspected;
  };
  returned.introspected = await introspect();
  returned.signed = await introspect({ requestJwtResponse: true });

  const revocation = await oauth.revocationRequest(server, client, proof, token, options);
  await oauth.processRevocationResponse(revocation);
  returned.revoked = await introspect();
});
