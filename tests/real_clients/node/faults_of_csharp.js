// Where the C# program on stdin is not of the grammar of C#. Whether names and types are right, only a compiler knows.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Language, Parser } from "web-tree-sitter";

await Parser.init();
const grammar = createRequire(import.meta.url).resolve("tree-sitter-c-sharp/tree-sitter-c_sharp.wasm");
const parser = new Parser();
parser.setLanguage(await Language.load(grammar));
const faults = [];
const visit = (node) => {
  if (node.isError || node.isMissing) faults.push([node.startPosition.row + 1, node.text]);
  node.children.forEach(visit);
};
visit(parser.parse(readFileSync(0, "utf8")).rootNode);
console.log(JSON.stringify(faults));
