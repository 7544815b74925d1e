/** Exit codes for scripts; the numbers follow sysexits. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 64,
  unavailable: 69,
  cannotCreate: 73,
  config: 78,
} as const;

/** A failed start or command, explained to a person in one line that names the remedy. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
