import { Option } from "commander";

export interface GivenJson {
  readonly json?: true | undefined;
}

export function jsonOption(): Option {
  return new Option("--json", "print the result as one line of JSON");
}
