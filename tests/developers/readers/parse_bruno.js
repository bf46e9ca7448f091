// Bruno's files on stdin ({path: text}) as its own parser reads them. It ends with an error at the first fault.
import { readFileSync } from "node:fs";
import bruno from "@usebruno/lang";

const parsed = {};
for (const [path, text] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  if (path.startsWith("environments/")) parsed[path] = bruno.bruToEnvJsonV2(text);
  else if (/(^|\/)(collection|folder)\.bru$/.test(path)) parsed[path] = bruno.collectionBruToJson(text);
  else parsed[path] = bruno.bruToJsonV2(text);
}
console.log(JSON.stringify(parsed));
