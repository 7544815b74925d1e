import type { Section } from "./row.ts";

export const meaning: Section = {
  title: "what a request means",
  first: 117,
  last: 135,
  cases: [],
  elsewhere: [],
  unasserted: [],
};
