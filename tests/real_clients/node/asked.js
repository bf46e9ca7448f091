// What a test asks for comes as JSON on standard input; what a library returned or threw goes back.
import { readFileSync } from "node:fs";
import { importJWK } from "jose";

export const asked = JSON.parse(readFileSync(0, "utf8"));

export const privateKey = async () => ({
  key: await importJWK(asked.private_jwk, asked.algorithm),
  kid: asked.private_jwk.kid,
});

export async function answer(steps) {
  const returned = {};
  try {
    await steps(returned);
  } catch (error) {
    const { name, message, code, status, error: wire, error_description } = error;
    returned.thrown = { name, message, code, status, error: wire, error_description };
  }
  process.stdout.write(JSON.stringify(returned));
}
