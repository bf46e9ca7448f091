// What abaplint finds wrong in the ABAP report on stdin, as SAP NetWeaver 7.50 would read it. Classes of
// SAP itself are not known here, and are not looked into.
const { readFileSync } = require("node:fs");
const { Config, MemoryFile, Registry } = require("@abaplint/core");

const config = Config.getDefault().get();
config.syntax = { ...config.syntax, version: "v750", errorNamespace: "^[ZY]" };
config.rules = { parser_error: true, check_syntax: true, unknown_types: true, unused_variables: true };
const registry = new Registry(new Config(JSON.stringify(config)));
registry.addFile(new MemoryFile("z_token_client.prog.abap", readFileSync(0, "utf8")));
const faults = registry.parse().findIssues();
console.log(JSON.stringify(faults.map((fault) => [fault.getStart().getRow(), fault.getMessage()])));
