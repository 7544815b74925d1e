import { createLog, type Log } from "#shared/process/log.ts";

type Write = (this: Log, fields: unknown, message: unknown, level: number) => void;

/** Whoever starts a process waits for this line; after it only warnings are written. */
const lastLine = / ready$/;

const ofAllLogs = Object.getPrototypeOf(Object.getPrototypeOf(createLog({ level: "silent", name: "" }))) as object;
const writing = Object.getOwnPropertySymbols(ofAllLogs).find(({ description }) => description === "pino.write");
if (writing === undefined) throw new Error("pino writes its lines in another way than it did");
const write = Reflect.get(ofAllLogs, writing) as Write;
const writeUntilReady: Write = function (fields, message, level) {
  write.call(this, fields, message, level);
  if (typeof message === "string" && lastLine.test(message)) this.level = "warn";
};
Reflect.set(ofAllLogs, writing, writeUntilReady);
