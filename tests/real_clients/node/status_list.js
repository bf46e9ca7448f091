// A reader of status lists that is not ours: jose for the signature and the dates, and the library of
// the OpenWallet Foundation for the list.
import { getListFromStatusListJWT, getStatusListFromJWT } from "@sd-jwt/jwt-status-list";
import { createLocalJWKSet, jwtVerify } from "jose";

let input = "";
for await (const chunk of process.stdin) input += chunk;
const { tokens, list, jwks, at } = JSON.parse(input);
const { payload } = await jwtVerify(list, createLocalJWKSet(jwks), {
  typ: "statuslist+jwt",
  subject: getStatusListFromJWT(tokens[0]).uri,
  currentDate: new Date(at * 1000),
});
const statuses = tokens.map((token) =>
  getListFromStatusListJWT(list).getStatus(getStatusListFromJWT(token).idx),
);
console.log(JSON.stringify({ statuses, ttl: payload.ttl, seconds: payload.exp - payload.iat }));
