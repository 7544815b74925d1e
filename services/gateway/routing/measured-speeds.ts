/** The recent speed of a machine with a model. */
export interface Speed {
  /** Time to a first token besides the computation of the prompt: the line to the machine, and the start of the job. */
  readonly beginMs: number;
  /** Time to compute one token of a prompt. */
  readonly promptTokenMs: number;
  /** Time of one token of an answer that runs alone. */
  readonly tokenMs: number;
  /** Time by which each further running answer delays a token. */
  readonly jobTokenMs: number;
  /** Time of a whole answer after its first token, as answers were long there lately. */
  readonly answerMs: number;
}

/** A measured speed, of which parts may not have been measured yet. */
export type MeasuredSpeed = Pick<Speed, "beginMs" | "promptTokenMs"> & Partial<Speed>;

/** Limits the speeds that are remembered, one for each model on a machine. */
export const speedsKeptMax = 10_000;
/** Models beyond this number are forgotten, the least recently measured first. */
const modelsMax = 1_000;
/** A machine without an answer for this long is measured anew: a slow answer may have included loading the model. */
const measuredForMs = 600_000;
/** Interval at which the usual speed of a model's machines is determined anew. */
const usualForMs = 1_000;
/** A time this many times over the expected one counts as no longer: the model was loaded, or the line stood still. */
const surpriseMax = 4;
/** Times below this are as if they were this long when they are compared with a longer one. */
const noticedMs = 1;
/** The part of a token's time by which each further job is expected to delay it, until that is measured. */
const jobDelayUsual = 0.1;
const promptTokenMsMin = 0.0001;
/** Length of answers until one has ended. */
const answerTokensUsual = 200;
/** Limits how far a machine's count of a prompt may lie from the gateway's estimate. */
const ratioMax = 4;

interface MeasuredTimes {
  /** Times to the first token, by the tokens of prompts that had to be computed until then. */
  readonly firsts: LineFit;
  /** Times of a token, by the number of running answers. */
  readonly tokens: LineFit;
  readonly answers: LineFit;
  atMs: number;
}

interface OfModel {
  readonly machines: Map<string, MeasuredTimes>;
  readonly answers: LineFit;
  readonly ratios: LineFit;
  usualPromptTokenMs: number | undefined;
  usualAtMs: number;
}

/**
 * Measures the speed of each machine with each model on this gateway's own jobs, by this gateway's clock. Machines report
 * none: no machine attracts jobs by a claim.
 */
export class MeasuredSpeeds {
  readonly #models = new Map<string, OfModel>();
  #size = 0;

  /** Notes that the first token came `ms` after its job was placed, and the prompt tokens computed until then. */
  begun(
    machine: string,
    model: string,
    { promptTokens, ms }: { promptTokens: number; ms: number },
    nowMs: number,
  ): void {
    const of = this.#of(model);
    const { firsts } = this.#measured(of, machine, nowMs);
    // A first answer may have waited for the model to be loaded, and the other machines show what is usual.
    const expectedMs =
      firsts.weight < 2
        ? timeOfOthers(of, machine, { promptTokens, nowMs })
        : firsts.at(promptTokens, usualOf(of, firsts, nowMs));
    firsts.add(promptTokens, bounded(ms, expectedMs));
  }

  /** Notes that the tokens of an answer took `ms` from the first to the last, while so many answers ran there. */
  answered(
    machine: string,
    model: string,
    answer: { running: number; tokens: number; ms: number },
    nowMs: number,
  ): void {
    const { running, tokens, ms } = answer;
    const measured = this.#measured(this.#of(model), machine, nowMs);
    const { answers, tokens: times } = measured;
    answers.add(0, bounded(ms, answers.weight < 2 ? undefined : answers.meanY));
    if (tokens < 2) return;
    const tokenMs = ms / (tokens - 1);
    const expectedMs = times.weight < 2 ? undefined : times.at(running, jobDelayUsual * ownMean(times));
    times.add(running, bounded(tokenMs, expectedMs));
  }

  /** Notes the length of an answer and of its prompt, and the prompt's length as it was estimated before. */
  counted(model: string, { answer, prompt, estimated }: { answer: number; prompt: number; estimated: number }): void {
    const of = this.#of(model);
    of.answers.add(0, answer);
    if (prompt > 0 && estimated > 0) of.ratios.add(0, Math.min(ratioMax, Math.max(1 / ratioMax, prompt / estimated)));
  }

  /** The usual length of the model's answers in tokens. */
  answerTokens(model: string): number {
    const answers = this.#models.get(model)?.answers;
    return answers === undefined || answers.weight === 0 ? answerTokensUsual : answers.meanY;
  }

  /** The tokens that the model makes of each estimated token of a prompt. */
  ratio(model: string): number {
    const ratios = this.#models.get(model)?.ratios;
    return ratios === undefined || ratios.weight === 0 ? 1 : ratios.meanY;
  }

  /** Undefined until the first answer of the model on the machine. Without a token that followed another, it is partial. */
  of(machine: string, model: string, nowMs: number): MeasuredSpeed | undefined {
    const of = this.#models.get(model);
    const measured = of?.machines.get(machine);
    if (of === undefined || measured === undefined || isOver(measured, nowMs)) return undefined;
    const { firsts, tokens, answers } = measured;
    if (firsts.weight === 0) return undefined;
    const promptTokenMs = Math.max(promptTokenMsMin, firsts.rise(usualOf(of, firsts, nowMs)));
    const jobTokenMs = tokens.rise(jobDelayUsual * ownMean(tokens));
    return {
      beginMs: Math.max(0, firsts.meanY - promptTokenMs * firsts.meanX),
      promptTokenMs,
      ...(answers.weight > 0 && { answerMs: answers.meanY }),
      ...(tokens.weight > 0 && { tokenMs: Math.max(0, tokens.meanY - jobTokenMs * (tokens.meanX - 1)), jobTokenMs }),
    };
  }

  get size(): number {
    return this.#size;
  }

  /** Finds or adds a model, which is then the last to be forgotten. */
  #of(model: string): OfModel {
    const of = this.#models.get(model) ?? {
      machines: new Map<string, MeasuredTimes>(),
      answers: new LineFit(),
      ratios: new LineFit(),
      usualPromptTokenMs: undefined,
      usualAtMs: -Infinity,
    };
    this.#models.delete(model);
    this.#models.set(model, of);
    return of;
  }

  #measured({ machines }: OfModel, machine: string, nowMs: number): MeasuredTimes {
    let measured = machines.get(machine);
    if (measured === undefined || isOver(measured, nowMs)) {
      if (measured === undefined) this.#size += 1;
      measured = { firsts: new LineFit(), tokens: new LineFit(), answers: new LineFit(), atMs: nowMs };
      machines.set(machine, measured);
      this.#forgetOldest();
    }
    measured.atMs = nowMs;
    return measured;
  }

  #forgetOldest(): void {
    for (const [model, { machines }] of this.#models) {
      if (this.#size <= speedsKeptMax && this.#models.size <= modelsMax) return;
      this.#models.delete(model);
      this.#size -= machines.size;
    }
  }
}

function isOver({ atMs }: MeasuredTimes, nowMs: number): boolean {
  return nowMs - atMs > measuredForMs;
}

/** Bounds a time by what was expected, so that one surprise decides little and many are followed. */
function bounded(ms: number, expectedMs: number | undefined): number {
  return expectedMs === undefined ? ms : Math.min(ms, surpriseMax * Math.max(noticedMs, expectedMs));
}

/** Returns the usual time to the first token of the same prompt on the model's other machines. */
function timeOfOthers(
  { machines }: OfModel,
  machine: string,
  { promptTokens, nowMs }: { readonly promptTokens: number; readonly nowMs: number },
): number | undefined {
  const times: number[] = [];
  for (const [name, measured] of machines) {
    const { firsts } = measured;
    if (name !== machine && firsts.weight > 0 && !isOver(measured, nowMs))
      times.push(firsts.at(promptTokens, ownMean(firsts)));
  }
  return median(times);
}

/** Returns the rise that is usual for the model's machines, or the machine's own mean while no machine was measured. */
function usualOf(of: OfModel, firsts: LineFit, nowMs: number): number {
  if (nowMs - of.usualAtMs >= usualForMs) {
    const rises: number[] = [];
    for (const measured of of.machines.values()) {
      const { firsts: each } = measured;
      if (each.weight > 0 && !isOver(measured, nowMs)) rises.push(each.rise(of.usualPromptTokenMs ?? ownMean(each)));
    }
    of.usualPromptTokenMs = median(rises);
    of.usualAtMs = nowMs;
  }
  return of.usualPromptTokenMs ?? ownMean(firsts);
}

function ownMean({ meanX, meanY }: LineFit): number {
  return meanY / Math.max(1, meanX);
}

/** Returns the middle one of the numbers. Undefined if there are none. */
export function median(numbers: readonly number[]): number | undefined {
  return numbers.toSorted((one, other) => one - other)[numbers.length >> 1];
}

/** About so many of the latest points count. */
const pointsKept = 30;

/**
 * A line through measured points, of which the latest count most. It takes the rise that is usual elsewhere as a point of
 * its own, so that few points, or points that lie close together, do not make a wild line.
 */
class LineFit {
  /** The number of points, of which older ones count less than one. */
  weight = 0;
  meanX = 0;
  meanY = 0;
  #spreadX = 0;
  #spreadXY = 0;

  add(x: number, y: number): void {
    const fading = 1 - 1 / pointsKept;
    const before = this.weight * fading;
    this.weight = before + 1;
    const [dx, dy] = [x - this.meanX, y - this.meanY];
    this.meanX += dx / this.weight;
    this.meanY += dy / this.weight;
    const share = before / this.weight;
    this.#spreadX = this.#spreadX * fading + share * dx * dx;
    this.#spreadXY = this.#spreadXY * fading + share * dx * dy;
  }

  /** The rise of y for each unit of x, never negative. */
  rise(usual: number): number {
    const doubt = this.meanX * this.meanX;
    const spread = this.#spreadX + doubt;
    return spread === 0 ? usual : Math.max(0, (this.#spreadXY + doubt * usual) / spread);
  }

  at(x: number, usual: number): number {
    return Math.max(0, this.meanY + this.rise(usual) * (x - this.meanX));
  }
}
