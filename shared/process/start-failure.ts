/** Exit codes that scripts can rely on; the numbers are those of sysexits. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 64,
  unavailable: 69,
  cannotCreate: 73,
  config: 78,
} as const;

/** Why a process did not start or a command did not work, told to a person: one line, with what to do about it. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
