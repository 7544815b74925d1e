import { InvalidArgumentError } from "commander";

/** Returns a reader of some of these names, with commas between. */
export function readAmong(names: readonly string[]): (text: string) => readonly string[] {
  return (text) => {
    const given = text.split(",").filter((name) => name !== "");
    const unknown = given.filter((name) => !names.includes(name));
    if (unknown.length === 0) return given;
    throw new InvalidArgumentError(`${unknown.join(", ")}: unknown; --help lists all names.`);
  };
}

export function readCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  throw new InvalidArgumentError("It must be a whole number above 0.");
}
