import type { Section } from "./row.ts";

export const hostileAgents: Section = {
  title: "machines that mean harm",
  first: 145,
  last: 155,
  cases: [],
  elsewhere: [],
  unasserted: [],
};
