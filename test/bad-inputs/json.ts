import type { Section } from "./row.ts";

export const json: Section = {
  title: "bodies",
  first: 100,
  last: 116,
  cases: [],
  elsewhere: [],
  unasserted: [],
};
