/**
 * Two lanes. `npm run test:more` runs the scenarios marked `fast` once, with the wire's times halved. `npm run
 * test:faults` runs all of them with the wire's own times and, where chance plays a part, with three seeds, and prints a table.
 * `FAULTS_ROWS=3,8`, `FAULTS_SEEDS=7` and `FAULTS_SCALE=0.5` choose what either lane runs: a failure names its seed.
 */
export interface Lane {
  readonly isWhole: boolean;
  readonly scale: number;
  readonly seeds: readonly number[];
  /** Only these, or all of them. */
  readonly rows: readonly number[] | undefined;
}

export function laneOf(environment: NodeJS.ProcessEnv): Lane {
  const isWhole = environment["FAULTS_LANE"] === "whole";
  return {
    isWhole: isWhole || environment["FAULTS_ROWS"] !== undefined,
    scale: Number(environment["FAULTS_SCALE"] ?? (isWhole ? 1 : 0.5)),
    seeds: numbersIn(environment["FAULTS_SEEDS"]) ?? (isWhole ? [1, 2, 3] : [1]),
    rows: numbersIn(environment["FAULTS_ROWS"]),
  };
}

/** This process's own lane. */
export const lane = laneOf(process.env);

/** Whether a test is to be left out here, since it takes the whole lane; says so once where it is. */
export function onlyInWholeLane(what: string): boolean {
  if (!lane.isWhole) console.log(`Skipping ${what}: it takes long, and runs with \`npm run test:faults\`.`);
  return !lane.isWhole;
}

function numbersIn(text: string | undefined): number[] | undefined {
  return text === undefined ? undefined : text.split(",").map(Number);
}
